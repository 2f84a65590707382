package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import scala.Option;
import scala.collection.immutable.Seq;

/** A scan of a physical plan that counts its files. */
abstract class CountedScan {
    final SparkPlan plan;
    private final Seq runtimeFilters;

    CountedScan(SparkPlan plan, Seq runtimeFilters) {
        this.plan = plan;
        this.runtimeFilters = runtimeFilters;
    }

    /** Null for any other plan. */
    static CountedScan of(SparkPlan plan) {
        if (plan instanceof FileSourceScanExec) {
            return new Files((FileSourceScanExec) plan);
        }
        try {
            Iceberg read = plan instanceof BatchScanExec ? Iceberg.read(((BatchScanExec) plan).scan()) : null;
            return read == null ? null : new OfIceberg((BatchScanExec) plan, read);
        } catch (Exception problem) {
            return null; // a version of Iceberg that is not known
        }
    }

    /** How many files it listed in this run; none if it did not list again. */
    abstract long files();

    abstract long bytes();

    abstract String table();

    abstract String[] roots();

    /** What lakebloom decided about the files; null if nothing. */
    abstract LakebloomFileIndex decided();

    /** Whether the files that were listed are those that were read. */
    boolean isCertain() {
        return true;
    }

    long rows() {
        return SparkPlans.metric(plan, "numOutputRows", 0);
    }

    /** Whether files are skipped that only a query that runs can tell. */
    boolean decidesAtRunTime() {
        for (Iterator it = Scala.list(runtimeFilters).iterator(); it.hasNext();) {
            if (hasPlan((Expression) it.next())) {
                return true;
            }
        }
        return false;
    }

    private static boolean hasPlan(Expression expression) {
        if (expression instanceof PlanExpression) {
            return true;
        }
        for (Iterator it = Scala.list(expression.children()).iterator(); it.hasNext();) {
            if (hasPlan((Expression) it.next())) {
                return true;
            }
        }
        return false;
    }

    /** By Spark's own reader. */
    private static final class Files extends CountedScan {
        private final FileSourceScanExec scan;

        Files(FileSourceScanExec scan) {
            super(scan, (Seq) scan.partitionFilters());
            this.scan = scan;
        }

        long files() {
            return SparkPlans.metric(scan, "numFiles", 0);
        }

        long bytes() {
            return SparkPlans.metric(scan, "filesSize", 0);
        }

        String table() {
            Option table = scan.tableIdentifier();
            return table.isDefined() ? table.get().toString().replace("`", "") : null;
        }

        String[] roots() {
            List roots = new ArrayList();
            FileIndex location = scan.relation().location();
            for (Iterator it = Scala.list(location.rootPaths()).iterator(); it.hasNext();) {
                roots.add(((Path) it.next()).toUri().getPath());
            }
            return (String[]) roots.toArray(new String[0]);
        }

        LakebloomFileIndex decided() {
            return LakebloomFileIndex.of(scan.relation().location());
        }
    }

    /** By Iceberg's reader. It has no metric of files, but the tasks that are left when the query has run. */
    private static final class OfIceberg extends CountedScan {
        /** A metric that is told once, when the tasks are known. */
        private static final String PLANNED = "resultDataFiles";
        private final BatchScanExec scan;
        private final Iceberg read;
        private final LakebloomFileIndex decided;
        private final List tasks;
        private final long bytes;
        private final boolean isCertain;

        OfIceberg(BatchScanExec scan, Iceberg read) throws Exception {
            super(scan, (Seq) scan.runtimeFilters());
            this.scan = scan;
            this.read = read;
            this.decided = read.decided();
            this.tasks = read.tasks();
            long sum = 0;
            for (Iterator it = tasks.iterator(); it.hasNext();) {
                sum += ((Long) read.call(read.file(it.next()), "fileSizeInBytes")).longValue();
            }
            this.bytes = sum;
            this.isCertain = readsAll();
        }

        private boolean hasRun() {
            return SparkPlans.metric(scan, PLANNED, rows()) > 0;
        }

        boolean isCertain() {
            return isCertain;
        }

        /** In a join of partitions Spark leaves out those that the other side does not have, and tells nobody. */
        private boolean readsAll() throws Exception {
            Object key = read.call(scan.scan(), "groupingKeyType");
            if (((List) read.call(key, "fields")).isEmpty()) {
                return true;
            }
            long splits = 0;
            for (Iterator it = ((List) read.call(scan.scan(), "taskGroups")).iterator(); it.hasNext();) {
                splits += ((Collection) read.call(it.next(), "tasks")).size();
            }
            return SparkPlans.metric(scan, "numSplits", -1) == splits;
        }

        long files() {
            return hasRun() ? tasks.size() : 0;
        }

        long bytes() {
            return hasRun() ? bytes : 0;
        }

        String table() {
            return scan.table().name();
        }

        String[] roots() {
            return new String[] {read.root().toUri().getPath()};
        }

        LakebloomFileIndex decided() {
            return decided;
        }
    }
}

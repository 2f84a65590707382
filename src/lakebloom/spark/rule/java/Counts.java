package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.exchange.Exchange;
import scala.Option;

/**
 * What the scans of a query counted while it ran, by Spark's own metrics; what they do not tell is skipped.
 *
 * A scan counts its files when it lists them, which it does once: a plan that runs again, and a cache that is read,
 * count nothing, or what an earlier query read. What was counted is therefore noted on the scan.
 */
final class Counts {
    private static final AtomicLong COUNT = new AtomicLong();
    private static final int PLAIN = 0;
    /** Below an exchange or in a subquery, whose result a plan that runs again may still have. */
    private static final int KEPT = 1;
    /** Ran, and is not in the final plan any more, because no row came out of it. */
    private static final int GONE = 2;
    /** Made the rows of a cache, in this query or in an earlier one. */
    private static final int CACHED = 3;

    /** Beyond this the tasks of lakebloom's own source are not looked at. */
    private static final long MAX_TASK_BYTES = 4L << 20;

    /** Each lake has its own. */
    private final TreeNodeTag counted = new TreeNodeTag("lakebloom.counted." + COUNT.getAndIncrement());

    /** Adds what each scan counted; the numbers of a query that failed are unknown. */
    void count(SparkPlan plan, boolean failed, List scans) {
        new Visit(scans, failed).visit(plan, PLAIN, false);
    }

    /** Notes what the caches that a query may read have cost before it. */
    void meetCaches(LogicalPlan plan) {
        if (plan instanceof InMemoryRelation) {
            SparkPlan cached = ((InMemoryRelation) plan).cachedPlan();
            if (cached.getTagValue(counted).isEmpty()) {
                cached.setTagValue(counted, new long[3]);
                meet(cached);
            }
        }
        for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
            meetCaches((LogicalPlan) it.next());
        }
        for (Iterator it = Scala.list(plan.subqueries()).iterator(); it.hasNext();) {
            meetCaches((LogicalPlan) it.next());
        }
    }

    private void meet(SparkPlan plan) {
        CountedScan scan = CountedScan.of(plan);
        if (scan != null && scan.files() + scan.rows() > 0) {
            note(scan);
        }
        for (Iterator it = SparkPlans.parts(plan).iterator(); it.hasNext();) {
            meet((SparkPlan) it.next());
        }
    }

    private void note(CountedScan scan) {
        long[] figures = {scan.files(), scan.bytes(), scan.rows()};
        scan.plan.setTagValue(counted, figures);
    }

    /** One look at a plan. */
    private final class Visit {
        private final List scans;
        private final boolean failed;
        private final Set met = Collections.newSetFromMap(new IdentityHashMap());

        Visit(List scans, boolean failed) {
            this.scans = scans;
            this.failed = failed;
        }

        private void visit(SparkPlan plan, int how, boolean knownCache) {
            CountedScan scan = CountedScan.of(plan);
            if (scan != null && met.add(plan)) {
                add(scan, how, knownCache);
            }
            if (plan instanceof BatchScanExec && Scans.SOURCE.equals(((BatchScanExec) plan).table().name()) && met.add(plan)) {
                addSource((BatchScanExec) plan, how);
            }
            if (plan instanceof InMemoryTableScanExec) {
                InMemoryRelation relation = ((InMemoryTableScanExec) plan).relation();
                visit(relation.cachedPlan(), CACHED, relation.cachedPlan().getTagValue(counted).isDefined());
            } else {
                boolean keeps = how == PLAIN && (plan instanceof Exchange || plan instanceof QueryStageExec);
                for (Iterator it = SparkPlans.below(plan).iterator(); it.hasNext();) {
                    visit((SparkPlan) it.next(), keeps ? KEPT : how, knownCache);
                }
            }
            for (Iterator it = Scala.list(plan.subqueries()).iterator(); it.hasNext();) {
                visit((SparkPlan) it.next(), how == PLAIN ? KEPT : how, knownCache);
            }
            if (plan.getClass().getSimpleName().equals("EmptyRelationExec")) { // which not every version has
                visitStages((LogicalPlan) plan.productElement(0), how == CACHED ? CACHED : GONE, knownCache);
            }
            if (plan instanceof AdaptiveSparkPlanExec) {
                visit(((AdaptiveSparkPlanExec) plan).initialPlan(), how == CACHED ? CACHED : GONE, knownCache);
            }
        }

        private void visitStages(LogicalPlan plan, int how, boolean knownCache) {
            if (plan instanceof LogicalQueryStage) {
                visit(((LogicalQueryStage) plan).physicalPlan(), how, knownCache);
            }
            for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
                visitStages((LogicalPlan) it.next(), how, knownCache);
            }
        }

        private void add(CountedScan scan, int how, boolean knownCache) {
            long files = scan.files();
            long rows = scan.rows();
            Option noted = scan.plan.getTagValue(counted);
            long[] before = noted.isDefined() ? (long[]) noted.get() : new long[3];
            boolean isNew = files > 0 && before[0] == 0;
            if (how == GONE && !isNew) {
                return; // it did not run, or not in this run
            }
            if (how == CACHED && (noted.isDefined() || knownCache)) {
                if (files == before[0] && rows == before[2]) {
                    return; // the cache had its rows
                }
                figures(scan, isNew ? files : -1, scan.bytes(), rows - before[2]);
            } else if (how == CACHED) {
                if (files + rows > 0) {
                    figures(scan, -1, -1, -1); // in this query, or before anyone looked
                }
            } else if (files == 0 && before[0] > 0) {
                figures(scan, how == KEPT && rows == 0 ? -1 : before[0], before[1], rows);
                return;
            } else {
                figures(scan, files, scan.bytes(), rows);
            }
            note(scan);
        }

        /** A scan by lakebloom's own data source: the tasks, which Python understands, and the rows of this run. */
        private void addSource(BatchScanExec scan, int how) {
            if (how == GONE || how == CACHED) {
                return;
            }
            Wire.FinishedScan figures = new Wire.FinishedScan();
            figures.tasks = failed ? new byte[0][] : tasks(scan);
            figures.rows = failed ? null : Long.valueOf(SparkPlans.metric(scan, "numOutputRows", 0));
            scans.add(figures);
        }

        private byte[][] tasks(BatchScanExec scan) {
            List tasks = new ArrayList();
            try {
                long bytes = 0;
                for (Iterator it = Scala.list(scan.inputPartitions()).iterator(); it.hasNext();) {
                    Object task = it.next();
                    byte[] pickled = (byte[]) task.getClass().getMethod("pickedPartition", new Class[0]).invoke(task, new Object[0]);
                    bytes += pickled.length;
                    tasks.add(pickled);
                }
                return bytes > MAX_TASK_BYTES ? new byte[0][] : (byte[][]) tasks.toArray(new byte[0][]);
            } catch (Exception problem) {
                return new byte[0][]; // another version of Spark: then only the rows are known
            }
        }

        /** Negative numbers are not known. */
        private void figures(CountedScan scan, long files, long bytes, long rows) {
            Wire.FinishedScan figures = new Wire.FinishedScan();
            scans.add(figures);
            figures.table = scan.table();
            figures.roots = scan.roots();
            if (failed || files < 0 || !scan.isCertain()) {
                return;
            }
            figures.filesRead = Long.valueOf(files);
            figures.bytesRead = Long.valueOf(bytes);
            figures.rows = Long.valueOf(rows);
            int[] all = {(int) files, (int) files};
            LakebloomFileIndex decided = scan.decided();
            if (decided != null) {
                all = decided.counted(files, scan.decidesAtRunTime());
            }
            if (all != null) {
                figures.files = Integer.valueOf(all[0]);
                figures.filesKept = Integer.valueOf(all[1]);
            }
        }
    }
}

package io.lakebloom.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;

/**
 * What the scans of a query counted while it ran, by Spark's own metrics; what they do not tell is left out.
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

    /** Of this lake: each notes for itself what it has seen. */
    private final TreeNodeTag counted = new TreeNodeTag("lakebloom.counted." + COUNT.getAndIncrement());

    /** Adds what each scan counted; of a query that failed nobody knows how far it came. */
    void count(SparkPlan plan, boolean failed, ArrayNode scans) {
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
        if (plan instanceof FileSourceScanExec && metric(plan, "numFiles") + metric(plan, "numOutputRows") > 0) {
            note((FileSourceScanExec) plan);
        }
        for (Iterator it = Scans.parts(plan).iterator(); it.hasNext();) {
            meet((SparkPlan) it.next());
        }
    }

    private void note(FileSourceScanExec scan) {
        long[] figures = {metric(scan, "numFiles"), metric(scan, "filesSize"), metric(scan, "numOutputRows")};
        scan.setTagValue(counted, figures);
    }

    /** One look at a plan. */
    private final class Visit {
        private final ArrayNode scans;
        private final boolean failed;
        private final Set met = Collections.newSetFromMap(new IdentityHashMap());

        Visit(ArrayNode scans, boolean failed) {
            this.scans = scans;
            this.failed = failed;
        }

        private void visit(SparkPlan plan, int how, boolean knownCache) {
            if (plan instanceof FileSourceScanExec && met.add(plan)) {
                add((FileSourceScanExec) plan, how, knownCache);
            }
            if (plan instanceof BatchScanExec && Scans.SOURCE.equals(((BatchScanExec) plan).table().name()) && met.add(plan)) {
                addSource((BatchScanExec) plan, how);
            }
            if (plan instanceof InMemoryTableScanExec) {
                InMemoryRelation relation = ((InMemoryTableScanExec) plan).relation();
                visit(relation.cachedPlan(), CACHED, relation.cachedPlan().getTagValue(counted).isDefined());
            } else {
                boolean keeps = how == PLAIN && (plan instanceof Exchange || plan instanceof QueryStageExec);
                for (Iterator it = Scans.below(plan).iterator(); it.hasNext();) {
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

        private void add(FileSourceScanExec scan, int how, boolean knownCache) {
            long files = metric(scan, "numFiles");
            long rows = metric(scan, "numOutputRows");
            Option noted = scan.getTagValue(counted);
            long[] before = noted.isDefined() ? (long[]) noted.get() : new long[3];
            boolean isNew = files > 0 && before[0] == 0;
            if (how == GONE && !isNew) {
                return; // it did not run, or not in this run
            }
            if (how == CACHED && (noted.isDefined() || knownCache)) {
                if (files == before[0] && rows == before[2]) {
                    return; // the cache had its rows
                }
                figures(scan, isNew ? files : -1, metric(scan, "filesSize"), rows - before[2]);
            } else if (how == CACHED) {
                if (files + rows > 0) {
                    figures(scan, -1, -1, -1); // in this query, or before anyone looked
                }
            } else if (files == 0 && before[0] > 0) {
                figures(scan, how == KEPT && rows == 0 ? -1 : before[0], before[1], rows);
                return;
            } else {
                figures(scan, files, metric(scan, "filesSize"), rows);
            }
            note(scan);
        }

        /** A scan by lakebloom's own data source: the tasks, which Python understands, and the rows of this run. */
        private void addSource(BatchScanExec scan, int how) {
            if (how == GONE || how == CACHED) {
                return;
            }
            ObjectNode figures = scans.addObject();
            ArrayNode tasks = figures.putArray("tasks");
            try {
                long bytes = 0;
                for (Iterator it = Scala.list(scan.inputPartitions()).iterator(); it.hasNext();) {
                    Object task = it.next();
                    byte[] pickled = (byte[]) task.getClass().getMethod("pickedPartition", new Class[0]).invoke(task, new Object[0]);
                    bytes += pickled.length;
                    tasks.add(pickled);
                }
                if (failed || bytes > MAX_TASK_BYTES) {
                    tasks.removeAll();
                }
            } catch (Exception problem) {
                tasks.removeAll(); // another version of Spark: then only the rows are known
            }
            if (!failed) {
                figures.put("numOutputRows", metric(scan, "numOutputRows"));
            }
        }

        /** Negative numbers are not known. */
        private void figures(FileSourceScanExec scan, long files, long bytes, long rows) {
            ObjectNode figures = scans.addObject();
            Option table = scan.tableIdentifier();
            if (table.isDefined()) {
                figures.put("table", table.get().toString().replace("`", ""));
            }
            FileIndex location = scan.relation().location();
            ArrayNode roots = figures.putArray("roots");
            for (Iterator it = Scala.list(location.rootPaths()).iterator(); it.hasNext();) {
                roots.add(((Path) it.next()).toUri().getPath());
            }
            if (failed || files < 0) {
                return;
            }
            figures.put("numFiles", files);
            figures.put("filesSize", bytes);
            figures.put("numOutputRows", rows);
            int[] all = {(int) files, (int) files};
            if (location instanceof LakebloomFileIndex) {
                all = ((LakebloomFileIndex) location).counted(files, decidesAtRunTime(scan));
            }
            if (all != null) {
                figures.put("files", all[0]);
                figures.put("filesKept", all[1]);
            }
        }
    }

    private static boolean decidesAtRunTime(FileSourceScanExec scan) {
        for (Iterator it = Scala.list(scan.partitionFilters()).iterator(); it.hasNext();) {
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

    private static long metric(SparkPlan plan, String name) {
        Map metrics = Scala.map(plan.metrics());
        AccumulatorV2 metric = (AccumulatorV2) metrics.get(name);
        return metric == null ? 0 : ((Number) metric.value()).longValue();
    }
}

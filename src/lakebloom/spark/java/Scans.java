package io.lakebloom.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandResultExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Finds the scans of files in plans: what they ask, and what they counted. */
final class Scans {
    private static final String[] METRICS = {"numFiles", "filesSize", "numOutputRows"};

    private Scans() {}

    /** Describes the scans of an optimized plan, also those in subqueries and in cached plans. */
    static void describe(LogicalPlan plan, ArrayNode scans, ObjectMapper mapper) throws Exception {
        if (plan instanceof Filter && isFiles(((Filter) plan).child())) {
            LogicalRelation relation = (LogicalRelation) ((Filter) plan).child();
            scans.add(new Scan(relation, ((Filter) plan).condition()).description(mapper));
        } else if (isFiles(plan)) {
            scans.add(new Scan((LogicalRelation) plan, null).description(mapper));
        } else if (plan instanceof InMemoryRelation) {
            for (Iterator it = CollectionConverters.asJava(plan.innerChildren()).iterator(); it.hasNext();) {
                Object cached = it.next();
                if (cached instanceof SparkPlan) {
                    ObjectNode scan = scans.addObject();
                    scan.put("cached", ((SparkPlan) cached).simpleString(25));
                }
            }
        }
        for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
            LogicalPlan child = (LogicalPlan) it.next();
            if (!(plan instanceof Filter && isFiles(child))) {
                describe(child, scans, mapper);
            }
        }
        for (Iterator it = CollectionConverters.asJava(plan.subqueries()).iterator(); it.hasNext();) {
            describe((LogicalPlan) it.next(), scans, mapper);
        }
    }

    private static boolean isFiles(LogicalPlan plan) {
        return plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation;
    }

    /** Adds what the scans of a plan that ran counted. */
    static void count(SparkPlan plan, ArrayNode scans, ObjectMapper mapper) {
        if (plan instanceof FileSourceScanExec) {
            scans.add(figures((FileSourceScanExec) plan, mapper));
        } else if (plan instanceof AdaptiveSparkPlanExec) {
            count(((AdaptiveSparkPlanExec) plan).executedPlan(), scans, mapper);
        } else if (plan instanceof QueryStageExec) {
            count(((QueryStageExec) plan).plan(), scans, mapper);
        } else if (plan instanceof InMemoryTableScanExec) {
            count(((InMemoryTableScanExec) plan).relation().cachedPlan(), scans, mapper);
        } else if (plan instanceof CommandResultExec) {
            count(((CommandResultExec) plan).commandPhysicalPlan(), scans, mapper);
        } else if (plan instanceof ReusedExchangeExec) {
            return;
        }
        for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
            count((SparkPlan) it.next(), scans, mapper);
        }
        for (Iterator it = CollectionConverters.asJava(plan.subqueries()).iterator(); it.hasNext();) {
            count((SparkPlan) it.next(), scans, mapper);
        }
    }

    private static ObjectNode figures(FileSourceScanExec scan, ObjectMapper mapper) {
        ObjectNode figures = mapper.createObjectNode();
        Option table = scan.tableIdentifier();
        if (table.isDefined()) {
            figures.put("table", table.get().toString().replace("`", ""));
        }
        ArrayNode roots = figures.putArray("roots");
        Iterator paths = CollectionConverters.asJava(scan.relation().location().rootPaths()).iterator();
        while (paths.hasNext()) {
            roots.add(((Path) paths.next()).toUri().getPath());
        }
        Map metrics = CollectionConverters.asJava(scan.metrics());
        for (int i = 0; i < METRICS.length; i++) {
            AccumulatorV2 metric = (AccumulatorV2) metrics.get(METRICS[i]);
            if (metric != null) {
                figures.put(METRICS[i], ((Number) metric.value()).longValue());
            }
        }
        figures.set("applied", LakebloomFileIndex.figures(mapper, scan.relation().location()));
        return figures;
    }
}

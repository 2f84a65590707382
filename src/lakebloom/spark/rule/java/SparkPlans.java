package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.execution.CommandResultExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.util.AccumulatorV2;

/** The parts of physical plans, and what they counted. */
final class SparkPlans {
    private SparkPlans() {}

    /** What a plan counted under a name. */
    static long metric(SparkPlan plan, String name, long otherwise) {
        AccumulatorV2 metric = (AccumulatorV2) Scala.map(plan.metrics()).get(name);
        return metric == null ? otherwise : ((Number) metric.value()).longValue();
    }

    /** The plans below a plan, and those of its subqueries. */
    static List parts(SparkPlan plan) {
        List parts = new ArrayList(below(plan));
        parts.addAll(Scala.list(plan.subqueries()));
        return parts;
    }

    /** The plans below a plan, whatever wraps them; one that is used again is not counted again. */
    static List below(SparkPlan plan) {
        if (plan instanceof AdaptiveSparkPlanExec) {
            return Collections.singletonList(((AdaptiveSparkPlanExec) plan).executedPlan());
        }
        if (plan instanceof QueryStageExec) {
            return Collections.singletonList(((QueryStageExec) plan).plan());
        }
        if (plan instanceof InMemoryTableScanExec) {
            return Collections.singletonList(((InMemoryTableScanExec) plan).relation().cachedPlan());
        }
        if (plan instanceof CommandResultExec) {
            return Collections.singletonList(((CommandResultExec) plan).commandPhysicalPlan());
        }
        if (plan instanceof ReusedExchangeExec) {
            return Collections.emptyList();
        }
        return Scala.list(plan.children());
    }
}

package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Short names for the parts of logical plans. */
final class Plans {
    private Plans() {}

    static LogicalPlan child(LogicalPlan plan) {
        return (LogicalPlan) Scala.list(plan.children()).get(0);
    }

    /** The plans that a plan consists of: its children, then those of its subqueries. */
    static List parts(LogicalPlan plan) {
        List parts = new ArrayList(Scala.list(plan.children()));
        for (Iterator it = Scala.list(plan.subqueries()).iterator(); it.hasNext();) {
            parts.add(it.next());
        }
        return parts;
    }

    /** Left, right. */
    static LogicalPlan[] sides(Join join) {
        return new LogicalPlan[] {(LogicalPlan) join.left(), (LogicalPlan) join.right()};
    }

    /** Whether a plan reads files by Spark's own reader. */
    static boolean isFiles(LogicalPlan plan) {
        return plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation;
    }

    /** Whether a plan reads files, by Spark's own reader or by Iceberg's. */
    static boolean isScan(LogicalPlan plan) {
        return isFiles(plan) || Iceberg.isScan(plan);
    }

    /** Whether a plan reads files, each of them once. */
    static boolean isBatch(LogicalPlan plan) {
        return isScan(plan) && !plan.isStreaming();
    }
}

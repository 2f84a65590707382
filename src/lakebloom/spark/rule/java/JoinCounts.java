package io.lakebloom.spark;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.SparkPlan;

/** What the filters on joins counted while a query ran. */
final class JoinCounts {
    private JoinCounts() {}

    /** Adds, for each filter that was put on a side of a join, how many rows came and how many it let pass. */
    static void countJoins(SparkPlan plan, List joins) {
        if (plan instanceof FilterExec) {
            String mark = mark((FilterExec) plan);
            long rows = mark == null ? -1 : SparkPlans.metric(plan, "numOutputRows", -1);
            if (rows >= 0) {
                Wire.FinishedJoin join = new Wire.FinishedJoin();
                join.mark = mark;
                join.rowsPassed = rows;
                join.rows = rowsBelow(plan);
                joins.add(join);
            }
        }
        for (Iterator it = SparkPlans.parts(plan).iterator(); it.hasNext();) {
            countJoins((SparkPlan) it.next(), joins);
        }
    }

    private static String mark(FilterExec filter) {
        Iterator columns = Scala.list(filter.condition().references()).iterator();
        while (columns.hasNext()) {
            String name = ((NamedExpression) columns.next()).name();
            if (name.startsWith(JoinFilterPlan.MARK)) {
                return name;
            }
        }
        return null;
    }

    private static long rowsBelow(SparkPlan plan) {
        List children = SparkPlans.below(plan);
        while (children.size() == 1) {
            SparkPlan child = (SparkPlan) children.get(0);
            if (SparkPlans.metric(child, "numOutputRows", -1) >= 0) {
                return SparkPlans.metric(child, "numOutputRows", -1);
            }
            children = SparkPlans.below(child);
        }
        return -1;
    }
}

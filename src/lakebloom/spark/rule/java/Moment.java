package io.lakebloom.spark;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.SQLExecution;

/**
 * The action during which something was found out; none where no action ran, as when a query is only planned.
 *
 * What was listed during an action may be used again while it lasts. A plan may run long after it was made, and must
 * then find what a plan without indexes would find.
 */
final class Moment {
    private final String action = action();

    private static String action() {
        return SparkContext.getOrCreate().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    }

    /** Whether the same action still runs. */
    boolean lasts() {
        return action != null && action.equals(action());
    }
}

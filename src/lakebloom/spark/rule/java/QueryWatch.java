package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.execution.CommandResultExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.util.QueryExecutionListener;

/** Remembers what the scans of the last query counted. Python reads it, and is not called. */
public final class QueryWatch implements QueryExecutionListener {
    private final LakebloomRule rule;
    private volatile Wire.FinishedQuery last = null;

    public QueryWatch(LakebloomRule rule) {
        this.rule = rule;
    }

    /** The last query, or command that read files, as a FinishedQuery; null before the first. */
    public String last() throws Exception {
        return last == null ? null : Wire.write(last);
    }

    public void onSuccess(String action, QueryExecution query, long nanoseconds) {
        remember(action, query, nanoseconds, false);
    }

    public void onFailure(String action, QueryExecution query, Exception error) {
        remember(action, query, 0, true);
    }

    private void remember(String action, QueryExecution query, long nanoseconds, boolean failed) {
        Wire.FinishedQuery finished = new Wire.FinishedQuery();
        finished.action = action;
        finished.seconds = nanoseconds / 1e9;
        finished.failed = failed;
        List scans = new ArrayList();
        List joins = new ArrayList();
        try {
            if (query.executedPlan() instanceof CommandResultExec) {
                return; // it shows what a command gave that was counted when it ran
            }
            rule.counts.count(query.executedPlan(), failed, scans);
            if (!failed) {
                JoinCounts.countJoins(query.executedPlan(), joins);
            }
        } catch (Throwable problem) {
            finished.failed = true; // it could not be planned, or its plan is like none that is known
        }
        if (!action.equals("command") || !scans.isEmpty()) {
            finished.scans = (Wire.FinishedScan[]) scans.toArray(new Wire.FinishedScan[0]);
            finished.joins = (Wire.FinishedJoin[]) joins.toArray(new Wire.FinishedJoin[0]);
            last = finished;
        }
    }
}

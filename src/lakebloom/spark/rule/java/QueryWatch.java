package io.lakebloom.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.execution.CommandResultExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.util.QueryExecutionListener;

/** Remembers what the scans of the last query counted. Python asks for it, and is not called. */
public final class QueryWatch implements QueryExecutionListener {
    private final ObjectMapper mapper = new ObjectMapper();
    private final LakebloomRule rule;
    private volatile String last = null;

    public QueryWatch(LakebloomRule rule) {
        this.rule = rule;
    }

    /** The last query, or command that read files, as JSON; null before the first. */
    public String last() {
        return last;
    }

    public void onSuccess(String action, QueryExecution query, long nanoseconds) {
        remember(action, query, nanoseconds, false);
    }

    public void onFailure(String action, QueryExecution query, Exception error) {
        remember(action, query, 0, true);
    }

    private void remember(String action, QueryExecution query, long nanoseconds, boolean failed) {
        ObjectNode json = mapper.createObjectNode();
        json.put("action", action);
        json.put("seconds", nanoseconds / 1e9);
        json.put("failed", failed);
        ArrayNode scans = json.putArray("scans");
        ArrayNode joins = json.putArray("joins");
        try {
            if (query.executedPlan() instanceof CommandResultExec) {
                return; // it shows what a command gave that was counted when it ran
            }
            rule.counts.count(query.executedPlan(), failed, scans);
            if (!failed) {
                Scans.countJoins(query.executedPlan(), joins);
            }
        } catch (Throwable problem) {
            json.put("failed", true); // it could not be planned, or its plan is like none that is known
        }
        if (!action.equals("command") || !scans.isEmpty()) {
            last = json.toString();
        }
    }
}

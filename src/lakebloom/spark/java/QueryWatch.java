package io.lakebloom.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.util.QueryExecutionListener;

/** Remembers what the scans of the last query counted. Python asks for it, and is not called. */
public final class QueryWatch implements QueryExecutionListener {
    private final ObjectMapper mapper = new ObjectMapper();
    private volatile String last = null;

    /** The last query that read files, as JSON; null before the first. */
    public String last() {
        return last;
    }

    public void onSuccess(String action, QueryExecution query, long nanoseconds) {
        ArrayNode scans = mapper.createArrayNode();
        Scans.count(query.executedPlan(), scans, mapper);
        if (!scans.isEmpty()) {
            ObjectNode json = mapper.createObjectNode();
            json.put("action", action);
            json.put("seconds", nanoseconds / 1e9);
            json.set("scans", scans);
            Scans.countJoins(query.executedPlan(), json.putArray("joins"));
            last = json.toString();
        }
    }

    public void onFailure(String action, QueryExecution query, Exception error) {}
}

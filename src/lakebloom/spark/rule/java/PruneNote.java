package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;

/** What happened when the rule looked at a condition: for explain, and for joins that skip nothing. */
final class PruneNote {
    /** The indexes that there were; null if the rule stopped before. */
    String[] there;
    /** The note of Python for explain; null if no index was used. Java does not read it. */
    JsonNode note;
    /** Why an index decided nothing; null if all decided. */
    String reason;
    /** The error that ended it; null if there was none. */
    String failure;

    Wire.Seen wire() {
        Wire.Seen seen = new Wire.Seen();
        seen.there = there;
        seen.note = note;
        seen.failure = failure;
        return seen;
    }
}

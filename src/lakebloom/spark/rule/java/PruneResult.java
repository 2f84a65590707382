package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.BitSet;
import java.util.List;

/** What indexes decided about a condition, and the cached rows that the decision depends on. */
final class PruneResult {
    final JsonNode condition;
    /** A KeptFiles for each index. */
    final List answers;
    /** The note of Python, for explain. */
    final JsonNode note;
    /** The cached rows that the condition was made of; null if it was not. */
    final CachedRows keys;

    PruneResult(JsonNode condition, List answers, JsonNode note, CachedRows keys) {
        this.condition = condition;
        this.answers = answers;
        this.note = note;
        this.keys = keys;
    }

    /** Whether the keys in the condition are still those of the query. */
    boolean holds() {
        try {
            return keys == null || keys.areThere();
        } catch (Exception problem) {
            return false;
        }
    }

    /** What one index decided: which of its files can match. */
    static final class KeptFiles {
        final String name;
        final KnownFiles files;
        final BitSet kept;
        final BitSet changed;

        /** Files that changed though the listing may not show it are kept. */
        KeptFiles(String name, KnownFiles files, BitSet kept, BitSet changed) {
            this.name = name;
            this.files = files;
            this.kept = kept;
            this.changed = changed;
        }
    }
}

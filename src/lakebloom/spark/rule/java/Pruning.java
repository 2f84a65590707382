package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Lets Python prune the files of a relation, if an index may know which of them can match. */
final class Pruning {
    private final ObjectMapper mapper = new ObjectMapper();
    private final Callback python;
    private final FileLists known = new FileLists();

    Pruning(Callback python) {
        this.python = python;
    }

    /**
     * The relation without files that cannot match; null where there is nothing to leave out, and then the note says why.
     *
     * Keys are the cached rows that the condition was made of, if it was.
     */
    LogicalRelation pruned(
            LakebloomRule lake, LogicalRelation relation, Expression condition, String purpose, CachedRows keys, ObjectNode note)
            throws Exception {
        if (!Plans.isBatch(relation)) {
            return null;
        }
        Scan scan = new Scan(relation, condition);
        FileIndex location = scan.files.location();
        if (location instanceof LakebloomFileIndex && ((LakebloomFileIndex) location).isOf(lake, purpose)) {
            return null;
        }
        Indexes indexes = lake.indexes();
        List names = scan.listsPlainFiles() ? indexes.usable(scan) : Collections.emptyList();
        ArrayNode there = note.putArray("there");
        for (Iterator it = indexes.names().iterator(); it.hasNext();) {
            there.add((String) it.next());
        }
        if (names.isEmpty()) {
            return null;
        }
        PruneResult result = prune(scan.question(mapper), names, keys, note);
        if (result.answers.isEmpty()) {
            return null;
        }
        LakebloomFileIndex kept = new LakebloomFileIndex(location, lake, purpose, result, scan.partitionFilters());
        return Copies.withLocation(relation, kept);
    }

    private PruneResult prune(ObjectNode question, List names, CachedRows keys, ObjectNode note) throws Exception {
        ArrayNode wanted = question.putArray("indexes");
        for (Iterator it = names.iterator(); it.hasNext();) {
            wanted.add((String) it.next());
        }
        Map before = known.now();
        ObjectNode fingerprints = question.putObject("known");
        for (Iterator it = before.entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            fingerprints.put((String) entry.getKey(), ((FileLists.Known) entry.getValue()).fingerprint);
        }
        List answers = new ArrayList();
        JsonNode reply = mapper.readTree(python.answer(question.toString()));
        note.setAll((ObjectNode) reply.get("note"));
        for (Iterator it = reply.get("answers").iterator(); it.hasNext();) {
            JsonNode answer = (JsonNode) it.next();
            String name = answer.get("name").asText();
            FileLists.Known files = known.updated(name, answer.get("fingerprint").asText(), answer.get("files"), before);
            if (files != null) {
                BitSet kept = BitSet.valueOf(answer.get("kept").binaryValue());
                BitSet changed = new BitSet();
                for (Iterator jt = answer.get("changed").iterator(); jt.hasNext();) {
                    changed.set(((JsonNode) jt.next()).asInt());
                }
                answers.add(new PruneResult.KeptFiles(name, files.files, kept, changed));
            }
        }
        return new PruneResult(question.get("predicate"), answers, note.toString(), keys);
    }
}

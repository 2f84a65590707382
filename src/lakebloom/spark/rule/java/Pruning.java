package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Lets Python prune the files of a relation, if an index may know which of them can match. */
final class Pruning {
    private final Callback python;
    private final FileLists known = new FileLists();

    Pruning(Callback python) {
        this.python = python;
    }

    /**
     * The relation without files that cannot match; null if there is nothing to skip, and then the note says why.
     *
     * Keys are the cached rows that the condition was made of, if it was.
     */
    LogicalPlan pruned(
            LakebloomRule lake, LogicalPlan relation, Expression condition, String purpose, CachedRows keys, PruneNote note)
            throws Exception {
        Indexes indexes = lake.indexes();
        if (!Plans.isScan(relation) || relation.isStreaming() || !Plans.isFiles(relation) && !indexes.anyLogged()) {
            return null;
        }
        Scan scan = Scan.of(relation, condition);
        LakebloomFileIndex before = scan.decided();
        if (before != null && before.isOf(lake, purpose)) {
            return null;
        }
        List names = scan.isSupported() ? indexes.usable(scan) : Collections.emptyList();
        note.there = indexes.names();
        if (names.isEmpty()) {
            return null;
        }
        Wire.PruneRequest request = new Wire.PruneRequest();
        scan.fill(request);
        request.indexes = (String[]) names.toArray(new String[0]);
        PruneResult result = prune(request, keys, note);
        if (result.answers.isEmpty()) {
            return null;
        }
        LakebloomFileIndex kept = new LakebloomFileIndex(scan.location(), lake, purpose, result, scan.partitionFilters());
        return scan.with(kept);
    }

    private PruneResult prune(Wire.PruneRequest request, CachedRows keys, PruneNote note) throws Exception {
        Map before = known.now();
        request.known = new HashMap();
        for (Iterator it = before.entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            request.known.put(entry.getKey(), ((FileLists.Known) entry.getValue()).fingerprint);
        }
        Wire.PruneReply reply = (Wire.PruneReply) python.call(request, Wire.PruneReply.class);
        note.note = reply.note;
        note.reason = reply.reason;
        List answers = new ArrayList();
        for (int i = 0; i < reply.kept.length; i++) {
            Wire.KeptFiles kept = reply.kept[i];
            FileLists.Known files = known.updated(kept.name, kept.fingerprint, kept.files, kept.after, before);
            if (files != null) {
                BitSet changed = new BitSet();
                for (int j = 0; j < kept.changed.length; j++) {
                    changed.set(kept.changed[j]);
                }
                answers.add(new PruneResult.KeptFiles(kept.name, files.files, BitSet.valueOf(kept.bits), changed));
            }
        }
        return new PruneResult(request.predicate, answers, reply.note, keys);
    }
}

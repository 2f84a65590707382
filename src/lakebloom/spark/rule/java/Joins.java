package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;

/**
 * Filters one side of a shuffled equi-join by the global filter of the other side's key.
 *
 * docs/JOINS.md says for which joins and sides that is safe, and when it is left undone.
 */
final class Joins {
    /** Filters in plans that are remembered for explain and last_query. */
    static final long MAX_REMEMBERED = 1000;
    /** Of all filters together that Python need not send again. */
    static final long MAX_FILTER_BYTES = 128L << 20;
    private final ObjectMapper mapper;
    private final Callback python;
    private final FileLists known = new FileLists();
    private final Bounded filters = new Bounded(MAX_FILTER_BYTES);
    private final Bounded done = new Bounded(MAX_REMEMBERED);
    /** Of all lakes of this process: each finds its own marks in a plan. */
    private static final AtomicLong COUNT = new AtomicLong();

    Joins(ObjectMapper mapper, Callback python) {
        this.mapper = mapper;
        this.python = python;
    }

    /** The join with its sides filtered as far as indexes can; the join itself where there is nothing to do. */
    LogicalPlan rewritten(Join join, Indexes indexes) throws Exception {
        LogicalPlan[] sides = Plans.sides(join);
        boolean changed = false;
        for (Iterator it = JoinCandidate.of(join, indexes).iterator(); it.hasNext();) {
            JoinCandidate candidate = (JoinCandidate) it.next();
            if (candidate.reason == null && info(candidate, sides[candidate.side]) == null) {
                LogicalPlan filtered = filtered(candidate, sides[candidate.side]);
                changed |= filtered != null;
                sides[candidate.side] = filtered == null ? sides[candidate.side] : filtered;
            }
        }
        return changed ? (LogicalPlan) join.withNewChildren(Scala.seq(Arrays.asList(sides))) : join;
    }

    /** Adds to the report what became of each join key that a global filter is about. */
    void describe(Join join, Indexes indexes, ArrayNode report) throws Exception {
        LogicalPlan[] sides = Plans.sides(join);
        for (Iterator it = JoinCandidate.of(join, indexes).iterator(); it.hasNext();) {
            JoinCandidate candidate = (JoinCandidate) it.next();
            ObjectNode entry = report.addObject();
            entry.put("index", candidate.index);
            entry.put("column", String.join(".", candidate.path));
            entry.put("key", candidate.key.name());
            entry.put("side", candidate.side == 0 ? "left" : "right");
            entry.put("join", join.joinType().toString());
            JsonNode info = info(candidate, sides[candidate.side]);
            if (info != null) {
                entry.set("filter", info);
            } else {
                entry.put("reason", candidate.reason == null ? refusal(candidate) : candidate.reason);
            }
        }
    }

    private String refusal(JoinCandidate candidate) throws Exception {
        JsonNode answer = request(candidate).answer;
        return answer.hasNonNull("reason") ? answer.get("reason").asText() : "DISABLED";
    }

    /** What the filter of a marked column was: index, column and rate. */
    JsonNode info(String mark) {
        return (JsonNode) done.get(mark);
    }

    /** The same of the filter that a side has for a candidate; null where it has none. */
    private JsonNode info(JoinCandidate candidate, LogicalPlan side) {
        // Our projections are a chain on top of the side, one after the other for several keys.
        for (LogicalPlan at = side; at instanceof Project || at instanceof Filter; at = Plans.child(at)) {
            for (Iterator it = Scala.list(at.output()).iterator(); it.hasNext();) {
                JsonNode info = info(((Attribute) it.next()).name());
                if (info != null && info.get("id").asLong() == candidate.key.exprId().id()
                        && info.get("index").asText().equals(candidate.index)) {
                    return info;
                }
            }
        }
        return null;
    }

    private LogicalPlan filtered(JoinCandidate candidate, LogicalPlan side) throws Exception {
        Reply reply = request(candidate);
        if (reply.answer.hasNonNull("reason")) {
            return null;
        }
        String mark = JoinFilterPlan.MARK + COUNT.getAndIncrement();
        ObjectNode info = ((ObjectNode) reply.answer).deepCopy();
        info.remove("words");
        info.put("index", candidate.index);
        info.put("column", String.join(".", candidate.path));
        info.put("id", candidate.key.exprId().id());
        done.put(mark, info, 1);
        return new JoinFilterPlan(candidate.scan.files.sparkSession(), side, candidate.key, reply.words, reply.files, mark).filtered();
    }

    /** What Python said, the filter, and the files whose keys it has. */
    private static final class Reply {
        final JsonNode answer;
        int[] words;
        FilteredFiles files;

        Reply(JsonNode answer) {
            this.answer = answer;
        }
    }

    /** A filter as Python sent it. */
    private static final class Words {
        final String fingerprint;
        final int[] words;

        Words(String fingerprint, int[] words) {
            this.fingerprint = fingerprint;
            this.words = words;
        }
    }

    /** Requests the files that the filter knows, then the filter with those added that it does not. */
    private Reply request(JoinCandidate candidate) throws Exception {
        ObjectNode question = candidate.scan.question(mapper);
        question.put("index", candidate.index);
        ArrayNode column = question.putArray("column");
        for (Iterator it = candidate.path.iterator(); it.hasNext();) {
            column.add((String) it.next());
        }
        FileLists.Known before = (FileLists.Known) known.now().get(candidate.index);
        question.put("known", before == null ? "" : before.fingerprint);
        JsonNode first = mapper.readTree(python.answer(question.toString()));
        if (first.hasNonNull("reason")) {
            return new Reply(first);
        }
        FileLists.Known list = known.updated(
            candidate.index, first.get("fingerprint").asText(), first.get("files"), Collections.singletonMap(candidate.index, before));
        FilteredFiles files = new FilteredFiles(candidate.scan.files.location(), list.files);
        question.put("known", list.fingerprint);
        ArrayNode missing = question.putArray("missing");
        for (Iterator it = files.listed().iterator(); it.hasNext();) {
            FileStatusWithMetadata file = (FileStatusWithMetadata) it.next();
            if (files.add(file)) {
                KnownFiles.describe(file, missing.addArray());
            }
        }
        Words filter = (Words) filters.get(candidate.index);
        question.put("filter", filter == null ? "" : filter.fingerprint);
        JsonNode second = mapper.readTree(python.answer(question.toString()));
        if (second.hasNonNull("words")) {
            filter = new Words(second.get("filter").asText(), words(second.get("words").binaryValue()));
            filters.put(candidate.index, filter, 4L * filter.words.length);
        }
        Reply reply = new Reply(second);
        reply.files = files;
        // Not from the cache: another query may have put the filter of another column there.
        reply.words = filter == null ? null : filter.words;
        return reply;
    }

    private static int[] words(byte[] littleEndian) {
        ByteBuffer bytes = ByteBuffer.wrap(littleEndian).order(ByteOrder.LITTLE_ENDIAN);
        int[] words = new int[bytes.remaining() / 4];
        bytes.asIntBuffer().get(words);
        return words;
    }
}

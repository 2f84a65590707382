package io.lakebloom.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

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
    private final Object session;
    private final Callback python;
    private final FileLists known = new FileLists();
    private final Bounded filters = new Bounded(MAX_FILTER_BYTES);
    private final Bounded done = new Bounded(MAX_REMEMBERED);
    /** Of all lakes of this process: each finds its own marks in a plan. */
    private static final AtomicLong COUNT = new AtomicLong();

    Joins(Object session, Callback python) {
        this.session = session;
        this.python = python;
    }

    /** The join with its sides filtered as far as indexes can; the join itself if there is nothing to do. */
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

    /** Adds a Wire.DescribedJoin for each join key that a global filter is about: what became of it. */
    void describe(Join join, Indexes indexes, List report) throws Exception {
        LogicalPlan[] sides = Plans.sides(join);
        for (Iterator it = JoinCandidate.of(join, indexes).iterator(); it.hasNext();) {
            JoinCandidate candidate = (JoinCandidate) it.next();
            Wire.DescribedJoin described = new Wire.DescribedJoin();
            described.index = candidate.index;
            described.column = String.join(".", candidate.path);
            described.key = candidate.key.name();
            described.side = candidate.side == 0 ? "left" : "right";
            described.join = join.joinType().toString();
            described.filter = info(candidate, sides[candidate.side]);
            if (described.filter == null) {
                described.reason = candidate.reason == null ? refusal(candidate) : candidate.reason;
            }
            // Of a column with another name only Python knows whether the index has it.
            boolean isKnown = candidate.reason == null && !"READ_DIFFERS".equals(described.reason);
            if (described.filter != null || candidate.isNamed || isKnown) {
                report.add(described);
            }
        }
    }

    private String refusal(JoinCandidate candidate) throws Exception {
        String reason = request(candidate, "").reason;
        return reason == null ? "DISABLED" : reason;
    }

    /** What the filter of a marked column was; null if it is forgotten. */
    Wire.JoinFilter info(String mark) {
        Done found = (Done) done.get(mark);
        return found == null ? null : found.filter;
    }

    /** A filter in a plan, and the id of the column that it tests. */
    private static final class Done {
        final Wire.JoinFilter filter;
        final long key;

        Done(Wire.JoinFilter filter, long key) {
            this.filter = filter;
            this.key = key;
        }
    }

    /** The filter that a side has for a candidate; null if it has none. */
    private Wire.JoinFilter info(JoinCandidate candidate, LogicalPlan side) {
        // Our projections are a chain on top of the side, one after the other for several keys.
        for (LogicalPlan at = side; at instanceof Project || at instanceof Filter; at = Plans.child(at)) {
            for (Iterator it = Scala.list(at.output()).iterator(); it.hasNext();) {
                Done found = (Done) done.get(((Attribute) it.next()).name());
                if (found != null && found.key == candidate.key.exprId().id() && found.filter.index.equals(candidate.index)) {
                    return found.filter;
                }
            }
        }
        return null;
    }

    private LogicalPlan filtered(JoinCandidate candidate, LogicalPlan side) throws Exception {
        String mark = JoinFilterPlan.MARK + COUNT.getAndIncrement();
        Reply reply = request(candidate, mark);
        if (reply.reason != null) {
            return null;
        }
        reply.filter.index = candidate.index;
        reply.filter.column = String.join(".", candidate.path);
        done.put(mark, new Done(reply.filter, candidate.key.exprId().id()), 1);
        return new JoinFilterPlan(session, side, candidate.key, reply.files.row(reply.words), reply.sql).filtered();
    }

    /** What Python said: a reason, or the filter, how to test it, and the files whose keys it has. */
    private static final class Reply {
        String reason;
        FilteredFiles files;
        Wire.JoinFilter filter;
        int[] words;
        String sql;
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
    private Reply request(JoinCandidate candidate, String mark) throws Exception {
        Wire.JoinRequest request = new Wire.JoinRequest();
        candidate.scan.fill(request);
        request.index = candidate.index;
        request.column = (String[]) candidate.path.toArray(new String[0]);
        request.mark = mark;
        Map before = known.now();
        FileLists.Known list = (FileLists.Known) before.get(candidate.index);
        request.known = list == null ? "" : list.fingerprint;
        Wire.JoinFilesReply first = (Wire.JoinFilesReply) python.call(request, Wire.JoinFilesReply.class);
        Reply reply = new Reply();
        reply.reason = first.reason;
        if (reply.reason != null) {
            return reply;
        }
        list = known.updated(candidate.index, first.fingerprint, first.files, first.after, before);
        reply.files = new FilteredFiles(candidate.scan.location(), list.files);
        request.known = list.fingerprint;
        request.missing = reply.files.add();
        Words filter = (Words) filters.get(candidate.index);
        request.filter = filter == null ? "" : filter.fingerprint;
        Wire.JoinFilterReply second = (Wire.JoinFilterReply) python.call(request, Wire.JoinFilterReply.class);
        if (second.words != null) {
            filter = new Words(second.fingerprint, words(second.words));
            filters.put(candidate.index, filter, 4L * filter.words.length);
        }
        reply.reason = second.reason;
        reply.filter = new Wire.JoinFilter();
        reply.filter.rate = second.rate;
        reply.filter.sizeBytes = second.sizeBytes;
        reply.filter.merged = second.merged;
        reply.sql = second.sql;
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

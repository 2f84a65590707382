package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Finds conditions directly above files, asks Python which of the files can match, and leaves the others out.
 *
 * Python is asked only if an index covers the place and the condition names one of its columns in a way that filters
 * can answer. Whatever goes wrong, the plan stays as it was.
 */
public final class LakebloomRule extends Rule {
    private static final Logger LOG = LoggerFactory.getLogger("lakebloom");
    private final ObjectMapper mapper = new ObjectMapper();
    private final Object session;
    private final Pruning pruning;
    private final Set warned = Collections.synchronizedSet(new HashSet());
    private final Joins joins;
    private Partners partners;
    final Counts counts = new Counts();
    private final TreeNodeTag seen;
    private volatile Indexes indexes = new Indexes(mapper.createArrayNode());
    private static final AtomicLong COUNT = new AtomicLong();
    /** The same for all lakes: kept here, so that ListRows is compiled only when a query needs it. */
    static volatile String handingOn = "[]";

    /**
     * The functions take the secret and a question about files, or about the filter for a join, and return the answer,
     * both JSON.
     */
    public LakebloomRule(Object session, BiFunction python, BiFunction joins, String secret) {
        this.session = session;
        this.pruning = new Pruning(new Callback(python, secret));
        this.joins = new Joins(mapper, new Callback(joins, secret));
        this.seen = new TreeNodeTag("lakebloom.seen." + COUNT.getAndIncrement());
    }

    /** Replaces what is known of the indexes: a JSON array of {name, locations, columns, global}. */
    public void setIndexes(String json) throws Exception {
        indexes = new Indexes(mapper.readTree(json));
    }

    /** Tells which settings change what is read: a JSON object, for each format a list of keys. */
    public void setReaderKeys(String json) throws Exception {
        Scan.setReaderKeys(mapper.readTree(json));
    }

    /** Tells what PySpark pickles to hand on the rows of a list: a JSON array of {bytes, free}. ListRows reads it. */
    public void setHandingOn(String json) {
        handingOn = json;
    }

    public TreeNode apply(TreeNode plan) {
        try {
            counts.meetCaches((LogicalPlan) plan);
            Set fixed = new HashSet();
            if (!indexes.isEmpty()) {
                Above.collectFixed((LogicalPlan) plan, false, fixed);
            }
            return ((LogicalPlan) plan).transformUpWithSubqueries(new Rewrite(this, fixed));
        } catch (Throwable problem) {
            warn(problem);
            return plan;
        }
    }

    /** For tests and for explain: the scans of an optimized plan, as JSON. */
    public String describe(LogicalPlan plan) throws Exception {
        ArrayNode scans = mapper.createArrayNode();
        Scans.describe(plan, scans, mapper, this);
        return scans.toString();
    }

    /** For explain: what became of the joins whose keys a global filter is about, as JSON. */
    public String describeJoins(LogicalPlan plan) throws Exception {
        ArrayNode report = mapper.createArrayNode();
        describeJoins(plan, report);
        return report.toString();
    }

    /** What the filter behind a marked column is, as JSON; null where it is forgotten. */
    public String joinFilter(String mark) {
        JsonNode info = joins.info(mark);
        return info == null ? null : info.toString();
    }

    private void describeJoins(LogicalPlan plan, ArrayNode report) throws Exception {
        if (plan instanceof Join) {
            joins.describe((Join) plan, indexes, report);
        }
        for (Iterator it = Plans.parts(plan).iterator(); it.hasNext();) {
            describeJoins((LogicalPlan) it.next(), report);
        }
    }

    private static final class Rewrite extends AbstractPartialFunction {
        private final LakebloomRule rule;
        private final Set fixed;

        /** The relations of a set keep all their files. */
        Rewrite(LakebloomRule rule, Set fixed) {
            this.rule = rule;
            this.fixed = fixed;
        }

        public boolean isDefinedAt(Object plan) {
            return plan instanceof Join || plan instanceof Filter;
        }

        public Object applyOrElse(Object plan, Function1 otherwise) {
            if (isDefinedAt(plan)) {
                try {
                    return plan instanceof Join ? rule.rewrite((Join) plan, fixed) : rule.rewrite((Filter) plan, fixed);
                } catch (Throwable problem) {
                    rule.warn(problem);
                    rule.noteFailure(plan, problem);
                    return plan;
                }
            }
            return otherwise.apply(plan);
        }
    }

    private LogicalPlan rewrite(Join join, Set fixed) throws Exception {
        if (indexes.isEmpty() || Above.holds(join, fixed)) {
            return join;
        }
        LogicalPlan fewerFiles = partners().rewritten(join);
        return fewerFiles instanceof Join ? joins.rewritten((Join) fewerFiles, indexes) : fewerFiles;
    }

    private LogicalPlan rewrite(Filter filter, Set fixed) throws Exception {
        LogicalPlan fewer = byCondition(filter, fixed);
        boolean isJoin = !indexes.isEmpty() && JoinKey.isComparison(filter) && !Above.holds(fewer, fixed);
        return isJoin ? partners().rewritten(fewer) : fewer;
    }

    /** Made when a query first needs it: compiling takes time. */
    private synchronized Partners partners() {
        partners = partners == null ? new Partners(this) : partners;
        return partners;
    }

    private LogicalPlan byCondition(Filter filter, Set fixed) throws Exception {
        if (filter.getTagValue(seen).isDefined()) {
            return filter; // the optimizer comes by several times
        }
        Above above = Above.below((LogicalPlan) filter.child(), filter.condition());
        if (above == null || fixed.contains(above.relation)) {
            return filter;
        }
        String purpose = above.relation == filter.child() ? LakebloomFileIndex.FILTER : LakebloomFileIndex.ABOVE;
        ObjectNode note = mapper.createObjectNode();
        LogicalRelation fewer = pruned(above.relation, above.condition, purpose, null, note);
        if (fewer == null && !note.isEmpty()) {
            filter.setTagValue(seen, note.toString());
        }
        return fewer == null ? filter : (LogicalPlan) filter.transformUp(new Copies.Exchange(above.relation, fewer));
    }

    private void noteFailure(Object plan, Throwable problem) {
        if (plan instanceof Filter) {
            ObjectNode note = mapper.createObjectNode();
            ObjectNode index = note.putArray("indexes").addObject();
            index.put("name", "of this place");
            index.put("reason", "INDEX_UNREADABLE");
            index.put("message", problem.toString());
            note.put("asked", true);
            ((Filter) plan).setTagValue(seen, note.toString());
        }
    }

    /** What Python said when a condition was asked in vain, or the indexes that were there; null: it was not looked at. */
    String seen(Filter filter) {
        return filter == null || filter.getTagValue(seen).isEmpty() ? null : (String) filter.getTagValue(seen).get();
    }

    /** See Pruning.pruned. */
    LogicalRelation pruned(LogicalRelation relation, Expression condition, String purpose, CachedRows keys, ObjectNode note)
            throws Exception {
        return pruning.pruned(this, relation, condition, purpose, keys, note);
    }

    Indexes indexes() {
        return indexes;
    }

    Object session() {
        return session;
    }

    /** Why joins leave out no files of relations, each in an array of JSON. */
    Map unprunedJoins(LogicalPlan plan) throws Exception {
        Map found = new IdentityHashMap();
        addUnprunedJoins(plan, found);
        return found;
    }

    private void addUnprunedJoins(LogicalPlan plan, Map found) throws Exception {
        if (plan instanceof Join || JoinKey.isComparison(plan)) {
            partners().describe(plan, found);
        }
        for (Iterator it = Plans.parts(plan).iterator(); it.hasNext();) {
            addUnprunedJoins((LogicalPlan) it.next(), found);
        }
    }

    /**
     * For prune_join: a query without the files that hold none of the keys, which are the one column of another query.
     *
     * Returns the plan, or the reason why it stays as it is.
     */
    public Object prunedByKeys(QueryExecution query, String column, QueryExecution keys) throws Exception {
        return new PruneJoin(this).pruned(query, column, keys);
    }

    private void warn(Throwable problem) {
        String text = problem.toString();
        if (warned.add(text)) {
            LOG.warn("no file is skipped, because an index could not be asked: {}", text);
        }
    }
}

package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Finds conditions above files, lets Python tell which of the files can match, and skips the others.
 *
 * Python is called only if an index covers the place and the condition names one of its columns in a way that filters
 * can answer. Whatever goes wrong, the plan stays as it was.
 */
public final class LakebloomRule extends Rule {
    /** Problems that are remembered, so that each is logged once. */
    static final long MAX_WARNINGS = 100;
    private static final Logger LOG = LoggerFactory.getLogger("lakebloom");
    private final Object session;
    private final Pruning pruning;
    private final Bounded warned = new Bounded(MAX_WARNINGS);
    private final Joins joins;
    private final Partners partners = new Partners(this);
    final Counts counts = new Counts();
    private final TreeNodeTag seen;
    private volatile Indexes indexes = new Indexes(new Wire.PublishedIndex[0]);
    private static final AtomicLong COUNT = new AtomicLong();

    /** The functions take the secret and a request of Wire, to prune or about the filter for a join, and return the reply. */
    public LakebloomRule(Object session, BiFunction python, BiFunction joins, String secret) {
        this.session = session;
        this.pruning = new Pruning(new Callback(python, secret));
        this.joins = new Joins(session, new Callback(joins, secret));
        this.seen = new TreeNodeTag("lakebloom.seen." + COUNT.getAndIncrement());
    }

    /** A RuleSettings; it counts for the rules of all lakes. */
    public void setSettings(String json) throws Exception {
        Settings.tell((Wire.RuleSettings) Wire.read(json, Wire.RuleSettings.class));
    }

    /** Replaces what is known of the indexes: an array of PublishedIndex. */
    public void setIndexes(String json) throws Exception {
        indexes = new Indexes((Wire.PublishedIndex[]) Wire.read(json, Wire.PublishedIndex[].class));
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

    /** For explain: the scans of an optimized plan, each a DescribedScan. */
    public String describe(LogicalPlan plan) throws Exception {
        return Wire.write(Scans.of(plan, this));
    }

    /** For explain: what became of the joins whose keys a global filter is about, each a DescribedJoin. */
    public String describeJoins(LogicalPlan plan) throws Exception {
        List report = new ArrayList();
        describeJoins(plan, report);
        return Wire.write(report);
    }

    private void describeJoins(LogicalPlan plan, List report) throws Exception {
        if (plan instanceof Join) {
            joins.describe((Join) plan, indexes, report);
        }
        for (Iterator it = Plans.parts(plan).iterator(); it.hasNext();) {
            describeJoins((LogicalPlan) it.next(), report);
        }
    }

    /** The filter behind a marked column, a JoinFilter; null if it is forgotten. */
    public String joinFilter(String mark) throws Exception {
        Wire.JoinFilter info = joins.info(mark);
        return info == null ? null : Wire.write(info);
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
        LogicalPlan fewerFiles = partners.rewritten(join);
        return fewerFiles instanceof Join ? joins.rewritten((Join) fewerFiles, indexes) : fewerFiles;
    }

    private LogicalPlan rewrite(Filter filter, Set fixed) throws Exception {
        LogicalPlan fewer = byCondition(filter, fixed);
        boolean isJoin = !indexes.isEmpty() && JoinKey.isComparison(filter) && !Above.holds(fewer, fixed);
        return isJoin ? partners.rewritten(fewer) : fewer;
    }

    private LogicalPlan byCondition(Filter filter, Set fixed) throws Exception {
        if (filter.getTagValue(seen).isDefined()) {
            return filter; // the optimizer calls the rule several times
        }
        Above above = Above.below((LogicalPlan) filter.child(), filter.condition());
        if (above == null || fixed.contains(above.relation)) {
            return filter;
        }
        String purpose = above.relation == filter.child() ? LakebloomFileIndex.FILTER : LakebloomFileIndex.ABOVE;
        PruneNote note = new PruneNote();
        LogicalPlan fewer = pruned(above.relation, above.condition, purpose, null, note);
        if (fewer == null && note.there != null) {
            filter.setTagValue(seen, note);
        }
        return fewer == null ? filter : (LogicalPlan) filter.transformUp(new Copies.Exchange(above.relation, fewer));
    }

    private void noteFailure(Object plan, Throwable problem) {
        if (plan instanceof Filter) {
            PruneNote note = new PruneNote();
            note.failure = problem.toString();
            ((Filter) plan).setTagValue(seen, note);
        }
    }

    /** What happened where nothing is skipped; null if the rule did not look at the condition. */
    Wire.Seen seen(Filter filter) {
        return filter.getTagValue(seen).isEmpty() ? null : ((PruneNote) filter.getTagValue(seen).get()).wire();
    }

    /** See Pruning.pruned. */
    LogicalPlan pruned(LogicalPlan relation, Expression condition, String purpose, CachedRows keys, PruneNote note)
            throws Exception {
        return pruning.pruned(this, relation, condition, purpose, keys, note);
    }

    Indexes indexes() {
        return indexes;
    }

    Object session() {
        return session;
    }

    /** For each relation the joins that skip none of its files, though an index knows their key. */
    Map unprunedJoins(LogicalPlan plan) {
        Map found = new IdentityHashMap();
        addUnprunedJoins(plan, found);
        return found;
    }

    private void addUnprunedJoins(LogicalPlan plan, Map found) {
        if (plan instanceof Join || JoinKey.isComparison(plan)) {
            partners.describe(plan, found);
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
        if (warned.get(text) == null) {
            warned.put(text, text, 1);
            LOG.warn("no file is skipped, because of an error: {}", text);
        }
    }
}

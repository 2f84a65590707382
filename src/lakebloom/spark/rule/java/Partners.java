package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

/**
 * Leaves out files of one side of a join that hold none of the other side's keys, where those are few and known.
 *
 * A condition that compares a column with a subquery of one value is a join of this kind, too. docs/JOINS.md says for
 * which joins and sides that is safe. Why a join skips nothing is noted on it, for explain.
 */
final class Partners {
    private final LakebloomRule rule;
    private final TreeNodeTag noted;
    private static final AtomicLong COUNT = new AtomicLong();
    /** Of keys that skip no more than something else has skipped already. */
    private static final String NOT_NEEDED = "NOT_NEEDED";
    /** What Python says of a column that an index does not have. */
    private static final String NOT_INDEXED = "NO_USABLE_PREDICATE";

    Partners(LakebloomRule rule) {
        this.rule = rule;
        this.noted = new TreeNodeTag("lakebloom.partners." + COUNT.getAndIncrement());
    }

    /** A join, or a condition, with fewer files to read below it; itself if there is nothing to do. */
    LogicalPlan rewritten(LogicalPlan plan) throws Exception {
        List pairs = JoinKey.of(plan);
        Map before = notes(plan);
        Map notes = before == null ? new HashMap() : new HashMap(before); // copies of the plan keep what they had
        List children = new ArrayList(Scala.list(plan.children()));
        boolean changed = false;
        for (Iterator it = pairs.iterator(); it.hasNext();) {
            JoinKey pair = (JoinKey) it.next();
            LogicalPlan indexed = (LogicalPlan) children.get(pair.indexed);
            Target target = notes.containsKey(pair.id()) ? null : Target.of(rule.indexes(), indexed, pair);
            if (target == null || target.isDone(rule, pair.purpose())) {
                continue; // the optimizer calls the rule several times
            }
            try {
                LogicalPlan pruned = pruned(plan, pair, target, indexed);
                changed |= pruned != indexed;
                children.set(pair.indexed, pruned);
            } catch (Keys.Unknown why) {
                notes.put(pair.id(), why);
            }
        }
        LogicalPlan made = changed ? (LogicalPlan) plan.withNewChildren(Scala.seq(children)) : plan;
        if (!pairs.isEmpty()) {
            made.setTagValue(noted, notes);
        }
        return made;
    }

    /** For each key that skips nothing the Keys.Unknown that says why; null if the rule did not look at the plan. */
    private Map notes(LogicalPlan plan) {
        return plan.getTagValue(noted).isEmpty() ? null : (Map) plan.getTagValue(noted).get();
    }

    private LogicalPlan pruned(LogicalPlan plan, JoinKey pair, Target target, LogicalPlan indexed) throws Exception {
        if (target.reason != null) {
            throw new Keys.Unknown(target.reason, "");
        }
        if (plan instanceof Join && !isSafe((Join) plan, pair.indexed)) {
            throw new Keys.Unknown("JOIN_NOT_SAFE", "");
        }
        Keys keys = Keys.of(rule.session(), pair.keys, pair.key, plan instanceof Filter);
        if (keys.cached != null && target.isPlanned()) {
            throw new Keys.Unknown("KEYS_AT_RUN_TIME", "a cache, which may have other rows when the files are read");
        }
        LogicalPlan made = indexed;
        String why = "NOT_SELECTIVE";
        for (Iterator it = target.origins.iterator(); it.hasNext();) {
            Origin origin = (Origin) it.next();
            PruneNote note = new PruneNote();
            Expression wanted = KeyCondition.of(origin.column, keys, pair.isNullSafe);
            made = pruned(rule, made, origin, wanted, pair.purpose(), keys.cached, note);
            why = note.reason == null ? why : note.reason;
        }
        if (made == indexed && why.equals(NOT_INDEXED) && !target.isNamed) {
            why = NOT_NEEDED; // the column was not one that had another name once
        }
        if (made == indexed) {
            boolean isEnough = why.equals("NOT_SELECTIVE") && target.isPruned();
            throw new Keys.Unknown(isEnough ? NOT_NEEDED : why, keys.values.size() + (keys.values.size() == 1 ? " key" : " keys"));
        }
        return made;
    }

    /** A plan without the files of an origin that cannot match a condition; the plan itself where all can. */
    static LogicalPlan pruned(
            LakebloomRule rule, LogicalPlan plan, Origin origin, Expression condition, String purpose, CachedRows cached, PruneNote note)
            throws Exception {
        LogicalPlan fewer = rule.pruned(origin.relation, condition, purpose, cached, note);
        if (fewer == null || Scan.of(fewer, null).decided().keepsAll()) {
            return plan;
        }
        return (LogicalPlan) plan.transformUp(new Copies.Exchange(origin.relation, fewer));
    }

    /** Whether rows of a side that have no partner are in no result and decide about none. */
    private static boolean isSafe(Join join, int side) {
        String type = join.joinType().toString();
        if (type.equals("Inner") || type.equals("Cross") || type.equals("LeftSemi")) {
            return true;
        }
        boolean needsLeft = type.equals("LeftOuter") || type.equals("LeftAnti") || type.startsWith("ExistenceJoin");
        return side == 1 ? needsLeft : type.equals("RightOuter");
    }

    /** Adds to the list of each relation that a join could have skipped files of a Wire.UnprunedJoin: why it does not. */
    void describe(LogicalPlan plan, Map found) {
        Map notes = notes(plan);
        for (Iterator it = JoinKey.of(plan).iterator(); it.hasNext();) {
            JoinKey pair = (JoinKey) it.next();
            Target target = Target.of(rule.indexes(), (LogicalPlan) Scala.list(plan.children()).get(pair.indexed), pair);
            if (target == null || !target.isNamed || target.isDone(rule, pair.purpose())) {
                continue;
            }
            Keys.Unknown note = notes == null ? null : (Keys.Unknown) notes.get(pair.id());
            if (note != null && note.getMessage().equals(NOT_NEEDED)) {
                continue;
            }
            Wire.UnprunedJoin join = new Wire.UnprunedJoin();
            join.join = plan instanceof Join ? ((Join) plan).joinType().toString() : "Subquery";
            join.side = plan instanceof Filter ? "" : pair.indexed == 0 ? "left" : "right";
            join.column = target.column;
            join.key = ConditionText.shortened(pair.key.sql());
            join.reason = note != null ? note.getMessage() : notes == null ? "DISABLED" : "PLANNED_BEFORE";
            join.message = note == null ? "" : ConditionText.shortened(note.found);
            for (Iterator jt = target.relations.iterator(); jt.hasNext();) {
                Object relation = jt.next();
                if (!found.containsKey(relation)) {
                    found.put(relation, new ArrayList());
                }
                ((List) found.get(relation)).add(join);
            }
        }
    }
}

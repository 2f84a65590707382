package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.First;
import org.apache.spark.sql.catalyst.expressions.aggregate.Last;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Union;

/**
 * Follows a key of a join down to the rows that its values come from, which KeyRows reads.
 *
 * Every step is one of a list of operators that pass on the values of some rows below: they may drop rows or repeat
 * them. What is not on the list ends the search.
 */
final class KeySearch {
    /** Operators whose columns from below have values from below. */
    private static final List PASSING_ON = Arrays.asList(
        ("ArrowEvalPython BatchEvalPython Deduplicate Generate GlobalLimit LocalLimit Offset RebalancePartitions Repartition "
            + "RepartitionByExpression ResolvedHint Sort SubqueryAlias Tail Window WindowGroupLimit").split(" "));
    private final Keys keys;
    private final KeyRows rows;

    /** Adds to these keys. */
    KeySearch(Keys keys) {
        this.keys = keys;
        this.rows = new KeyRows(keys);
    }

    /** Conditions hold for the rows whose keys are wanted; they are over the plan's columns, as the key is. */
    void collect(LogicalPlan plan, Expression key, List conditions) throws Exception {
        if (!key.deterministic()) {
            throw new Keys.Unknown("NOT_REPEATABLE", key.sql());
        }
        if (!Columns.isEvaluable(key)) {
            throw new Keys.Unknown("KEYS_AT_RUN_TIME", key.sql());
        }
        String name = plan.getClass().getSimpleName();
        if (key.references().isEmpty()) {
            keys.add(key.eval(InternalRow.empty()));
        } else if (plan instanceof Project) {
            Map shown = Columns.definitions(((Project) plan).projectList());
            collect(Plans.child(plan), Columns.replaced(key, shown), Columns.replaced(conditions, shown));
        } else if (plan instanceof Filter) {
            List more = new ArrayList(Conjuncts.of(((Filter) plan).condition()));
            if (!((Filter) plan).condition().deterministic()) {
                throw new Keys.Unknown("NOT_REPEATABLE", ((Filter) plan).condition().sql());
            }
            more.addAll(conditions);
            collect(Plans.child(plan), key, more);
        } else if (plan instanceof Sample) {
            throw new Keys.Unknown("NOT_REPEATABLE", "a sample");
        } else if (plan instanceof Union) {
            for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
                LogicalPlan part = (LogicalPlan) it.next();
                Map shown = Columns.positions(plan.output(), part.output());
                collect(part, Columns.replaced(key, shown), Columns.replaced(conditions, shown));
            }
        } else if (plan instanceof Aggregate) {
            grouped((Aggregate) plan, key, conditions);
        } else if (plan instanceof Join) {
            joined((Join) plan, key, conditions);
        } else if (plan instanceof Generate && KeyRows.isExploded((Generate) plan, key)) {
            rows.exploded((Generate) plan, key);
        } else if (PASSING_ON.contains(name) && key.references().subsetOf(Plans.child(plan).outputSet())) {
            // Conditions on other columns are forgotten: more rows may pass.
            collect(Plans.child(plan), key, Columns.over(Plans.child(plan), conditions));
        } else {
            rows.collect(plan, key, conditions);
        }
    }

    /**
     * Columns that rows are grouped by have values from below, and so have the greatest, least, first and last.
     *
     * Groups do not tell -0.0 from 0.0, and give either as 0.0. So a column with floats in it is no more than a key by
     * itself, for which both are one: nothing computed of it is known, and no condition on it.
     */
    private void grouped(Aggregate plan, Expression key, List conditions) throws Exception {
        Map plain = new HashMap();
        Map floats = new HashMap();
        Map picked = new HashMap();
        for (Iterator it = Scala.list(plan.aggregateExpressions()).iterator(); it.hasNext();) {
            NamedExpression made = (NamedExpression) it.next();
            Expression e = made instanceof Alias ? (Expression) ((Alias) made).child() : (Expression) made;
            Expression one = e instanceof AggregateExpression ? picked((AggregateExpression) e) : null;
            if (one != null) {
                picked.put(made.exprId(), one);
            } else if (!hasAggregate(e) && !hasFloats(e.references())) {
                plain.put(made.exprId(), e);
            } else if (e instanceof AttributeReference && Types.isFloat(e.dataType())) {
                floats.put(made.exprId(), e);
            }
        }
        List kept = Columns.replaced(Columns.defined(conditions, plain), plain);
        if (key instanceof AttributeReference && Columns.areDefined(key, floats)) {
            collect(Plans.child(plan), Columns.replaced(key, floats), kept);
            return;
        }
        if (Columns.areDefined(key, plain)) {
            collect(Plans.child(plan), Columns.replaced(key, plain), kept);
            return;
        }
        if (key.references().size() != 1 || !Columns.areDefined(key, picked)) {
            throw new Keys.Unknown("KEYS_AT_RUN_TIME", key.sql());
        }
        keys.addOfNulls(key); // of no rows
        Map one = new HashMap(picked);
        one.keySet().retainAll(Collections.singleton(((NamedExpression) key.references().head()).exprId()));
        collect(Plans.child(plan), Columns.replaced(key, one), Columns.replaced(Columns.defined(conditions, one), one));
    }

    private static Expression picked(AggregateExpression e) {
        Object function = e.aggregateFunction();
        boolean picks = function instanceof Max || function instanceof Min || function instanceof First || function instanceof Last;
        return picks ? (Expression) Scala.list(((Expression) function).children()).get(0) : null;
    }

    private static boolean hasAggregate(Expression e) {
        boolean found = e instanceof AggregateExpression;
        for (Iterator it = Scala.list(e.children()).iterator(); it.hasNext() && !found;) {
            found = hasAggregate((Expression) it.next());
        }
        return found;
    }

    private static boolean hasFloats(scala.collection.Iterable columns) {
        for (Iterator it = Scala.list(columns).iterator(); it.hasNext();) {
            if (Types.hasFloats(((Expression) it.next()).dataType())) {
                return true;
            }
        }
        return false;
    }

    /** A column of a join has values of its side, and NULL where the join adds rows. */
    private void joined(Join join, Expression key, List conditions) throws Exception {
        LogicalPlan left = (LogicalPlan) join.left();
        boolean isLeft = key.references().subsetOf(left.outputSet());
        LogicalPlan side = isLeft ? left : (LogicalPlan) join.right();
        if (!key.references().subsetOf(side.outputSet())) {
            throw new Keys.Unknown("KEYS_AT_RUN_TIME", key.sql());
        }
        String type = join.joinType().toString();
        if (type.equals("FullOuter") || type.equals(isLeft ? "RightOuter" : "LeftOuter") || type.equals("LeftSingle")) {
            keys.addOfNulls(key);
        }
        Keys below = new Keys(keys.session);
        try {
            new KeySearch(below).collect(side, key, Columns.over(side, conditions));
        } catch (Keys.Unknown why) {
            Expression partner = partner(join, key, isLeft);
            if (partner == null) {
                throw why;
            }
            below = new Keys(keys.session);
            new KeySearch(below).collect(isLeft ? (LogicalPlan) join.right() : left, partner, Collections.emptyList());
        }
        keys.addAll(below);
    }

    /** The column of the other side that a column equals wherever the join finds a partner, bit by bit; null: there is none. */
    private static Expression partner(Join join, Expression key, boolean isLeft) {
        String types = isLeft ? "Inner Cross LeftSemi RightOuter" : "Inner Cross LeftOuter";
        if (!(key instanceof AttributeReference) || Types.isCollated(key.dataType()) || join.condition().isEmpty()
                || !Arrays.asList(types.split(" ")).contains(join.joinType().toString())) {
            return null;
        }
        for (Iterator it = Conjuncts.of((Expression) join.condition().get()).iterator(); it.hasNext();) {
            Object part = it.next();
            List both = part instanceof EqualTo ? Scala.list(((EqualTo) part).children()) : Collections.emptyList();
            for (int i = 0; i < both.size(); i++) {
                Expression other = (Expression) both.get(1 - i);
                LogicalPlan side = isLeft ? (LogicalPlan) join.right() : (LogicalPlan) join.left();
                if (key.semanticEquals((Expression) both.get(i)) && other.references().subsetOf(side.outputSet())) {
                    return other;
                }
            }
        }
        return null;
    }
}

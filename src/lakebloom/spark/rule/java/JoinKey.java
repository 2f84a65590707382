package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;

/** Something made of the columns of one plan that must equal something made of another's, which is to lose files. */
final class JoinKey {
    final LogicalPlan keys;
    final Expression key;
    final int indexed;
    final Expression other;
    final boolean isNullSafe;

    /** The indexed plan is a child, by its number. NULL equals NULL in a null-safe pair. */
    private JoinKey(LogicalPlan keys, Expression key, int indexed, Expression other, boolean isNullSafe) {
        this.keys = keys;
        this.key = key;
        this.indexed = indexed;
        this.other = other;
        this.isNullSafe = isNullSafe;
    }

    String id() {
        return indexed + " " + other + " = " + key;
    }

    String purpose() {
        return LakebloomFileIndex.KEYS + id();
    }

    /** The keys of a join, each in both directions, or of a condition that compares a column with a subquery. */
    static List of(LogicalPlan plan) {
        List found = new ArrayList();
        if (plan instanceof Join && ((Join) plan).condition().isDefined()) {
            for (Iterator it = Conjuncts.of((Expression) ((Join) plan).condition().get()).iterator(); it.hasNext();) {
                Object part = it.next();
                if (part instanceof EqualTo || part instanceof EqualNullSafe) {
                    List both = Scala.list(((Expression) part).children());
                    addJoined(found, (Join) plan, (Expression) both.get(0), (Expression) both.get(1), part instanceof EqualNullSafe);
                }
            }
        }
        if (isComparison(plan)) {
            for (Iterator it = Conjuncts.of(((Filter) plan).condition()).iterator(); it.hasNext();) {
                Object part = it.next();
                if (part instanceof EqualTo || part instanceof EqualNullSafe) {
                    List both = Scala.list(((Expression) part).children());
                    for (int i = 0; i < 2; i++) {
                        addCompared(found, (Expression) both.get(i), (Expression) both.get(1 - i), part instanceof EqualNullSafe);
                    }
                }
            }
        }
        return found;
    }

    /** Whether a plan is a condition with a subquery in it. */
    static boolean isComparison(LogicalPlan plan) {
        return plan instanceof Filter && SubqueryExpression.hasSubquery(((Filter) plan).condition());
    }

    private static void addJoined(List found, Join join, Expression one, Expression another, boolean isNullSafe) {
        if (one instanceof CreateNamedStruct || another instanceof CreateNamedStruct) {
            // Within structs NULL equals NULL.
            int size = ((StructType) one.dataType()).length();
            for (int i = 0; i < size; i++) {
                addJoined(found, join, StructConditions.field(one, i), StructConditions.field(another, i), true);
            }
            return;
        }
        LogicalPlan[] sides = Plans.sides(join);
        Expression[] both = {one, another};
        for (int i = 0; i < 4; i++) {
            Expression key = both[i % 2];
            Expression other = both[1 - i % 2];
            boolean fits = !key.references().isEmpty() && !other.references().isEmpty()
                && key.references().subsetOf(sides[i / 2].outputSet()) && other.references().subsetOf(sides[1 - i / 2].outputSet());
            if (fits) {
                found.add(new JoinKey(sides[i / 2], key, 1 - i / 2, other, isNullSafe));
            }
        }
    }

    /** A column that must equal what a subquery finds. */
    private static void addCompared(List found, Expression key, Expression other, boolean isNullSafe) {
        ScalarSubquery subquery = key.references().isEmpty() ? subquery(key) : null;
        if (subquery != null && subquery.outerAttrs().isEmpty() && !SubqueryExpression.hasSubquery(other) && !other.references().isEmpty()) {
            LogicalPlan plan = subquery.plan();
            Expression value = (Expression) key.transformUp(new Copies.Exchange(subquery, plan.output().head()));
            found.add(new JoinKey(plan, value, 0, other, isNullSafe));
        }
    }

    /** The one subquery of an expression; null if there is none, or several. */
    private static ScalarSubquery subquery(Expression e) {
        if (e instanceof ScalarSubquery) {
            return (ScalarSubquery) e;
        }
        ScalarSubquery found = null;
        for (Iterator it = Scala.list(e.children()).iterator(); it.hasNext();) {
            Expression child = (Expression) it.next();
            if (SubqueryExpression.hasSubquery(child)) {
                if (found != null) {
                    return null;
                }
                found = subquery(child);
                if (found == null) {
                    return null;
                }
            }
        }
        return found;
    }
}

package io.lakebloom.spark;

import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.Nondeterministic;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.Rand;
import org.apache.spark.sql.catalyst.expressions.Randn;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Conditions above a plan that is not a scan, as conditions on the scan below; none if an operator between needs all rows.
 *
 * Spark itself moves conditions as far down as it can. It stops at operators that make several rows of one (grouping sets)
 * and at input_file_name(). Each row above still comes from one row below, and the condition holds for that one.
 */
final class Above {
    private static final String PLAIN = "org.apache.spark.sql.catalyst.expressions.";
    final LogicalPlan relation;
    final Expression condition;

    private Above(LogicalPlan relation, Expression condition) {
        this.relation = relation;
        this.condition = condition;
    }

    /** A condition above a plan as one on the files that it reads; null if there is none. */
    static Above below(LogicalPlan plan, Expression condition) {
        if (Plans.isScan(plan)) {
            return new Above(plan, condition);
        }
        if (plan instanceof Project && isByRow((Project) plan)) {
            List shown = Scala.list(((Project) plan).projectList());
            return below(Plans.child(plan), replaced(condition, shown, plan));
        }
        if (plan instanceof Expand) {
            Expression any = null;
            for (Iterator it = Scala.list(((Expand) plan).projections()).iterator(); it.hasNext();) {
                List shown = Scala.list((scala.collection.Seq) it.next());
                Expression one = replaced(condition, shown, plan);
                any = any == null ? one : new Or(any, one);
            }
            return any == null ? null : below(Plans.child(plan), any);
        }
        boolean passes = plan instanceof Filter && plan.deterministic() || plan instanceof Sample && isWhole((Sample) plan);
        return passes ? below(Plans.child(plan), condition) : null;
    }

    /** Whether each row depends only on the row below it, not on its place. */
    private static boolean isByRow(Project plan) {
        for (Iterator it = Scala.list(plan.projectList()).iterator(); it.hasNext();) {
            if (!isByRow((Expression) it.next())) {
                return false;
            }
        }
        return true;
    }

    private static boolean isByRow(Expression e) {
        if (e.deterministic() || e instanceof InputFileName) {
            return true;
        }
        boolean isOwn = e instanceof Nondeterministic || e instanceof UserDefinedExpression || !e.getClass().getName().startsWith(PLAIN);
        List children = Scala.list(e.children());
        boolean any = false;
        for (Iterator it = children.iterator(); it.hasNext() && !isOwn;) {
            Expression child = (Expression) it.next();
            any |= !child.deterministic();
            isOwn |= !isByRow(child);
        }
        return any && !isOwn;
    }

    private static boolean isWhole(Sample sample) {
        return !sample.withReplacement() && sample.lowerBound() <= 0 && sample.upperBound() >= 1;
    }

    /** The condition over what a plan's columns are made of. */
    private static Expression replaced(Expression condition, List shown, LogicalPlan plan) {
        Map known = new HashMap();
        Iterator names = Scala.list(plan.output()).iterator();
        for (Iterator it = shown.iterator(); it.hasNext();) {
            Expression made = (Expression) it.next();
            known.put(((Attribute) names.next()).exprId(), made instanceof Alias ? (Expression) ((Alias) made).child() : made);
        }
        return Columns.replaced(condition, known);
    }

    /**
     * Adds the relations of files that must keep all their rows: a sample or rand(seed) above chooses rows by their
     * place in a partition, and with fewer files it would choose others.
     */
    static void collectFixed(LogicalPlan plan, boolean isFixed, Set found) {
        boolean fixed = isFixed || plan instanceof Sample && !isWhole((Sample) plan) || hasSeed(plan);
        if (fixed && (plan instanceof LogicalRelation || Plans.isScan(plan))) {
            found.add(plan);
        }
        for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
            collectFixed((LogicalPlan) it.next(), fixed, found);
        }
        for (Iterator it = Scala.list(plan.subqueries()).iterator(); it.hasNext();) {
            collectFixed((LogicalPlan) it.next(), false, found);
        }
    }

    private static boolean hasSeed(LogicalPlan plan) {
        for (Iterator it = Scala.list(plan.expressions()).iterator(); it.hasNext();) {
            if (hasSeed((Expression) it.next())) {
                return true;
            }
        }
        return false;
    }

    private static boolean hasSeed(Expression e) {
        if (e.deterministic()) {
            return false;
        }
        if (e instanceof Rand && !((Rand) e).hideSeed() || e instanceof Randn && !((Randn) e).hideSeed()) {
            return true;
        }
        for (Iterator it = Scala.list(e.children()).iterator(); it.hasNext();) {
            if (hasSeed((Expression) it.next())) {
                return true;
            }
        }
        return false;
    }

    /** Whether one of the relations in a set is part of a plan. */
    static boolean holds(LogicalPlan plan, Set relations) {
        if (relations.isEmpty() || relations.contains(plan)) {
            return !relations.isEmpty();
        }
        for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
            if (holds((LogicalPlan) it.next(), relations)) {
                return true;
            }
        }
        return false;
    }
}

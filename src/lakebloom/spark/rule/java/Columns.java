package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Expressions over the columns of a plan, as expressions over the columns of the plan below.
 *
 * A definition is a map from the id of a column to the expression that it is made of.
 */
final class Columns {
    private Columns() {}

    /** What each column of a projection or aggregation is made of. */
    static Map definitions(scala.collection.Seq columns) {
        Map found = new HashMap();
        for (Iterator it = Scala.list(columns).iterator(); it.hasNext();) {
            NamedExpression made = (NamedExpression) it.next();
            found.put(made.exprId(), made instanceof Alias ? (Expression) ((Alias) made).child() : made);
        }
        return found;
    }

    /** Each column of the first list is the one of the second at the same position, as in a union. */
    static Map positions(scala.collection.Seq from, scala.collection.Seq to) {
        Map found = new HashMap();
        Iterator others = Scala.list(to).iterator();
        for (Iterator it = Scala.list(from).iterator(); it.hasNext();) {
            found.put(((Attribute) it.next()).exprId(), others.next());
        }
        return found;
    }

    /** An expression with definitions in the place of columns. */
    static Expression replaced(Expression e, Map definitions) {
        return (Expression) e.transformUp(new Replace(definitions));
    }

    static List replaced(List expressions, Map definitions) {
        List found = new ArrayList();
        for (Iterator it = expressions.iterator(); it.hasNext();) {
            found.add(replaced((Expression) it.next(), definitions));
        }
        return found;
    }

    private static final class Replace extends AbstractPartialFunction {
        private final Map definitions;

        Replace(Map definitions) {
            this.definitions = definitions;
        }

        public boolean isDefinedAt(Object e) {
            return e instanceof AttributeReference && definitions.containsKey(((NamedExpression) e).exprId());
        }

        public Object applyOrElse(Object e, Function1 otherwise) {
            return isDefinedAt(e) ? definitions.get(((NamedExpression) e).exprId()) : otherwise.apply(e);
        }
    }

    /** Whether all columns of an expression have a definition. */
    static boolean areDefined(Expression e, Map definitions) {
        for (Iterator it = Scala.list(e.references()).iterator(); it.hasNext();) {
            if (!definitions.containsKey(((NamedExpression) it.next()).exprId())) {
                return false;
            }
        }
        return true;
    }

    /** The conditions all of whose columns have a definition. */
    static List defined(List conditions, Map definitions) {
        List found = new ArrayList();
        for (Iterator it = conditions.iterator(); it.hasNext();) {
            Expression condition = (Expression) it.next();
            if (areDefined(condition, definitions)) {
                found.add(condition);
            }
        }
        return found;
    }

    /** The conditions that are about a plan's own columns. */
    static List over(LogicalPlan plan, List conditions) {
        List found = new ArrayList();
        for (Iterator it = conditions.iterator(); it.hasNext();) {
            Expression condition = (Expression) it.next();
            if (condition.references().subsetOf(plan.outputSet())) {
                found.add(condition);
            }
        }
        return found;
    }

    /** Whether the driver can compute an expression from a row. */
    static boolean isEvaluable(Expression e) {
        if (e instanceof UserDefinedExpression || e instanceof Unevaluable && !(e instanceof Attribute) || SubqueryExpression.hasSubquery(e)) {
            return false;
        }
        for (Iterator it = Scala.list(e.children()).iterator(); it.hasNext();) {
            if (!isEvaluable((Expression) it.next())) {
                return false;
            }
        }
        return true;
    }

    /** The conditions that the driver can compute, with the same result each time. */
    static List evaluable(List conditions) {
        List found = new ArrayList();
        for (Iterator it = conditions.iterator(); it.hasNext();) {
            Expression condition = (Expression) it.next();
            if (condition.deterministic() && isEvaluable(condition)) {
                found.add(condition);
            }
        }
        return found;
    }

    static boolean has(LogicalPlan plan, Object attribute) {
        return plan.outputSet().contains((NamedExpression) attribute);
    }

    /** The column below a projection or aggregation that one of its columns shows; null if it is computed. */
    static AttributeReference source(LogicalPlan plan, AttributeReference column) {
        Object shown = named(plan instanceof Project ? ((Project) plan).projectList() : ((Aggregate) plan).aggregateExpressions(), column);
        if (shown instanceof Alias && ((Alias) shown).child() instanceof AttributeReference) {
            return (AttributeReference) ((Alias) shown).child();
        }
        return shown instanceof AttributeReference ? column : null;
    }

    /** The one of several expressions that defines a column; null if there is none. */
    static Object named(scala.collection.Seq expressions, AttributeReference column) {
        for (Iterator it = Scala.list(expressions).iterator(); it.hasNext();) {
            Object found = it.next();
            if (found instanceof NamedExpression && ((NamedExpression) found).exprId().equals(column.exprId())) {
                return found;
            }
        }
        return null;
    }
}

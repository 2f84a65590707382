package io.lakebloom.spark;

import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.types.DataType;
import scala.Option;

/** Keys of a join as a condition on a column. */
final class KeyCondition {
    private KeyCondition() {}

    /** NULL equals NULL in a null-safe join. */
    static Expression of(Expression column, Keys keys, boolean isNullSafe) {
        Expression wanted = isIn(column, keys.values);
        return isNullSafe && keys.hasNull ? new Or(wanted, new IsNull(column)) : wanted;
    }

    /** Keys of a type that holds all values of the column's, or all of whose values the column's holds. */
    static Expression of(Expression column, Set keys, DataType type) {
        DataType own = column.dataType();
        boolean isNarrower = !own.equals(type) && Types.isExact(type, own);
        Set values = new HashSet();
        for (Iterator it = keys.iterator(); it.hasNext();) {
            Object key = it.next();
            values.add(isNarrower ? cast(key, type, own) : key);
        }
        return isIn(isNarrower || own.equals(type) ? column : (Expression) Cast$.MODULE$.apply(column, type, false), values);
    }

    /** A condition that no row meets where there are no values. Values that a narrower column cannot hold have no partner. */
    static Expression isIn(Expression column, Set values) {
        if (column instanceof Cast) {
            Expression narrower = (Expression) ((Cast) column).child();
            Set held = new HashSet();
            for (Iterator it = values.iterator(); it.hasNext();) {
                Object value = it.next();
                Object narrow = cast(value, column.dataType(), narrower.dataType());
                if (narrow != null && value.equals(cast(narrow, narrower.dataType(), column.dataType()))) {
                    held.add(narrow);
                }
            }
            return isIn(narrower, held);
        }
        Set wanted = values.isEmpty() ? Collections.singleton(null) : values;
        return new InSet(column, Scala.set(wanted));
    }

    private static Object cast(Object value, DataType from, DataType to) {
        return Cast$.MODULE$.apply(new Literal(value, from), to, Option.empty(), EvalMode.TRY()).eval(null);
    }
}

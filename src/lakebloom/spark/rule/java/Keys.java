package io.lakebloom.spark;

import java.math.BigInteger;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The values that a key of a join can have, where they can be known before the query runs.
 *
 * There may be values that the query never compares: each costs a file. None may be missing: that would cost rows.
 */
final class Keys {
    /** Planning waits until the rows are read: so many for each key that is allowed. */
    private static final int ROWS_FOR_A_KEY = 10;
    final Object session;
    final Set values = new HashSet();
    boolean hasNull;
    /** The caches that values were read from; null if there is none. */
    CachedRows cached;

    Keys(Object session) {
        this.session = session;
    }

    /** The values of an expression over a plan, also over a row of NULLs if the plan's rows are values to compare with. */
    static Keys of(Object session, LogicalPlan plan, Expression key, boolean isValue) throws Unknown {
        Keys keys = new Keys(session);
        try {
            if (isValue && key.deterministic() && Columns.isEvaluable(key)) {
                keys.addOfNulls(key);
            }
            new KeySearch(keys).collect(plan, key, Collections.emptyList());
        } catch (Unknown unknown) {
            throw unknown;
        } catch (Exception problem) {
            throw new Unknown("KEYS_AT_RUN_TIME", problem.toString()); // the query will raise the same
        }
        return keys;
    }

    /** Values that cannot be known; the message is the reason. */
    static final class Unknown extends Exception {
        final String found;

        Unknown(String reason, String found) {
            super(reason, null, false, false); // no stack: it is kept with the plan
            this.found = found;
        }
    }

    void add(Object value) throws Unknown {
        if (value == null) {
            hasNull = true;
            return;
        }
        values.add(value instanceof UTF8String ? ((UTF8String) value).copy() : value);
        if (values.size() > maxKeys()) {
            throw tooMany("more than " + maxKeys() + " keys");
        }
    }

    void addAll(Keys others) throws Unknown {
        for (Iterator it = others.values.iterator(); it.hasNext();) {
            add(it.next());
        }
        hasNull |= others.hasNull;
        cached = others.cached == null ? cached : others.cached.and(cached);
    }

    /** Adds what becomes of a row of NULLs. */
    void addOfNulls(Expression key) throws Exception {
        Map nulls = new HashMap();
        for (Iterator it = Scala.list(key.references()).iterator(); it.hasNext();) {
            NamedExpression column = (NamedExpression) it.next();
            nulls.put(column.exprId(), new Literal(null, ((Expression) column).dataType()));
        }
        add(Columns.replaced(key, nulls).eval(InternalRow.empty()));
    }

    static void requireSmall(BigInteger bytes) throws Unknown {
        BigInteger most = Settings.bytes("spark.lakebloom.join.maxKeyBytes");
        if (bytes.compareTo(most) > 0) {
            throw tooMany("about " + bytes + " bytes; spark.lakebloom.join.maxKeyBytes is " + most);
        }
    }

    static Unknown tooMany(String found) {
        return new Unknown("TOO_MANY_KEYS", found);
    }

    static int maxKeys() {
        return Settings.number("spark.lakebloom.join.maxKeys");
    }

    /** How many rows are read, at most, to find keys. */
    static long maxRows() {
        return (long) ROWS_FOR_A_KEY * maxKeys();
    }
}

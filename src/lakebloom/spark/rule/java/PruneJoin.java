package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;

/** For prune_join: a query without the files that hold none of the keys of another. */
final class PruneJoin {
    private final LakebloomRule rule;

    PruneJoin(LakebloomRule rule) {
        this.rule = rule;
    }

    /** The plan of a query with fewer files, or the reason why it stays as it is. The keys have one column. */
    Object pruned(QueryExecution query, String column, QueryExecution keys) throws Exception {
        LogicalPlan plan = query.analyzed();
        AttributeReference compared = column(plan, column);
        List origins = compared == null ? Collections.emptyList() : Origin.of(plan, compared, rule.indexes());
        DataType type = ((Expression) Scala.list(keys.analyzed().output()).get(0)).dataType();
        if (origins.isEmpty()) {
            boolean isLogged = compared != null && rule.indexes().meetLogged(Logged.roots(plan));
            return isLogged ? filtered(plan, compared, keys, type) : "UNSUPPORTED_TABLE";
        }
        List known = new ArrayList();
        for (Iterator it = origins.iterator(); it.hasNext();) {
            Origin origin = (Origin) it.next();
            if (origin.canBeProbed(rule.indexes(), type)) {
                known.add(origin);
            }
        }
        if (known.isEmpty()) {
            return "NO_MATCHING_INDEX";
        }
        if (!keys.analyzed().deterministic()) {
            return "NOT_REPEATABLE";
        }
        Set wanted = values(keys, type);
        if (wanted == null) {
            return "TOO_MANY_KEYS";
        }
        LogicalPlan pruned = plan;
        for (Iterator it = known.iterator(); it.hasNext() && !wanted.isEmpty();) {
            Origin origin = (Origin) it.next();
            // Each call has its own keys: what an earlier one skipped does not keep this one from skipping more.
            String purpose = LakebloomFileIndex.KEYS + origin.column + " " + System.nanoTime();
            Expression condition = KeyCondition.of(origin.column, wanted, type);
            pruned = Partners.pruned(rule, pruned, origin, condition, purpose, null, new PruneNote());
        }
        return pruned == plan ? "NOT_SELECTIVE" : (Object) pruned;
    }

    /**
     * The rows of a plan that have one of the keys.
     *
     * The files of a table with a log are chosen by its format, after the plan is analysed. So the keys become a
     * condition on top, which Spark moves down to the table, where the rule skips files by it.
     */
    private static Object filtered(LogicalPlan plan, AttributeReference column, QueryExecution keys, DataType type) {
        DataType own = column.dataType();
        boolean sameValues = own.equals(type) || Types.isExact(own, type) || Types.isExact(type, own);
        if (!sameValues || Types.isCollated(own)) {
            return "NO_MATCHING_INDEX";
        }
        if (!keys.analyzed().deterministic()) {
            return "NOT_REPEATABLE";
        }
        Set wanted = values(keys, type);
        return wanted == null ? "TOO_MANY_KEYS" : (Object) new Filter(withZeros(KeyCondition.of(column, wanted, type), column, wanted), plan);
    }

    /** A condition by which formats find either zero: some skip files of -0.0 where 0.0 is wanted, and a join matches both. */
    private static Expression withZeros(Expression condition, AttributeReference column, Set keys) {
        boolean isDouble = column.dataType() instanceof DoubleType;
        boolean hasZero = false;
        for (Iterator it = keys.iterator(); (isDouble || column.dataType() instanceof FloatType) && it.hasNext();) {
            hasZero |= ((Number) it.next()).doubleValue() == 0;
        }
        Expression found = condition;
        for (int sign = 1; hasZero && sign >= -1; sign -= 2) {
            Object zero = isDouble ? (Object) Double.valueOf(sign * 0.0) : Float.valueOf(sign * 0.0f);
            found = new Or(found, new EqualTo(column, new Literal(zero, column.dataType())));
        }
        return found;
    }

    /** The column of a name; null if there is none. */
    private static AttributeReference column(LogicalPlan plan, String column) {
        AttributeReference found = null;
        for (Iterator it = Scala.list(plan.output()).iterator(); it.hasNext();) {
            Attribute name = (Attribute) it.next();
            if (((Boolean) SQLConf.get().resolver().apply(name.name(), column)).booleanValue() && name instanceof AttributeReference) {
                found = (AttributeReference) name;
            }
        }
        return found;
    }

    /** The distinct values of a query with one column; null if there are too many. */
    private static Set values(QueryExecution query, DataType type) {
        Set found = new HashSet();
        InternalRow[] rows = query.executedPlan().executeCollect();
        for (int i = 0; i < rows.length; i++) {
            if (!rows[i].isNullAt(0)) {
                found.add(rows[i].get(0, type));
            }
            if (found.size() > Keys.maxKeys()) {
                return null;
            }
        }
        return found;
    }
}

package io.lakebloom.spark;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * The relation of files that all values of a column come from, and the column there.
 *
 * What lies between may drop rows or repeat them, and an outer join may add NULLs, which match nothing.
 */
final class ValueSource {
    final LogicalPlan relation;
    final AttributeReference column;

    private ValueSource(LogicalPlan relation, AttributeReference column) {
        this.relation = relation;
        this.column = column;
    }

    /** Null if the values may come from elsewhere. */
    static ValueSource of(LogicalPlan plan, AttributeReference column) {
        if (plan.children().isEmpty()) {
            return Plans.isBatch(plan) ? new ValueSource(plan, column) : null;
        }
        if (plan instanceof Project || plan instanceof Aggregate) {
            AttributeReference source = Columns.source(plan, column);
            return source == null ? null : of(Plans.child(plan), source);
        }
        List children = Scala.list(plan.children());
        if (children.size() != 1 && !(plan instanceof Join)) {
            return null;
        }
        for (Iterator it = children.iterator(); it.hasNext();) {
            LogicalPlan child = (LogicalPlan) it.next();
            if (Columns.has(child, column)) {
                return of(child, column);
            }
        }
        return null;
    }

    /** Whether both are the same column of the same files; the other may be null. */
    boolean isSame(ValueSource other) {
        return other != null && column.name().equals(other.column.name()) && files(relation).equals(files(other.relation));
    }

    /** What is equal if the same files are read. */
    private static Object files(LogicalPlan relation) {
        return relation instanceof DataSourceV2ScanRelation ? ((DataSourceV2ScanRelation) relation).scan()
            : (Object) ((HadoopFsRelation) ((LogicalRelation) relation).relation()).location();
    }
}

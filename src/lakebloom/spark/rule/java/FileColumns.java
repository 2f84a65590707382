package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** The columns of a relation of files: those that are read from the files, and those that come from their paths. */
final class FileColumns {
    private final Map names = new HashMap();
    private final List partitionColumns = new ArrayList();

    FileColumns(LogicalRelation relation) {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        List stored = new ArrayList(Arrays.asList(files.dataSchema().fieldNames()));
        stored.removeAll(Arrays.asList(files.partitionSchema().fieldNames()));
        for (Iterator it = Scala.list(relation.output()).iterator(); it.hasNext();) {
            Attribute attribute = (Attribute) it.next();
            if (stored.contains(attribute.name())) {
                names.put(attribute.exprId(), attribute.name());
            }
            if (files.partitionSchema().getFieldIndex(attribute.name()).isDefined()) {
                partitionColumns.add(attribute);
            }
        }
    }

    private FileColumns() {}

    /** The columns of a relation whose partitions only its format knows: all are taken for columns of the files. */
    static FileColumns ofFormat(LogicalPlan relation) {
        FileColumns found = new FileColumns();
        for (Iterator it = Scala.list(relation.output()).iterator(); it.hasNext();) {
            Attribute attribute = (Attribute) it.next();
            found.names.put(attribute.exprId(), attribute.name());
        }
        return found;
    }

    /** The name of a column as indexes are compared by. */
    static String key(List path) {
        return String.join("\0", path).toLowerCase(Locale.ROOT);
    }

    /** Whether a column is read from the files. */
    boolean isStored(AttributeReference column) {
        return names.containsKey(column.exprId());
    }

    /** The parts of a column's name; null for anything but a column of the files, or a leaf of its structs. */
    List path(Expression e) {
        if (e instanceof AttributeReference) {
            Object name = names.get(((AttributeReference) e).exprId());
            return name == null ? null : new ArrayList(Collections.singletonList(name));
        }
        if (e instanceof Cast && Types.isExact(((Expression) ((Cast) e).child()).dataType(), e.dataType())) {
            return path((Expression) ((Cast) e).child());
        }
        if (e instanceof GetStructField) {
            GetStructField field = (GetStructField) e;
            List path = path((Expression) field.child());
            if (path != null) {
                path.add(field.childSchema().fields()[field.ordinal()].name());
            }
            return path;
        }
        return null;
    }

    /** Whether a condition is about partition columns alone. */
    boolean isOfPartitions(Expression e) {
        return !partitionColumns.isEmpty() && e.deterministic() && !e.references().isEmpty()
            && e.references().subsetOf((AttributeSet) AttributeSet.apply((scala.collection.Iterable) Scala.seq(partitionColumns)));
    }

    /** The conditions on partitions alone: Spark lists only the partitions that meet them. */
    List partitionFilters(List conditions) {
        List found = new ArrayList();
        for (Iterator it = conditions.iterator(); !partitionColumns.isEmpty() && it.hasNext();) {
            Expression part = (Expression) it.next();
            if (part.deterministic() && !SubqueryExpression.hasSubquery(part)) {
                found.addAll(Scala.list((scala.collection.Iterable) DataSourceStrategy.getPushedDownFilters(
                    Scala.seq(partitionColumns), Scala.seq(Collections.singletonList(part)))));
            }
        }
        return found;
    }
}

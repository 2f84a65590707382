package io.lakebloom.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** Structs that are compared with literal ones, as conditions on their fields. */
final class StructConditions {
    private final Conditions conditions;

    StructConditions(Conditions conditions) {
        this.conditions = conditions;
    }

    /** A field of a struct. */
    static Expression field(Expression struct, int number) {
        if (struct instanceof CreateNamedStruct) {
            return (Expression) Scala.list(((CreateNamedStruct) struct).valExprs()).get(number);
        }
        // A cast of a struct casts its fields: "leaf" tells whether that keeps their values apart.
        Expression whole = struct instanceof Cast ? (Expression) ((Cast) struct).child() : struct;
        return new GetStructField(whole, number, Option.empty());
    }

    /**
     * A struct that equals a literal one: its fields do, and a NULL equals a NULL. Where the struct itself is NULL so is
     * the comparison; the leaf of a field that is compared with a value is NULL then too.
     */
    ObjectNode equal(Expression struct, StructType type, InternalRow value) {
        ObjectNode node = Trees.node("and");
        ArrayNode children = node.putArray("children");
        addFields(children, struct, type, value);
        if (!Trees.hasEquality(children)) {
            children.add(Conditions.unknown("NOT_SUPPORTED", struct));
        }
        return node;
    }

    private void addFields(ArrayNode children, Expression struct, StructType type, InternalRow value) {
        for (int i = 0; i < type.length(); i++) {
            DataType compared = type.fields()[i].dataType();
            Expression field = field(struct, i);
            try {
                if (compared instanceof StructType && !value.isNullAt(i)) {
                    addFields(children, field, (StructType) compared, value.getStruct(i, ((StructType) compared).length()));
                    continue;
                }
                ObjectNode leaf = conditions.leaf(value.isNullAt(i) ? "equals_null_safe" : "equals", field, compared);
                leaf.set("value", Literals.json(value.isNullAt(i) ? null : value.get(i, compared), compared));
                children.add(leaf);
            } catch (Literals.NoForm reason) {
                children.add(Conditions.unknown(reason.getMessage(), field));
            }
        }
    }

    /** A list of literals, or of plain values. */
    ObjectNode in(Expression column, Collection items) throws Literals.NoForm {
        ObjectNode node = Trees.node("or");
        ArrayNode children = node.putArray("children");
        for (Iterator it = items.iterator(); it.hasNext();) {
            Object item = it.next();
            Object value = item instanceof Literal ? ((Literal) item).value() : item;
            if (value instanceof Expression) {
                throw new Literals.NoForm("NOT_SUPPORTED");
            }
            children.add(value == null ? Trees.node("null") : equal(column, (StructType) column.dataType(), (InternalRow) value));
        }
        return node;
    }
}

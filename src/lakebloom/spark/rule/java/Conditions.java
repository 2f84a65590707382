package io.lakebloom.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ArrayContains;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Tuple2;

/**
 * A condition over the columns of one relation, as the JSON that lakebloom.predicate.tree documents. What has no form
 * there is sent as "unknown", which keeps every file.
 */
final class Conditions {
    private static final Map KINDS = new HashMap();
    private static final Map OPERATORS = new HashMap();
    private final FileColumns columns;
    private final StructConditions structs = new StructConditions(this);
    /** The reason for conditions on partition columns: whether Spark chooses partitions by the current conjunct. */
    private String ofPartitions = "PARTITIONS";

    static {
        KINDS.put(EqualTo.class, "equals");
        KINDS.put(EqualNullSafe.class, "equals_null_safe");
        OPERATORS.put(LessThan.class, "<");
        OPERATORS.put(LessThanOrEqual.class, "<=");
        OPERATORS.put(GreaterThan.class, ">");
        OPERATORS.put(GreaterThanOrEqual.class, ">=");
        for (Iterator it = OPERATORS.keySet().iterator(); it.hasNext();) {
            KINDS.put(it.next(), "compare");
        }
    }

    Conditions(FileColumns columns) {
        this.columns = columns;
    }

    /** A condition as a tree. */
    ObjectNode json(Expression e) {
        if (columns.isOfPartitions(e)) {
            return unknown(ofPartitions, e);
        }
        if (e instanceof And) {
            return json(Conjuncts.chain(e));
        }
        if (e instanceof Or) {
            return join("or", e);
        }
        if (e instanceof Not) {
            return Trees.not(json((Expression) ((Not) e).child()));
        }
        try {
            ObjectNode found = e.deterministic() ? translated(e) : null;
            return found == null ? unknown("NOT_SUPPORTED", e) : found;
        } catch (Literals.NoForm reason) {
            return unknown(reason.getMessage(), e);
        }
    }

    private ObjectNode join(String kind, Expression e) {
        ObjectNode node = Trees.node(kind);
        ArrayNode children = node.putArray("children");
        for (Iterator it = Conjuncts.chain(e).iterator(); it.hasNext();) {
            children.add(json((Expression) it.next()));
        }
        return node;
    }

    /** A condition that is no AND, OR or NOT; null if the tree has no form for it. */
    private ObjectNode translated(Expression e) throws Literals.NoForm {
        if (e.foldable()) {
            return constant(e);
        }
        if (e instanceof If) {
            If choice = (If) e;
            return Trees.choice(json(choice.predicate()), json(choice.trueValue()), json(choice.falseValue()));
        }
        if (e instanceof CaseWhen) {
            return branches((CaseWhen) e);
        }
        if (e instanceof Coalesce) {
            return withDefault(Scala.list(e.children()));
        }
        if (e instanceof IsNull || e instanceof IsNotNull) {
            return nullTest(e);
        }
        if (e instanceof In) {
            return in(((In) e).value(), Scala.list(((In) e).list()));
        }
        if (e instanceof InSet) {
            return in((Expression) ((InSet) e).child(), Scala.list(((InSet) e).hset()));
        }
        if (e instanceof ArrayContains) {
            return contains((ArrayContains) e);
        }
        if (e instanceof StartsWith) {
            Expression prefix = ((StartsWith) e).right();
            return prefix instanceof Literal ? beginning(((StartsWith) e).left(), (Literal) prefix) : null;
        }
        if (e instanceof Like) {
            return like((Like) e);
        }
        return e instanceof BinaryComparison ? comparison((BinaryComparison) e) : null;
    }

    private static ObjectNode constant(Expression e) {
        try {
            return Trees.constant(e.eval(null));
        } catch (RuntimeException failure) {
            return null; // the query will tell
        }
    }

    private ObjectNode branches(CaseWhen e) {
        ObjectNode otherwise = e.elseValue().isDefined() ? json((Expression) e.elseValue().get()) : Trees.node("null");
        List branches = new ArrayList(Scala.list(e.branches()));
        Collections.reverse(branches);
        for (Iterator it = branches.iterator(); it.hasNext();) {
            Tuple2 branch = (Tuple2) it.next();
            otherwise = Trees.choice(json((Expression) branch._1()), json((Expression) branch._2()), otherwise);
        }
        return otherwise;
    }

    /** A condition with a truth to take where it is NULL. */
    private ObjectNode withDefault(List parts) {
        Object last = parts.size() == 2 ? parts.get(1) : null;
        if (!(last instanceof Literal) || ((Literal) last).value() == null) {
            return null;
        }
        boolean isTrue = ((Boolean) ((Literal) last).value()).booleanValue();
        return Trees.truth(json((Expression) parts.get(0)), isTrue ? "true null" : "true");
    }

    private ObjectNode nullTest(Expression e) {
        Expression tested = (Expression) Scala.list(e.children()).get(0);
        List path = columns.path(tested);
        if (path != null) {
            return Trees.leaf(e instanceof IsNull ? "is_null" : "is_not_null", path);
        }
        return tested.dataType() instanceof BooleanType ? Trees.truth(json(tested), e instanceof IsNull ? "null" : "true false") : null;
    }

    private ObjectNode comparison(BinaryComparison e) throws Literals.NoForm {
        boolean mirrored = e.left() instanceof Literal;
        Expression column = (Expression) (mirrored ? e.right() : e.left());
        Object other = mirrored ? e.left() : e.right();
        String kind = (String) KINDS.get(e.getClass());
        if (!(other instanceof Literal) || kind == null) {
            return null;
        }
        Literal literal = (Literal) other;
        if (column instanceof StaticInvoke && ((StaticInvoke) column).functionName().equals("readSidePadding")) {
            throw new Literals.NoForm("CHAR_PADDING");
        }
        if (columns.path(column) == null && column.dataType() instanceof BooleanType) {
            return booleans(e, column, literal.value());
        }
        if (column.dataType() instanceof StructType) {
            if (literal.value() == null || !(e instanceof EqualTo || e instanceof EqualNullSafe)) {
                return null;
            }
            ObjectNode same = structs.equal(column, (StructType) literal.dataType(), (InternalRow) literal.value());
            return e instanceof EqualTo ? same : Trees.truth(same, "true");
        }
        ObjectNode node = leaf(kind, column, literal.dataType());
        if (kind.equals("compare")) {
            String op = OPERATORS.get(e.getClass()).toString();
            node.put("op", mirrored ? (op.startsWith("<") ? ">" : "<") + op.substring(1) : op);
        }
        node.set("value", Literals.json(literal.value(), literal.dataType()));
        return node;
    }

    /** A condition compared with TRUE, FALSE or NULL. */
    private ObjectNode booleans(Expression e, Expression condition, Object value) {
        if (e instanceof EqualNullSafe) {
            return Trees.truth(json(condition), String.valueOf(value));
        }
        if (!(e instanceof EqualTo)) {
            return null;
        }
        if (value == null) {
            return Trees.node("null");
        }
        return value.equals(Boolean.TRUE) ? json(condition) : Trees.not(json(condition));
    }

    /** A list of literals, or of plain values. */
    private ObjectNode in(Expression column, Collection items) throws Literals.NoForm {
        if (column.dataType() instanceof StructType) {
            return structs.in(column, items);
        }
        ObjectNode node = leaf("in", column, column.dataType());
        ArrayNode values = node.putArray("values");
        for (Iterator it = items.iterator(); it.hasNext();) {
            Object item = it.next();
            if (item instanceof Expression && !(item instanceof Literal)) {
                throw new Literals.NoForm("NOT_SUPPORTED");
            }
            if (item instanceof Literal) {
                Literals.requireType((Literal) item, column.dataType());
                item = ((Literal) item).value();
            }
            values.add(Literals.json(item, column.dataType()));
        }
        return node;
    }

    /** array_contains of a literal array is IN, but NULL is not found in an empty one either. */
    private ObjectNode contains(ArrayContains e) throws Literals.NoForm {
        if (!(e.left() instanceof Literal) || ((Literal) e.left()).value() == null) {
            return null;
        }
        ArrayData array = (ArrayData) ((Literal) e.left()).value();
        List items = Arrays.asList(array.toObjectArray(((ArrayType) ((Literal) e.left()).dataType()).elementType()));
        return items.isEmpty() ? null : in((Expression) e.right(), items);
    }

    /** A string that begins with another one. */
    private ObjectNode beginning(Expression column, Literal prefix) throws Literals.NoForm {
        ObjectNode node = leaf("starts_with", column, prefix.dataType());
        node.set("value", Literals.json(prefix.value(), prefix.dataType()));
        return node;
    }

    /** A pattern that Spark left as it is: what it matches begins with what comes before its first wildcard. */
    private ObjectNode like(Like e) throws Literals.NoForm {
        if (!(e.right() instanceof Literal) || ((Literal) e.right()).value() == null) {
            return null;
        }
        Literal pattern = (Literal) e.right();
        String prefix = beforeWildcards(pattern.value().toString(), e.escapeChar());
        if (prefix.isEmpty() || !pattern.value().equals(UTF8String.fromString(pattern.value().toString()))) {
            return null;
        }
        ObjectNode node = Trees.node("and");
        ArrayNode children = node.putArray("children");
        children.add(beginning((Expression) e.left(), new Literal(UTF8String.fromString(prefix), pattern.dataType())));
        children.add(unknown("NOT_SUPPORTED", e));
        return node;
    }

    /** What comes before the first wildcard; nothing for a pattern that Spark refuses when it compares a row. */
    private static String beforeWildcards(String pattern, char escape) {
        StringBuilder prefix = new StringBuilder();
        boolean isOver = false;
        for (int i = 0; i < pattern.length(); i++) {
            char letter = pattern.charAt(i);
            if (letter == escape) {
                i++;
                if (i == pattern.length()) {
                    return "";
                }
                letter = pattern.charAt(i);
                if (letter != escape && letter != '%' && letter != '_') {
                    return "";
                }
            } else if (letter == '%' || letter == '_') {
                isOver = true;
            }
            if (!isOver) {
                prefix.append(letter);
            }
        }
        return prefix.toString();
    }

    /** A leaf about a column, which is compared with values of a type. */
    ObjectNode leaf(String kind, Expression column, DataType compared) throws Literals.NoForm {
        List path = columns.path(column);
        if (path == null) {
            throw new Literals.NoForm(column instanceof Cast && columns.path(((Cast) column).child()) != null ? "TYPE_MISMATCH" : "NOT_SUPPORTED");
        }
        if (!column.dataType().equals(compared) && !Types.isExact(column.dataType(), compared)) {
            throw new Literals.NoForm("TYPE_MISMATCH");
        }
        return Trees.leaf(kind, path);
    }

    /** Several conditions that must all hold, as a tree. */
    ObjectNode json(List conjuncts) {
        if (conjuncts.size() == 1) {
            return conjunct((Expression) conjuncts.get(0));
        }
        ObjectNode node = Trees.node("and");
        ArrayNode children = node.putArray("children");
        for (Iterator it = conjuncts.iterator(); it.hasNext();) {
            children.add(conjunct((Expression) it.next()));
        }
        return node;
    }

    private ObjectNode conjunct(Expression e) {
        boolean chosen = columns.isOfPartitions(e) || !columns.partitionFilters(Collections.singletonList(e)).isEmpty();
        ofPartitions = chosen ? "PARTITIONS" : "PARTITION_IN_OR";
        return json(e);
    }

    /** A condition that the tree has no form for: it keeps every file. */
    static ObjectNode unknown(String reason, Expression e) {
        ObjectNode node = Trees.node("unknown");
        node.put("reason", reason);
        node.put("text", ConditionText.shortened(ConditionText.of(e)));
        return node;
    }
}

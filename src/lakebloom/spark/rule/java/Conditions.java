package io.lakebloom.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.ArrayContains;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.BinaryOperator;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * A condition over the columns of one relation, as the JSON that lakebloom.predicate.tree documents. What has no form
 * there is sent as "unknown", which keeps every file.
 */
public final class Conditions {
    private static final int MAX_TEXT = 200;
    private static final Map KINDS = new HashMap();
    private static final Map OPERATORS = new HashMap();
    private final Map columns = new HashMap();
    private final List partitionColumns = new ArrayList();
    /** What is said of partition columns in the condition at hand: whether Spark chooses partitions by it. */
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

    /** Knows the relation's columns that are read from its files; partition columns come from their paths. */
    public Conditions(LogicalRelation relation) {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        List stored = new ArrayList(Arrays.asList(files.dataSchema().fieldNames()));
        stored.removeAll(Arrays.asList(files.partitionSchema().fieldNames()));
        for (Iterator it = CollectionConverters.asJava(relation.output()).iterator(); it.hasNext();) {
            Attribute attribute = (Attribute) it.next();
            if (stored.contains(attribute.name())) {
                columns.put(attribute.exprId(), attribute.name());
            }
            if (files.partitionSchema().getFieldIndex(attribute.name()).isDefined()) {
                partitionColumns.add(attribute);
            }
        }
    }

    /** What conditions say about partitions alone: Spark lists only those for which it holds. */
    public List partitionFilters(List conditions) {
        List found = new ArrayList();
        for (Iterator it = conditions.iterator(); !partitionColumns.isEmpty() && it.hasNext();) {
            Expression part = (Expression) it.next();
            if (part.deterministic() && !SubqueryExpression.hasSubquery(part)) {
                Seq one = seq(Collections.singletonList(part));
                Iterable filters = CollectionConverters.asJava((scala.collection.Iterable)
                    DataSourceStrategy.getPushedDownFilters(seq(partitionColumns), one));
                for (Iterator jt = filters.iterator(); jt.hasNext();) {
                    found.add(jt.next());
                }
            }
        }
        return found;
    }

    private static Seq seq(List items) {
        return CollectionConverters.asScala(items).toSeq();
    }

    private boolean isOfPartitions(Expression e) {
        return !partitionColumns.isEmpty() && e.deterministic() && !e.references().isEmpty()
            && e.references().subsetOf((AttributeSet) AttributeSet.apply((scala.collection.Iterable) seq(partitionColumns)));
    }

    /** Whether a column is read from the files. */
    public boolean isStored(AttributeReference column) {
        return columns.containsKey(column.exprId());
    }

    /** A condition as a tree. */
    public ObjectNode json(Expression e) {
        if (isOfPartitions(e)) {
            return unknown(ofPartitions, e);
        }
        if (e instanceof And) {
            return json(chain(e));
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
        for (Iterator it = chain(e).iterator(); it.hasNext();) {
            children.add(json((Expression) it.next()));
        }
        return node;
    }

    /** A condition that is no AND, OR or NOT; null where the tree has no form for it. */
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
            return withDefault(CollectionConverters.asJava(e.children()));
        }
        if (e instanceof IsNull || e instanceof IsNotNull) {
            return nullTest(e);
        }
        if (e instanceof In) {
            return in(((In) e).value(), CollectionConverters.asJava(((In) e).list()));
        }
        if (e instanceof InSet) {
            return in((Expression) ((InSet) e).child(), CollectionConverters.asJava(((InSet) e).hset()));
        }
        if (e instanceof ArrayContains) {
            return contains((ArrayContains) e);
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
        List branches = new ArrayList(CollectionConverters.asJava(e.branches()));
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
        Expression tested = (Expression) CollectionConverters.asJava(e.children()).get(0);
        List path = path(tested);
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
        if (path(column) == null && column.dataType() instanceof BooleanType) {
            return booleans(e, column, literal.value());
        }
        if (column.dataType() instanceof StructType) {
            if (literal.value() == null || !(e instanceof EqualTo || e instanceof EqualNullSafe)) {
                return null;
            }
            ObjectNode same = struct(column, (StructType) literal.dataType(), (InternalRow) literal.value());
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

    /**
     * A struct that equals a literal one: its fields do, and a NULL equals a NULL. Where the struct itself is NULL so is
     * the comparison; the leaf of a field that is compared with a value is NULL then too.
     */
    private ObjectNode struct(Expression struct, StructType type, InternalRow value) {
        ObjectNode node = Trees.node("and");
        ArrayNode children = node.putArray("children");
        addFields(children, struct, type, value);
        if (!Trees.hasEquality(children)) {
            children.add(unknown("NOT_SUPPORTED", struct));
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
                ObjectNode leaf = leaf(value.isNullAt(i) ? "equals_null_safe" : "equals", field, compared);
                leaf.set("value", Literals.json(value.isNullAt(i) ? null : value.get(i, compared), compared));
                children.add(leaf);
            } catch (Literals.NoForm reason) {
                children.add(unknown(reason.getMessage(), field));
            }
        }
    }

    static Expression field(Expression struct, int number) {
        if (struct instanceof CreateNamedStruct) {
            return (Expression) CollectionConverters.asJava(((CreateNamedStruct) struct).valExprs()).get(number);
        }
        // A cast of a struct casts its fields: "leaf" tells whether that keeps their values apart.
        Expression whole = struct instanceof Cast ? (Expression) ((Cast) struct).child() : struct;
        return new GetStructField(whole, number, Option.empty());
    }

    /** A list of literals, or of plain values. */
    private ObjectNode in(Expression column, Collection items) throws Literals.NoForm {
        if (column.dataType() instanceof StructType) {
            return inStructs(column, items);
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

    private ObjectNode inStructs(Expression column, Collection items) throws Literals.NoForm {
        ObjectNode node = Trees.node("or");
        ArrayNode children = node.putArray("children");
        for (Iterator it = items.iterator(); it.hasNext();) {
            Object item = it.next();
            Object value = item instanceof Literal ? ((Literal) item).value() : item;
            if (value instanceof Expression) {
                throw new Literals.NoForm("NOT_SUPPORTED");
            }
            children.add(value == null ? Trees.node("null") : struct(column, (StructType) column.dataType(), (InternalRow) value));
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

    /** A leaf about a column, which is compared with values of a type. */
    private ObjectNode leaf(String kind, Expression column, DataType compared) throws Literals.NoForm {
        List path = path(column);
        if (path == null) {
            throw new Literals.NoForm(column instanceof Cast && path(((Cast) column).child()) != null ? "TYPE_MISMATCH" : "NOT_SUPPORTED");
        }
        if (!column.dataType().equals(compared) && !isExact(column.dataType(), compared)) {
            throw new Literals.NoForm("TYPE_MISMATCH");
        }
        return Trees.leaf(kind, path);
    }

    /** Whether a cast keeps every value, so that what equals after it has equalled before. */
    static boolean isExact(DataType from, DataType to) {
        if (from instanceof FloatType && to instanceof DoubleType) {
            return true;
        }
        boolean exact = (from instanceof IntegralType || from instanceof DecimalType)
            && (to instanceof IntegralType || to instanceof DecimalType);
        return exact && Cast.canUpCast(from, to);
    }

    /**
     * The conjuncts of a condition, without those of the form "k IS NOT NULL" that another one on k implies. Spark adds
     * them to nearly everything, and they would have every question about k asked.
     */
    public static List conjuncts(Expression condition) {
        List parts = ands(condition);
        List kept = new ArrayList();
        for (Iterator it = parts.iterator(); it.hasNext();) {
            Expression part = (Expression) it.next();
            if (!(part instanceof IsNotNull) || !isMentioned(part.references(), parts)) {
                kept.add(part);
            }
        }
        return kept;
    }

    private static boolean isMentioned(AttributeSet columns, List parts) {
        for (Iterator it = parts.iterator(); it.hasNext();) {
            Expression part = (Expression) it.next();
            if (!(part instanceof IsNotNull) && columns.subsetOf(part.references())) {
                return true;
            }
        }
        return false;
    }

    /** Several conditions that must all hold, as a tree. */
    public ObjectNode json(List conjuncts) {
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
        boolean chosen = isOfPartitions(e) || !partitionFilters(Collections.singletonList(e)).isEmpty();
        ofPartitions = chosen ? "PARTITIONS" : "PARTITION_IN_OR";
        return json(e);
    }

    /** The name of a column as indexes are compared by. */
    public static String key(List path) {
        return String.join("\0", path).toLowerCase(Locale.ROOT);
    }

    /** The conditions that must all hold. */
    public static List ands(Expression e) {
        return e instanceof And ? chain(e) : Collections.singletonList(e);
    }

    /** What a chain of ANDs, or of ORs, joins; a single condition is a chain of one. */
    public static List chain(Expression e) {
        // Long chains lean to the left: no recursion.
        List parts = new ArrayList();
        ArrayDeque waiting = new ArrayDeque();
        waiting.push(e);
        while (!waiting.isEmpty()) {
            Expression next = (Expression) waiting.pop();
            if (next.getClass() == e.getClass() && (next instanceof And || next instanceof Or)) {
                List children = CollectionConverters.asJava(next.children());
                waiting.push(children.get(1));
                waiting.push(children.get(0));
            } else {
                parts.add(next);
            }
        }
        return parts;
    }

    /** The parts of a column's name; null for anything but a column of the files, or a leaf of its structs. */
    List path(Expression e) {
        if (e instanceof AttributeReference) {
            AttributeReference attribute = (AttributeReference) e;
            Object name = columns.get(attribute.exprId());
            return name == null ? null : new ArrayList(Collections.singletonList(name));
        }
        if (e instanceof Cast && isExact(((Expression) ((Cast) e).child()).dataType(), e.dataType())) {
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

    private static ObjectNode unknown(String reason, Expression e) {
        String shown = text(e);
        ObjectNode node = Trees.node("unknown");
        node.put("reason", reason);
        node.put("text", shown.length() > MAX_TEXT ? shown.substring(0, MAX_TEXT) + "…" : shown);
        return node;
    }

    /** A condition as a person would type it: names without their table, and no brackets around the whole. */
    static String text(Expression e) {
        String text = ((Expression) e.transformUp(new Unqualified())).sql();
        boolean isBracketed = e instanceof BinaryOperator || e instanceof In || e instanceof InSet;
        return isBracketed && text.startsWith("(") && text.endsWith(")") ? text.substring(1, text.length() - 1) : text;
    }

    private static final class Unqualified extends AbstractPartialFunction {
        public boolean isDefinedAt(Object e) {
            return e instanceof AttributeReference;
        }

        public Object applyOrElse(Object e, Function1 otherwise) {
            return isDefinedAt(e) ? ((AttributeReference) e).withQualifier(seq(Collections.emptyList())) : otherwise.apply(e);
        }
    }
}

package io.lakebloom.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A condition over the columns of one relation, as the JSON that lakebloom.predicate.tree documents. What has no form
 * there is sent as "unknown", which keeps every file.
 */
public final class Conditions {
    private static final int MAX_TEXT = 200;
    private static final Map KINDS = new HashMap();
    private final Map columns = new HashMap();

    static {
        KINDS.put(EqualTo.class, "equals");
        KINDS.put(EqualNullSafe.class, "equals_null_safe");
        KINDS.put(In.class, "in");
        KINDS.put(InSet.class, "in");
        KINDS.put(IsNull.class, "is_null");
        KINDS.put(IsNotNull.class, "is_not_null");
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
        }
    }

    /** Whether a column is read from the files. */
    public boolean isStored(AttributeReference column) {
        return columns.containsKey(column.exprId());
    }

    /** A condition as a tree. */
    public ObjectNode json(Expression e) {
        if (e instanceof And) {
            return json(chain(e));
        }
        if (e instanceof Or) {
            ObjectNode node = node("or");
            ArrayNode children = node.putArray("children");
            for (Iterator it = chain(e).iterator(); it.hasNext();) {
                children.add(json((Expression) it.next()));
            }
            return node;
        }
        if (e instanceof Not) {
            ObjectNode node = node("not");
            node.set("child", json((Expression) ((Not) e).child()));
            return node;
        }
        try {
            ObjectNode leaf = e.deterministic() ? leaf(e) : null;
            return leaf == null ? unknown("NOT_SUPPORTED", e) : leaf;
        } catch (Literals.NoForm reason) {
            return unknown(reason.getMessage(), e);
        }
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
            return json((Expression) conjuncts.get(0));
        }
        ObjectNode node = node("and");
        ArrayNode children = node.putArray("children");
        for (Iterator it = conjuncts.iterator(); it.hasNext();) {
            children.add(json((Expression) it.next()));
        }
        return node;
    }

    private static ObjectNode node(String kind) {
        ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("kind", kind);
        return node;
    }

    /**
     * Whether filters of these columns (names in lower case, parts joined by a zero character) could drop a file:
     * the same rules as in lakebloom.predicate.normalise, so that a hopeless question is not even asked.
     */
    public boolean usable(Expression e, Set indexed, boolean negated) {
        if (e instanceof Not) {
            return usable((Expression) ((Not) e).child(), indexed, !negated);
        }
        if (e instanceof And || e instanceof Or) {
            boolean all = (e instanceof Or) != negated;
            for (Iterator it = chain(e).iterator(); it.hasNext();) {
                if (usable((Expression) it.next(), indexed, negated) != all) {
                    return !all;
                }
            }
            return all;
        }
        Expression column = column(e);
        if (column == null || !e.deterministic()) {
            return false;
        }
        List path = path(column);
        if (path == null || !indexed.contains(key(path))) {
            return false;
        }
        // What excludes values can only drop a file where NULL is among them.
        return !negated || e instanceof IsNull || e instanceof IsNotNull || mentionsNull(e);
    }

    /** Adds the columns that leaves of a condition ask about. */
    public void collectColumns(Expression e, Set found) {
        if (e instanceof Not) {
            collectColumns((Expression) ((Not) e).child(), found);
        } else if (e instanceof And || e instanceof Or) {
            for (Iterator it = chain(e).iterator(); it.hasNext();) {
                collectColumns((Expression) it.next(), found);
            }
        } else {
            Expression column = column(e);
            List path = column == null ? null : path(column);
            if (path != null) {
                found.add(key(path));
            }
        }
    }

    /** The name of a column as "usable" compares it. */
    public static String key(List path) {
        return String.join("\0", path).toLowerCase(Locale.ROOT);
    }

    private static boolean mentionsNull(Expression e) {
        if (e instanceof In) {
            for (Iterator it = CollectionConverters.asJava(((In) e).list()).iterator(); it.hasNext();) {
                Object item = it.next();
                if (item instanceof Literal && ((Literal) item).value() == null) {
                    return true;
                }
            }
            return false;
        }
        if (e instanceof InSet) {
            return ((InSet) e).hset().contains(null);
        }
        Literal literal = literal(e);
        return literal != null && literal.value() == null;
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

    /** What a leaf asks about; null where it is no leaf that filters know. */
    private static Expression column(Expression e) {
        if (e instanceof EqualTo || e instanceof EqualNullSafe) {
            BinaryComparison comparison = (BinaryComparison) e;
            if (literal(e) == null) {
                return null;
            }
            return comparison.left() instanceof Literal ? (Expression) comparison.right() : (Expression) comparison.left();
        }
        if (e instanceof In) {
            return ((In) e).value();
        }
        if (e instanceof InSet) {
            return (Expression) ((InSet) e).child();
        }
        if (e instanceof IsNull) {
            return (Expression) ((IsNull) e).child();
        }
        return e instanceof IsNotNull ? (Expression) ((IsNotNull) e).child() : null;
    }

    private static Literal literal(Expression e) {
        if (!(e instanceof EqualTo || e instanceof EqualNullSafe)) {
            return null;
        }
        BinaryComparison comparison = (BinaryComparison) e;
        if (comparison.left() instanceof Literal) {
            return (Literal) comparison.left();
        }
        return comparison.right() instanceof Literal ? (Literal) comparison.right() : null;
    }

    private ObjectNode leaf(Expression e) throws Literals.NoForm {
        Expression column = column(e);
        List path = column == null ? null : path(column);
        if (path == null) {
            return null;
        }
        boolean isList = e instanceof In || e instanceof InSet;
        Literal literal = literal(e);
        if (literal == null && !isList && !(e instanceof IsNull || e instanceof IsNotNull)) {
            return null;
        }
        ObjectNode node = node(KINDS.get(e.getClass()).toString());
        ArrayNode name = node.putArray("column");
        for (Iterator it = path.iterator(); it.hasNext();) {
            name.add((String) it.next());
        }
        DataType type = column.dataType();
        if (isList) {
            values(node.putArray("values"), e, type);
        } else if (literal != null) {
            Literals.requireType(literal, type);
            node.set("value", Literals.json(literal.value(), type));
        }
        return node;
    }

    private static void values(ArrayNode values, Expression e, DataType type) throws Literals.NoForm {
        if (e instanceof InSet) {
            for (Iterator it = CollectionConverters.asJava(((InSet) e).hset()).iterator(); it.hasNext();) {
                values.add(Literals.json(it.next(), type));
            }
            return;
        }
        for (Iterator it = CollectionConverters.asJava(((In) e).list()).iterator(); it.hasNext();) {
            Object item = it.next();
            if (!(item instanceof Literal)) {
                throw new Literals.NoForm("NOT_SUPPORTED");
            }
            Literals.requireType((Literal) item, type);
            values.add(Literals.json(((Literal) item).value(), type));
        }
    }

    /** The parts of a column's name; null for anything but a column of the files, or a leaf of its structs. */
    private List path(Expression e) {
        if (e instanceof AttributeReference) {
            AttributeReference attribute = (AttributeReference) e;
            Object name = columns.get(attribute.exprId());
            return name == null ? null : new ArrayList(Collections.singletonList(name));
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
        String shown = e.sql();
        ObjectNode node = node("unknown");
        node.put("reason", reason);
        node.put("text", shown.length() > MAX_TEXT ? shown.substring(0, MAX_TEXT) + "…" : shown);
        return node;
    }
}

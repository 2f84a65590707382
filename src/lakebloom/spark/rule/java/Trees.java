package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

/** Makes predicate trees as JSON, in the form of lakebloom.predicate.tree, and names the columns of one. */
final class Trees {
    private static final String[] PARTS = {"child", "condition", "then", "otherwise"};

    private Trees() {}

    static ObjectNode node(String kind) {
        ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("kind", kind);
        return node;
    }

    static ObjectNode leaf(String kind, List path) {
        ObjectNode node = node(kind);
        ArrayNode name = node.putArray("column");
        for (Iterator it = path.iterator(); it.hasNext();) {
            name.add((String) it.next());
        }
        return node;
    }

    static ObjectNode not(ObjectNode child) {
        ObjectNode node = node("not");
        node.set("child", child);
        return node;
    }

    /** TRUE where the truth of a condition is one of those named, separated by blanks. */
    static ObjectNode truth(ObjectNode child, String among) {
        ObjectNode node = node("truth");
        node.set("child", child);
        ArrayNode names = node.putArray("among");
        String[] each = among.split(" ");
        for (int i = 0; i < each.length; i++) {
            names.add(each[i]);
        }
        return node;
    }

    static ObjectNode choice(ObjectNode condition, ObjectNode then, ObjectNode otherwise) {
        ObjectNode node = node("if");
        node.set("condition", condition);
        node.set("then", then);
        node.set("otherwise", otherwise);
        return node;
    }

    /** TRUE, FALSE or NULL. */
    static ObjectNode constant(Object value) {
        ObjectNode node = node(value == null ? "null" : ((Boolean) value).booleanValue() ? "and" : "or");
        if (value != null) {
            node.putArray("children");
        }
        return node;
    }

    /** Whether one of several leaves compares a column with a value. */
    static boolean hasEquality(ArrayNode leaves) {
        for (Iterator it = leaves.iterator(); it.hasNext();) {
            if (kind((JsonNode) it.next()).equals("equals")) {
                return true;
            }
        }
        return false;
    }

    /** Adds the columns that a tree names. */
    static void collectColumns(JsonNode tree, Set found) {
        if (tree.has("column")) {
            found.add(column(tree));
        }
        for (int i = 0; i < PARTS.length; i++) {
            if (tree.has(PARTS[i])) {
                collectColumns(tree.get(PARTS[i]), found);
            }
        }
        if (tree.has("children")) {
            for (Iterator it = tree.get("children").iterator(); it.hasNext();) {
                collectColumns((JsonNode) it.next(), found);
            }
        }
    }

    /** The column of a leaf as indexes are compared by. */
    static String column(JsonNode leaf) {
        List path = new ArrayList();
        for (Iterator it = leaf.get("column").iterator(); it.hasNext();) {
            path.add(((JsonNode) it.next()).asText());
        }
        return FileColumns.key(path);
    }

    static String kind(JsonNode tree) {
        return tree.get("kind").asText();
    }
}

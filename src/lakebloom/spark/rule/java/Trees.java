package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

/**
 * Predicate trees as JSON: how they are made, which columns they name, and whether filters of some columns could drop
 * a file. The last has the rules of lakebloom.predicate.prune.normalise, so that a hopeless question is not even asked.
 */
final class Trees {
    private static final int TRUE = 1;
    private static final int FALSE = 2;
    private static final int NULL = 4;
    private static final int ANY = 7;
    private static final String[] PARTS = {"child", "condition", "then", "otherwise"};
    private static final long MAX_WHOLE_NUMBERS = 100;

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

    private static String column(JsonNode leaf) {
        List path = new ArrayList();
        for (Iterator it = leaf.get("column").iterator(); it.hasNext();) {
            path.add(((JsonNode) it.next()).asText());
        }
        return Conditions.key(path);
    }

    private static String kind(JsonNode tree) {
        return tree.get("kind").asText();
    }

    /** Whether filters of these columns could drop a file, because a tree is TRUE nowhere in it. */
    static boolean isUsable(JsonNode tree, Set indexed) {
        return usable(tree, TRUE, indexed);
    }

    private static boolean usable(JsonNode tree, int wanted, Set indexed) {
        String kind = kind(tree);
        if (kind.equals("and") || kind.equals("or")) {
            return chain(tree, wanted, kind.equals("and") ? FALSE : TRUE, indexed);
        }
        if (kind.equals("not")) {
            return usable(tree.get("child"), swapped(wanted), indexed);
        }
        if (kind.equals("truth")) {
            int among = 0;
            for (Iterator it = tree.get("among").iterator(); it.hasNext();) {
                String name = ((JsonNode) it.next()).asText();
                among |= name.equals("true") ? TRUE : name.equals("false") ? FALSE : NULL;
            }
            int sought = ((wanted & TRUE) == 0 ? 0 : among) | ((wanted & FALSE) == 0 ? 0 : ANY & ~among);
            return sought != ANY && (sought == 0 || usable(tree.get("child"), sought, indexed));
        }
        if (kind.equals("if")) {
            JsonNode condition = tree.get("condition");
            return (usable(tree.get("then"), wanted, indexed) || usable(condition, TRUE, indexed))
                && (usable(tree.get("otherwise"), wanted, indexed) || usable(condition, FALSE | NULL, indexed));
        }
        if (kind.equals("null")) {
            return (wanted & NULL) == 0;
        }
        return !kind.equals("unknown") && indexed.contains(column(tree)) && leaf(tree, kind, wanted);
    }

    private static boolean chain(JsonNode tree, int wanted, int decisive, Set indexed) {
        int neutral = swapped(decisive);
        JsonNode children = tree.get("children");
        if (wanted == neutral || wanted == (neutral | NULL)) {
            return any(children, wanted, indexed) || wanted == TRUE && leavesFewValues(children, indexed);
        }
        if (wanted == decisive || wanted == (decisive | NULL)) {
            return all(children, wanted, indexed);
        }
        if (wanted == NULL) {
            return any(children, neutral | NULL, indexed) || all(children, NULL, indexed);
        }
        return wanted != ANY && any(children, neutral, indexed) && all(children, decisive, indexed);
    }

    private static boolean any(JsonNode children, int wanted, Set indexed) {
        for (Iterator it = children.iterator(); it.hasNext();) {
            if (usable((JsonNode) it.next(), wanted, indexed)) {
                return true;
            }
        }
        return false;
    }

    private static boolean all(JsonNode children, int wanted, Set indexed) {
        for (Iterator it = children.iterator(); it.hasNext();) {
            if (!usable((JsonNode) it.next(), wanted, indexed)) {
                return false;
            }
        }
        return true;
    }

    private static int swapped(int truths) {
        return truths & NULL | (truths & TRUE) << 1 | (truths & FALSE) >> 1;
    }

    /** Whether an index of the leaf's column can tell that its truth is none of those wanted. */
    private static boolean leaf(JsonNode leaf, String kind, int wanted) {
        boolean hasNull = hasNull(leaf);
        boolean neverNull = kind.equals("is_null") || kind.equals("is_not_null") || kind.equals("equals_null_safe");
        boolean bound = kind.equals("compare") && !hasNull;
        boolean isTrue = !bound;
        // What excludes values can only drop a file where NULL is among them.
        boolean isFalse = !bound && (kind.startsWith("is_") || hasNull);
        boolean isNull = neverNull || !hasNull;
        return ((wanted & TRUE) == 0 || isTrue) && ((wanted & FALSE) == 0 || isFalse) && ((wanted & NULL) == 0 || isNull);
    }

    private static boolean hasNull(JsonNode leaf) {
        if (leaf.has("value")) {
            return leaf.get("value").get("value").isNull();
        }
        if (leaf.has("values")) {
            for (Iterator it = leaf.get("values").iterator(); it.hasNext();) {
                if (((JsonNode) it.next()).get("value").isNull()) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Whether bounds from both sides leave one value of a column, or few whole numbers. */
    private static boolean leavesFewValues(JsonNode children, Set indexed) {
        for (int i = 0; i < children.size(); i++) {
            for (int j = 0; j < children.size() && isBound((JsonNode) children.get(i), ">"); j++) {
                JsonNode low = (JsonNode) children.get(i);
                JsonNode high = (JsonNode) children.get(j);
                if (isBound(high, "<") && low.get("column").equals(high.get("column")) && indexed.contains(column(low))
                        && areFew(low, high)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean isBound(JsonNode leaf, String direction) {
        return kind(leaf).equals("compare") && leaf.get("op").asText().startsWith(direction);
    }

    private static boolean areFew(JsonNode low, JsonNode high) {
        JsonNode least = low.get("value");
        JsonNode most = high.get("value");
        if (least.equals(most) && low.get("op").asText().equals(">=") && high.get("op").asText().equals("<=")) {
            return true;
        }
        String type = least.get("type").asText();
        boolean whole = "tinyint smallint int bigint date".contains(type) && least.get("value").isNumber() && most.get("value").isNumber();
        // As doubles: the difference of two bigints may be none.
        return whole && most.get("value").asDouble() - least.get("value").asDouble() < MAX_WHOLE_NUMBERS;
    }
}

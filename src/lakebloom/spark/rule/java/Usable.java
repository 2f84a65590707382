package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Iterator;
import java.util.Set;

/**
 * Whether the filters and bounds of some columns could drop a file for a predicate tree.
 *
 * It has the rules of lakebloom.predicate.prune.normalise, so that Python is not called where no index can answer. A
 * test gives both the same trees.
 */
public final class Usable {
    private static final int TRUE = 1;
    private static final int FALSE = 2;
    private static final int NULL = 4;
    private static final int ANY = 7;
    private final Set indexed;

    /** The columns are FileColumns.key of each. */
    public Usable(Set indexed) {
        this.indexed = indexed;
    }

    /** Whether an index of the columns could drop a file, because a tree is TRUE nowhere in it. */
    boolean canDrop(JsonNode tree) {
        return usable(tree, TRUE);
    }

    /** The same of a tree as text. */
    public boolean canDrop(String tree) throws Exception {
        return canDrop((JsonNode) Wire.read(tree, JsonNode.class));
    }

    private boolean usable(JsonNode tree, int wanted) {
        String kind = Trees.kind(tree);
        if (kind.equals("and") || kind.equals("or")) {
            return chain(tree, wanted, kind.equals("and") ? FALSE : TRUE);
        }
        if (kind.equals("not")) {
            return usable(tree.get("child"), swapped(wanted));
        }
        if (kind.equals("truth")) {
            int among = 0;
            for (Iterator it = tree.get("among").iterator(); it.hasNext();) {
                String name = ((JsonNode) it.next()).asText();
                among |= name.equals("true") ? TRUE : name.equals("false") ? FALSE : NULL;
            }
            int sought = ((wanted & TRUE) == 0 ? 0 : among) | ((wanted & FALSE) == 0 ? 0 : ANY & ~among);
            return sought != ANY && (sought == 0 || usable(tree.get("child"), sought));
        }
        if (kind.equals("if")) {
            JsonNode condition = tree.get("condition");
            return (usable(tree.get("then"), wanted) || usable(condition, TRUE))
                && (usable(tree.get("otherwise"), wanted) || usable(condition, FALSE | NULL));
        }
        if (kind.equals("null")) {
            return (wanted & NULL) == 0;
        }
        return !kind.equals("unknown") && indexed.contains(Trees.column(tree)) && leaf(tree, kind, wanted);
    }

    private boolean chain(JsonNode tree, int wanted, int decisive) {
        int neutral = swapped(decisive);
        JsonNode children = tree.get("children");
        if (wanted == neutral || wanted == (neutral | NULL)) {
            return any(children, wanted);
        }
        if (wanted == decisive || wanted == (decisive | NULL)) {
            return all(children, wanted);
        }
        if (wanted == NULL) {
            return any(children, neutral | NULL) || all(children, NULL);
        }
        return wanted != ANY && any(children, neutral) && all(children, decisive);
    }

    private boolean any(JsonNode children, int wanted) {
        for (Iterator it = children.iterator(); it.hasNext();) {
            if (usable((JsonNode) it.next(), wanted)) {
                return true;
            }
        }
        return false;
    }

    private boolean all(JsonNode children, int wanted) {
        for (Iterator it = children.iterator(); it.hasNext();) {
            if (!usable((JsonNode) it.next(), wanted)) {
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
        // What excludes values can only drop a file where NULL is among them. The other side of a bound is a bound.
        boolean isFalse = kind.equals("compare") || kind.startsWith("is_") || hasNull;
        boolean isNull = neverNull || !hasNull;
        return ((wanted & FALSE) == 0 || isFalse) && ((wanted & NULL) == 0 || isNull);
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
}

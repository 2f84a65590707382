package io.lakebloom.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Or;

/** The parts of a condition that are joined by AND, or by OR. */
final class Conjuncts {
    private Conjuncts() {}

    /** The conditions that must all hold. */
    static List of(Expression e) {
        return e instanceof And ? chain(e) : Collections.singletonList(e);
    }

    /**
     * The same, without those of the form "k IS NOT NULL" that another one on k implies. Spark adds them to nearly
     * everything, and with them the rule would call Python for every condition on k.
     */
    static List needed(Expression condition) {
        List parts = of(condition);
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

    /** What a chain of ANDs, or of ORs, joins; a single condition is a chain of one. */
    static List chain(Expression e) {
        // Long chains lean to the left: no recursion.
        List parts = new ArrayList();
        ArrayDeque waiting = new ArrayDeque();
        waiting.push(e);
        while (!waiting.isEmpty()) {
            Expression next = (Expression) waiting.pop();
            if (next.getClass() == e.getClass() && (next instanceof And || next instanceof Or)) {
                List children = Scala.list(next.children());
                waiting.push(children.get(1));
                waiting.push(children.get(0));
            } else {
                parts.add(next);
            }
        }
        return parts;
    }
}

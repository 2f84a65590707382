package io.lakebloom.spark;

import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryOperator;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Expressions as people type them. */
final class ConditionText {
    private static final int MAX_TEXT = 200;

    private ConditionText() {}

    /** A condition with names without their table, and no brackets around the whole. */
    static String of(Expression e) {
        String text = ((Expression) e.transformUp(new Unqualified())).sql();
        boolean isBracketed = e instanceof BinaryOperator || e instanceof In || e instanceof InSet;
        return isBracketed && text.startsWith("(") && text.endsWith(")") ? text.substring(1, text.length() - 1) : text;
    }

    static String shortened(String text) {
        return text.length() > MAX_TEXT ? text.substring(0, MAX_TEXT) + "…" : text;
    }

    private static final class Unqualified extends AbstractPartialFunction {
        public boolean isDefinedAt(Object e) {
            return e instanceof AttributeReference;
        }

        public Object applyOrElse(Object e, Function1 otherwise) {
            return isDefinedAt(e) ? ((AttributeReference) e).withQualifier(Scala.nothing()) : otherwise.apply(e);
        }
    }
}

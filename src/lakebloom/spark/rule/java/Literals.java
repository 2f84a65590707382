package io.lakebloom.spark;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Values of Spark as the literals of lakebloom.predicate.tree. */
final class Literals {
    private Literals() {}

    /** A value of a type, NULL included. */
    static ObjectNode json(Object value, DataType type) throws NoForm {
        ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("type", type.catalogString());
        putPlain(node, value, type);
        return node;
    }

    private static void putPlain(ObjectNode node, Object value, DataType type) throws NoForm {
        if (Types.isCollated(type)) {
            throw new NoForm("COLLATION");
        }
        if (type instanceof StringType && !type.catalogString().equals("string")) {
            throw new NoForm("CHAR_PADDING");
        }
        if (value == null) {
            node.putNull("value");
        } else if (type instanceof BooleanType) {
            node.put("value", ((Boolean) value).booleanValue());
        } else if (type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
                || type instanceof LongType || type instanceof DateType || type instanceof TimestampType
                || type instanceof TimestampNTZType) {
            node.put("value", ((Number) value).longValue());
        } else if (type instanceof FloatType || type instanceof DoubleType) {
            node.put("value", Double.toString(((Number) value).doubleValue()));
        } else if (type instanceof DecimalType) {
            BigDecimal decimal = ((Decimal) value).toJavaBigDecimal().setScale(((DecimalType) type).scale());
            node.put("value", decimal.unscaledValue().toString());
        } else if (type instanceof StringType) {
            node.put("value", decoded(((UTF8String) value).getBytes()));
        } else if (type instanceof BinaryType) {
            node.put("value", Base64.getEncoder().encodeToString((byte[]) value));
        } else {
            throw new NoForm("NOT_SUPPORTED");
        }
    }

    private static String decoded(byte[] utf8) throws NoForm {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(utf8)).toString();
        } catch (CharacterCodingException e) {
            throw new NoForm("NOT_SUPPORTED");
        }
    }

    /** Refuses a literal of another type than the column's. */
    static void requireType(Literal literal, DataType type) throws NoForm {
        if (!literal.dataType().equals(type)) {
            throw new NoForm("TYPE_MISMATCH");
        }
    }

    /** A value or comparison that the tree cannot carry; the message is the reason. */
    static final class NoForm extends Exception {
        NoForm(String reason) {
            super(reason);
        }
    }
}

package io.lakebloom.spark;

import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What the values of a type have in common. */
final class Types {
    private Types() {}

    /** Whether a cast keeps every value, so that what equals after it has equalled before. */
    static boolean isExact(DataType from, DataType to) {
        if (from instanceof FloatType && to instanceof DoubleType) {
            return true;
        }
        boolean exact = (from instanceof IntegralType || from instanceof DecimalType)
            && (to instanceof IntegralType || to instanceof DecimalType);
        return exact && Cast.canUpCast(from, to);
    }

    /** Whether it is a string type in whose collation different strings can be equal. */
    static boolean isCollated(DataType type) {
        return type instanceof StringType && !((StringType) type).supportsBinaryEquality();
    }

    static boolean isFloat(DataType type) {
        return type instanceof FloatType || type instanceof DoubleType;
    }

    /** Whether there is a float in a value, at any depth; true for types that lakebloom does not know. */
    static boolean hasFloats(DataType type) {
        if (type instanceof ArrayType) {
            return hasFloats(((ArrayType) type).elementType());
        }
        if (type instanceof MapType) {
            return hasFloats(((MapType) type).keyType()) || hasFloats(((MapType) type).valueType());
        }
        if (type instanceof StructType) {
            StructField[] fields = ((StructType) type).fields();
            for (int i = 0; i < fields.length; i++) {
                if (hasFloats(fields[i].dataType())) {
                    return true;
                }
            }
            return false;
        }
        return isFloat(type) || !(type instanceof AtomicType || type instanceof NullType);
    }
}

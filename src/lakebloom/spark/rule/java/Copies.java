package io.lakebloom.spark;

import java.lang.reflect.Method;
import java.math.BigInteger;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.Some;
import scala.math.BigInt;
import scala.runtime.AbstractPartialFunction;

/**
 * Spark's own objects with one field replaced.
 *
 * Case classes have other fields in each version of Spark, and no names for them before Scala 2.13. So a field is found
 * by the object that it holds.
 */
final class Copies {
    private Copies() {}

    /** The relation over other files, and with their size if it had one. */
    static LogicalRelation withLocation(LogicalRelation relation, FileIndex location) throws Exception {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        Object smaller = with(files, files.location(), location, new Object[] {files.sparkSession()});
        Object copy = with(relation, files, smaller, new Object[0]);
        Option named = relation.catalogTable();
        if (named.isDefined() && ((CatalogTable) named.get()).stats().isDefined()) {
            CatalogTable table = (CatalogTable) named.get();
            CatalogStatistics stats = (CatalogStatistics) table.stats().get();
            BigInt size = new BigInt(BigInteger.valueOf(location.sizeInBytes()));
            Object sized = with(stats, stats.sizeInBytes(), size, new Object[0]);
            sized = with((Product) sized, stats.rowCount(), Option.empty(), new Object[0]);
            copy = with((Product) copy, named, new Some(with(table, table.stats(), new Some(sized), new Object[0])), new Object[0]);
        }
        return (LogicalRelation) copy;
    }

    /** The second parameter list of a constructor follows the fields. */
    static Object with(Product original, Object old, Object made, Object[] more) throws Exception {
        Object[] arguments = new Object[original.productArity() + more.length];
        int found = 0;
        for (int i = 0; i < original.productArity(); i++) {
            boolean isIt = original.productElement(i) == old;
            found += isIt ? 1 : 0;
            arguments[i] = isIt ? made : original.productElement(i);
        }
        if (found != 1) {
            throw new NoSuchFieldException(original.getClass() + ": " + found + " fields hold " + old);
        }
        System.arraycopy(more, 0, arguments, original.productArity(), more.length);
        Method[] methods = original.getClass().getMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals("copy") && methods[i].getParameterCount() == arguments.length) {
                return methods[i].invoke(original, arguments);
            }
        }
        throw new NoSuchMethodException(original.getClass() + ".copy with " + arguments.length + " arguments");
    }

    /** Puts a part of a plan, or of an expression, in the place of another. */
    static final class Exchange extends AbstractPartialFunction {
        private final Object old;
        private final Object made;

        Exchange(Object old, Object made) {
            this.old = old;
            this.made = made;
        }

        public boolean isDefinedAt(Object plan) {
            return plan == old;
        }

        public Object applyOrElse(Object plan, Function1 otherwise) {
            return plan == old ? made : otherwise.apply(plan);
        }
    }
}

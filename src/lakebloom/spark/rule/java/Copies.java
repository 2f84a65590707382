package io.lakebloom.spark;

import java.lang.reflect.Method;
import java.util.Collections;
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
 * Spark's own classes with one field exchanged. Their fields differ between versions, so they are read off the object.
 */
final class Copies {
    private Copies() {}

    /** The relation over other files, and with their size where it had one. */
    static LogicalRelation withLocation(LogicalRelation relation, FileIndex location) throws Exception {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        Object smaller = with(files, "location", location, new Object[] {files.sparkSession()});
        Object copy = with(relation, "relation", smaller, new Object[0]);
        if (relation.catalogTable().isDefined() && ((CatalogTable) relation.catalogTable().get()).stats().isDefined()) {
            CatalogTable table = (CatalogTable) relation.catalogTable().get();
            Object stats = with(
                (Product) table.stats().get(), "sizeInBytes", new BigInt(java.math.BigInteger.valueOf(location.sizeInBytes())),
                new Object[0]);
            stats = with((Product) stats, "rowCount", Option.empty(), new Object[0]);
            Object sized = with(table, "stats", new Some(stats), new Object[0]);
            copy = with((Product) copy, "catalogTable", new Some(sized), new Object[0]);
        }
        return (LogicalRelation) copy;
    }

    private static Object with(Product original, String field, Object value, Object[] more) throws Exception {
        Object[] arguments = new Object[original.productArity() + more.length];
        for (int i = 0; i < original.productArity(); i++) {
            arguments[i] = original.productElementName(i).equals(field) ? value : original.productElement(i);
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

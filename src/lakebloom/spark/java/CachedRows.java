package io.lakebloom.spark;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rows of Spark's cache as they were when their keys were taken.
 *
 * A cache can be dropped or evicted before the query runs, and its rows are then computed anew. So keys are taken only
 * of plans that make the same rows each time, and count only while the cache holds the rows that were seen.
 */
final class CachedRows {
    private static final List REPEATABLE = Arrays.asList(
        ("AdaptiveSparkPlanExec AQEShuffleReadExec BroadcastExchangeExec BroadcastHashJoinExec BroadcastQueryStageExec "
            + "ColumnarToRowExec FileSourceScanExec FilterExec HashAggregateExec InMemoryTableScanExec InputAdapter "
            + "LocalTableScanExec ObjectHashAggregateExec ProjectExec RangeExec ResultQueryStageExec "
            + "ReusedExchangeExec ShuffledHashJoinExec ShuffleExchangeExec ShuffleQueryStageExec SortAggregateExec "
            + "SortExec SortMergeJoinExec TableCacheQueryStageExec UnionExec WholeStageCodegenExec").split(" "));
    private final CachedRDDBuilder cache;
    private final int number;

    private CachedRows(CachedRDDBuilder cache) {
        this.cache = cache;
        this.number = cache.cachedColumnBuffers().id();
    }

    /** The rows of a cache that is loaded, and can only be loaded with the same rows again; null otherwise. */
    static CachedRows of(InMemoryRelation relation) {
        CachedRDDBuilder cache = relation.cacheBuilder();
        return cache.isCachedColumnBuffersLoaded() && isRepeatable(cache.cachedPlan()) ? new CachedRows(cache) : null;
    }

    /** Whether the cache still holds these rows. */
    boolean areThere() {
        return cache.isCachedColumnBuffersLoaded() && cache.cachedColumnBuffers().id() == number;
    }

    public boolean equals(Object other) {
        return other instanceof CachedRows && ((CachedRows) other).cache == cache && ((CachedRows) other).number == number;
    }

    public int hashCode() {
        return number;
    }

    /** Whether a plan makes the same rows whenever it runs over the same files. Of an RDD, nobody knows. */
    private static boolean isRepeatable(SparkPlan plan) {
        if (!REPEATABLE.contains(plan.getClass().getSimpleName())) {
            return false;
        }
        for (Iterator it = CollectionConverters.asJava(plan.expressions()).iterator(); it.hasNext();) {
            Expression expression = (Expression) it.next();
            if (!expression.deterministic() || plan instanceof BaseAggregateExec && isInexact(expression)) {
                return false;
            }
        }
        for (Iterator it = Scans.parts(plan).iterator(); it.hasNext();) {
            if (!isRepeatable((SparkPlan) it.next())) {
                return false;
            }
        }
        return true;
    }

    /** A sum of floating-point numbers depends on their order, which a shuffle does not keep. */
    private static boolean isInexact(Expression expression) {
        return expression.dataType() instanceof DoubleType || expression.dataType() instanceof FloatType;
    }
}

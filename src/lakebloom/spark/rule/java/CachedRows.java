package io.lakebloom.spark;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;

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
            + "LocalTableScanExec ObjectHashAggregateExec OneRowRelationExec ProjectExec RangeExec ResultQueryStageExec "
            + "ReusedExchangeExec ShuffledHashJoinExec ShuffleExchangeExec ShuffleQueryStageExec SortAggregateExec "
            + "SortExec SortMergeJoinExec TableCacheQueryStageExec UnionExec WholeStageCodegenExec").split(" "));
    private final CachedRDDBuilder cache;
    private final int number;
    private final CachedRows others;

    private CachedRows(CachedRDDBuilder cache, int number, CachedRows others) {
        this.cache = cache;
        this.number = number;
        this.others = others;
    }

    /** The rows of a cache that is loaded, and can only be loaded with the same rows again; null otherwise. */
    static CachedRows of(InMemoryRelation relation) {
        CachedRDDBuilder cache = relation.cacheBuilder();
        boolean isUsable = cache.isCachedColumnBuffersLoaded() && isRepeatable(cache.cachedPlan());
        return isUsable ? new CachedRows(cache, cache.cachedColumnBuffers().id(), null) : null;
    }

    /** These rows and others, which may be null. */
    CachedRows and(CachedRows more) {
        return new CachedRows(cache, number, others == null ? more : others.and(more));
    }

    /** Whether the caches still hold these rows. */
    boolean areThere() {
        boolean isThere = cache.isCachedColumnBuffersLoaded() && cache.cachedColumnBuffers().id() == number;
        return isThere && (others == null || others.areThere());
    }

    public boolean equals(Object other) {
        if (!(other instanceof CachedRows)) {
            return false;
        }
        CachedRows that = (CachedRows) other;
        return that.cache == cache && that.number == number && Objects.equals(that.others, others);
    }

    public int hashCode() {
        return number;
    }

    /** Whether a plan makes the same rows whenever it runs over the same files. For most RDDs that is unknown. */
    static boolean isRepeatable(SparkPlan plan) {
        if (plan instanceof RDDScanExec) {
            RDD rdd = ((RDDScanExec) plan).rdd();
            return rdd.isCheckpointed() || ListRows.of(rdd) != null;
        }
        if (!REPEATABLE.contains(plan.getClass().getSimpleName())) {
            return false;
        }
        for (Iterator it = Scala.list(plan.expressions()).iterator(); it.hasNext();) {
            Expression expression = (Expression) it.next();
            if (!expression.deterministic() || plan instanceof BaseAggregateExec && isInexact(expression)) {
                return false;
            }
        }
        for (Iterator it = SparkPlans.parts(plan).iterator(); it.hasNext();) {
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

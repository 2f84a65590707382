package io.lakebloom.spark;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BindReferences;
import org.apache.spark.sql.catalyst.expressions.Explode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.package$AttributeSeq;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.storage.RDDInfo;
import scala.Option;
import scala.collection.immutable.Seq;

/** Reads the values of a key from rows that are in memory and stay as they are: lists, ranges, checkpoints, caches. */
final class KeyRows {
    private final Keys keys;

    /** Adds to these keys. */
    KeyRows(Keys keys) {
        this.keys = keys;
    }

    void collect(LogicalPlan plan, Expression key, List conditions) throws Exception {
        if (plan.isStreaming()) {
            throw new Keys.Unknown("KEYS_AT_RUN_TIME", "a stream");
        }
        if (plan instanceof LocalRelation) {
            Keys.requireSmall(plan.stats().sizeInBytes().bigInteger());
            evaluate(Scala.list(((LocalRelation) plan).data()).iterator(), plan.output(), key, conditions);
        } else if (plan instanceof Range) {
            numbers((Range) plan, key, conditions);
        } else if (plan instanceof LogicalRDD) {
            distributed((LogicalRDD) plan, key, conditions);
        } else if (plan instanceof InMemoryRelation) {
            cached((InMemoryRelation) plan, key, conditions);
        } else {
            Keys.requireSmall(Scala.list(plan.children()).isEmpty() ? plan.stats().sizeInBytes().bigInteger() : BigInteger.ZERO);
            throw new Keys.Unknown("KEYS_AT_RUN_TIME", shown(plan));
        }
    }

    private static String shown(LogicalPlan plan) {
        return plan instanceof LogicalRelation || Plans.isScan(plan) ? "a table" : plan.nodeName().endsWith("EvalPython") ? "a Python function" : plan.nodeName();
    }

    /** Whether a key is the element of a literal array. */
    static boolean isExploded(Generate plan, Expression key) {
        Object array = plan.generator() instanceof Explode ? ((Explode) plan.generator()).child() : null;
        boolean isOwn = plan.generatorOutput().size() == 1 && key.references().size() == 1
            && ((NamedExpression) key.references().head()).exprId().equals(((Attribute) plan.generatorOutput().head()).exprId());
        return isOwn && array instanceof Literal && ((Literal) array).dataType() instanceof ArrayType;
    }

    void exploded(Generate plan, Expression key) throws Exception {
        Literal array = (Literal) ((Explode) plan.generator()).child();
        keys.addOfNulls(key);
        List rows = new ArrayList();
        if (array.value() != null) {
            Object[] items = ((ArrayData) array.value()).toObjectArray(((ArrayType) array.dataType()).elementType());
            for (int i = 0; i < items.length; i++) {
                rows.add(new GenericInternalRow(new Object[] {items[i]}));
            }
        }
        evaluate(rows.iterator(), plan.generatorOutput(), key, Collections.emptyList());
    }

    private void numbers(Range plan, Expression key, List conditions) throws Exception {
        BigInteger count = plan.numElements().bigInteger();
        if (count.compareTo(BigInteger.valueOf(Keys.maxRows())) > 0) {
            throw Keys.tooMany(count + " numbers");
        }
        List rows = new ArrayList();
        for (long i = 0; i < count.longValue(); i++) {
            rows.add(new GenericInternalRow(new Object[] {Long.valueOf(plan.start() + i * plan.step())}));
        }
        evaluate(rows.iterator(), plan.output(), key, conditions);
    }

    /** The rows of an RDD: a list of Python's, or a checkpoint, which stay as they are. Other RDDs may change. */
    private void distributed(LogicalRDD plan, Expression key, List conditions) throws Exception {
        if (plan.rdd().isCheckpointed()) {
            Keys.requireSmall(checkpointBytes(plan.rdd()));
            run(plan, key, conditions);
            return;
        }
        ListRows list = ListRows.of(plan.rdd());
        if (list == null) {
            throw new Keys.Unknown("KEYS_AT_RUN_TIME", "an RDD");
        }
        Keys.requireSmall(BigInteger.valueOf(list.bytes));
        evaluate(list.rows(), plan.output(), key, conditions);
    }

    private static BigInteger checkpointBytes(RDD rdd) throws Exception {
        if (rdd.getCheckpointFile().isDefined()) {
            Path path = new Path((String) rdd.getCheckpointFile().get());
            long length = path.getFileSystem(rdd.context().hadoopConfiguration()).getContentSummary(path).getLength();
            return BigInteger.valueOf(length);
        }
        RDDInfo[] stored = rdd.context().getRDDStorageInfo();
        for (int i = 0; i < stored.length; i++) {
            if (stored[i].id() == rdd.id()) {
                return BigInteger.valueOf(stored[i].memSize() + stored[i].diskSize());
            }
        }
        throw new Keys.Unknown("KEYS_AT_RUN_TIME", "a checkpoint that is not there");
    }

    /** The rows of Spark's cache: from the plan that it was made of, or else from the cache itself once it is filled. */
    private void cached(InMemoryRelation plan, Expression key, List conditions) throws Exception {
        Keys.Unknown why = fromPlan(plan, key, conditions);
        if (why == null) {
            return;
        }
        CachedRows rows = CachedRows.of(plan);
        if (rows == null) {
            boolean isRepeatable = CachedRows.isRepeatable(plan.cacheBuilder().cachedPlan());
            String reason = isRepeatable ? "CACHE_NOT_FILLED" : why.getMessage().equals("KEYS_AT_RUN_TIME") ? "NOT_REPEATABLE" : why.getMessage();
            throw new Keys.Unknown(reason, isRepeatable ? "a cache that is not filled yet" : "a cache of " + why.found);
        }
        Keys.requireSmall(plan.stats().sizeInBytes().bigInteger());
        run(plan, key, conditions);
        if (!rows.areThere()) {
            throw new Keys.Unknown("CACHE_NOT_FILLED", "a cache that was dropped while it was read");
        }
        keys.cached = rows.and(keys.cached);
    }

    /** Takes the values from what a cache was made of; returns why it does not. */
    private Keys.Unknown fromPlan(InMemoryRelation plan, Expression key, List conditions) throws Exception {
        SparkPlan made = plan.cacheBuilder().cachedPlan();
        made = made instanceof AdaptiveSparkPlanExec ? ((AdaptiveSparkPlanExec) made).inputPlan() : made;
        while (made.logicalLink().isEmpty() && made.children().size() == 1) {
            made = (SparkPlan) made.children().head();
        }
        LogicalPlan source = made.logicalLink().isEmpty() ? null : (LogicalPlan) made.logicalLink().get();
        if (source == null || !isSame(source.output(), plan.cacheBuilder().cachedPlan().output()) || source.output().size() != plan.output().size()) {
            return new Keys.Unknown("KEYS_AT_RUN_TIME", "a query");
        }
        Map shown = Columns.positions(plan.output(), source.output());
        Keys below = new Keys(keys.session);
        try {
            new KeySearch(below).collect(source, Columns.replaced(key, shown), Columns.replaced(conditions, shown));
        } catch (Keys.Unknown why) {
            return why;
        }
        if (below.cached != null) { // another cache, which may be filled anew while this one keeps what it has
            return new Keys.Unknown("KEYS_AT_RUN_TIME", "another cache");
        }
        keys.addAll(below);
        return null;
    }

    private static boolean isSame(scala.collection.Seq some, scala.collection.Seq others) {
        Iterator it = Scala.list(others).iterator();
        for (Iterator jt = Scala.list(some).iterator(); jt.hasNext();) {
            if (!it.hasNext() || !((NamedExpression) jt.next()).exprId().equals(((NamedExpression) it.next()).exprId())) {
                return false;
            }
        }
        return !it.hasNext();
    }

    private void evaluate(Iterator rows, Seq columns, Expression key, List conditions) throws Exception {
        package$AttributeSeq known = new package$AttributeSeq(columns);
        Expression bound = (Expression) BindReferences.bindReference(key, known, false);
        List tests = new ArrayList();
        for (Iterator it = Columns.evaluable(conditions).iterator(); it.hasNext();) {
            tests.add(BindReferences.bindReference((Expression) it.next(), known, false));
        }
        long most = Keys.maxRows();
        for (long seen = 0; rows.hasNext(); seen++) {
            if (seen == most) { // planning waits for this
                throw Keys.tooMany("more than " + most + " rows");
            }
            InternalRow row = (InternalRow) rows.next();
            if (passes(row, tests)) {
                keys.add(bound.eval(row));
            }
        }
    }

    private static boolean passes(InternalRow row, List tests) {
        for (Iterator it = tests.iterator(); it.hasNext();) {
            if (!Boolean.TRUE.equals(((Expression) it.next()).eval(row))) {
                return false;
            }
        }
        return true;
    }

    /** Runs a small query over rows that are stored: a job, but one that computes nothing. */
    private void run(LogicalPlan leaf, Expression key, List conditions) throws Exception {
        LogicalPlan wanted = leaf;
        for (Iterator it = Columns.evaluable(conditions).iterator(); it.hasNext();) {
            wanted = new Filter((Expression) it.next(), wanted);
        }
        Alias column = new Alias(key, "key", NamedExpression$.MODULE$.newExprId(), Scala.nothing(), Option.empty(), Scala.nothing());
        wanted = new Project(Scala.seq(Collections.singletonList((Object) column)), wanted);
        SessionState state = Sessions.state(keys.session);
        QueryExecution query = state.executePlan(wanted, state.executePlan$default$2());
        InternalRow[] rows = query.executedPlan().executeCollect();
        for (int i = 0; i < rows.length; i++) {
            keys.add(rows[i].isNullAt(0) ? null : rows[i].get(0, key.dataType()));
        }
    }
}

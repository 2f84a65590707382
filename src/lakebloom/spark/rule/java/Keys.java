package io.lakebloom.spark;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BindReferences;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Explode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.First;
import org.apache.spark.sql.catalyst.expressions.aggregate.Last;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.package$AttributeSeq;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.RDDInfo;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The values that a key of a join has at most, where they can be known before the query runs.
 *
 * They come from rows that are in memory and stay as they are. What lies between those rows and the join may drop rows
 * or repeat them: a value too many costs a file, and one too few would cost rows. So every step is one of a list of
 * operators that hand on the values of some rows below, and what is not on the list ends the search.
 */
final class Keys {
    /** Operators whose columns from below have values from below. */
    private static final List HANDING_ON = Arrays.asList(
        ("ArrowEvalPython BatchEvalPython Deduplicate Generate GlobalLimit LocalLimit Offset RebalancePartitions Repartition "
            + "RepartitionByExpression ResolvedHint Sort SubqueryAlias Tail Window WindowGroupLimit").split(" "));
    private static final int ROWS_FOR_A_KEY = 10;
    private final LakebloomRule rule;
    final Set values = new HashSet();
    boolean hasNull;
    CachedRows cached;

    private Keys(LakebloomRule rule) {
        this.rule = rule;
    }

    /** The values of an expression over a plan, also over a row of NULLs if the plan's rows are values to compare with. */
    static Keys of(LakebloomRule rule, LogicalPlan plan, Expression key, boolean isValue) throws Unknown {
        Keys keys = new Keys(rule);
        try {
            if (isValue && key.deterministic() && isEvaluable(key)) {
                keys.addOfNulls(key);
            }
            keys.collect(plan, key, Collections.emptyList());
        } catch (Unknown unknown) {
            throw unknown;
        } catch (Exception problem) {
            throw new Unknown("KEYS_AT_RUN_TIME", problem.toString()); // the query will tell
        }
        return keys;
    }

    /** Values that cannot be known; the message is the reason. */
    static final class Unknown extends Exception {
        final String found;

        Unknown(String reason, String found) {
            super(reason);
            this.found = found;
        }
    }

    /** Conditions hold for the rows whose keys are wanted; they are over the plan's columns, as the key is. */
    private void collect(LogicalPlan plan, Expression key, List conditions) throws Exception {
        if (!key.deterministic()) {
            throw new Unknown("NOT_REPEATABLE", key.sql());
        }
        if (!isEvaluable(key)) {
            throw new Unknown("KEYS_AT_RUN_TIME", key.sql());
        }
        String name = plan.getClass().getSimpleName();
        if (key.references().isEmpty()) {
            add(key.eval(InternalRow.empty()));
        } else if (plan instanceof Project) {
            Map shown = shown(((Project) plan).projectList());
            collect(child(plan), Above.exchanged(key, shown), exchanged(conditions, shown));
        } else if (plan instanceof Filter) {
            List more = new ArrayList(Conditions.ands(((Filter) plan).condition()));
            if (!((Filter) plan).condition().deterministic()) {
                throw new Unknown("NOT_REPEATABLE", ((Filter) plan).condition().sql());
            }
            more.addAll(conditions);
            collect(child(plan), key, more);
        } else if (plan instanceof Sample) {
            throw new Unknown("NOT_REPEATABLE", "a sample");
        } else if (plan instanceof Union) {
            for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
                LogicalPlan part = (LogicalPlan) it.next();
                Map shown = positions(plan.output(), part.output());
                collect(part, Above.exchanged(key, shown), exchanged(conditions, shown));
            }
        } else if (plan instanceof Aggregate) {
            grouped((Aggregate) plan, key, conditions);
        } else if (plan instanceof Join) {
            joined((Join) plan, key, conditions);
        } else if (plan instanceof Generate && isExploded((Generate) plan, key)) {
            exploded((Generate) plan, key);
        } else if (HANDING_ON.contains(name) && key.references().subsetOf(child(plan).outputSet())) {
            collect(child(plan), key, over(child(plan), conditions));
        } else {
            leaf(plan, key, conditions);
        }
    }

    private void leaf(LogicalPlan plan, Expression key, List conditions) throws Exception {
        if (plan.isStreaming()) {
            throw new Unknown("KEYS_AT_RUN_TIME", "a stream");
        }
        if (plan instanceof LocalRelation) {
            requireSmall(plan.stats().sizeInBytes().bigInteger());
            evaluate(CollectionConverters.asJava(((LocalRelation) plan).data()).iterator(), plan.output(), key, conditions);
        } else if (plan instanceof Range) {
            numbers((Range) plan, key, conditions);
        } else if (plan instanceof LogicalRDD) {
            distributed((LogicalRDD) plan, key, conditions);
        } else if (plan instanceof InMemoryRelation) {
            cached((InMemoryRelation) plan, key, conditions);
        } else {
            requireSmall(CollectionConverters.asJava(plan.children()).isEmpty() ? plan.stats().sizeInBytes().bigInteger() : BigInteger.ZERO);
            throw new Unknown("KEYS_AT_RUN_TIME", shown(plan));
        }
    }

    private static String shown(LogicalPlan plan) {
        return plan instanceof LogicalRelation ? "a table" : plan.nodeName().endsWith("EvalPython") ? "a Python function" : plan.nodeName();
    }

    private static LogicalPlan child(LogicalPlan plan) {
        return (LogicalPlan) CollectionConverters.asJava(plan.children()).get(0);
    }

    /** What each column of a projection is made of. */
    static Map shown(Seq columns) {
        Map known = new HashMap();
        for (Iterator it = CollectionConverters.asJava(columns).iterator(); it.hasNext();) {
            NamedExpression made = (NamedExpression) it.next();
            known.put(made.exprId(), made instanceof Alias ? (Expression) ((Alias) made).child() : made);
        }
        return known;
    }

    static Map positions(Seq from, Seq to) {
        Map known = new HashMap();
        Iterator others = CollectionConverters.asJava(to).iterator();
        for (Iterator it = CollectionConverters.asJava(from).iterator(); it.hasNext();) {
            known.put(((Attribute) it.next()).exprId(), others.next());
        }
        return known;
    }

    private static List exchanged(List conditions, Map shown) {
        List found = new ArrayList();
        for (Iterator it = conditions.iterator(); it.hasNext();) {
            found.add(Above.exchanged((Expression) it.next(), shown));
        }
        return found;
    }

    /** The conditions that are about a plan's own columns. The others are forgotten: more rows may pass. */
    private static List over(LogicalPlan plan, List conditions) {
        List found = new ArrayList();
        for (Iterator it = conditions.iterator(); it.hasNext();) {
            Expression condition = (Expression) it.next();
            if (condition.references().subsetOf(plan.outputSet())) {
                found.add(condition);
            }
        }
        return found;
    }

    private static boolean isEvaluable(Expression e) {
        if (e instanceof UserDefinedExpression || e instanceof Unevaluable && !(e instanceof Attribute) || SubqueryExpression.hasSubquery(e)) {
            return false;
        }
        for (Iterator it = CollectionConverters.asJava(e.children()).iterator(); it.hasNext();) {
            if (!isEvaluable((Expression) it.next())) {
                return false;
            }
        }
        return true;
    }

    /**
     * Columns that rows are grouped by have values from below, and so have the greatest, least, first and last.
     *
     * Groups do not tell -0.0 from 0.0, and give either as 0.0. So a column with floats in it is no more than a key by
     * itself, for which both are one: nothing computed of it is known, and no condition on it.
     */
    private void grouped(Aggregate plan, Expression key, List conditions) throws Exception {
        Map plain = new HashMap();
        Map floats = new HashMap();
        Map picked = new HashMap();
        for (Iterator it = CollectionConverters.asJava(plan.aggregateExpressions()).iterator(); it.hasNext();) {
            NamedExpression made = (NamedExpression) it.next();
            Expression e = made instanceof Alias ? (Expression) ((Alias) made).child() : (Expression) made;
            Expression one = e instanceof AggregateExpression ? picked((AggregateExpression) e) : null;
            if (one != null) {
                picked.put(made.exprId(), one);
            } else if (!hasAggregate(e) && !hasFloats(e.references())) {
                plain.put(made.exprId(), e);
            } else if (e instanceof AttributeReference && isFloat(e.dataType())) {
                floats.put(made.exprId(), e);
            }
        }
        if (key instanceof AttributeReference && known(key, floats)) {
            collect(child(plan), Above.exchanged(key, floats), exchanged(known(conditions, plain), plain));
            return;
        }
        if (known(key, plain)) {
            collect(child(plan), Above.exchanged(key, plain), exchanged(known(conditions, plain), plain));
            return;
        }
        if (key.references().size() != 1 || !known(key, picked)) {
            throw new Unknown("KEYS_AT_RUN_TIME", key.sql());
        }
        addOfNulls(key); // of no rows
        Map one = new HashMap(picked);
        one.keySet().retainAll(Collections.singleton(((NamedExpression) key.references().head()).exprId()));
        collect(child(plan), Above.exchanged(key, one), exchanged(known(conditions, one), one));
    }

    private static Expression picked(AggregateExpression e) {
        Object function = e.aggregateFunction();
        boolean picks = function instanceof Max || function instanceof Min || function instanceof First || function instanceof Last;
        return picks ? (Expression) CollectionConverters.asJava(((Expression) function).children()).get(0) : null;
    }

    private static boolean hasAggregate(Expression e) {
        boolean found = e instanceof AggregateExpression;
        for (Iterator it = CollectionConverters.asJava(e.children()).iterator(); it.hasNext() && !found;) {
            found = hasAggregate((Expression) it.next());
        }
        return found;
    }

    private static boolean hasFloats(scala.collection.Iterable columns) {
        for (Iterator it = CollectionConverters.asJava(columns).iterator(); it.hasNext();) {
            if (hasFloats(((Expression) it.next()).dataType())) {
                return true;
            }
        }
        return false;
    }

    private static boolean hasFloats(DataType type) {
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

    private static boolean isFloat(DataType type) {
        return type instanceof FloatType || type instanceof DoubleType;
    }

    private static boolean known(Expression e, Map columns) {
        for (Iterator it = CollectionConverters.asJava(e.references()).iterator(); it.hasNext();) {
            if (!columns.containsKey(((NamedExpression) it.next()).exprId())) {
                return false;
            }
        }
        return true;
    }

    private static List known(List conditions, Map columns) {
        List found = new ArrayList();
        for (Iterator it = conditions.iterator(); it.hasNext();) {
            Expression condition = (Expression) it.next();
            if (known(condition, columns)) {
                found.add(condition);
            }
        }
        return found;
    }

    /** A column of a join has values of its side, and NULL where the join adds rows. */
    private void joined(Join join, Expression key, List conditions) throws Exception {
        LogicalPlan left = (LogicalPlan) join.left();
        boolean isLeft = key.references().subsetOf(left.outputSet());
        LogicalPlan side = isLeft ? left : (LogicalPlan) join.right();
        if (!key.references().subsetOf(side.outputSet())) {
            throw new Unknown("KEYS_AT_RUN_TIME", key.sql());
        }
        String type = join.joinType().toString();
        if (type.equals("FullOuter") || type.equals(isLeft ? "RightOuter" : "LeftOuter") || type.equals("LeftSingle")) {
            addOfNulls(key);
        }
        Keys below = new Keys(rule);
        try {
            below.collect(side, key, over(side, conditions));
        } catch (Unknown why) {
            Expression partner = partner(join, key, isLeft);
            if (partner == null) {
                throw why;
            }
            below = new Keys(rule);
            below.collect(isLeft ? (LogicalPlan) join.right() : left, partner, Collections.emptyList());
        }
        add(below);
    }

    /** The column of the other side that a column equals wherever the join finds a partner, bit by bit; null: there is none. */
    private static Expression partner(Join join, Expression key, boolean isLeft) {
        String types = isLeft ? "Inner Cross LeftSemi RightOuter" : "Inner Cross LeftOuter";
        boolean equalIsSame = !(key.dataType() instanceof StringType) || ((StringType) key.dataType()).supportsBinaryEquality();
        if (!(key instanceof AttributeReference) || !equalIsSame || join.condition().isEmpty()
                || !Arrays.asList(types.split(" ")).contains(join.joinType().toString())) {
            return null;
        }
        for (Iterator it = Conditions.ands((Expression) join.condition().get()).iterator(); it.hasNext();) {
            Object part = it.next();
            List both = part instanceof EqualTo ? CollectionConverters.asJava(((EqualTo) part).children()) : Collections.emptyList();
            for (int i = 0; i < both.size(); i++) {
                Expression other = (Expression) both.get(1 - i);
                LogicalPlan side = isLeft ? (LogicalPlan) join.right() : (LogicalPlan) join.left();
                if (key.semanticEquals((Expression) both.get(i)) && other.references().subsetOf(side.outputSet())) {
                    return other;
                }
            }
        }
        return null;
    }

    private void add(Keys others) throws Unknown {
        for (Iterator it = others.values.iterator(); it.hasNext();) {
            add(it.next());
        }
        hasNull |= others.hasNull;
        cached = others.cached == null ? cached : others.cached.and(cached);
    }

    private static boolean isExploded(Generate plan, Expression key) {
        Object array = plan.generator() instanceof Explode ? ((Explode) plan.generator()).child() : null;
        boolean isOwn = plan.generatorOutput().size() == 1 && key.references().size() == 1
            && ((NamedExpression) key.references().head()).exprId().equals(((Attribute) plan.generatorOutput().head()).exprId());
        return isOwn && array instanceof Literal && ((Literal) array).dataType() instanceof ArrayType;
    }

    private void exploded(Generate plan, Expression key) throws Exception {
        Literal array = (Literal) ((Explode) plan.generator()).child();
        addOfNulls(key);
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
        if (count.compareTo(BigInteger.valueOf((long) ROWS_FOR_A_KEY * maxKeys())) > 0) {
            throw tooMany(count + " numbers");
        }
        List rows = new ArrayList();
        for (long i = 0; i < count.longValue(); i++) {
            rows.add(new GenericInternalRow(new Object[] {Long.valueOf(plan.start() + i * plan.step())}));
        }
        evaluate(rows.iterator(), plan.output(), key, conditions);
    }

    /** The rows of an RDD: a list of Python's, or a checkpoint, which stay as they are. Of others nobody knows. */
    private void distributed(LogicalRDD plan, Expression key, List conditions) throws Exception {
        if (plan.rdd().isCheckpointed()) {
            requireSmall(checkpointBytes(plan.rdd()));
            run(plan, key, conditions);
            return;
        }
        ListRows list = ListRows.of(plan.rdd());
        if (list == null) {
            throw new Unknown("KEYS_AT_RUN_TIME", "an RDD");
        }
        requireSmall(BigInteger.valueOf(list.bytes));
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
        throw new Unknown("KEYS_AT_RUN_TIME", "a checkpoint that is not there");
    }

    /** The rows of Spark's cache: what it is made of may be at hand, or else the cache is, once it is filled. */
    private void cached(InMemoryRelation plan, Expression key, List conditions) throws Exception {
        Unknown why = fromPlan(plan, key, conditions);
        if (why == null) {
            return;
        }
        CachedRows rows = CachedRows.of(plan);
        if (rows == null) {
            boolean isRepeatable = CachedRows.isRepeatable(plan.cacheBuilder().cachedPlan());
            String reason = isRepeatable ? "CACHE_NOT_FILLED" : why.getMessage().equals("KEYS_AT_RUN_TIME") ? "NOT_REPEATABLE" : why.getMessage();
            throw new Unknown(reason, isRepeatable ? "a cache that is not filled yet" : "a cache of " + why.found);
        }
        requireSmall(plan.stats().sizeInBytes().bigInteger());
        run(plan, key, conditions);
        if (!rows.areThere()) {
            throw new Unknown("CACHE_NOT_FILLED", "a cache that was dropped while it was read");
        }
        cached = rows.and(cached);
    }

    /** Takes the values from what a cache was made of; returns why it does not. */
    private Unknown fromPlan(InMemoryRelation plan, Expression key, List conditions) throws Exception {
        SparkPlan made = plan.cacheBuilder().cachedPlan();
        made = made instanceof AdaptiveSparkPlanExec ? ((AdaptiveSparkPlanExec) made).inputPlan() : made;
        while (made.logicalLink().isEmpty() && made.children().size() == 1) {
            made = (SparkPlan) made.children().head();
        }
        LogicalPlan source = made.logicalLink().isEmpty() ? null : (LogicalPlan) made.logicalLink().get();
        if (source == null || !isSame(source.output(), plan.cacheBuilder().cachedPlan().output()) || source.output().size() != plan.output().size()) {
            return new Unknown("KEYS_AT_RUN_TIME", "a query");
        }
        Map shown = positions(plan.output(), source.output());
        Keys below = new Keys(rule);
        try {
            below.collect(source, Above.exchanged(key, shown), exchanged(conditions, shown));
        } catch (Unknown why) {
            return why;
        }
        if (below.cached != null) { // another cache, which may be filled anew while this one keeps what it has
            return new Unknown("KEYS_AT_RUN_TIME", "another cache");
        }
        add(below);
        return null;
    }

    private static boolean isSame(Seq some, Seq others) {
        Iterator it = CollectionConverters.asJava(others).iterator();
        for (Iterator jt = CollectionConverters.asJava(some).iterator(); jt.hasNext();) {
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
        for (Iterator it = evaluable(conditions).iterator(); it.hasNext();) {
            tests.add(BindReferences.bindReference((Expression) it.next(), known, false));
        }
        long most = (long) ROWS_FOR_A_KEY * maxKeys();
        for (long seen = 0; rows.hasNext(); seen++) {
            if (seen == most) { // planning waits for this
                throw tooMany("more than " + most + " rows");
            }
            InternalRow row = (InternalRow) rows.next();
            if (passes(row, tests)) {
                add(bound.eval(row));
            }
        }
    }

    private static List evaluable(List conditions) {
        List found = new ArrayList();
        for (Iterator it = conditions.iterator(); it.hasNext();) {
            Expression condition = (Expression) it.next();
            if (condition.deterministic() && isEvaluable(condition)) {
                found.add(condition);
            }
        }
        return found;
    }

    private static boolean passes(InternalRow row, List tests) {
        for (Iterator it = tests.iterator(); it.hasNext();) {
            if (!Boolean.TRUE.equals(((Expression) it.next()).eval(row))) {
                return false;
            }
        }
        return true;
    }

    /** Adds what becomes of a row of NULLs. */
    private void addOfNulls(Expression key) throws Exception {
        Map nulls = new HashMap();
        for (Iterator it = CollectionConverters.asJava(key.references()).iterator(); it.hasNext();) {
            NamedExpression column = (NamedExpression) it.next();
            nulls.put(column.exprId(), new Literal(null, ((Expression) column).dataType()));
        }
        add(Above.exchanged(key, nulls).eval(InternalRow.empty()));
    }

    private void add(Object value) throws Unknown {
        if (value == null) {
            hasNull = true;
            return;
        }
        values.add(value instanceof UTF8String ? ((UTF8String) value).copy() : value);
        if (values.size() > maxKeys()) {
            throw tooMany("more than " + maxKeys() + " keys");
        }
    }

    /** Runs a small query over rows that are stored: a job, but one that computes nothing. */
    private void run(LogicalPlan leaf, Expression key, List conditions) throws Exception {
        LogicalPlan wanted = leaf;
        for (Iterator it = evaluable(conditions).iterator(); it.hasNext();) {
            wanted = new Filter((Expression) it.next(), wanted);
        }
        Seq nothing = CollectionConverters.asScala(Collections.emptyList()).toSeq();
        Alias column = new Alias(key, "key", NamedExpression$.MODULE$.newExprId(), nothing, Option.empty(), nothing);
        wanted = new Project(CollectionConverters.asScala(Collections.singletonList((Object) column)).toSeq(), wanted);
        Object session = rule.session();
        SessionState state = (SessionState) session.getClass().getMethod("sessionState").invoke(session);
        QueryExecution query = state.executePlan(wanted, state.executePlan$default$2());
        InternalRow[] rows = query.executedPlan().executeCollect();
        for (int i = 0; i < rows.length; i++) {
            add(rows[i].isNullAt(0) ? null : rows[i].get(0, key.dataType()));
        }
    }

    private static void requireSmall(BigInteger bytes) throws Unknown {
        BigInteger most = Settings.bytes("spark.lakebloom.join.maxKeyBytes", 8388608L);
        if (bytes.compareTo(most) > 0) {
            throw tooMany("about " + bytes + " bytes; spark.lakebloom.join.maxKeyBytes is " + most);
        }
    }

    private static Unknown tooMany(String found) {
        return new Unknown("TOO_MANY_KEYS", found);
    }

    static int maxKeys() {
        return Integer.parseInt(SQLConf.get().getConfString("spark.lakebloom.join.maxKeys", "10000"));
    }
}

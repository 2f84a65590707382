package io.lakebloom.spark;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.ShortType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Leaves out files of one side of a join that hold none of the other side's keys, where those are few and at hand.
 *
 * docs/JOINS.md says for which joins and sides that is safe.
 */
final class Partners {
    private final LakebloomRule rule;

    Partners(LakebloomRule rule) {
        this.rule = rule;
    }

    /** The join with fewer files to read on a side; the join itself where there is nothing to do. */
    LogicalPlan rewritten(Join join) throws Exception {
        LogicalPlan[] sides = {(LogicalPlan) join.left(), (LogicalPlan) join.right()};
        boolean changed = false;
        for (Iterator it = pairs(join).iterator(); it.hasNext();) {
            Pair pair = (Pair) it.next();
            LogicalPlan few = sides[pair.side];
            if (isSafe(join, 1 - pair.side) && isAtHand(few)) {
                Origin origin = origin(sides[1 - pair.side], pair.other);
                if (origin != null && origin.isAskable(rule, pair.key) && !origin.isDone(rule)) {
                    CachedRows cached = leaf(few) instanceof InMemoryRelation ? CachedRows.of((InMemoryRelation) leaf(few)) : null;
                    Set keys = keys(few, pair.key);
                    if (cached == null ? leaf(few) instanceof InMemoryRelation : !cached.areThere()) {
                        continue; // they are not, or no longer, rows that stay as they are
                    }
                    LogicalPlan pruned = pruned(sides[1 - pair.side], origin, keys, origin.purpose(), cached);
                    changed |= pruned != sides[1 - pair.side];
                    sides[1 - pair.side] = pruned;
                }
            }
        }
        return changed ? (LogicalPlan) join.withNewChildren(CollectionConverters.asScala(Arrays.asList(sides)).toSeq()) : join;
    }

    /** A column of one side that must equal something made of the other's columns. */
    private static final class Pair {
        final int side;
        final Expression key;
        final AttributeReference other;

        Pair(int side, Expression key, AttributeReference other) {
            this.side = side;
            this.key = key;
            this.other = other;
        }
    }

    /** The equalities of a join, each from both sides. */
    private static List pairs(Join join) {
        List found = new ArrayList();
        List conditions = join.condition().isEmpty() ? Collections.emptyList() : Conditions.ands((Expression) join.condition().get());
        LogicalPlan[] sides = {(LogicalPlan) join.left(), (LogicalPlan) join.right()};
        for (Iterator it = conditions.iterator(); it.hasNext();) {
            Object part = it.next();
            if (part instanceof EqualTo) {
                List children = CollectionConverters.asJava(((EqualTo) part).children());
                for (int i = 0; i < 4; i++) {
                    Expression key = (Expression) children.get(i % 2);
                    AttributeReference other = column((Expression) children.get(1 - i % 2));
                    boolean fits = key.deterministic() && !key.references().isEmpty() && !SubqueryExpression.hasSubquery(key)
                        && key.references().subsetOf(sides[i / 2].outputSet());
                    if (fits && other != null && Joins.has(sides[1 - i / 2], other)) {
                        found.add(new Pair(i / 2, key, other));
                    }
                }
            }
        }
        return found;
    }

    /** A column, or one that Spark has made wider to compare it; null for anything else. */
    private static AttributeReference column(Expression e) {
        if (e instanceof Cast && isWidened(((Expression) ((Cast) e).child()).dataType(), e.dataType())) {
            return column((Expression) ((Cast) e).child());
        }
        return e instanceof AttributeReference ? (AttributeReference) e : null;
    }

    private static boolean isWidened(DataType from, DataType to) {
        return from instanceof IntegralType && to instanceof IntegralType && Cast.canUpCast(from, to);
    }

    /** Keys in the type of a column that is as wide or narrower: those that it cannot hold have no partner. */
    private static Set narrowed(Set keys, DataType type) {
        Set found = new HashSet();
        for (Iterator it = keys.iterator(); it.hasNext();) {
            Object key = it.next();
            long number = key instanceof Number ? ((Number) key).longValue() : 0;
            if (type instanceof IntegerType) {
                if (number == (int) number) {
                    found.add(Integer.valueOf((int) number));
                }
            } else if (type instanceof ShortType) {
                if (number == (short) number) {
                    found.add(Short.valueOf((short) number));
                }
            } else {
                found.add(key);
            }
        }
        return found;
    }

    /** Whether rows of a side that have no partner are in no result and decide about none. */
    private static boolean isSafe(Join join, int side) {
        String type = join.joinType().toString();
        if (type.equals("Inner") || type.equals("LeftSemi")) {
            return true;
        }
        boolean asksRight = type.equals("LeftOuter") || type.equals("LeftAnti") || type.startsWith("ExistenceJoin");
        return side == 1 ? asksRight : type.equals("RightOuter");
    }

    /** Whether rows are in memory already, and few. */
    private static boolean isAtHand(LogicalPlan plan) {
        LogicalPlan leaf = leaf(plan);
        boolean loaded = leaf instanceof InMemoryRelation && CachedRows.of((InMemoryRelation) leaf) != null;
        return (loaded || leaf instanceof LocalRelation) && leaf.stats().sizeInBytes().bigInteger().compareTo(maxBytes()) <= 0;
    }

    /** What is below projections and conditions that make the same of a row each time. */
    private static LogicalPlan leaf(LogicalPlan plan) {
        LogicalPlan leaf = plan;
        while ((leaf instanceof Project || leaf instanceof Filter) && leaf.deterministic()) {
            leaf = (LogicalPlan) CollectionConverters.asJava(leaf.children()).get(0);
        }
        return leaf;
    }

    private static BigInteger maxBytes() {
        return new BigInteger(SQLConf.get().getConfString("spark.lakebloom.join.maxKeyBytes", "8388608"));
    }

    private static int maxKeys() {
        return Integer.parseInt(SQLConf.get().getConfString("spark.lakebloom.join.maxKeys", "10000"));
    }

    /** The distinct keys of rows at hand that are not NULL; null where there are too many. */
    private Set keys(LogicalPlan plan, Expression key) throws Exception {
        List column = Collections.singletonList(key instanceof AttributeReference ? key : (Object) named(key));
        LogicalPlan wanted = new Project(CollectionConverters.asScala(column).toSeq(), plan);
        Object session = rule.session();
        SessionState state = (SessionState) session.getClass().getMethod("sessionState").invoke(session);
        return keys(state.executePlan(wanted, state.executePlan$default$2()));
    }

    private static Alias named(Expression e) {
        Seq nothing = CollectionConverters.asScala(Collections.emptyList()).toSeq();
        return new Alias(e, "key", NamedExpression$.MODULE$.newExprId(), nothing, Option.empty(), nothing);
    }

    /** The distinct values of a query with one column; null where there are too many. */
    static Set keys(QueryExecution query) {
        Set found = new HashSet();
        AttributeReference column = (AttributeReference) CollectionConverters.asJava(query.analyzed().output()).get(0);
        InternalRow[] rows = query.executedPlan().executeCollect();
        for (int i = 0; i < rows.length; i++) {
            if (!rows[i].isNullAt(0)) {
                found.add(rows[i].get(0, column.dataType()));
            }
            if (found.size() > maxKeys()) {
                return null;
            }
        }
        return found;
    }

    /** The plan without the files that hold none of the keys, or the plan itself. */
    LogicalPlan pruned(LogicalPlan plan, Origin origin, Set keys, String purpose, CachedRows cached) throws Exception {
        Set wanted = keys == null ? Collections.emptySet() : narrowed(keys, origin.column.dataType());
        if (wanted.isEmpty()) {
            return plan;
        }
        Expression condition = new InSet(origin.column, CollectionConverters.asScala(wanted).toSet());
        LogicalRelation fewer = rule.pruned(origin.relation, condition, purpose, cached, JsonNodeFactory.instance.objectNode());
        if (fewer == null || ((LakebloomFileIndex) ((HadoopFsRelation) fewer.relation()).location()).keepsAll()) {
            return plan;
        }
        return (LogicalPlan) plan.transformUp(new Exchange(origin.relation, fewer));
    }

    /** Puts a relation in the place of another. */
    static final class Exchange extends AbstractPartialFunction {
        private final LogicalPlan old;
        private final LogicalPlan made;

        Exchange(LogicalPlan old, LogicalPlan made) {
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

    /** A column of a plan as it is in the files. */
    static final class Origin {
        final LogicalRelation relation;
        final AttributeReference column;

        Origin(LogicalRelation relation, AttributeReference column) {
            this.relation = relation;
            this.column = column;
        }

        String purpose() {
            return LakebloomFileIndex.KEYS + column.name();
        }

        /** Whether files were left out here already, as they are when the optimizer comes by again. */
        boolean isDone(LakebloomRule rule) {
            FileIndex location = ((HadoopFsRelation) relation.relation()).location();
            return location instanceof LakebloomFileIndex && ((LakebloomFileIndex) location).isOf(rule, purpose());
        }

        /** Whether an index may know which files hold keys of this type. */
        boolean isAskable(LakebloomRule rule, Expression key) {
            Scan scan = new Scan(relation, null);
            boolean sameValues = column.dataType().equals(key.dataType()) || isWidened(column.dataType(), key.dataType());
            return sameValues && scan.listsPlainFiles() && scan.isStored(column)
                && rule.covers(scan, column.name());
        }
    }

    /**
     * Where a column's values come from, if each row of the plan depends only on rows of the files with the same value:
     * then leaving out other files leaves out other rows, and changes none. Null otherwise.
     */
    static Origin origin(LogicalPlan plan, AttributeReference column) {
        if (plan instanceof LogicalRelation) {
            boolean isFiles = ((LogicalRelation) plan).relation() instanceof HadoopFsRelation && !plan.isStreaming();
            AttributeReference found = isFiles ? (AttributeReference) Joins.named(plan.output(), column) : null;
            return found == null ? null : new Origin((LogicalRelation) plan, found);
        }
        if (plan instanceof Join) {
            LogicalPlan left = (LogicalPlan) ((Join) plan).left();
            boolean isLeft = Joins.has(left, column);
            return keepsOthers((Join) plan, isLeft) ? origin(isLeft ? left : (LogicalPlan) ((Join) plan).right(), column) : null;
        }
        if (!(plan instanceof Aggregate) && !plan.deterministic()) {
            return null;
        }
        if (plan instanceof Project || plan instanceof Aggregate) {
            AttributeReference source = Joins.source(plan, column);
            if (source == null || plan instanceof Aggregate && !groupsBy((Aggregate) plan, source)) {
                return null;
            }
            return origin((LogicalPlan) CollectionConverters.asJava(plan.children()).get(0), source);
        }
        if (plan instanceof View || plan instanceof SubqueryAlias) {
            LogicalPlan child = (LogicalPlan) CollectionConverters.asJava(plan.children()).get(0);
            return Joins.named(child.output(), column) == null ? null : origin(child, column);
        }
        boolean passes = plan instanceof Filter || plan instanceof Sort || plan instanceof ResolvedHint
            || plan instanceof Repartition || plan instanceof RepartitionByExpression;
        return passes ? origin((LogicalPlan) CollectionConverters.asJava(plan.children()).get(0), column) : null;
    }

    private static boolean groupsBy(Aggregate aggregate, AttributeReference column) {
        return Joins.named(aggregate.groupingExpressions(), column) != null;
    }

    /** Whether rows of a side with other keys may go without changing rows with this one. */
    private static boolean keepsOthers(Join join, boolean isLeft) {
        String type = join.joinType().toString();
        String own = isLeft ? "LeftOuter LeftSemi LeftAnti" : "RightOuter";
        return Arrays.asList(("Inner Cross " + own).split(" ")).contains(type);
    }
}

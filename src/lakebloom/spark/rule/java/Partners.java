package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.KnownFloatingPointNormalized;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Leaves out files of one side of a join that hold none of the other side's keys, where those are few and known.
 *
 * A condition that compares a column with a subquery of one value is a join of this kind, too. docs/JOINS.md says for
 * which joins and sides that is safe. Why a join leaves out nothing is noted on it, for explain.
 */
final class Partners {
    private final LakebloomRule rule;
    private final TreeNodeTag noted;
    private static final AtomicLong COUNT = new AtomicLong();
    private static final int MAX_TEXT = 200;
    /** Of keys that leave out no more than something else has left out already. */
    private static final String NOT_NEEDED = "NOT_NEEDED";

    Partners(LakebloomRule rule) {
        this.rule = rule;
        this.noted = new TreeNodeTag("lakebloom.partners." + COUNT.getAndIncrement());
    }

    /** A join, or a condition, with fewer files to read below it; itself where there is nothing to do. */
    LogicalPlan rewritten(LogicalPlan plan) throws Exception {
        List pairs = pairs(plan);
        ObjectNode notes = notes(plan);
        notes = notes == null ? JsonNodeFactory.instance.objectNode() : notes;
        List children = new ArrayList(CollectionConverters.asJava(plan.children()));
        boolean changed = false;
        for (Iterator it = pairs.iterator(); it.hasNext();) {
            Pair pair = (Pair) it.next();
            LogicalPlan indexed = (LogicalPlan) children.get(pair.indexed);
            Target target = target(indexed, pair);
            if (target == null || notes.has(pair.id()) || target.isDone(rule, pair)) {
                continue; // the optimizer comes by several times
            }
            try {
                LogicalPlan pruned = pruned(plan, pair, target, indexed);
                changed |= pruned != indexed;
                children.set(pair.indexed, pruned);
            } catch (Keys.Unknown why) {
                ObjectNode note = notes.putObject(pair.id());
                note.put("reason", why.getMessage());
                note.put("message", why.found);
            }
        }
        LogicalPlan made = changed ? (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(children).toSeq()) : plan;
        if (!pairs.isEmpty()) {
            made.setTagValue(noted, notes.toString());
        }
        return made;
    }

    private ObjectNode notes(LogicalPlan plan) throws Exception {
        return plan.getTagValue(noted).isEmpty() ? null : (ObjectNode) new ObjectMapper().readTree((String) plan.getTagValue(noted).get());
    }

    private LogicalPlan pruned(LogicalPlan plan, Pair pair, Target target, LogicalPlan indexed) throws Exception {
        if (target.reason != null) {
            throw new Keys.Unknown(target.reason, "");
        }
        if (plan instanceof Join && !isSafe((Join) plan, pair.indexed)) {
            throw new Keys.Unknown("JOIN_NOT_SAFE", "");
        }
        Keys keys = Keys.of(rule, pair.keys, pair.key, plan instanceof Filter);
        LogicalPlan made = indexed;
        String why = "NOT_SELECTIVE";
        for (Iterator it = target.origins.iterator(); it.hasNext();) {
            Origin origin = (Origin) it.next();
            ObjectNode note = JsonNodeFactory.instance.objectNode();
            made = pruned(made, origin, keys, pair.isNullSafe, pair.purpose(), note);
            for (Iterator jt = note.path("indexes").iterator(); jt.hasNext();) {
                JsonNode index = (JsonNode) jt.next();
                why = index.hasNonNull("reason") ? index.get("reason").asText() : why;
            }
        }
        if (made == indexed) {
            boolean isEnough = why.equals("NOT_SELECTIVE") && target.isPruned();
            throw new Keys.Unknown(isEnough ? NOT_NEEDED : why, keys.values.size() + (keys.values.size() == 1 ? " key" : " keys"));
        }
        return made;
    }

    /** Adds to each relation that a join could have left out files of why it does not. */
    void describe(LogicalPlan plan, Map found) throws Exception {
        ObjectNode notes = notes(plan);
        for (Iterator it = pairs(plan).iterator(); it.hasNext();) {
            Pair pair = (Pair) it.next();
            Target target = target((LogicalPlan) CollectionConverters.asJava(plan.children()).get(pair.indexed), pair);
            if (target == null || target.isDone(rule, pair)) {
                continue;
            }
            JsonNode note = notes == null ? null : notes.get(pair.id());
            if (note != null && note.get("reason").asText().equals(NOT_NEEDED)) {
                continue;
            }
            for (Iterator jt = target.relations.iterator(); jt.hasNext();) {
                Object relation = jt.next();
                ArrayNode entries = (ArrayNode) found.get(relation);
                if (entries == null) {
                    entries = JsonNodeFactory.instance.arrayNode();
                    found.put(relation, entries);
                }
                ObjectNode entry = entries.addObject();
                entry.put("join", plan instanceof Join ? ((Join) plan).joinType().toString() : "Subquery");
                entry.put("side", plan instanceof Filter ? "" : pair.indexed == 0 ? "left" : "right");
                entry.put("column", target.column);
                entry.put("key", shortened(pair.key.sql()));
                entry.put("reason", note != null ? note.get("reason").asText() : notes == null ? "DISABLED" : "PLANNED_BEFORE");
                entry.put("message", note == null ? "" : shortened(note.get("message").asText()));
            }
        }
    }

    private static String shortened(String text) {
        return text.length() > MAX_TEXT ? text.substring(0, MAX_TEXT) + "…" : text;
    }

    /** Something made of the columns of one plan that must equal something made of another's, which is to lose files. */
    private static final class Pair {
        final LogicalPlan keys;
        final Expression key;
        final int indexed;
        final Expression other;
        final boolean isNullSafe;

        /** The indexed plan is a child, by its number. NULL equals NULL in a null-safe pair. */
        Pair(LogicalPlan keys, Expression key, int indexed, Expression other, boolean isNullSafe) {
            this.keys = keys;
            this.key = key;
            this.indexed = indexed;
            this.other = other;
            this.isNullSafe = isNullSafe;
        }

        String id() {
            return indexed + " " + other + " = " + key;
        }

        String purpose() {
            return LakebloomFileIndex.KEYS + id();
        }
    }

    private static List pairs(LogicalPlan plan) {
        List found = new ArrayList();
        if (plan instanceof Join && ((Join) plan).condition().isDefined()) {
            for (Iterator it = Conditions.ands((Expression) ((Join) plan).condition().get()).iterator(); it.hasNext();) {
                Object part = it.next();
                if (part instanceof EqualTo || part instanceof EqualNullSafe) {
                    List both = CollectionConverters.asJava(((Expression) part).children());
                    addJoined(found, (Join) plan, (Expression) both.get(0), (Expression) both.get(1), part instanceof EqualNullSafe);
                }
            }
        }
        if (plan instanceof Filter && SubqueryExpression.hasSubquery(((Filter) plan).condition())) {
            for (Iterator it = Conditions.ands(((Filter) plan).condition()).iterator(); it.hasNext();) {
                Object part = it.next();
                if (part instanceof EqualTo || part instanceof EqualNullSafe) {
                    List both = CollectionConverters.asJava(((Expression) part).children());
                    for (int i = 0; i < 2; i++) {
                        addCompared(found, (Expression) both.get(i), (Expression) both.get(1 - i), part instanceof EqualNullSafe);
                    }
                }
            }
        }
        return found;
    }

    private static void addJoined(List found, Join join, Expression one, Expression another, boolean isNullSafe) {
        if (one instanceof CreateNamedStruct || another instanceof CreateNamedStruct) {
            // Within structs NULL equals NULL.
            int size = ((StructType) one.dataType()).length();
            for (int i = 0; i < size; i++) {
                addJoined(found, join, Conditions.field(one, i), Conditions.field(another, i), true);
            }
            return;
        }
        LogicalPlan[] sides = {(LogicalPlan) join.left(), (LogicalPlan) join.right()};
        Expression[] both = {one, another};
        for (int i = 0; i < 4; i++) {
            Expression key = both[i % 2];
            Expression other = both[1 - i % 2];
            boolean fits = !key.references().isEmpty() && !other.references().isEmpty()
                && key.references().subsetOf(sides[i / 2].outputSet()) && other.references().subsetOf(sides[1 - i / 2].outputSet());
            if (fits) {
                found.add(new Pair(sides[i / 2], key, 1 - i / 2, other, isNullSafe));
            }
        }
    }

    /** A column that must equal what a subquery finds. */
    private static void addCompared(List found, Expression key, Expression other, boolean isNullSafe) {
        ScalarSubquery subquery = key.references().isEmpty() ? subquery(key) : null;
        if (subquery != null && subquery.outerAttrs().isEmpty() && !SubqueryExpression.hasSubquery(other) && !other.references().isEmpty()) {
            LogicalPlan plan = subquery.plan();
            Expression value = (Expression) key.transformUp(new Copies.Exchange(subquery, plan.output().head()));
            found.add(new Pair(plan, value, 0, other, isNullSafe));
        }
    }

    /** The one subquery of an expression; null where there is none, or several. */
    private static ScalarSubquery subquery(Expression e) {
        if (e instanceof ScalarSubquery) {
            return (ScalarSubquery) e;
        }
        ScalarSubquery found = null;
        for (Iterator it = CollectionConverters.asJava(e.children()).iterator(); it.hasNext();) {
            Expression child = (Expression) it.next();
            if (SubqueryExpression.hasSubquery(child)) {
                if (found != null) {
                    return null;
                }
                found = subquery(child);
                if (found == null) {
                    return null;
                }
            }
        }
        return found;
    }

    /** A column, a leaf of its structs, or one of them that Spark has made wider to compare it; null for anything else. */
    private static Expression column(Expression e) {
        if (e instanceof KnownFloatingPointNormalized || e instanceof NormalizeNaNAndZero) {
            return column((Expression) CollectionConverters.asJava(e.children()).get(0)); // an index knows one zero, one NaN
        }
        if (e instanceof Cast || e instanceof GetStructField) {
            Expression child = (Expression) CollectionConverters.asJava(e.children()).get(0);
            Expression below = e instanceof Cast && !Conditions.isExact(child.dataType(), e.dataType()) ? null : column(child);
            List made = Collections.singletonList(below);
            return below == null ? null : (Expression) e.withNewChildren(CollectionConverters.asScala(made).toSeq());
        }
        return e instanceof AttributeReference ? e : null;
    }

    private static AttributeReference root(Expression column) {
        Expression root = column;
        while (!(root instanceof AttributeReference)) {
            root = (Expression) CollectionConverters.asJava(root.children()).get(0);
        }
        return (AttributeReference) root;
    }

    /** Whether rows of a side that have no partner are in no result and decide about none. */
    private static boolean isSafe(Join join, int side) {
        String type = join.joinType().toString();
        if (type.equals("Inner") || type.equals("Cross") || type.equals("LeftSemi")) {
            return true;
        }
        boolean asksRight = type.equals("LeftOuter") || type.equals("LeftAnti") || type.startsWith("ExistenceJoin");
        return side == 1 ? asksRight : type.equals("RightOuter");
    }

    /** The indexed columns that a pair is about; a reason where their files must stay. */
    private static final class Target {
        final List origins = new ArrayList();
        final Set relations = Collections.newSetFromMap(new IdentityHashMap());
        String column;
        String reason;

        /** Whether something else has left out files here. */
        boolean isPruned() {
            for (Iterator it = origins.iterator(); it.hasNext();) {
                FileIndex location = ((HadoopFsRelation) ((Origin) it.next()).relation.relation()).location();
                if (location instanceof LakebloomFileIndex && ((LakebloomFileIndex) location).leavesOutAny()) {
                    return true;
                }
            }
            return false;
        }

        /** Whether files were left out here already. */
        boolean isDone(LakebloomRule rule, Pair pair) {
            for (Iterator it = origins.iterator(); it.hasNext();) {
                FileIndex location = ((HadoopFsRelation) ((Origin) it.next()).relation.relation()).location();
                if (location instanceof LakebloomFileIndex && ((LakebloomFileIndex) location).isOf(rule, pair.purpose())) {
                    return true;
                }
            }
            return false;
        }
    }

    /** What a pair could leave out files of; null where no index knows the column. */
    private Target target(LogicalPlan plan, Pair pair) {
        Target target = new Target();
        Expression column = column(pair.other);
        List origins = column == null ? Collections.emptyList() : origins(plan, column);
        for (Iterator it = origins.iterator(); it.hasNext();) {
            Origin origin = (Origin) it.next();
            String why = origin.whyNot(rule);
            if (why == null) {
                target.origins.add(origin);
            } else if (!why.equals("NO_INDEX")) {
                target.reason = why;
            }
            if (why == null || !why.equals("NO_INDEX")) {
                target.relations.add(origin.relation);
                target.column = String.join(".", origin.scan.path(origin.column));
            }
        }
        if (!target.origins.isEmpty() || target.reason != null) {
            target.reason = target.origins.isEmpty() ? target.reason : null;
            return target;
        }
        target.reason = column == null ? "KEY_COMPUTED" : "NEEDS_ALL_ROWS";
        for (Iterator it = CollectionConverters.asJava(pair.other.references()).iterator(); it.hasNext() && origins.isEmpty();) {
            trace(plan, (Expression) it.next(), target);
        }
        return target.relations.isEmpty() ? null : target;
    }

    /** Adds the relations with an index of a column, whatever lies between. */
    private void trace(LogicalPlan plan, Expression e, Target target) {
        if (plan instanceof LogicalRelation) {
            Expression column = column(e);
            boolean isFiles = ((LogicalRelation) plan).relation() instanceof HadoopFsRelation && !plan.isStreaming();
            if (isFiles && column != null) {
                Scan scan = new Scan((LogicalRelation) plan, null);
                List path = scan.listsPlainFiles() ? scan.path(column) : null;
                if (path != null && rule.covers(scan, path)) {
                    target.relations.add(plan);
                    target.column = String.join(".", path);
                }
            }
            return;
        }
        Expression made = e;
        if (plan instanceof Project || plan instanceof Aggregate) {
            made = Above.exchanged(e, Keys.shown(plan instanceof Project ? ((Project) plan).projectList() : ((Aggregate) plan).aggregateExpressions()));
        }
        for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
            LogicalPlan child = (LogicalPlan) it.next();
            Expression here = plan instanceof Union ? Above.exchanged(made, Keys.positions(plan.output(), child.output())) : made;
            if (column(here) != null) {
                if (here.references().subsetOf(child.outputSet())) {
                    trace(child, here, target);
                }
                continue;
            }
            for (Iterator jt = CollectionConverters.asJava(here.references()).iterator(); jt.hasNext();) {
                Expression part = (Expression) jt.next();
                if (Joins.has(child, part)) {
                    trace(child, part, target);
                }
            }
        }
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
            if (found.size() > Keys.maxKeys()) {
                return null;
            }
        }
        return found;
    }

    private LogicalPlan pruned(LogicalPlan plan, Origin origin, Keys keys, boolean isNullSafe, String purpose, ObjectNode note) throws Exception {
        Expression wanted = isIn(origin.column, keys.values);
        if (isNullSafe && keys.hasNull) {
            wanted = new Or(wanted, new IsNull(origin.column));
        }
        return pruned(plan, origin, wanted, purpose, keys.cached, note);
    }

    /** A condition that no row meets where there are no values. Values that a narrower column cannot hold have no partner. */
    private static Expression isIn(Expression column, Set values) {
        if (column instanceof Cast) {
            Expression narrower = (Expression) ((Cast) column).child();
            Set held = new HashSet();
            for (Iterator it = values.iterator(); it.hasNext();) {
                Object value = it.next();
                Object narrow = cast(value, column.dataType(), narrower.dataType());
                if (narrow != null && value.equals(cast(narrow, narrower.dataType(), column.dataType()))) {
                    held.add(narrow);
                }
            }
            return isIn(narrower, held);
        }
        Set wanted = values.isEmpty() ? Collections.singleton(null) : values;
        return new InSet(column, CollectionConverters.asScala(wanted).toSet());
    }

    private static Object cast(Object value, DataType from, DataType to) {
        return Cast$.MODULE$.apply(new Literal(value, from), to, Option.empty(), EvalMode.TRY()).eval(null);
    }

    /** For prune_join: the plan without the files that hold none of the keys, or the plan itself. */
    LogicalPlan pruned(LogicalPlan plan, Origin origin, Set keys, DataType type) throws Exception {
        DataType own = origin.column.dataType();
        Set values = new HashSet();
        boolean isNarrower = !own.equals(type) && Conditions.isExact(type, own);
        for (Iterator it = keys.iterator(); it.hasNext();) {
            Object key = it.next();
            values.add(isNarrower ? cast(key, type, own) : key);
        }
        Expression column = isNarrower || own.equals(type) ? origin.column : Cast$.MODULE$.apply(origin.column, type, false);
        // Each call has its own keys: what an earlier one left out does not keep this one from leaving out more.
        String purpose = LakebloomFileIndex.KEYS + column + " " + System.nanoTime();
        return values.isEmpty() ? plan : pruned(plan, origin, isIn(column, values), purpose, null, JsonNodeFactory.instance.objectNode());
    }

    private LogicalPlan pruned(LogicalPlan plan, Origin origin, Expression condition, String purpose, CachedRows cached, ObjectNode note)
            throws Exception {
        LogicalRelation fewer = rule.pruned(origin.relation, condition, purpose, cached, note);
        if (fewer == null || ((LakebloomFileIndex) ((HadoopFsRelation) fewer.relation()).location()).keepsAll()) {
            return plan;
        }
        return (LogicalPlan) plan.transformUp(new Copies.Exchange(origin.relation, fewer));
    }

    /** A column of a plan, or what Spark compares of it, as it is in the files. */
    static final class Origin {
        final LogicalRelation relation;
        final Expression column;
        final Scan scan;

        Origin(LogicalRelation relation, Expression column) {
            this.relation = relation;
            this.column = column;
            this.scan = new Scan(relation, isIn(column, Collections.emptySet()));
        }

        /** Why no index can know which files hold keys; null: one may, NO_INDEX: there is none. */
        String whyNot(LakebloomRule rule) {
            List path = scan.listsPlainFiles() ? scan.path(column) : null;
            return path == null || !rule.covers(scan, path) ? "NO_INDEX" : scan.unknown();
        }

        /** Whether an index may know which files hold keys of a type. */
        boolean isAskable(LakebloomRule rule, DataType type) {
            DataType own = column.dataType();
            boolean sameValues = own.equals(type) || Conditions.isExact(own, type) || Conditions.isExact(type, own);
            return sameValues && whyNot(rule) == null;
        }
    }

    /**
     * Where a column's values come from, if each row of the plan depends only on rows of the files with the same value:
     * then leaving out other files leaves out other rows, and changes none. A union has several such places.
     */
    static List origins(LogicalPlan plan, Expression column) {
        List found = new ArrayList();
        addOrigins(plan, column, found);
        return found;
    }

    private static void addOrigins(LogicalPlan plan, Expression column, List found) {
        AttributeReference root = root(column);
        if (plan instanceof LogicalRelation) {
            boolean isFiles = ((LogicalRelation) plan).relation() instanceof HadoopFsRelation && !plan.isStreaming();
            if (isFiles && Joins.named(plan.output(), root) != null) {
                found.add(new Origin((LogicalRelation) plan, column));
            }
            return;
        }
        if (plan instanceof Join) {
            LogicalPlan left = (LogicalPlan) ((Join) plan).left();
            boolean isLeft = Joins.has(left, root);
            if (keepsOthers((Join) plan, isLeft)) {
                addOrigins(isLeft ? left : (LogicalPlan) ((Join) plan).right(), column, found);
            }
            return;
        }
        if (!(plan instanceof Aggregate) && !plan.deterministic()) {
            return;
        }
        if (plan instanceof Union) {
            for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
                LogicalPlan child = (LogicalPlan) it.next();
                addOrigins(child, Above.exchanged(column, Keys.positions(plan.output(), child.output())), found);
            }
            return;
        }
        Expression below = below(plan, column, root);
        if (below != null) {
            addOrigins((LogicalPlan) CollectionConverters.asJava(plan.children()).get(0), below, found);
        }
    }

    /** A column over what is below a plan with one child; null where its rows depend on rows with other values. */
    private static Expression below(LogicalPlan plan, Expression column, AttributeReference root) {
        if (plan instanceof Project) {
            return column(Above.exchanged(column, Keys.shown(((Project) plan).projectList())));
        }
        if (plan instanceof Aggregate) {
            AttributeReference source = Joins.source(plan, root);
            boolean groups = source != null && Joins.named(((Aggregate) plan).groupingExpressions(), source) != null;
            return groups ? Above.exchanged(column, Collections.singletonMap(root.exprId(), source)) : null;
        }
        if (plan instanceof View || plan instanceof SubqueryAlias) {
            LogicalPlan child = (LogicalPlan) CollectionConverters.asJava(plan.children()).get(0);
            return Joins.named(child.output(), root) == null ? null : column;
        }
        boolean passes = plan instanceof Filter || plan instanceof Sort || plan instanceof ResolvedHint
            || plan instanceof Repartition || plan instanceof RepartitionByExpression
            || plan instanceof Window && Joins.named(((Window) plan).partitionSpec(), root) != null;
        return passes ? column : null;
    }

    /** Whether rows of a side with other keys may go without changing rows with this one. */
    private static boolean keepsOthers(Join join, boolean isLeft) {
        String type = join.joinType().toString();
        String own = isLeft ? "LeftOuter LeftSemi LeftAnti" : "RightOuter";
        return Arrays.asList(("Inner Cross " + own).split(" ")).contains(type);
    }
}

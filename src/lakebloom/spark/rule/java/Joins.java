package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Filters one side of a shuffled equi-join by the global filter of the other side's key.
 *
 * docs/JOINS.md says for which joins and sides that is safe, and when it is left undone.
 */
final class Joins {
    private static final int MAX_REMEMBERED = 1000;
    private final ObjectMapper mapper;
    private final Callback python;
    private final Map known = Collections.synchronizedMap(new HashMap());
    private final Map filters = Collections.synchronizedMap(new HashMap());
    private final Map done = Collections.synchronizedMap(new HashMap());
    /** Of all lakes of this process: each finds its own marks in a plan. */
    private static final AtomicLong COUNT = new AtomicLong();

    /** Python takes a question about a global filter and returns the answer, both JSON. */
    Joins(ObjectMapper mapper, Callback python) {
        this.mapper = mapper;
        this.python = python;
    }

    /** The join with its sides filtered as far as indexes can; the join itself where there is nothing to do. */
    LogicalPlan rewritten(Join join, List indexes) throws Exception {
        LogicalPlan[] sides = {(LogicalPlan) join.left(), (LogicalPlan) join.right()};
        boolean changed = false;
        for (Iterator it = candidates(join, indexes).iterator(); it.hasNext();) {
            Candidate candidate = (Candidate) it.next();
            if (candidate.reason == null && !candidate.isDone(sides[candidate.side])) {
                LogicalPlan filtered = filtered(candidate, sides[candidate.side]);
                changed |= filtered != null;
                sides[candidate.side] = filtered == null ? sides[candidate.side] : filtered;
            }
        }
        return changed ? (LogicalPlan) join.withNewChildren(seq(Arrays.asList(sides))) : join;
    }

    /** Adds to the report what became of each join key that a global filter is about. */
    void describe(Join join, List indexes, ArrayNode report) throws Exception {
        LogicalPlan[] sides = {(LogicalPlan) join.left(), (LogicalPlan) join.right()};
        for (Iterator it = candidates(join, indexes).iterator(); it.hasNext();) {
            Candidate candidate = (Candidate) it.next();
            ObjectNode entry = report.addObject();
            entry.put("index", candidate.index);
            entry.put("column", String.join(".", candidate.path));
            entry.put("key", candidate.key.name());
            entry.put("side", candidate.side == 0 ? "left" : "right");
            entry.put("join", join.joinType().toString());
            JsonNode info = candidate.info(sides[candidate.side]);
            if (info != null) {
                entry.set("filter", info);
            } else {
                entry.put("reason", candidate.reason == null ? refusal(candidate) : candidate.reason);
            }
        }
    }

    private String refusal(Candidate candidate) throws Exception {
        JsonNode answer = answer(candidate);
        return answer.hasNonNull("reason") ? answer.get("reason").asText() : "DISABLED";
    }

    /** What the filter of a marked column was: index, column and rate. */
    JsonNode info(String mark) {
        return (JsonNode) done.get(mark);
    }

    /** A key of one side that a global filter of the other side's column could filter, or the reason why it must not. */
    private final class Candidate {
        int side;
        AttributeReference key;
        Scan scan;
        List path;
        String index;
        String reason;
        int[] words;
        FilteredFiles files;

        JsonNode info(LogicalPlan plan) {
            // Our projections are a chain on top of the side, one after the other for several keys.
            for (LogicalPlan at = plan; at instanceof Project || at instanceof Filter;) {
                for (Iterator it = CollectionConverters.asJava(at.output()).iterator(); it.hasNext();) {
                    JsonNode info = Joins.this.info(((Attribute) it.next()).name());
                    if (info != null && info.get("id").asLong() == key.exprId().id() && info.get("index").asText().equals(index)) {
                        return info;
                    }
                }
                at = (LogicalPlan) CollectionConverters.asJava(at.children()).get(0);
            }
            return null;
        }

        boolean isDone(LogicalPlan plan) {
            return info(plan) != null;
        }
    }

    /** A column of one side that must equal a column of the other. */
    static final class Pair {
        final int side;
        final AttributeReference key;
        final AttributeReference other;

        Pair(int side, AttributeReference key, AttributeReference other) {
            this.side = side;
            this.key = key;
            this.other = other;
        }
    }

    /** The equalities of a join between columns, each from both sides. */
    static List pairs(Join join) {
        List found = new ArrayList();
        if (join.condition().isEmpty()) {
            return found;
        }
        LogicalPlan[] sides = {(LogicalPlan) join.left(), (LogicalPlan) join.right()};
        for (Iterator it = Conditions.ands((Expression) join.condition().get()).iterator(); it.hasNext();) {
            Object part = it.next();
            if (!(part instanceof EqualTo)) {
                continue;
            }
            List children = CollectionConverters.asJava(((EqualTo) part).children());
            for (int first = 0; first < 2; first++) {
                Object key = children.get(first);
                Object other = children.get(1 - first);
                if (key instanceof AttributeReference && other instanceof AttributeReference) {
                    for (int side = 0; side < 2; side++) {
                        if (has(sides[side], key) && has(sides[1 - side], other)) {
                            found.add(new Pair(side, (AttributeReference) key, (AttributeReference) other));
                        }
                    }
                }
            }
        }
        return found;
    }

    private List candidates(Join join, List indexes) {
        List found = new ArrayList();
        for (Iterator it = pairs(join).iterator(); it.hasNext();) {
            Pair pair = (Pair) it.next();
            add(found, join, pair.side, pair.key, pair.other, indexes);
        }
        return found;
    }

    private void add(List found, Join join, int side, AttributeReference key, AttributeReference other, List indexes) {
        LogicalPlan[] sides = {(LogicalPlan) join.left(), (LogicalPlan) join.right()};
        Object[] origin = origin(sides[1 - side], other);
        if (origin == null || !key.dataType().equals(other.dataType())) {
            return;
        }
        Scan scan = new Scan((LogicalRelation) origin[0], null);
        if (isSameColumn(origin, origin(sides[side], key))) {
            return;
        }
        List path = Collections.singletonList(((AttributeReference) origin[1]).name());
        if (!scan.listsPlainFiles() || !scan.isStored((AttributeReference) origin[1])) {
            return;
        }
        for (Iterator it = indexes.iterator(); it.hasNext();) {
            LakebloomRule.Index index = (LakebloomRule.Index) it.next();
            if (index.globals.contains(Conditions.key(path)) && index.meets(scan.roots())) {
                Candidate candidate = new Candidate();
                candidate.side = side;
                candidate.key = key;
                candidate.scan = scan;
                candidate.path = path;
                candidate.index = index.name;
                candidate.reason = whyNot(join, side, key);
                found.add(candidate);
                return;
            }
        }
    }

    /** Whether both sides read the same column of the same files: then every row passes. */
    private static boolean isSameColumn(Object[] one, Object[] other) {
        if (other == null) {
            return false;
        }
        HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) one[0]).relation();
        HadoopFsRelation others = (HadoopFsRelation) ((LogicalRelation) other[0]).relation();
        boolean sameName = ((AttributeReference) one[1]).name().equals(((AttributeReference) other[1]).name());
        return sameName && files.location().equals(others.location());
    }

    /** Why a side must not, or need not, be filtered; null: it may. */
    private static String whyNot(Join join, int side, AttributeReference key) {
        String type = join.joinType().toString();
        boolean both = type.equals("Inner") || type.equals("LeftSemi");
        if (!both && !(type.equals("LeftOuter") && side == 1) && !(type.equals("RightOuter") && side == 0)) {
            return "JOIN_NOT_SAFE";
        }
        if (!JoinFilterPlan.supports(key)) {
            return "NOT_SUPPORTED";
        }
        LogicalPlan[] sides = {(LogicalPlan) join.left(), (LogicalPlan) join.right()};
        long threshold = SQLConf.get().autoBroadcastJoinThreshold();
        for (int i = 0; i < 2; i++) {
            if (sides[i].stats().sizeInBytes().bigInteger().compareTo(java.math.BigInteger.valueOf(threshold)) <= 0) {
                return "BROADCAST_JOIN";
            }
        }
        if (join.hint().toString().toLowerCase().contains("broadcast")) {
            return "BROADCAST_JOIN";
        }
        java.math.BigInteger minimum = Settings.bytes("spark.lakebloom.join.minBytes", 67108864L);
        if (sides[side].stats().sizeInBytes().bigInteger().compareTo(minimum) < 0) {
            return "JOIN_TOO_SMALL";
        }
        return hasRuntimeFilter(sides[side], key) ? "RUNTIME_FILTER" : null;
    }

    private static boolean hasRuntimeFilter(LogicalPlan plan, AttributeReference key) {
        if (plan instanceof Filter) {
            for (Iterator it = Conditions.ands(((Filter) plan).condition()).iterator(); it.hasNext();) {
                Expression part = (Expression) it.next();
                if (part instanceof BloomFilterMightContain && part.references().contains(key)) {
                    return true;
                }
            }
        }
        for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
            if (hasRuntimeFilter((LogicalPlan) it.next(), key)) {
                return true;
            }
        }
        return false;
    }

    static boolean has(LogicalPlan plan, Object attribute) {
        return plan.outputSet().contains((NamedExpression) attribute);
    }

    /**
     * The relation of files from which a column's values come, and its name there; null where they may come from
     * elsewhere. What lies between may drop rows or repeat them, and an outer join may add NULLs, which match nothing.
     */
    private static Object[] origin(LogicalPlan plan, AttributeReference column) {
        if (plan instanceof LogicalRelation) {
            boolean isFiles = ((LogicalRelation) plan).relation() instanceof HadoopFsRelation;
            return isFiles && !plan.isStreaming() ? new Object[] {plan, column} : null;
        }
        if (plan instanceof Project || plan instanceof Aggregate) {
            AttributeReference source = source(plan, column);
            LogicalPlan child = (LogicalPlan) CollectionConverters.asJava(plan.children()).get(0);
            return source == null ? null : origin(child, source);
        }
        List children = CollectionConverters.asJava(plan.children());
        if (children.size() != 1 && !(plan instanceof Join)) {
            return null;
        }
        for (Iterator it = children.iterator(); it.hasNext();) {
            LogicalPlan child = (LogicalPlan) it.next();
            if (has(child, column)) {
                return origin(child, column);
            }
        }
        return null;
    }

    /** The column below a projection or aggregation that one of its columns shows; null where it is computed. */
    static AttributeReference source(LogicalPlan plan, AttributeReference column) {
        Seq columns = plan instanceof Project ? ((Project) plan).projectList() : ((Aggregate) plan).aggregateExpressions();
        Object shown = named(columns, column);
        if (shown instanceof Alias && ((Alias) shown).child() instanceof AttributeReference) {
            return (AttributeReference) ((Alias) shown).child();
        }
        return shown instanceof AttributeReference ? column : null;
    }

    /** The one of several expressions that defines a column; null where there is none. */
    static Object named(Seq expressions, AttributeReference column) {
        for (Iterator it = CollectionConverters.asJava(expressions).iterator(); it.hasNext();) {
            Object found = it.next();
            if (found instanceof NamedExpression && ((NamedExpression) found).exprId().equals(column.exprId())) {
                return found;
            }
        }
        return null;
    }

    private LogicalPlan filtered(Candidate candidate, LogicalPlan side) throws Exception {
        JsonNode answer = answer(candidate);
        if (answer.hasNonNull("reason")) {
            return null;
        }
        String mark = JoinFilterPlan.MARK + COUNT.getAndIncrement();
        ObjectNode info = ((ObjectNode) answer).deepCopy();
        info.remove("words");
        info.put("index", candidate.index);
        info.put("column", String.join(".", candidate.path));
        info.put("id", candidate.key.exprId().id());
        if (done.size() > MAX_REMEMBERED) {
            done.clear();
        }
        done.put(mark, info);
        return new JoinFilterPlan(candidate.scan.files.sparkSession(), side, candidate.key, candidate.words, candidate.files, mark)
            .filtered();
    }

    /** Asks for the files that the filter knows, then for the filter with those added that it does not. */
    private JsonNode answer(Candidate candidate) throws Exception {
        ObjectNode question = candidate.scan.question(mapper);
        question.put("index", candidate.index);
        ArrayNode column = question.putArray("column");
        for (Iterator it = candidate.path.iterator(); it.hasNext();) {
            column.add((String) it.next());
        }
        Object[] files = (Object[]) known.get(candidate.index);
        question.put("known", files == null ? "" : (String) files[0]);
        JsonNode first = mapper.readTree(python.answer(question.toString()));
        if (first.hasNonNull("reason")) {
            return first;
        }
        if (first.hasNonNull("files")) {
            files = new Object[] {first.get("fingerprint").asText(), new KnownFiles(first.get("files").asText())};
            known.put(candidate.index, files);
        }
        question.put("known", (String) files[0]);
        ArrayNode missing = question.putArray("missing");
        candidate.files = new FilteredFiles(candidate.scan.files.location(), (KnownFiles) files[1]);
        for (Iterator it = candidate.files.listed().iterator(); it.hasNext();) {
            FileStatusWithMetadata file = (FileStatusWithMetadata) it.next();
            if (candidate.files.add(file)) {
                KnownFiles.describe(file, missing.addArray());
            }
        }
        Object[] filter = (Object[]) filters.get(candidate.index);
        question.put("filter", filter == null ? "" : (String) filter[0]);
        JsonNode second = mapper.readTree(python.answer(question.toString()));
        if (second.hasNonNull("words")) {
            ByteBuffer bytes = ByteBuffer.wrap(second.get("words").binaryValue()).order(ByteOrder.LITTLE_ENDIAN);
            int[] words = new int[bytes.remaining() / 4];
            bytes.asIntBuffer().get(words);
            filter = new Object[] {second.get("filter").asText(), words};
            filters.put(candidate.index, filter);
        }
        // Not from the map: another query may have put the filter of another column there.
        candidate.words = filter == null ? null : (int[]) filter[1];
        return second;
    }

    private static Seq seq(List items) {
        return CollectionConverters.asScala(items).toSeq();
    }
}

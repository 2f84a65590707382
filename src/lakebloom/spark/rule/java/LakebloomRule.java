package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Finds conditions directly above files, asks Python which of the files can match, and leaves the others out.
 *
 * Python is asked only if an index covers the place and the condition names one of its columns in a way that filters
 * can answer. Whatever goes wrong, the plan stays as it was.
 */
public final class LakebloomRule extends Rule {
    private static final Logger LOG = LoggerFactory.getLogger("lakebloom");
    private final ObjectMapper mapper = new ObjectMapper();
    private final Object session;
    private final Callback python;
    private final Set warned = Collections.synchronizedSet(new HashSet());
    private final Map known = Collections.synchronizedMap(new HashMap());
    private final Joins joins;
    private Partners partners;
    final Counts counts = new Counts();
    private final TreeNodeTag seen;
    private volatile List indexes = Collections.emptyList();
    private static final AtomicLong COUNT = new AtomicLong();
    /** The same for all lakes: kept here, so that ListRows is compiled only when a query needs it. */
    static volatile String handingOn = "[]";

    /**
     * The functions take the secret and a question about files, or about the filter for a join, and return the answer,
     * both JSON.
     */
    public LakebloomRule(Object session, BiFunction python, BiFunction joins, String secret) {
        this.session = session;
        this.python = new Callback(python, secret);
        this.joins = new Joins(mapper, new Callback(joins, secret));
        this.seen = new TreeNodeTag("lakebloom.seen." + COUNT.getAndIncrement());
    }

    /** Replaces what is known of the indexes: a JSON array of {name, locations, columns, global}. */
    public void setIndexes(String json) throws Exception {
        List found = new ArrayList();
        for (Iterator it = mapper.readTree(json).iterator(); it.hasNext();) {
            found.add(new Index((JsonNode) it.next()));
        }
        indexes = found;
    }

    /** Tells which settings change what is read: a JSON object, for each format a list of keys. */
    public void setReaderKeys(String json) throws Exception {
        Scan.setReaderKeys(mapper.readTree(json));
    }

    /** Tells what PySpark pickles to hand on the rows of a list: a JSON array of {bytes, free}. ListRows reads it. */
    public void setHandingOn(String json) {
        handingOn = json;
    }

    public TreeNode apply(TreeNode plan) {
        try {
            counts.meetCaches((LogicalPlan) plan);
            Set fixed = new HashSet();
            if (!indexes.isEmpty()) {
                Above.collectFixed((LogicalPlan) plan, false, fixed);
            }
            return ((LogicalPlan) plan).transformUpWithSubqueries(new Rewrite(this, fixed));
        } catch (Throwable problem) {
            warn(problem);
            return plan;
        }
    }

    /** For tests and for explain: the scans of an optimized plan, as JSON. */
    public String describe(LogicalPlan plan) throws Exception {
        ArrayNode scans = mapper.createArrayNode();
        Scans.describe(plan, scans, mapper, this);
        return scans.toString();
    }

    /** For explain: what became of the joins whose keys a global filter is about, as JSON. */
    public String describeJoins(LogicalPlan plan) throws Exception {
        ArrayNode report = mapper.createArrayNode();
        describeJoins(plan, report);
        return report.toString();
    }

    /** What the filter behind a marked column is, as JSON; null where it is forgotten. */
    public String joinFilter(String mark) {
        JsonNode info = joins.info(mark);
        return info == null ? null : info.toString();
    }

    private void describeJoins(LogicalPlan plan, ArrayNode report) throws Exception {
        if (plan instanceof Join) {
            joins.describe((Join) plan, indexes, report);
        }
        for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
            describeJoins((LogicalPlan) it.next(), report);
        }
        for (Iterator it = CollectionConverters.asJava(plan.subqueries()).iterator(); it.hasNext();) {
            describeJoins((LogicalPlan) it.next(), report);
        }
    }

    private static final class Rewrite extends AbstractPartialFunction {
        private final LakebloomRule rule;
        private final Set fixed;

        /** The relations of a set keep all their files. */
        Rewrite(LakebloomRule rule, Set fixed) {
            this.rule = rule;
            this.fixed = fixed;
        }

        public boolean isDefinedAt(Object plan) {
            return plan instanceof Join || plan instanceof Filter;
        }

        public Object applyOrElse(Object plan, Function1 otherwise) {
            if (isDefinedAt(plan)) {
                try {
                    return plan instanceof Join ? rule.rewrite((Join) plan, fixed) : rule.rewrite((Filter) plan, fixed);
                } catch (Throwable problem) {
                    rule.warn(problem);
                    rule.noteFailure(plan, problem);
                    return plan;
                }
            }
            return otherwise.apply(plan);
        }
    }

    private LogicalPlan rewrite(Join join, Set fixed) throws Exception {
        if (indexes.isEmpty() || Above.holds(join, fixed)) {
            return join;
        }
        LogicalPlan fewerFiles = partners().rewritten(join);
        return fewerFiles instanceof Join ? joins.rewritten((Join) fewerFiles, indexes) : fewerFiles;
    }

    private LogicalPlan rewrite(Filter filter, Set fixed) throws Exception {
        LogicalPlan fewer = byCondition(filter, fixed);
        boolean isJoin = !indexes.isEmpty() && SubqueryExpression.hasSubquery(filter.condition()) && !Above.holds(fewer, fixed);
        return isJoin ? partners().rewritten(fewer) : fewer;
    }

    /** Made when a query first needs it: compiling takes time. */
    private synchronized Partners partners() {
        partners = partners == null ? new Partners(this) : partners;
        return partners;
    }

    private LogicalPlan byCondition(Filter filter, Set fixed) throws Exception {
        if (filter.getTagValue(seen).isDefined()) {
            return filter; // the optimizer comes by several times
        }
        Above above = Above.below((LogicalPlan) filter.child(), filter.condition());
        if (above == null || fixed.contains(above.relation)) {
            return filter;
        }
        String purpose = above.relation == filter.child() ? LakebloomFileIndex.FILTER : LakebloomFileIndex.ABOVE;
        ObjectNode note = mapper.createObjectNode();
        LogicalRelation fewer = pruned(above.relation, above.condition, purpose, null, note);
        if (fewer == null && !note.isEmpty()) {
            filter.setTagValue(seen, note.toString());
        }
        return fewer == null ? filter : (LogicalPlan) filter.transformUp(new Copies.Exchange(above.relation, fewer));
    }

    private void noteFailure(Object plan, Throwable problem) {
        if (plan instanceof Filter) {
            ObjectNode note = mapper.createObjectNode();
            ObjectNode index = note.putArray("indexes").addObject();
            index.put("name", "of this place");
            index.put("reason", "INDEX_UNREADABLE");
            index.put("message", problem.toString());
            note.put("asked", true);
            ((Filter) plan).setTagValue(seen, note.toString());
        }
    }

    /** What Python said when a condition was asked in vain, or the indexes that were there; null: it was not looked at. */
    String seen(Filter filter) {
        return filter == null || filter.getTagValue(seen).isEmpty() ? null : (String) filter.getTagValue(seen).get();
    }

    /**
     * The relation without files that cannot match; null where there is nothing to leave out, and then the note says why.
     *
     * Keys are the cached rows that the condition was made of, if it was.
     */
    LogicalRelation pruned(LogicalRelation relation, Expression condition, String purpose, CachedRows keys, ObjectNode note)
            throws Exception {
        if (!(relation.relation() instanceof HadoopFsRelation) || relation.isStreaming()) {
            return null;
        }
        Scan scan = new Scan(relation, condition);
        FileIndex location = scan.files.location();
        if (location instanceof LakebloomFileIndex && ((LakebloomFileIndex) location).isOf(this, purpose)) {
            return null;
        }
        List asked = scan.listsPlainFiles() ? covering(scan) : Collections.emptyList();
        ArrayNode there = note.putArray("there");
        for (Iterator it = indexes.iterator(); it.hasNext();) {
            there.add(((Index) it.next()).name);
        }
        if (asked.isEmpty()) {
            return null;
        }
        ObjectNode question = scan.question(mapper);
        LakebloomFileIndex.Asked answered = ask(question, asked, keys, note);
        if (answered.answers.isEmpty()) {
            return null;
        }
        LakebloomFileIndex kept = new LakebloomFileIndex(location, this, purpose, answered, scan.partitionFilters());
        return Copies.withLocation(relation, kept);
    }

    /** Whether an index has filters for this column of the scan. */
    boolean covers(Scan scan, List column) {
        String key = Conditions.key(column);
        for (Iterator it = indexes.iterator(); it.hasNext();) {
            Index index = (Index) it.next();
            if (index.columns.contains(key) && index.meets(scan.roots())) {
                return true;
            }
        }
        return false;
    }

    Object session() {
        return session;
    }

    /** Why joins leave out no files of relations, each in an array of JSON. */
    Map unprunedJoins(LogicalPlan plan) throws Exception {
        Map found = new IdentityHashMap();
        addUnprunedJoins(plan, found);
        return found;
    }

    private void addUnprunedJoins(LogicalPlan plan, Map found) throws Exception {
        if (plan instanceof Join || plan instanceof Filter && SubqueryExpression.hasSubquery(((Filter) plan).condition())) {
            partners().describe(plan, found);
        }
        for (Iterator it = CollectionConverters.asJava(plan.children()).iterator(); it.hasNext();) {
            addUnprunedJoins((LogicalPlan) it.next(), found);
        }
        for (Iterator it = CollectionConverters.asJava(plan.subqueries()).iterator(); it.hasNext();) {
            addUnprunedJoins((LogicalPlan) it.next(), found);
        }
    }

    /**
     * For prune_join: a query without the files that hold none of the keys, which are the one column of another query.
     *
     * Returns the plan, or the reason why it stays as it is.
     */
    public Object prunedByKeys(QueryExecution query, String column, QueryExecution keys) throws Exception {
        LogicalPlan plan = query.analyzed();
        Iterator names = CollectionConverters.asJava(plan.output()).iterator();
        List origins = Collections.emptyList();
        while (names.hasNext()) {
            Attribute name = (Attribute) names.next();
            if (((Boolean) SQLConf.get().resolver().apply(name.name(), column)).booleanValue() && name instanceof AttributeReference) {
                origins = Partners.origins(plan, name);
            }
        }
        if (origins.isEmpty()) {
            return "UNSUPPORTED_TABLE";
        }
        DataType type = ((Expression) CollectionConverters.asJava(keys.analyzed().output()).get(0)).dataType();
        List askable = new ArrayList();
        for (Iterator it = origins.iterator(); it.hasNext();) {
            Partners.Origin origin = (Partners.Origin) it.next();
            if (origin.isAskable(this, type)) {
                askable.add(origin);
            }
        }
        if (askable.isEmpty()) {
            return "NO_MATCHING_INDEX";
        }
        if (!keys.analyzed().deterministic()) {
            return "NOT_REPEATABLE";
        }
        Set wanted = Partners.keys(keys);
        if (wanted == null) {
            return "IN_LIST_TOO_LONG";
        }
        LogicalPlan pruned = plan;
        for (Iterator it = askable.iterator(); it.hasNext();) {
            pruned = partners().pruned(pruned, (Partners.Origin) it.next(), wanted, type);
        }
        return pruned == plan ? "NOT_SELECTIVE" : (Object) pruned;
    }

    /** The indexes that together could drop a file, each knowing a column that the condition names. */
    private List covering(Scan scan) {
        List here = new ArrayList();
        List roots = scan.roots();
        for (Iterator it = indexes.iterator(); it.hasNext();) {
            Index index = (Index) it.next();
            if (index.meets(roots)) {
                here.add(index);
            }
        }
        List names = new ArrayList();
        Set columns = new HashSet();
        Set asked = here.isEmpty() ? Collections.emptySet() : scan.columns();
        for (Iterator it = here.iterator(); it.hasNext();) {
            Index index = (Index) it.next();
            if (!Collections.disjoint(index.columns, asked)) {
                names.add(index.name);
                columns.addAll(index.columns);
            }
        }
        return !names.isEmpty() && scan.usable(columns) ? names : Collections.emptyList();
    }

    private LakebloomFileIndex.Asked ask(ObjectNode question, List names, CachedRows keys, ObjectNode note) throws Exception {
        ArrayNode wanted = question.putArray("indexes");
        for (Iterator it = names.iterator(); it.hasNext();) {
            wanted.add((String) it.next());
        }
        ObjectNode fingerprints = question.putObject("known");
        for (Iterator it = new HashMap(known).entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            fingerprints.put((String) entry.getKey(), (String) ((Object[]) entry.getValue())[0]);
        }
        List answers = new ArrayList();
        JsonNode reply = mapper.readTree(python.answer(question.toString()));
        note.setAll((ObjectNode) reply.get("note"));
        for (Iterator it = reply.get("answers").iterator(); it.hasNext();) {
            JsonNode answer = (JsonNode) it.next();
            String name = answer.get("name").asText();
            String fingerprint = answer.get("fingerprint").asText();
            Object[] files = (Object[]) known.get(name);
            if (answer.hasNonNull("files")) {
                files = new Object[] {fingerprint, new KnownFiles(answer.get("files").asText())};
                known.put(name, files);
            }
            if (files != null && files[0].equals(fingerprint)) {
                BitSet kept = BitSet.valueOf(answer.get("kept").binaryValue());
                BitSet changed = new BitSet();
                for (Iterator jt = answer.get("changed").iterator(); jt.hasNext();) {
                    changed.set(((JsonNode) jt.next()).asInt());
                }
                answers.add(new LakebloomFileIndex.Answer(name, (KnownFiles) files[1], kept, changed));
            }
        }
        return new LakebloomFileIndex.Asked(question.get("predicate"), answers, note.toString(), keys);
    }

    private void warn(Throwable problem) {
        String text = problem.toString();
        if (warned.add(text)) {
            LOG.warn("no file is skipped, because an index could not be asked: {}", text);
        }
    }

    /** An index as the rule needs to know it: where its table is, and the columns it has filters for. */
    static final class Index {
        final String name;
        final Set columns = new HashSet();
        final Set globals = new HashSet();
        private final List locations = new ArrayList();

        Index(JsonNode json) {
            name = json.get("name").asText();
            for (Iterator it = json.get("locations").iterator(); it.hasNext();) {
                locations.add(((JsonNode) it.next()).asText());
            }
            for (Iterator it = json.get("columns").iterator(); it.hasNext();) {
                List path = new ArrayList();
                for (Iterator jt = ((JsonNode) it.next()).iterator(); jt.hasNext();) {
                    path.add(((JsonNode) jt.next()).asText());
                }
                columns.add(Conditions.key(path));
                if (json.get("global").asBoolean()) {
                    globals.add(Conditions.key(path));
                }
            }
        }

        boolean meets(List roots) {
            for (Iterator it = roots.iterator(); it.hasNext();) {
                String root = (String) it.next();
                for (Iterator jt = locations.iterator(); jt.hasNext();) {
                    String location = (String) jt.next();
                    if (isWithin(root, location) || isWithin(location, root)) {
                        return true;
                    }
                }
            }
            return false;
        }

        private static boolean isWithin(String path, String directory) {
            return path.equals(directory) || path.startsWith(directory.endsWith("/") ? directory : directory + "/");
        }
    }
}

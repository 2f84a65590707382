package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.collection.immutable.Seq;

/** A relation of files in a plan, with the condition directly above it. */
public final class Scan {
    private static final String CASE_SENSITIVE = "spark.sql.caseSensitive";
    /** For each format the settings that change what is read. They are lakebloom.tables.reader_settings, always. */
    private static volatile Map readerKeys = Collections.emptyMap();
    final LogicalRelation relation;
    final HadoopFsRelation files;
    final Expression condition;
    private final FileColumns columns;
    private final Conditions conditions;
    private final List conjuncts;
    private ObjectNode tree;

    /** The condition may be null. */
    public Scan(LogicalRelation relation, Expression condition) {
        this.relation = relation;
        this.files = (HadoopFsRelation) relation.relation();
        this.condition = condition;
        this.columns = new FileColumns(relation);
        this.conditions = new Conditions(columns);
        this.conjuncts = condition == null ? Collections.emptyList() : Conjuncts.needed(condition);
    }

    /** Whether a column is read from the files. */
    public boolean isStored(AttributeReference column) {
        return columns.isStored(column);
    }

    /** How Spark lists the files, below what lakebloom has put over it. */
    public FileIndex listing() {
        FileIndex location = files.location();
        while (location instanceof LakebloomFileIndex) {
            location = ((LakebloomFileIndex) location).base();
        }
        return location;
    }

    /** Other listings, such as those of table formats, have a say of their own in what a file holds. */
    public boolean listsPlainFiles() {
        FileIndex listing = listing();
        return listing.getClass() == InMemoryFileIndex.class || listing.getClass() == CatalogFileIndex.class;
    }

    /** Where the files are, as Hadoop prints it. */
    public List roots() {
        List roots = new ArrayList();
        for (Iterator it = Scala.list(listing().rootPaths()).iterator(); it.hasNext();) {
            roots.add(KnownFiles.canonical(it.next().toString()));
        }
        return roots;
    }

    /** The columns that the condition compares, as indexes are compared by. */
    public Set columns() {
        Set found = new HashSet();
        if (condition != null) {
            Trees.collectColumns(tree(), found);
        }
        return found;
    }

    /** Whether filters of these columns could drop a file. */
    public boolean isUsable(Set indexed) {
        return condition != null && new Usable(indexed).canDrop(tree());
    }

    /** The parts of a column's name; null for anything that is not read from the files. */
    List path(Expression e) {
        return columns.path(e);
    }

    /** Why the whole condition has no form; null where it has one. */
    String unknown() {
        return tree().path("kind").asText().equals("unknown") ? tree().get("reason").asText() : null;
    }

    private ObjectNode tree() {
        if (tree == null) {
            tree = conditions.json(conjuncts);
        }
        return tree;
    }

    /** The conditions that decide about whole partitions: Spark applies them when it lists. */
    public Seq partitionFilters() {
        List filters = condition == null ? Collections.emptyList() : columns.partitionFilters(Conjuncts.of(condition));
        return Scala.seq(filters);
    }

    /** The same as a person would type them. */
    private String partitionText() {
        List texts = new ArrayList();
        List filters = condition == null ? Collections.emptyList() : columns.partitionFilters(conjuncts);
        for (Iterator it = filters.iterator(); it.hasNext();) {
            texts.add(ConditionText.of((Expression) it.next()));
        }
        return String.join(" AND ", texts);
    }

    /** Whether a subquery decides about partitions: which, Spark knows only when the query runs. */
    private boolean decidesAtRunTime() {
        Set names = new HashSet(Arrays.asList(files.partitionSchema().fieldNames()));
        for (Iterator it = (condition == null ? new ArrayList() : Conjuncts.of(condition)).iterator(); it.hasNext();) {
            Expression part = (Expression) it.next();
            if (SubqueryExpression.hasSubquery(part) && only(part, names)) {
                return true;
            }
        }
        return false;
    }

    private static boolean only(Expression part, Set names) {
        boolean any = false;
        for (Iterator it = Scala.list(part.references()).iterator(); it.hasNext();) {
            if (!names.contains(((Attribute) it.next()).name())) {
                return false;
            }
            any = true;
        }
        return any;
    }

    /** All that decides what an index means for this scan. */
    public ObjectNode question(ObjectMapper mapper) throws Exception {
        ObjectNode question = mapper.createObjectNode();
        question.put("format", format());
        question.set("schema", mapper.readTree(files.dataSchema().json()));
        ObjectNode options = question.putObject("options");
        Map given = Scala.map(files.options());
        for (Iterator it = given.entrySet().iterator(); it.hasNext();) {
            Map.Entry option = (Map.Entry) it.next();
            options.put((String) option.getKey(), (String) option.getValue());
        }
        session(question.putObject("session"));
        question.set("predicate", condition == null ? (JsonNode) mapper.nullNode() : tree());
        return question;
    }

    /** A JSON object: for each format a list of keys. */
    static void setReaderKeys(JsonNode json) {
        Map found = new HashMap();
        for (Iterator it = json.fieldNames(); it.hasNext();) {
            String format = (String) it.next();
            List keys = new ArrayList();
            for (Iterator jt = json.get(format).iterator(); jt.hasNext();) {
                keys.add(((JsonNode) jt.next()).asText());
            }
            found.put(format, keys);
        }
        readerKeys = found;
    }

    /** The settings that change what is read of this format, and whatever else is set under such names. */
    private void session(ObjectNode session) {
        SQLConf conf = SQLConf.get();
        String format = format().toLowerCase(Locale.ROOT);
        session.put(CASE_SENSITIVE, conf.getConfString(CASE_SENSITIVE, "false").toLowerCase(Locale.ROOT));
        List keys = readerKeys.containsKey(format) ? (List) readerKeys.get(format) : Collections.emptyList();
        for (Iterator it = keys.iterator(); it.hasNext();) {
            String key = (String) it.next();
            String value = value(conf, key);
            if (value != null) {
                session.put(key, value);
            }
        }
        for (Iterator it = Scala.map(conf.getAllConfs()).entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            String key = (String) entry.getKey();
            if (key.startsWith("spark.sql." + format + ".") || key.startsWith("spark.sql.legacy." + format + ".")) {
                session.put(key, (String) entry.getValue());
            }
        }
    }

    /** What a reader finds under a key: of the session, as Spark's default, or below it in Hadoop's configuration. */
    private String value(SQLConf conf, String key) {
        String value = conf.getConfString(key, null);
        if (value != null) {
            return value;
        }
        if (!key.startsWith("spark.")) {
            return files.sparkSession().sparkContext().hadoopConfiguration().get(key);
        }
        ConfigEntry entry = SQLConf$.MODULE$.getConfigEntry(key);
        return entry == null ? null : entry.defaultValueString();
    }

    private String format() {
        Object format = files.fileFormat();
        return format instanceof DataSourceRegister ? ((DataSourceRegister) format).shortName() : format.toString();
    }

    /** The question, and all that explains the answer: name, files as listed, what the plan leaves out. */
    public ObjectNode description(ObjectMapper mapper, Object rule) throws Exception {
        ObjectNode scan = mapper.createObjectNode();
        if (relation.catalogTable().isDefined()) {
            scan.put("table", ((CatalogTable) relation.catalogTable().get()).identifier().unquotedString());
        }
        ArrayNode roots = scan.putArray("roots");
        for (Iterator it = roots().iterator(); it.hasNext();) {
            roots.add((String) it.next());
        }
        scan.put("listing", listing().getClass().getSimpleName());
        scan.put("plain", listsPlainFiles() && !relation.isStreaming());
        scan.set("question", question(mapper));
        ArrayNode names = scan.putArray("files");
        StringBuilder states = new StringBuilder();
        Seq nothing = Scala.nothing();
        List listed = LakebloomFileIndex.files(listing().listFiles(partitionFilters(), nothing));
        for (Iterator it = listed.iterator(); it.hasNext();) {
            FileStatusWithMetadata file = (FileStatusWithMetadata) it.next();
            KnownFiles.describe(file, names.addArray());
            boolean isPruned = files.location() instanceof LakebloomFileIndex;
            states.append(isPruned ? ((LakebloomFileIndex) files.location()).state(file) : "#");
        }
        scan.put("states", states.toString());
        ArrayNode keys = scan.putArray("keys");
        for (Iterator it = LakebloomFileIndex.keyConditions(files.location()).iterator(); it.hasNext();) {
            keys.add((JsonNode) it.next());
        }
        LakebloomFileIndex.notes(files.location(), rule, scan.putArray("notes"), scan.putArray("asked"), scan.putArray("others"));
        scan.put("at_run_time", decidesAtRunTime());
        scan.put("partitions", partitionText());
        // What a catalog has beyond the partitions that were asked for, Spark does not list, and neither do we.
        if (listing() instanceof InMemoryFileIndex && !relation.catalogTable().isDefined()) {
            scan.put("files_of_table", ((InMemoryFileIndex) listing()).allFiles().size());
        }
        return scan;
    }
}

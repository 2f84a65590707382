package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * One scan of Iceberg's connector, through reflection: its classes are not on every driver, and not public.
 *
 * A scan plans its tasks once, one for each data file, and takes fewer of them where Spark filters at run time. The same
 * is done here, with a copy of the scan: copies of a plan share one scan, and so may queries. The partition specs and
 * the grouping of a scan must not change with its tasks, so they are computed before.
 */
final class Iceberg {
    private static final String PACKAGE = "org.apache.iceberg.";
    private static final String SOURCE = PACKAGE + "spark.source.";
    private static final String QUERY = SOURCE + "SparkBatchQueryScan";
    private static final String TABLE = SOURCE + "SparkTable";
    private static final String NAME_MAPPING = "schema.name-mapping.default";
    private static final String FILTERS = "runtimeFilterExpressions";
    private final Scan scan;
    private final Object table;
    private final String location;
    private final Reflection reflection = new Reflection();

    private Iceberg(Scan scan) throws Exception {
        this.scan = scan;
        this.table = reflection.call(scan, "table");
        this.location = (String) reflection.call(table, "location");
    }

    /** Whether a plan reads something by Iceberg's connector. Rows that it made of metadata are not read. */
    static boolean isScan(LogicalPlan plan) {
        Scan scan = plan instanceof DataSourceV2ScanRelation ? ((DataSourceV2ScanRelation) plan).scan() : null;
        return scan != null && !(scan instanceof LocalScan) && scan.getClass().getName().startsWith(SOURCE);
    }

    /**
     * The scan of a query that reads the data files of a table; null for anything else.
     *
     * Scans of a row-level DELETE, UPDATE or MERGE have a table of Spark's own, and must see every file. Metadata tables
     * and what was appended between two snapshots are read by the same class of scans.
     */
    static Iceberg read(LogicalPlan plan) throws Exception {
        DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) plan;
        Object source = relation.relation().table();
        return source.getClass().getName().equals(TABLE) && !plan.isStreaming() ? read(relation.scan()) : null;
    }

    /** The same of a scan in a physical plan. */
    static Iceberg read(Scan scan) throws Exception {
        if (scan == null || !scan.getClass().getName().equals(QUERY)) {
            return null;
        }
        Iceberg found = new Iceberg(scan);
        boolean isIncremental = Reflection.field(scan, "startSnapshotId").get(scan) != null;
        return isIncremental || isMetadata(found.table) || !found.readsDataFiles() ? null : found;
    }

    /** Whether a table shows the metadata of another. */
    static boolean isMetadata(Object table) {
        for (Class at = table.getClass(); at != null; at = at.getSuperclass()) {
            if (at.getName().equals(PACKAGE + "BaseMetadataTable")) {
                return true;
            }
        }
        return false;
    }

    private boolean readsDataFiles() throws Exception {
        for (Iterator it = tasks().iterator(); it.hasNext();) {
            Object task = it.next();
            boolean isFile = ((Boolean) reflection.call(task, "isFileScanTask")).booleanValue();
            if (!isFile || ((Boolean) reflection.call(task, "isDataTask")).booleanValue()) {
                return false;
            }
        }
        return true;
    }

    /** One for each data file. */
    List tasks() throws Exception {
        return (List) reflection.call(scan, "tasks");
    }

    Object file(Object task) throws Exception {
        return reflection.call(task, "file");
    }

    /** What is called by name on a file, a manifest or a snapshot. */
    Object call(Object target, String name) throws Exception {
        return reflection.call(target, name);
    }

    /** What stays the same for as long as the table lives. */
    String id() throws Exception {
        return reflection.call(table, "uuid").toString();
    }

    /** Where the table is. */
    Path root() {
        return path(location);
    }

    /** A path without a scheme is on the default file system; only that of this machine is one that Python knows. */
    static Path path(String text) {
        boolean isLocal = text.startsWith("/")
            && SparkContext.getOrCreate().hadoopConfiguration().get("fs.defaultFS", "file:///").startsWith("file:");
        return new Path(isLocal ? "file:" + text : text);
    }

    /** The snapshot that is read; null for a table that has none. */
    Object snapshot() throws Exception {
        Object planned = reflection.call(scan, "scan");
        return planned == null ? null : reflection.call(planned, "snapshot");
    }

    /** The manifests of a snapshot. */
    List manifests(Object snapshot) throws Exception {
        Class io = type("io.FileIO");
        return (List) Reflection.method(snapshot.getClass(), "allManifests", new Class[] {io})
            .invoke(snapshot, new Object[] {reflection.call(table, "io")});
    }

    /** How the files are read: Python knows what it means. */
    Wire.IcebergTable described() throws Exception {
        Wire.IcebergTable found = new Wire.IcebergTable();
        found.id = id();
        found.schema = json("SchemaParser", "Schema", reflection.call(scan, "expectedSchema"));
        Collection specs = ((Map) reflection.call(table, "specs")).values();
        List texts = new ArrayList();
        for (Iterator it = specs.iterator(); it.hasNext();) {
            texts.add(json("PartitionSpecParser", "PartitionSpec", it.next()));
        }
        found.specs = (String[]) texts.toArray(new String[0]);
        found.nameMapping = (String) ((Map) reflection.call(table, "properties")).get(NAME_MAPPING);
        return found;
    }

    private String json(String parser, String type, Object value) throws Exception {
        return (String) type(parser).getMethod("toJson", new Class[] {type(type)}).invoke(null, new Object[] {value});
    }

    private Class type(String name) throws ClassNotFoundException {
        return Class.forName(PACKAGE + name, true, scan.getClass().getClassLoader());
    }

    /** What lakebloom decided about a scan; null if nothing. */
    LakebloomFileIndex decided() throws Exception {
        Object filters = Reflection.field(scan, FILTERS).get(scan);
        return filters instanceof Decided ? ((Decided) filters).decided() : null;
    }

    /** The same scan with some of its tasks. */
    Scan fewer(List kept, LakebloomFileIndex decided) throws Exception {
        List all = tasks();
        reflection.call(scan, "specs");
        reflection.call(scan, "groupingKeyType");
        Scan copy = (Scan) Reflection.copy(scan);
        Reflection.field(copy, FILTERS).set(copy, new DecidedFilters((List) Reflection.field(scan, FILTERS).get(scan), decided, names(kept)));
        Reflection.method(copy.getClass(), "resetTasks", new Class[] {List.class}).invoke(copy, new Object[] {kept});
        if (reflection.call(copy, "tasks") != kept || reflection.call(scan, "tasks") != all) {
            throw new IllegalStateException("Iceberg's scan has other tasks than it was given");
        }
        if (kept.size() < all.size() && copy.equals(scan)) {
            throw new IllegalStateException("Iceberg takes a scan of fewer files for the same");
        }
        return copy;
    }

    private List names(List tasks) throws Exception {
        List names = new ArrayList();
        for (Iterator it = tasks.iterator(); it.hasNext();) {
            names.add(reflection.call(file(it.next()), "path").toString());
        }
        Collections.sort(names);
        return names;
    }

    /** The tasks of some of the files, which are those of listed, in their order. */
    List tasksOf(List listed, Collection kept) throws Exception {
        Set wanted = Collections.newSetFromMap(new IdentityHashMap());
        wanted.addAll(kept);
        List found = new ArrayList();
        if (listed.size() != tasks().size()) {
            throw new IllegalStateException("Iceberg's scan has " + tasks().size() + " tasks, and not " + listed.size());
        }
        Iterator tasks = tasks().iterator();
        for (Iterator it = listed.iterator(); it.hasNext();) {
            Object task = tasks.next();
            if (wanted.contains(it.next())) {
                found.add(task);
            }
        }
        return found;
    }
}

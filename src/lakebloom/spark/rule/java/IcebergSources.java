package io.lakebloom.spark;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SessionState;

/**
 * Tables of Iceberg's connector as sources of an index, and where their newest metadata is.
 *
 * Reflection is needed: Iceberg's classes are not on every driver. Whatever is not there throws.
 */
public final class IcebergSources {
    private static final String PACKAGE = "org.apache.iceberg.";
    /** What the reader's options choose a part of a table, or another version, by. */
    private static final List CHOOSING = Arrays.asList(new String[] {
        "snapshot-id", "as-of-timestamp", "branch", "tag", "start-snapshot-id", "end-snapshot-id", "start-timestamp",
        "end-timestamp", "versionasof", "timestampasof", "scan-task-set-id"});
    private final SessionState session;
    private final Reflection reflection = new Reflection();

    public IcebergSources(Object session) throws Exception {
        this.session = Sessions.state(session);
    }

    /** A Wire.IcebergSource for a relation of Iceberg's connector; null for any other plan. */
    public String describe(LogicalPlan plan) throws Exception {
        if (!(plan instanceof DataSourceV2Relation)) {
            return null;
        }
        DataSourceV2Relation relation = (DataSourceV2Relation) plan;
        Object source = relation.table();
        if (!source.getClass().getName().startsWith(PACKAGE + "spark.")) {
            return null;
        }
        Wire.IcebergSource found = new Wire.IcebergSource();
        found.part = part(relation);
        if (found.part == null) {
            fill(found, relation, reflection.call(source, "table"));
        }
        return Wire.write(found);
    }

    /** What is read instead of the newest version of the whole table; null if that is read. */
    private String part(DataSourceV2Relation relation) throws Exception {
        Object source = relation.table();
        if (!source.getClass().getName().equals(PACKAGE + "spark.source.SparkTable")) {
            return source.getClass().getSimpleName();
        }
        if (Iceberg.isMetadata(reflection.call(source, "table"))) {
            return "a table of metadata";
        }
        Object snapshot = reflection.call(source, "snapshotId");
        Object branch = reflection.call(source, "branch");
        if (branch != null || snapshot != null) {
            return branch != null ? "the branch " + branch : "the snapshot " + snapshot;
        }
        for (Iterator it = relation.options().keySet().iterator(); it.hasNext();) {
            String option = (String) it.next();
            if (CHOOSING.contains(option.toLowerCase())) {
                return "what the option " + option + " chooses";
            }
        }
        return null;
    }

    private void fill(Wire.IcebergSource found, DataSourceV2Relation relation, Object table) throws Exception {
        Object operations = reflection.call(table, "operations");
        String kind = operations.getClass().getName();
        found.metadata = metadata(table);
        found.isFixed = kind.equals(PACKAGE + "StaticTableOperations");
        if (kind.equals(PACKAGE + "hadoop.HadoopTableOperations")) {
            found.directory = Iceberg.path((String) reflection.call(table, "location")).toString();
        }
        if (relation.catalog().isDefined() && relation.identifier().isDefined()) {
            Identifier identifier = (Identifier) relation.identifier().get();
            List name = new ArrayList();
            name.add(((CatalogPlugin) relation.catalog().get()).name());
            name.addAll(Arrays.asList(identifier.namespace()));
            name.add(identifier.name());
            found.name = (String[]) name.toArray(new String[0]);
        }
    }

    /** The metadata file that a table has read last. */
    private String metadata(Object table) throws Exception {
        Object current = reflection.call(reflection.call(table, "operations"), "current");
        return Iceberg.path((String) reflection.call(current, "metadataFileLocation")).toString();
    }

    /**
     * Where the newest metadata of a table in one of the session's catalogs is.
     *
     * The catalog itself is asked, behind the connector's cache: a cached table does not see what others write, and to
     * refresh it would change what the session's next query reads.
     */
    public String newest(List name) throws Exception {
        CatalogPlugin plugin = session.catalogManager().catalog((String) name.get(0));
        Object catalog = reflection.call(plugin, "icebergCatalog");
        while (catalog.getClass().getName().equals(PACKAGE + "CachingCatalog")) {
            catalog = Reflection.field(catalog, "catalog").get(catalog);
        }
        Class type = Class.forName(PACKAGE + "catalog.TableIdentifier", true, catalog.getClass().getClassLoader());
        Object[] parts = {name.subList(1, name.size()).toArray(new String[0])};
        Object identifier = type.getMethod("of", new Class[] {String[].class}).invoke(null, parts);
        try {
            return metadata(Reflection.method(catalog.getClass(), "loadTable", new Class[] {type}).invoke(catalog, new Object[] {identifier}));
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause() instanceof Exception ? (Exception) thrown.getCause() : thrown; // what Iceberg says
        }
    }
}

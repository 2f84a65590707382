package io.lakebloom.spark;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;

/** Tables of the session's catalog, each in one call: a table may have 100,000 partitions. */
public final class CatalogTables {
    private static final String MANAGED = "spark.sql.hive.manageFilesourcePartitions";
    private final SessionState session;

    public CatalogTables(Object session) throws Exception {
        this.session = Sessions.state(session);
    }

    /** The table as a Wire.CatalogTable behind its fingerprint and a line break; null if the fingerprint is the one that is known. */
    public String describe(String database, String name, String known) throws Exception {
        SessionCatalog catalog = session.catalog();
        TableIdentifier identifier = new TableIdentifier(name, Option.apply(database));
        CatalogTable table = catalog.getTableMetadata(identifier);
        Wire.CatalogTable described = new Wire.CatalogTable();
        described.location = qualified(table.location());
        described.provider = table.provider().isDefined() ? (String) table.provider().get() : "hive";
        described.schema = table.schema().json();
        described.columns = table.partitionSchema().fieldNames();
        if (described.columns.length > 0 && isManaged(table)) {
            described.partitions = partitions(Scala.list(catalog.listPartitions(identifier, Option.empty())), described.columns);
        }
        String text = Wire.write(described);
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        String fingerprint = Arrays.toString(digest);
        return fingerprint.equals(known) ? null : fingerprint + "\n" + text;
    }

    /** The location of each, and its values. */
    private String[][] partitions(List listed, String[] columns) throws Exception {
        String[][] partitions = new String[listed.size()][];
        int number = 0;
        for (Iterator it = listed.iterator(); it.hasNext(); number++) {
            CatalogTablePartition partition = (CatalogTablePartition) it.next();
            Map values = Scala.map(partition.spec());
            partitions[number] = new String[1 + columns.length];
            partitions[number][0] = qualified(partition.location());
            for (int i = 0; i < columns.length; i++) {
                partitions[number][1 + i] = (String) values.get(columns[i]);
            }
        }
        return partitions;
    }

    /** Whether Spark reads the partitions that the catalog lists, and not the directories it finds. */
    private boolean isManaged(CatalogTable table) {
        boolean hive = !table.provider().isDefined() || "hive".equals(table.provider().get());
        return "true".equals(session.conf().getConfString(MANAGED, "true")) && (hive || table.tracksPartitionsInCatalog());
    }

    /** A location as Hadoop prints it, with its file system. */
    private String qualified(URI location) throws Exception {
        Path path = new Path(location);
        if (location.getScheme() == null) {
            path = path.getFileSystem(session.newHadoopConf()).makeQualified(path);
        }
        return path.toString();
    }
}

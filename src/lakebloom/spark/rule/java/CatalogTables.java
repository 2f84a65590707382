package io.lakebloom.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Iterator;
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
    private final ObjectMapper mapper = new ObjectMapper();

    public CatalogTables(Object session) throws Exception {
        this.session = Sessions.state(session);
    }

    /** The table as JSON behind its fingerprint and a line break; null where the fingerprint is the one that is known. */
    public String describe(String database, String name, String known) throws Exception {
        SessionCatalog catalog = session.catalog();
        TableIdentifier identifier = new TableIdentifier(name, Option.apply(database));
        CatalogTable table = catalog.getTableMetadata(identifier);
        ObjectNode described = mapper.createObjectNode();
        described.put("location", qualified(table.location()));
        described.put("provider", table.provider().isDefined() ? (String) table.provider().get() : "hive");
        described.put("schema", table.schema().json());
        String[] columns = table.partitionSchema().fieldNames();
        ArrayNode names = described.putArray("columns");
        for (int i = 0; i < columns.length; i++) {
            names.add(columns[i]);
        }
        if (columns.length > 0 && isManaged(table)) {
            ArrayNode partitions = described.putArray("partitions");
            Iterator it = Scala.list(catalog.listPartitions(identifier, Option.empty())).iterator();
            while (it.hasNext()) {
                CatalogTablePartition partition = (CatalogTablePartition) it.next();
                Map values = Scala.map(partition.spec());
                ArrayNode one = partitions.addArray();
                one.add(qualified(partition.location()));
                for (int i = 0; i < columns.length; i++) {
                    one.add((String) values.get(columns[i]));
                }
            }
        }
        String text = mapper.writeValueAsString(described);
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        String fingerprint = Arrays.toString(digest);
        return fingerprint.equals(known) ? null : fingerprint + "\n" + text;
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

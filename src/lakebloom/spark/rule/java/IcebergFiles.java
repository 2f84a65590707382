package io.lakebloom.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The data files of an Iceberg scan, as a list of files has them: what lakebloom decides about.
 *
 * The time of a file says when it came into the table, as lakebloom.tables.formats.iceberg.manifests writes it.
 */
final class IcebergFiles implements FileIndex {
    private static final long UNKNOWN = -1;
    private static final long TABLE_BITS = (1L << 20) - 1;
    private final Path root;
    /** A FileStatusWithMetadata for each task, in their order. */
    private final List files = new ArrayList();

    IcebergFiles(Iceberg scan) {
        root = scan.root();
        try {
            list(scan);
        } catch (Exception problem) {
            throw new IllegalStateException("the files of an Iceberg table could not be listed", problem);
        }
    }

    private void list(Iceberg scan) throws Exception {
        CRC32 hash = new CRC32();
        hash.update(scan.id().getBytes(StandardCharsets.UTF_8));
        long table = hash.getValue() & TABLE_BITS;
        Map snapshots = null;
        for (Iterator it = scan.tasks().iterator(); it.hasNext();) {
            Object file = scan.file(it.next());
            Long sequence = (Long) scan.call(file, "fileSequenceNumber");
            long time = UNKNOWN;
            if (sequence != null && sequence.longValue() > 0) {
                time = 1000 * ((table << 32) + sequence.longValue());
            } else {
                snapshots = snapshots == null ? snapshots(scan) : snapshots;
                Long added = (Long) snapshots.get(scan.call(file, "manifestLocation"));
                time = added == null ? UNKNOWN : added.longValue();
            }
            Path path = Iceberg.path(scan.call(file, "path").toString());
            long size = ((Long) scan.call(file, "fileSizeInBytes")).longValue();
            files.add(new FileStatusWithMetadata(
                new FileStatus(size, false, 0, 1, time, path), (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty()));
        }
    }

    /** For each manifest that has only files that were added with it, the snapshot that did; tables of version 1 have no numbers. */
    private static Map snapshots(Iceberg scan) throws Exception {
        Map found = new HashMap();
        Object snapshot = scan.snapshot();
        for (Iterator it = (snapshot == null ? Collections.emptyList() : scan.manifests(snapshot)).iterator(); it.hasNext();) {
            Object manifest = it.next();
            Integer existing = (Integer) scan.call(manifest, "existingFilesCount");
            Object added = scan.call(manifest, "snapshotId");
            if (existing != null && existing.intValue() == 0 && added != null) {
                found.put(scan.call(manifest, "path"), added);
            }
        }
        return found;
    }

    public Seq rootPaths() {
        return Scala.seq(Collections.singletonList(root));
    }

    public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
        return Scala.seq(Collections.singletonList(new PartitionDirectory(InternalRow.empty(), Scala.seq(files))));
    }

    public String[] inputFiles() {
        String[] paths = new String[files.size()];
        for (int i = 0; i < paths.length; i++) {
            paths[i] = ((FileStatusWithMetadata) files.get(i)).getPath().toString();
        }
        return paths;
    }

    public void refresh() {}

    public long sizeInBytes() {
        long bytes = 0;
        for (Iterator it = files.iterator(); it.hasNext();) {
            bytes += ((FileStatusWithMetadata) it.next()).getLen();
        }
        return bytes;
    }

    public StructType partitionSchema() {
        return new StructType();
    }

    public Option metadataOpsTimeNs() {
        return Option.empty();
    }

    public String toString() {
        return "IcebergFiles(" + root + ")";
    }
}

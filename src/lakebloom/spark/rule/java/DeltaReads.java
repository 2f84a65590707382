package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeFileIndex;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Seq;

/** See DeltaFiles. Compiled only where Delta is. */
public final class DeltaReads implements DeltaFiles {
    private static final String MAPPING = "delta.columnMapping.mode";

    public Seq listed(FileIndex location) {
        PreparedDeltaFileIndex prepared = (PreparedDeltaFileIndex) location;
        List files = new ArrayList();
        // Not listFiles: with other conditions than those of the query Delta selects its files again.
        for (Iterator it = Scala.list(prepared.preparedScan().files()).iterator(); it.hasNext();) {
            files.add(status(prepared, (AddFile) it.next()));
        }
        return Scala.seq(Collections.singletonList(new PartitionDirectory(InternalRow.empty(), Scala.seq(files))));
    }

    public FileIndex fewer(FileIndex prepared, LakebloomFileIndex decided) {
        return new LakebloomDeltaFileIndex((PreparedDeltaFileIndex) prepared, decided);
    }

    public String schema(FileIndex prepared) {
        return ((PreparedDeltaFileIndex) prepared).metadata().schemaString();
    }

    public String mapping(FileIndex prepared) {
        return (String) Scala.map(((PreparedDeltaFileIndex) prepared).metadata().configuration()).get(MAPPING);
    }

    /** A file as Delta itself lists it: size and time are those of the log. */
    static FileStatusWithMetadata status(TahoeFileIndex index, AddFile file) {
        FileStatus status =
            new FileStatus(file.size(), false, 0, 1, file.modificationTime(), index.absolutePath(file.path()));
        return new FileStatusWithMetadata(status, (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty());
    }
}

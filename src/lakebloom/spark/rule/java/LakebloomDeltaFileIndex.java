package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.files.TahoeFileIndexWithSnapshotDescriptor;
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex;
import scala.collection.immutable.Seq;

/**
 * The files of a read of a Delta table without those that cannot match.
 *
 * It is one of Delta's own kind: Delta applies deletion vectors to such lists only, and with any other list deleted rows
 * would come back. Whatever Delta asks this list, it gets the answer of its own list, with fewer files.
 */
public final class LakebloomDeltaFileIndex extends TahoeFileIndexWithSnapshotDescriptor implements Decided {
    private final PreparedDeltaFileIndex prepared;
    private final LakebloomFileIndex decided;

    LakebloomDeltaFileIndex(PreparedDeltaFileIndex prepared, LakebloomFileIndex decided) {
        super(prepared.spark(), prepared.deltaLog(), prepared.path(), prepared.preparedScan().scannedSnapshot());
        this.prepared = prepared;
        this.decided = decided;
    }

    public LakebloomFileIndex decided() {
        return decided;
    }

    public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
        List all = Scala.list(prepared.matchingFiles(partitionFilters, dataFilters));
        List kept = new ArrayList();
        LakebloomFileIndex.Count count = decided.newCount();
        for (Iterator it = all.iterator(); it.hasNext();) {
            AddFile file = (AddFile) it.next();
            if (count.keeps(DeltaReads.status(prepared, file))) {
                kept.add(file);
            }
        }
        decided.note(count);
        return Scala.seq(kept);
    }

    public String[] inputFiles() {
        Seq nothing = Scala.nothing();
        List files = Scala.list(matchingFiles(nothing, nothing));
        String[] paths = new String[files.size()];
        for (int i = 0; i < paths.length; i++) {
            paths[i] = absolutePath(((AddFile) files.get(i)).path()).toString();
        }
        return paths;
    }

    public void refresh() {
        prepared.refresh();
    }

    public long sizeInBytes() {
        return decided.sizeInBytes();
    }

    /** Shows the index and what it kept, as Spark's plans show it. */
    public Seq rootPaths() {
        return decided.rootPaths();
    }

    public String toString() {
        return decided.toString();
    }

    public boolean equals(Object other) {
        return other instanceof LakebloomDeltaFileIndex && decided.equals(((LakebloomDeltaFileIndex) other).decided);
    }

    public int hashCode() {
        return decided.hashCode();
    }
}

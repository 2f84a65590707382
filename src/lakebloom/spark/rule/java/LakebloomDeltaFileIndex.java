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
        return Scala.seq(kept(decided, Scala.list(prepared.matchingFiles(partitionFilters, dataFilters))));
    }

    /** What a decision keeps of some files, after those that were made before. */
    private List kept(LakebloomFileIndex decision, List all) {
        boolean isFirst = !(decision.base() instanceof LakebloomFileIndex);
        List files = isFirst ? all : kept((LakebloomFileIndex) decision.base(), all);
        List kept = new ArrayList();
        LakebloomFileIndex.Count count = decision.newCount();
        for (Iterator it = files.iterator(); it.hasNext();) {
            AddFile file = (AddFile) it.next();
            if (count.keeps(DeltaReads.status(prepared, file))) {
                kept.add(file);
            }
        }
        decision.note(count);
        return kept;
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

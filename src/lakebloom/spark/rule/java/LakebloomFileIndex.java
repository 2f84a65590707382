package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The files of another index without those that cannot match. Spark plans, counts and prints what it lists.
 *
 * A file is skipped only if path, size, time of change and ETag (where there is one) in the other index's own listing
 * are those that lakebloom knows, and lakebloom said that it cannot match.
 */
public final class LakebloomFileIndex implements FileIndex {
    private final FileIndex base;
    private final Object lake;
    private final PruneResult result;
    private final List answers;
    private final String purpose;
    private final FileIndex planned;
    private final Moment moment = new Moment();
    private volatile Listing listed;
    private final String label;
    private final Listing first;

    /**
     * The purpose of skipping files for the query's own condition, directly above the files or above something else;
     * for a join's keys it is KEYS and the column.
     */
    static final String FILTER = "filter";
    static final String ABOVE = "filter above";
    static final String KEYS = "keys of ";

    /** Lists once, with the conditions on partitions, to know how much is left. */
    public LakebloomFileIndex(FileIndex base, Object lake, String purpose, PruneResult result, Seq partitionFilters) {
        this.base = base;
        this.lake = lake;
        this.purpose = purpose;
        this.result = result;
        this.answers = result.answers;
        // A catalog lists slowly, so what is listed now serves the action that runs, and no later one.
        this.planned = base instanceof CatalogFileIndex ? ((CatalogFileIndex) base).filterPartitions(partitionFilters) : base;
        this.first = new Listing(seen(planned, partitionFilters));
        this.first.kept = null;
        List names = new ArrayList();
        for (Iterator it = answers.iterator(); it.hasNext();) {
            names.add(((PruneResult.KeptFiles) it.next()).name);
        }
        this.label = String.join(", ", names) + ": " + first.keptFiles + " of " + first.files + " files, ";
    }

    /**
     * The files of a list that a query reads. What a scan counted stays as it is.
     *
     * Those that Delta left out when it prepared the read have no row that meets the query's conditions.
     */
    static Seq seen(FileIndex location, Seq partitionFilters) {
        if (Delta.isRead(location)) {
            return Delta.files().listed(location);
        }
        if (location instanceof LakebloomFileIndex) {
            LakebloomFileIndex above = (LakebloomFileIndex) location;
            return above.keptOf(seen(above.lister(), partitionFilters));
        }
        return location.listFiles(partitionFilters, Scala.nothing());
    }

    private Seq keptOf(Seq all) {
        return new Listing(all).kept;
    }

    /** Counts files, one by one, and tells which of them are kept. */
    final class Count {
        private final boolean holds = result.holds();
        int files;
        int keptFiles;
        long bytes;
        long keptBytes;

        boolean keeps(FileStatusWithMetadata file) {
            files++;
            bytes += file.getLen();
            if (holds && skips(file)) {
                return false;
            }
            keptFiles++;
            keptBytes += file.getLen();
            return true;
        }
    }

    Count newCount() {
        return new Count();
    }

    /** Takes what a list of a table format's own kind counted. */
    void note(Count count) {
        listed = new Listing(count);
    }

    /** What is left of a listing, and how much it was. */
    final class Listing {
        Seq kept;
        final int files;
        final int keptFiles;
        final long bytes;
        final long keptBytes;

        Listing(Seq all) {
            this(all, new Count());
        }

        private Listing(Seq all, Count count) {
            List directories = new ArrayList();
            for (Iterator it = Scala.list(all).iterator(); it.hasNext();) {
                PartitionDirectory directory = (PartitionDirectory) it.next();
                List left = new ArrayList();
                for (Iterator jt = Scala.list(directory.files()).iterator(); jt.hasNext();) {
                    FileStatusWithMetadata file = (FileStatusWithMetadata) jt.next();
                    if (count.keeps(file)) {
                        left.add(file);
                    }
                }
                if (!left.isEmpty()) {
                    directories.add(new PartitionDirectory(directory.values(), Scala.seq(left)));
                }
            }
            this.kept = Scala.seq(directories);
            this.files = count.files;
            this.keptFiles = count.keptFiles;
            this.bytes = count.bytes;
            this.keptBytes = count.keptBytes;
        }

        private Listing(Count count) {
            this.files = count.files;
            this.keptFiles = count.keptFiles;
            this.bytes = count.bytes;
            this.keptBytes = count.keptBytes;
        }
    }

    /** How many files a scan listed before any was skipped, and how many it kept of them; null if nobody knows. */
    int[] counted(long filesRead, boolean atMost) {
        Listing[] listings = {listed, first};
        for (int i = 0; i < listings.length; i++) {
            Listing listing = listings[i];
            if (listing != null && (listing.keptFiles == filesRead || atMost && listing.keptFiles > filesRead)) {
                boolean nested = base instanceof LakebloomFileIndex;
                int[] below = nested ? ((LakebloomFileIndex) base).counted(listing.files, false) : null;
                return nested && below == null ? null : new int[] {nested ? below[0] : listing.files, listing.keptFiles};
            }
        }
        return null;
    }

    /** What becomes of a file: read (#), skipped (.), read because it is new (?) or has changed (!). */
    String state(FileStatusWithMetadata file) {
        String state = base instanceof LakebloomFileIndex ? ((LakebloomFileIndex) base).state(file) : "?";
        if (state.equals(".") || result.holds() && skips(file)) {
            return ".";
        }
        for (Iterator it = answers.iterator(); it.hasNext();) {
            PruneResult.KeptFiles answer = (PruneResult.KeptFiles) it.next();
            int number = answer.files.number(file);
            if (number >= 0 && !answer.changed.get(number)) {
                return "#";
            }
            state = answer.files.isNamed(file) && state.equals("?") ? "!" : state;
        }
        return state;
    }

    /** Describes what skipped files: what the lake's own indexes said, for which conditions, and the other lakes' indexes. */
    static void describe(FileIndex location, Object lake, Wire.DescribedScan scan) {
        List notes = new ArrayList();
        List predicates = new ArrayList();
        List others = new ArrayList();
        for (LakebloomFileIndex index = of(location); index != null; index = of(location)) {
            if (index.lake == lake) {
                notes.add(0, index.result.note);
                predicates.add(0, index.result.condition);
            } else {
                for (Iterator it = index.answers.iterator(); it.hasNext();) {
                    others.add(((PruneResult.KeptFiles) it.next()).name);
                }
            }
            location = index.base;
        }
        scan.notes = (JsonNode[]) notes.toArray(new JsonNode[0]);
        scan.predicates = (JsonNode[]) predicates.toArray(new JsonNode[0]);
        scan.others = (String[]) others.toArray(new String[0]);
    }

    /** The conditions by which files were skipped that are not directly above the files: those on a join's keys too. */
    static JsonNode[] keyConditions(FileIndex location) {
        List found = new ArrayList();
        for (LakebloomFileIndex index = of(location); index != null; index = of(location)) {
            if (!index.purpose.equals(FILTER)) {
                found.add(index.result.condition);
            }
            location = index.base;
        }
        return (JsonNode[]) found.toArray(new JsonNode[0]);
    }

    /** What lakebloom decided about a list of files; null if nothing. */
    static LakebloomFileIndex of(FileIndex location) {
        return location instanceof Decided ? ((Decided) location).decided()
            : location instanceof LakebloomFileIndex ? (LakebloomFileIndex) location : null;
    }

    public FileIndex base() {
        return base;
    }

    /** Whether there is nothing to skip. */
    boolean keepsAll() {
        return first.keptFiles == first.files;
    }

    /** Whether this index, or one below it, skipped a file when the query was planned. */
    boolean leavesOutAny() {
        return !keepsAll() || base instanceof LakebloomFileIndex && ((LakebloomFileIndex) base).leavesOutAny();
    }

    /** Whether this lake has pruned the files for this purpose already. */
    public boolean isOf(Object lake, String purpose) {
        boolean mine = this.lake == lake && this.purpose.equals(purpose);
        return mine || base instanceof LakebloomFileIndex && ((LakebloomFileIndex) base).isOf(lake, purpose);
    }

    private boolean skips(FileStatusWithMetadata file) {
        for (Iterator it = answers.iterator(); it.hasNext();) {
            PruneResult.KeptFiles answer = (PruneResult.KeptFiles) it.next();
            int number = answer.files.number(file);
            if (number >= 0 && !answer.kept.get(number)) {
                return true;
            }
        }
        return false;
    }

    private FileIndex lister() {
        return moment.lasts() ? planned : base;
    }

    public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
        Listing listing = new Listing(lister().listFiles(partitionFilters, dataFilters));
        Seq kept = listing.kept;
        listing.kept = null;
        listed = listing;
        return kept;
    }

    /** All files of some directories. */
    public static List files(Seq directories) {
        List files = new ArrayList();
        for (Iterator it = Scala.list(directories).iterator(); it.hasNext();) {
            files.addAll(Scala.list(((PartitionDirectory) it.next()).files()));
        }
        return files;
    }

    public String[] inputFiles() {
        Seq nothing = Scala.nothing();
        List files = files(listFiles(nothing, nothing));
        String[] paths = new String[files.size()];
        for (int i = 0; i < paths.length; i++) {
            paths[i] = ((FileStatusWithMetadata) files.get(i)).fileStatus().getPath().toUri().toString();
        }
        return paths;
    }

    /** The first one prints the index and what it kept: Spark's plans show it as the scan's location. */
    public Seq rootPaths() {
        List roots = new ArrayList(Scala.list(base.rootPaths()));
        if (!roots.isEmpty()) {
            roots.set(0, new LabelledPath((Path) roots.get(0), label));
        }
        return Scala.seq(roots);
    }

    private static final class LabelledPath extends Path {
        private final transient String label;

        LabelledPath(Path path, String label) {
            super(path.toUri());
            this.label = label;
        }

        public String toString() {
            return label == null ? super.toString() : label + super.toString();
        }
    }

    public void refresh() {
        base.refresh();
    }

    public long sizeInBytes() {
        return first.keptBytes;
    }

    public StructType partitionSchema() {
        return base.partitionSchema();
    }

    public Option metadataOpsTimeNs() {
        return base.metadataOpsTimeNs();
    }

    public String toString() {
        return "LakebloomFileIndex(" + label + base + ")";
    }

    /** Scans that skip the same files are one scan to Spark, which then runs it once. */
    public boolean equals(Object other) {
        if (!(other instanceof LakebloomFileIndex)) {
            return false;
        }
        LakebloomFileIndex that = (LakebloomFileIndex) other;
        if (!base.equals(that.base) || lake != that.lake || !purpose.equals(that.purpose) || answers.size() != that.answers.size()
            || !Objects.equals(result.keys, that.result.keys)) {
            return false;
        }
        for (int i = 0; i < answers.size(); i++) {
            PruneResult.KeptFiles mine = (PruneResult.KeptFiles) answers.get(i);
            PruneResult.KeptFiles others = (PruneResult.KeptFiles) that.answers.get(i);
            if (mine.files != others.files || !mine.kept.equals(others.kept)) {
                return false;
            }
        }
        return true;
    }

    public int hashCode() {
        return base.hashCode();
    }
}

package io.lakebloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The files of another index without those that cannot match. Spark plans, counts and prints what it lists.
 *
 * A file is left out only if path, size, time of change and ETag (where there is one) in the other index's own listing
 * are those that lakebloom knows, and lakebloom said that it cannot match.
 */
public final class LakebloomFileIndex implements FileIndex {
    private final FileIndex base;
    private final Object lake;
    private final List answers;
    private final String purpose;
    private final JsonNode condition;
    private final String label;
    private final long keptBytes;
    private final int keptFiles;
    private final int allFiles;
    private final long allBytes;

    /** The purpose of leaving out files for the query's own condition; for a join's keys it is KEYS and the column. */
    static final String FILTER = "filter";
    static final String KEYS = "keys of ";

    /** Lists once, with the conditions on partitions, to know how much is left. */
    public LakebloomFileIndex(
            FileIndex base, Object lake, String purpose, JsonNode condition, List answers, Seq partitionFilters) {
        this.base = base;
        this.lake = lake;
        this.purpose = purpose;
        this.condition = condition;
        this.answers = answers;
        int all = 0;
        int kept = 0;
        long bytes = 0;
        long allBytes = 0;
        Seq nothing = seq(Collections.emptyList());
        for (Iterator it = files(base.listFiles(partitionFilters, nothing)).iterator(); it.hasNext();) {
            FileStatusWithMetadata file = (FileStatusWithMetadata) it.next();
            all++;
            allBytes += file.getLen();
            if (!skips(file)) {
                kept++;
                bytes += file.getLen();
            }
        }
        this.allFiles = all;
        this.allBytes = allBytes;
        this.keptFiles = kept;
        this.keptBytes = bytes;
        List names = new ArrayList();
        for (Iterator it = answers.iterator(); it.hasNext();) {
            names.add(((Answer) it.next()).name);
        }
        this.label = String.join(", ", names) + ": " + kept + " of " + all + " files, ";
    }

    /** What one index said: which of the files it knows can match. */
    public static final class Answer {
        final String name;
        final KnownFiles files;
        final BitSet kept;

        public Answer(String name, KnownFiles files, BitSet kept) {
            this.name = name;
            this.files = files;
            this.kept = kept;
        }
    }

    /** What was left out, for people; null where this is an index of another kind. */
    public static JsonNode figures(ObjectMapper mapper, FileIndex location) {
        if (!(location instanceof LakebloomFileIndex)) {
            return mapper.nullNode();
        }
        LakebloomFileIndex index = (LakebloomFileIndex) location;
        LakebloomFileIndex first = index;
        while (first.base instanceof LakebloomFileIndex) {
            first = (LakebloomFileIndex) first.base;
        }
        ObjectNode figures = mapper.createObjectNode();
        figures.put("files_kept", index.keptFiles);
        figures.put("bytes_kept", index.keptBytes);
        figures.put("files", first.allFiles);
        figures.put("bytes", first.allBytes);
        return figures;
    }

    /** The conditions on keys by which files were left out for the sake of joins. */
    static List keyConditions(FileIndex location) {
        List found = new ArrayList();
        while (location instanceof LakebloomFileIndex) {
            LakebloomFileIndex index = (LakebloomFileIndex) location;
            if (index.purpose.startsWith(KEYS)) {
                found.add(index.condition);
            }
            location = index.base;
        }
        return found;
    }

    public FileIndex base() {
        return base;
    }

    /** Whether there is nothing to leave out. */
    boolean keepsAll() {
        return keptFiles == allFiles;
    }

    /** Whether this lake has had its say for this purpose already. */
    public boolean isOf(Object lake, String purpose) {
        boolean mine = this.lake == lake && this.purpose.equals(purpose);
        return mine || base instanceof LakebloomFileIndex && ((LakebloomFileIndex) base).isOf(lake, purpose);
    }

    private boolean skips(FileStatusWithMetadata file) {
        for (Iterator it = answers.iterator(); it.hasNext();) {
            Answer answer = (Answer) it.next();
            int number = answer.files.number(file);
            if (number >= 0 && !answer.kept.get(number)) {
                return true;
            }
        }
        return false;
    }

    public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
        List directories = new ArrayList();
        Seq all = base.listFiles(partitionFilters, dataFilters);
        for (Iterator it = CollectionConverters.asJava(all).iterator(); it.hasNext();) {
            PartitionDirectory directory = (PartitionDirectory) it.next();
            List kept = new ArrayList();
            for (Iterator jt = CollectionConverters.asJava(directory.files()).iterator(); jt.hasNext();) {
                FileStatusWithMetadata file = (FileStatusWithMetadata) jt.next();
                if (!skips(file)) {
                    kept.add(file);
                }
            }
            if (!kept.isEmpty()) {
                directories.add(new PartitionDirectory(directory.values(), seq(kept)));
            }
        }
        return seq(directories);
    }

    /** All files of some directories. */
    public static List files(Seq directories) {
        List files = new ArrayList();
        for (Iterator it = CollectionConverters.asJava(directories).iterator(); it.hasNext();) {
            files.addAll(CollectionConverters.asJava(((PartitionDirectory) it.next()).files()));
        }
        return files;
    }

    private static Seq seq(List items) {
        return CollectionConverters.asScala(items).toSeq();
    }

    public String[] inputFiles() {
        Seq nothing = seq(Collections.emptyList());
        List files = files(listFiles(nothing, nothing));
        String[] paths = new String[files.size()];
        for (int i = 0; i < paths.length; i++) {
            paths[i] = ((FileStatusWithMetadata) files.get(i)).fileStatus().getPath().toUri().toString();
        }
        return paths;
    }

    /** The first one prints the index and what it kept: Spark's plans show it as the scan's location. */
    public Seq rootPaths() {
        List roots = new ArrayList(CollectionConverters.asJava(base.rootPaths()));
        if (!roots.isEmpty()) {
            roots.set(0, new LabelledPath((Path) roots.get(0), label));
        }
        return seq(roots);
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
        return keptBytes;
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

    /** Scans that leave out the same files are one scan to Spark, which then runs it once. */
    public boolean equals(Object other) {
        if (!(other instanceof LakebloomFileIndex)) {
            return false;
        }
        LakebloomFileIndex that = (LakebloomFileIndex) other;
        if (!base.equals(that.base) || lake != that.lake || !purpose.equals(that.purpose) || answers.size() != that.answers.size()) {
            return false;
        }
        for (int i = 0; i < answers.size(); i++) {
            Answer mine = (Answer) answers.get(i);
            Answer others = (Answer) that.answers.get(i);
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

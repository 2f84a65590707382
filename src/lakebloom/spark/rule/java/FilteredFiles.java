package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.types.DataType;

/**
 * The files whose keys a join filter has: those that the index knows, and those that were added for this query.
 *
 * A table can have new files by the time a planned query runs. Its rows must find their partners, so the filter then
 * lets every row pass.
 */
final class FilteredFiles {
    private final FileIndex location;
    private final KnownFiles known;
    private final Set added = new HashSet();
    private final Moment moment = new Moment();

    FilteredFiles(FileIndex location, KnownFiles known) {
        this.location = location;
        this.known = known;
    }

    /** The files that the query reads, as the table is now. */
    private List read() {
        return LakebloomFileIndex.files(LakebloomFileIndex.seen(location, Scala.nothing()));
    }

    /** The listed files that the index does not know, as KnownFiles describes them: these are to be added to the filter. */
    Object[][] add() {
        List found = new ArrayList();
        for (Iterator it = read().iterator(); it.hasNext();) {
            FileStatusWithMetadata file = (FileStatusWithMetadata) it.next();
            if (known.number(file) < 0 && added.add(identity(file))) {
                found.add(KnownFiles.describe(file));
            }
        }
        return (Object[][]) found.toArray(new Object[0][]);
    }

    private boolean haveAll() {
        if (moment.lasts()) {
            return true;
        }
        for (Iterator it = read().iterator(); it.hasNext();) {
            FileStatusWithMetadata file = (FileStatusWithMetadata) it.next();
            if (known.number(file) < 0 && !added.contains(identity(file))) {
                return false;
            }
        }
        return true;
    }

    private static List identity(FileStatusWithMetadata file) {
        return Arrays.asList(KnownFiles.describe(file));
    }

    /** The words of the filter as a row that Spark reads, in the driver, when the query runs. */
    GenericInternalRow row(int[] words) {
        return new Words(this, words);
    }

    private static final class Words extends GenericInternalRow {
        private final transient FilteredFiles files;
        private final transient int[] words;

        Words(FilteredFiles files, int[] words) {
            super(new Object[] {JoinFilterPlan.blocks(words)});
            this.files = files;
            this.words = words;
        }

        public ArrayData getArray(int ordinal) {
            try {
                if (files.haveAll()) {
                    return super.getArray(ordinal);
                }
            } catch (Exception problem) {
                // What cannot be listed here, the scan itself will tell.
            }
            int[] all = new int[words.length];
            Arrays.fill(all, -1);
            return JoinFilterPlan.blocks(all);
        }

        public Object get(int ordinal, DataType type) {
            return getArray(ordinal);
        }
    }
}

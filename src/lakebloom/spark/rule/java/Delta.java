package io.lakebloom.spark;

import org.apache.spark.sql.execution.datasources.FileIndex;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Recognises reads of Delta tables.
 *
 * Only the list that Delta prepares for a query is a read. DELETE, UPDATE, MERGE, OPTIMIZE and the change data feed
 * have lists of other classes, and depend on seeing every file. Delta's classes are not on every driver, so those of
 * ours that name them are compiled when a read is met.
 */
final class Delta {
    private static final String PREPARED = "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex";
    private static final String IMPLEMENTATION = "io.lakebloom.spark.DeltaReads";
    private static final Logger LOG = LoggerFactory.getLogger("lakebloom");
    private static DeltaFiles files;
    private static boolean isTried;

    private Delta() {}

    /** Whether a list of files is that of a query, and this version of Delta is known. A subclass is something else. */
    static boolean isRead(FileIndex location) {
        return location.getClass().getName().equals(PREPARED) && files() != null;
    }

    /** Null where Delta's classes are not as expected. */
    static synchronized DeltaFiles files() {
        if (!isTried) {
            isTried = true;
            try {
                Class found = Class.forName(IMPLEMENTATION, true, Delta.class.getClassLoader());
                files = (DeltaFiles) found.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
            } catch (Throwable problem) {
                LOG.warn("no file of a Delta table is skipped, because this version of Delta is not known: {}", problem.toString());
            }
        }
        return files;
    }
}

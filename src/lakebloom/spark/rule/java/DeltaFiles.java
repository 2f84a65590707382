package io.lakebloom.spark;

import org.apache.spark.sql.execution.datasources.FileIndex;
import scala.collection.immutable.Seq;

/** What is done with Delta's own classes, by names that need none of them. */
interface DeltaFiles {
    /** The files that Delta prepared for a read, as one directory. */
    Seq listed(FileIndex prepared);

    /** The same read without the files that are skipped. */
    FileIndex fewer(FileIndex prepared, LakebloomFileIndex decided);

    /** The columns of the version that is read, with ids and physical names in their metadata. */
    String schema(FileIndex prepared);

    /** How files call the columns: delta.columnMapping.mode; null where they are not mapped. */
    String mapping(FileIndex prepared);
}

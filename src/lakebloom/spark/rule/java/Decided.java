package io.lakebloom.spark;

/** A list of files of a table format's own kind, without the files that lakebloom decided to skip. */
interface Decided {
    LakebloomFileIndex decided();
}

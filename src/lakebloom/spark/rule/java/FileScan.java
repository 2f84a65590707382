package io.lakebloom.spark;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/** A scan by Spark's own reader, of a directory, of a table of its catalog, or of a Delta table. */
final class FileScan extends Scan {
    final HadoopFsRelation files;
    private final LogicalRelation logical;

    /** The condition may be null. */
    FileScan(LogicalRelation relation, Expression condition) {
        super(relation, new FileColumns(relation), condition);
        this.logical = relation;
        this.files = (HadoopFsRelation) relation.relation();
    }

    FileIndex location() {
        LakebloomFileIndex decided = decided(); // behind a list of Delta's own kind, too
        return decided == null ? files.location() : decided;
    }

    LakebloomFileIndex decided() {
        return LakebloomFileIndex.of(files.location());
    }

    /** Whether the listing is one of Spark's own. Table formats have others, which change what a file's rows are. */
    boolean listsPlainFiles() {
        FileIndex listing = listing();
        return listing.getClass() == InMemoryFileIndex.class || listing.getClass() == CatalogFileIndex.class;
    }

    boolean isSupported() {
        return (listsPlainFiles() || isDelta()) && !relation.isStreaming();
    }

    /** Whether a query reads a Delta table. Its log says which files count, and Delta which of their rows do. */
    private boolean isDelta() {
        return Delta.isRead(listing());
    }

    boolean isLogged() {
        return isDelta();
    }

    Seq listed() {
        FileIndex listing = listing();
        return isDelta() ? Delta.files().listed(listing) : listing.listFiles(partitionFilters(), Scala.nothing());
    }

    LogicalPlan with(LakebloomFileIndex kept) throws Exception {
        return Copies.withLocation(logical, isDelta() ? Delta.files().fewer(listing(), kept) : kept);
    }

    String table() {
        return logical.catalogTable().isDefined() ? ((CatalogTable) logical.catalogTable().get()).identifier().unquotedString() : null;
    }

    Set partitionNames() {
        return new HashSet(Arrays.asList(files.partitionSchema().fieldNames()));
    }

    void fillFormat(Wire.Reading reading) {
        new ReadSettings(files).fill(reading);
        if (isDelta()) {
            reading.tableSchema = Delta.files().schema(listing());
            reading.mapping = Delta.files().mapping(listing());
        }
    }
}

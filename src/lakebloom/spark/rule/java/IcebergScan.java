package io.lakebloom.spark;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;

/**
 * A scan by Iceberg's connector.
 *
 * Iceberg has planned it: deletes, partitions and bounds are applied to its tasks, and stay with those that are kept.
 */
final class IcebergScan extends Scan {
    private static final String FORMAT = "iceberg";
    private final DataSourceV2ScanRelation logical;
    private final Iceberg read;
    private FileIndex location;

    /** The condition may be null. */
    IcebergScan(LogicalPlan relation, Expression condition) throws Exception {
        super(relation, FileColumns.ofFormat(relation), condition);
        this.logical = (DataSourceV2ScanRelation) relation;
        this.read = Iceberg.read(relation);
        this.location = read == null ? null : read.decided();
    }

    FileIndex location() {
        if (location == null) {
            location = new IcebergFiles(read); // that of all files, only if an index may know them
        }
        return location;
    }

    LakebloomFileIndex decided() {
        return location == null ? null : LakebloomFileIndex.of(location);
    }

    List roots() {
        return Collections.singletonList(KnownFiles.canonical(read.root().toString()));
    }

    boolean isSupported() {
        return read != null;
    }

    boolean isLogged() {
        return true;
    }

    Seq listed() {
        return listing().listFiles(Scala.nothing(), Scala.nothing());
    }

    LogicalPlan with(LakebloomFileIndex kept) throws Exception {
        Seq nothing = Scala.nothing();
        List before = LakebloomFileIndex.files(location().listFiles(nothing, nothing));
        List tasks = read.tasksOf(before, LakebloomFileIndex.files(kept.listFiles(nothing, nothing)));
        return (LogicalPlan) Copies.with(logical, logical.scan(), read.fewer(tasks, kept), new Object[0]);
    }

    String table() {
        return logical.relation().table().name();
    }

    Set partitionNames() {
        Set found = new HashSet();
        if (logical.scan() instanceof SupportsRuntimeV2Filtering) {
            NamedReference[] names = ((SupportsRuntimeV2Filtering) logical.scan()).filterAttributes();
            for (int i = 0; i < names.length; i++) {
                found.add(names[i].fieldNames()[0]);
            }
        }
        return found;
    }

    void fillFormat(Wire.Reading reading) throws Exception {
        reading.format = FORMAT;
        reading.schema = logical.scan().readSchema().json();
        reading.options = Collections.emptyMap();
        reading.session = new HashMap();
        reading.iceberg = read.described();
    }
}

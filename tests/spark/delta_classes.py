"""Classes with the names and shapes of Delta's, for contract tests: no Delta jar is in any package index we reach.

They say what lakebloom expects of Delta's classes, and nothing about Delta. ``test_delta_jar.py`` runs with the real
ones.
"""

# ruff: noqa: E501  (Java)

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from lakebloom.spark.jvm import java_class
from lakebloom.spark.versions import java_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = "org.apache.spark.sql.delta"
SOURCES = {
    "DeltaLog": """public class DeltaLog { }""",
    "SnapshotDescriptor": """
        public interface SnapshotDescriptor {
            DeltaLog deltaLog();
            long version();
            org.apache.spark.sql.delta.actions.Metadata metadata();
        }""",
    "Snapshot": """
        public class Snapshot implements SnapshotDescriptor {
            private final org.apache.spark.sql.delta.actions.Metadata metadata;
            public Snapshot(org.apache.spark.sql.delta.actions.Metadata metadata) { this.metadata = metadata; }
            public DeltaLog deltaLog() { return null; }
            public long version() { return 7; }
            public org.apache.spark.sql.delta.actions.Metadata metadata() { return metadata; }
        }""",
    "actions.AddFile": """
        public class AddFile {
            private final String path;
            private final long size;
            private final long time;
            public AddFile(String path, long size, long time) { this.path = path; this.size = size; this.time = time; }
            public String path() { return path; }
            public long size() { return size; }
            public long modificationTime() { return time; }
        }""",
    "actions.Metadata": """
        public class Metadata {
            private final String schema;
            private final scala.collection.immutable.Map configuration;
            public Metadata(String schema, scala.collection.immutable.Map configuration) {
                this.schema = schema; this.configuration = configuration;
            }
            public String schemaString() { return schema; }
            public scala.collection.immutable.Map configuration() { return configuration; }
        }""",
    "files.TahoeFileIndex": """
        import org.apache.hadoop.fs.FileStatus;
        import org.apache.hadoop.fs.Path;
        import org.apache.spark.sql.catalyst.InternalRow;
        import org.apache.spark.sql.delta.*;
        import org.apache.spark.sql.delta.actions.*;
        import org.apache.spark.sql.execution.datasources.*;
        import scala.collection.immutable.Seq;
        public abstract class TahoeFileIndex implements FileIndex, SnapshotDescriptor {
            private final org.apache.spark.sql.classic.SparkSession spark;
            private final DeltaLog deltaLog;
            private final Path path;
            public TahoeFileIndex(org.apache.spark.sql.classic.SparkSession spark, DeltaLog deltaLog, Path path) {
                this.spark = spark; this.deltaLog = deltaLog; this.path = path;
            }
            public org.apache.spark.sql.classic.SparkSession spark() { return spark; }
            public DeltaLog deltaLog() { return deltaLog; }
            public Path path() { return path; }
            public abstract Seq matchingFiles(Seq partitionFilters, Seq dataFilters);
            public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
                java.util.List files = new java.util.ArrayList();
                java.util.Iterator it = scala.collection.JavaConverters.seqAsJavaList(matchingFiles(partitionFilters, dataFilters)).iterator();
                while (it.hasNext()) {
                    AddFile file = (AddFile) it.next();
                    FileStatus status = new FileStatus(file.size(), false, 0, 1, file.modificationTime(), absolutePath(file.path()));
                    files.add(new FileStatusWithMetadata(status, (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty()));
                }
                Object directory = new PartitionDirectory(InternalRow.empty(), scala.collection.JavaConverters.asScalaBuffer(files).toSeq());
                return scala.collection.JavaConverters.asScalaBuffer(java.util.Collections.singletonList(directory)).toSeq();
            }
            public Seq rootPaths() {
                return scala.collection.JavaConverters.asScalaBuffer(java.util.Collections.singletonList(path)).toSeq();
            }
            public org.apache.spark.sql.types.StructType partitionSchema() { return new org.apache.spark.sql.types.StructType(); }
            public Path absolutePath(String child) {
                Path found = new Path(java.net.URI.create(child));
                return found.isAbsolute() ? found : new Path(path, found);
            }
            public scala.Option metadataOpsTimeNs() { return scala.Option.empty(); }
            public void refresh() { }
            public String[] inputFiles() { return new String[0]; }
            public long sizeInBytes() { return 1L << 40; }
        }""",
    "files.TahoeFileIndexWithSnapshotDescriptor": """
        import org.apache.hadoop.fs.Path;
        import org.apache.spark.sql.delta.*;
        public abstract class TahoeFileIndexWithSnapshotDescriptor extends TahoeFileIndex {
            private final SnapshotDescriptor snapshot;
            public TahoeFileIndexWithSnapshotDescriptor(
                    org.apache.spark.sql.classic.SparkSession spark, DeltaLog deltaLog, Path path, SnapshotDescriptor snapshot) {
                super(spark, deltaLog, path);
                this.snapshot = snapshot;
            }
            public long version() { return snapshot.version(); }
            public org.apache.spark.sql.delta.actions.Metadata metadata() { return snapshot.metadata(); }
        }""",
    "files.TahoeBatchFileIndex": """
        import scala.collection.immutable.Seq;
        public class TahoeBatchFileIndex extends TahoeFileIndexWithSnapshotDescriptor {
            private final Seq files;
            public TahoeBatchFileIndex(org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex other) {
                super(other.spark(), other.deltaLog(), other.path(), other.preparedScan().scannedSnapshot());
                this.files = other.preparedScan().files();
            }
            public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) { return files; }
        }""",
    "files.TahoeLogFileIndex": """
        import scala.collection.immutable.Seq;
        public class TahoeLogFileIndex extends TahoeFileIndex {
            private final org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex other;
            private final boolean travels;
            private final Seq filters;
            public TahoeLogFileIndex(
                    org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex other, Boolean travels, java.util.List filters) {
                super(other.spark(), other.deltaLog(), other.path());
                this.other = other;
                this.travels = travels.booleanValue();
                this.filters = scala.collection.JavaConverters.asScalaBuffer(filters).toSeq();
            }
            public boolean isTimeTravelQuery() { return travels; }
            public Seq partitionFilters() { return filters; }
            public long version() { return other.version(); }
            public org.apache.spark.sql.delta.actions.Metadata metadata() { return other.metadata(); }
            public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) { return other.preparedScan().files(); }
        }""",
    "stats.DeltaScan": """
        import scala.collection.immutable.Seq;
        public class DeltaScan {
            private final Seq files;
            private final Seq all;
            private final org.apache.spark.sql.delta.Snapshot snapshot;
            public DeltaScan(java.util.List files, java.util.List all, org.apache.spark.sql.delta.Snapshot snapshot) {
                this.files = scala.collection.JavaConverters.asScalaBuffer(files).toSeq();
                this.all = scala.collection.JavaConverters.asScalaBuffer(all).toSeq();
                this.snapshot = snapshot;
            }
            public Seq files() { return files; }
            Seq all() { return all; }
            public org.apache.spark.sql.delta.Snapshot scannedSnapshot() { return snapshot; }
        }""",
    "stats.PreparedDeltaFileIndex": """
        import scala.collection.immutable.Seq;
        public class PreparedDeltaFileIndex extends org.apache.spark.sql.delta.files.TahoeFileIndexWithSnapshotDescriptor {
            private final DeltaScan scan;
            public PreparedDeltaFileIndex(
                    org.apache.spark.sql.classic.SparkSession spark, org.apache.spark.sql.delta.DeltaLog log,
                    org.apache.hadoop.fs.Path path, DeltaScan scan) {
                super(spark, log, path, scan.scannedSnapshot());
                this.scan = scan;
            }
            public DeltaScan preparedScan() { return scan; }
            /** With other conditions than those of the query Delta selects again, of all files of the version. */
            public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
                return partitionFilters.isEmpty() && dataFilters.isEmpty() ? scan.all() : scan.files();
            }
        }""",
    "stats.OtherPreparedFileIndex": """
        public class OtherPreparedFileIndex extends PreparedDeltaFileIndex {
            public OtherPreparedFileIndex(PreparedDeltaFileIndex other) {
                super(other.spark(), other.deltaLog(), other.path(), other.preparedScan());
            }
        }""",
}


def delta_classes(spark: SparkSession) -> Any:
    """Let lakebloom's own class loader compile these classes too; return a function that loads one.

    Another loader would make a second LakebloomRule, and py4j tells classes apart by their names only.
    """
    gateway: Any = spark.sparkContext._gateway
    java = gateway.jvm
    session: Any = spark
    scala = str(java.scala.util.Properties.versionNumberString())
    kind = str(session._jsparkSession.getClass().getName())
    found = java.org.codehaus.commons.compiler.util.resource.MapResourceFinder()
    for file in files("lakebloom.spark.rule").joinpath("java").iterdir():
        found.addResource(f"io/lakebloom/spark/{file.name}", java_source(file.read_text(encoding="utf-8"), scala, kind))
    for name, text in SOURCES.items():
        package, _, simple = f"{ROOT}.{name}".rpartition(".")
        whole = java_source(f"package {package};\n{text}", scala, kind)
        found.addResource(f"{package.replace('.', '/')}/{simple}.java", whole)
    loader = java_class(spark, "Wire").getClassLoader()
    loader.setSourceFinder(found)
    return lambda name: loader.loadClass(f"{ROOT}.{name}")

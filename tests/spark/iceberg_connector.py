"""Reads Iceberg tables with Iceberg's own connector for Spark, in a process of its own: the jar must be there at start.

The catalogs of the connector do not load in Spark 4, so tables are opened from their metadata files:
``python -m tests.spark.iceberg_connector REQUESTS ANSWERS`` answers a JSON list of metadata files with their rows.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.quick_queries import QUICK
from tests.spark.processes import environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["catalog_session", "connector_jar", "connector_rows", "table_frame"]

_ROOT = Path(__file__).resolve().parents[2]


def connector_jar(scala: str = "2.13") -> Path | None:
    """Return the connector of the package index; None where it is not installed.

    ``LAKEBLOOM_ICEBERG_JARS`` names a folder with another version of it.
    """
    place = os.environ.get("LAKEBLOOM_ICEBERG_JARS")
    if place is None:
        found = importlib.util.find_spec("snowpark_connect_deps_iceberg")
        if found is None or found.origin is None:
            return None
        place = str(Path(found.origin).parent / "jars")
    jars = sorted(Path(place).glob(f"iceberg-spark-runtime-3.5_{scala}-*.jar"))
    return jars[0] if jars else None


def connector_rows(home: Path, metadata_files: list[str]) -> list[list[dict[str, Any]]]:
    """Return the rows of the current snapshot of each metadata file, as the connector reads them."""
    requests, answers = home / "requests.json", home / "answers.json"
    requests.write_text(json.dumps(metadata_files))
    command = [sys.executable, "-m", "tests.spark.iceberg_connector", str(requests), str(answers)]
    ran = subprocess.run(command, cwd=_ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    found: list[list[dict[str, Any]]] = json.loads(answers.read_text())
    return found


def session() -> SparkSession:
    """Return a session with the connector."""
    from pyspark.sql import SparkSession

    jar = str(connector_jar())
    builder = SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", jar)
    settings = {**QUICK, "spark.ui.enabled": "false", "spark.sql.warehouse.dir": tempfile.gettempdir()}
    for key, value in settings.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    without_cache(found)
    return found


def catalog_session(warehouse: str) -> SparkSession:
    """Return a session of Spark 3.5 with the connector, its SQL, Hadoop's catalog ``ice`` and Hive's ``hive``."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": str(connector_jar("2.12")),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": warehouse,
        # Hive's catalog alone knows the newest version of its tables, as those of REST and JDBC do. It is in this JVM.
        "spark.sql.catalog.hive": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.hive.type": "hive",
        "spark.sql.catalog.hive.warehouse": f"{warehouse} of hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={warehouse} of derby;create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def without_cache(spark: SparkSession) -> None:
    """Put a cache of nothing in the place of the connector's, whose constructor does not fit Spark 4.

    Without it no file with deletes can be read.
    """
    jvm: Any = spark.sparkContext._jvm
    field = jvm.java.lang.Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe")
    field.setAccessible(True)
    cache = jvm.java.lang.Class.forName("org.apache.iceberg.spark.SparkExecutorCache")
    instance = cache.getDeclaredField("instance")
    instance.setAccessible(True)
    instance.set(None, field.get(None).allocateInstance(cache))


def table_frame(spark: SparkSession, metadata_file: str, snapshot: int | None = None) -> DataFrame:
    """Return the current snapshot of a metadata file, or another one."""
    from pyspark.sql import DataFrame

    jvm: Any = spark.sparkContext._jvm
    java: Any = spark._jsparkSession  # type: ignore[attr-defined]
    io = jvm.org.apache.iceberg.hadoop.HadoopFileIO(java.sessionState().newHadoopConf())
    operations = jvm.org.apache.iceberg.StaticTableOperations(metadata_file, io)
    table = jvm.org.apache.iceberg.BaseTable(operations, metadata_file)
    found = jvm.org.apache.iceberg.spark.source.SparkTable(table, False)
    if snapshot is not None:
        found = found.copyWithSnapshotId(snapshot)
    nothing = jvm.scala.Option.empty()
    relation = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation.create(found, nothing, nothing)
    is_old = java.getClass().getName() == "org.apache.spark.sql.SparkSession"
    datasets = jvm.org.apache.spark.sql.Dataset if is_old else jvm.org.apache.spark.sql.classic.Dataset
    frame = datasets.ofRows(java, relation)
    return DataFrame(frame, spark)


def main(requests: str, answers: str) -> None:
    """Answer the requests."""
    spark = session()
    asked = json.loads(Path(requests).read_text())
    found = [[row.asDict(True) for row in table_frame(spark, each).collect()] for each in asked]
    Path(answers).write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

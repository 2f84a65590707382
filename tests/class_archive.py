"""An archive of the classes that Spark loads, from which the Java processes of the tests take them.

Loading and checking ten thousand classes from two hundred jars is half of what the start of Spark costs, and tests
start many. The archive is made once for an environment: ``python -m tests.class_archive`` runs a session that does a
little of everything, and Java writes down what it has loaded. Java ignores an archive that does not fit: another
Java, other jars. Classes that are not in it are loaded as ever.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.quick_queries import QUICK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JAVA_OPTIONS"]

_ARCHIVE = Path(sys.prefix) / "spark.jsa"
_LITTLE_WORK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
"""Without the second compiler Java keeps little room for compiled code: a few hundred tests fill it, and from then on
it drops code that is compiled again soon after."""
_SILENT = "-Xlog:disable -Xlog:all=error:stderr"
"""Java warns on standard output of each class that it cannot archive, and of an archive that does not fit."""

JAVA_OPTIONS = f"{_LITTLE_WORK} -XX:SharedArchiveFile={_ARCHIVE} {_SILENT}" if _ARCHIVE.exists() else _LITTLE_WORK
"""For Spark that runs many small queries: the second compiler and parallel collectors cost more than they give."""


def main() -> None:
    """Write the archive. What Spark says is not shown."""
    _ARCHIVE.unlink(missing_ok=True)
    unfinished = _ARCHIVE.with_suffix(".unfinished")
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", __spec__.name, home, str(unfinished)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    unfinished.rename(_ARCHIVE)


def write(home: str, archive: str) -> None:
    """Run a session, and let Java write the classes that it has loaded when it ends."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    settings = {
        **QUICK,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{home}/warehouse",
        "spark.driver.extraJavaOptions": f"{_LITTLE_WORK} -XX:ArchiveClassesAtExit={archive} {_SILENT}",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _a_little_of_everything(spark, Path(home))
    gateway: Any = SparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # at which Spark's Java process ends, and writes
    gateway.proc.wait()


def _a_little_of_everything(spark: SparkSession, home: Path) -> None:
    from lakebloom import BloomIndexConfig, Lakebloom

    frame = spark.range(0, 100, 1, 2).selectExpr("id AS k", "CAST(id AS STRING) AS s", "CAST(id % 3 AS INT) AS p")
    for kind in ("parquet", "orc", "json", "csv"):
        frame.write.partitionBy("p").format(kind).save(f"{home}/{kind}")
        spark.read.schema("k BIGINT, s STRING, p INT").format(kind).load(f"{home}/{kind}").where("k = 7").collect()
    spark.sql(
        f"CREATE TABLE named (k BIGINT, s STRING, p INT) USING parquet PARTITIONED BY (p) LOCATION '{home}/parquet'"
    )
    spark.sql("MSCK REPAIR TABLE named")
    spark.conf.set("spark.lakebloom.build.driverMaxBytes", "0")
    lake = Lakebloom(spark, home / "indexes")
    lake.create_index("named", BloomIndexConfig("by_k", ["k", "s"], global_filter=True))
    lake.enable()
    spark.sql("INSERT INTO named SELECT id, 'new', 7 FROM range(100, 200)")
    lake.refresh_index("by_k")
    spark.sql("SELECT p, count(*), max(s) FROM named WHERE k IN (1, 150) GROUP BY p ORDER BY p").collect()
    spark.sql("SELECT * FROM named JOIN range(5) ON k = id WHERE s LIKE '1%' OR upper(s) = 'NEW'").collect()
    spark.sql("SELECT * FROM named WHERE k IN (SELECT max(id) FROM range(5)) LIMIT 3").cache().collect()
    lake.close()
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    spark.sql("SELECT p, count(*) FROM named WHERE k > 10 GROUP BY p ORDER BY p").collect()
    spark.sql("DROP TABLE named")


if __name__ == "__main__":
    write(*sys.argv[1:]) if sys.argv[1:] else main()

"""What runs on Spark: our index, Spark's own scan, filters made by grouping, the table written anew with filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bench.build.source import Source, require_found
from bench.build.without_spark import require_parquet_filters
from bench.race import Contestant
from lakebloom import BloomIndexConfig, Lakebloom, Sbbf, col

INDEX = "by_uuid"
FPP = 0.01


def ours(spark: SparkSession, name: str, fpp: Any) -> Contestant[Source]:
    def run(source: Source, work: Path) -> Lakebloom:
        lake = Lakebloom(spark, work)
        lake.create_index(source.folder, BloomIndexConfig(INDEX, ["uuid"], fpp=fpp))
        return lake

    def check(source: Source, work: Path, lake: Lakebloom) -> None:
        record = lake.index(INDEX)
        assert (record.files, record.rows) == (source.files, source.rows)
        tables = {key: lake.candidates(INDEX, col("uuid") == key) for key in source.keys}
        kept = {key: {Path(path).name for path in table["path"].to_pylist()} for key, table in tables.items()}
        require_found(kept, source)

    return Contestant(name, run, check)


def scan_and_hash(spark: SparkSession, bar: float) -> Contestant[Source]:
    def run(source: Source, work: Path) -> Any:
        hashes = spark.read.parquet(source.folder).select(F.xxhash64("uuid").alias("hash"))
        return hashes.agg(F.bit_xor("hash")).collect()[0][0]

    def check(source: Source, work: Path, hashes: int) -> None:
        assert hashes == source.hashes

    return Contestant("Spark: scan and hash the column", run, check, bar)


def group_by_file(spark: SparkSession, bar: float) -> Contestant[Source]:
    def filter_of(table: pa.Table) -> pa.Table:
        f = Sbbf.for_items(table.num_rows, FPP)
        f.insert(table["uuid"])
        return pa.table({"file": table["file"][:1], "filter": pa.array([f.to_bytes()])})

    def run(source: Source, work: Path) -> None:
        rows = spark.read.parquet(source.folder).select("uuid", F.input_file_name().alias("file"))
        filters = rows.groupBy("file").applyInArrow(filter_of, "file string, filter binary")
        filters.write.mode("overwrite").parquet(str(work))

    def check(source: Source, work: Path, result: None) -> None:
        table = pq.read_table(work)
        files = [Path(path).name for path in table["file"].to_pylist()]
        assert len(set(files)) == source.files
        filters = [Sbbf.from_bytes(data) for data in table["filter"].to_pylist()]
        require_found(
            {key: {file for file, f in zip(files, filters, strict=True) if key in f} for key in source.keys}, source
        )

    return Contestant("Spark: group by file name", run, check, bar)


def rewrite(spark: SparkSession, bar: float) -> Contestant[Source]:
    def run(source: Source, work: Path) -> None:
        rows_per_file = source.rows // source.files
        (
            spark.read.parquet(source.folder)
            .write.mode("overwrite")
            .option("maxRecordsPerFile", rows_per_file)
            .option("parquet.bloom.filter.enabled#uuid", "true")
            .option("parquet.bloom.filter.expected.ndv#uuid", rows_per_file)
            .option("parquet.bloom.filter.fpp#uuid", FPP)
            .parquet(str(work))
        )

    def check(source: Source, work: Path, result: None) -> None:
        require_parquet_filters(source, work)

    return Contestant("Spark: rewrite with Parquet filters", run, check, bar)

"""Who writes filters: each returns the filters of all units and the bytes they take in its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.parameters import Size
from bench.size.source import Parts
from lakebloom import Sbbf
from lakebloom.parquet import filters

LANCE = "Lance"
LANCE_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Written:
    """The filters of a table."""

    filters: list[Sbbf]
    size_bytes: int


def writers(spark: SparkSession) -> dict[str, Callable[[Parts, Path], Written]]:
    """Return all of them by name."""
    adaptive = {"parquet.bloom.filter.adaptive.enabled": "true"}
    return {
        LANCE: _lance,
        "Spark's default": lambda parts, work: _spark(spark, parts, work, {}),
        "Spark, adaptive": lambda parts, work: _spark(spark, parts, work, adaptive),
        "PyArrow": _pyarrow,
        "DuckDB": _duckdb,
        "DataFusion": _datafusion,
    }


def _of_parquet(folder: Path) -> Written:
    found = [one for path in sorted(folder.rglob("*.parquet")) for one in filters(path, ["k"])]
    assert found, f"no filters in {folder}"
    return Written([one.filter for one in found], sum(one.length or 0 for one in found))


def _lance(parts: Parts, work: Path) -> Written:
    import lance

    import lakebloom.lance

    rows = len(parts.values[0])
    dataset = lance.write_dataset(
        parts.table.select(["k"]), str(work), max_rows_per_file=rows, max_rows_per_group=min(rows, 1024)
    )
    dataset.create_scalar_index("k", "BLOOMFILTER", name="k")
    zones = lakebloom.lance.filters(dataset, "k")
    size_bytes = sum(path.stat().st_size for path in (work / "_indices").rglob("*") if path.is_file())
    return Written([zone.filter for zone in zones], size_bytes)


def _spark(spark: SparkSession, parts: Parts, work: Path, options: dict[str, str]) -> Written:
    """parquet-java leaves out filters where it has dictionaries, so it must not have any."""
    source = work.with_name(f"{work.name}-source.parquet")
    pq.write_table(parts.table, source)
    frame = spark.read.parquet(str(source)).repartition(2, "part").sortWithinPartitions("part")
    writer = frame.write.partitionBy("part").option("parquet.enable.dictionary", "false")
    writer.options(**{"parquet.bloom.filter.enabled#k": "true", **options}).parquet(str(work))
    return _of_parquet(work)


def _pyarrow(parts: Parts, work: Path) -> Written:
    work.mkdir(parents=True)
    for number, part in enumerate(parts.values):
        options = {"k": {"ndv": len(part), "fpp": Size.fpp}}
        pq.write_table(pa.table({"k": part}), work / f"{number}.parquet", bloom_filter_options=options)
    return _of_parquet(work)


def _duckdb(parts: Parts, work: Path) -> Written:
    """DuckDB makes filters only where it keeps a dictionary, so that must be large."""
    work.mkdir(parents=True)
    rows = len(parts.values[0])
    options = f"FORMAT parquet, DICTIONARY_SIZE_LIMIT {rows + 1}, BLOOM_FILTER_FALSE_POSITIVE_RATIO {Size.fpp}"
    with duckdb.connect() as connection:
        for number, part in enumerate(parts.values):
            connection.register("t", pa.table({"k": part}))
            connection.execute(
                f"COPY t TO '{work / f'{number}.parquet'}' ({options}, ROW_GROUP_SIZE {max(rows, 2048)})"
            )
    return _of_parquet(work)


def _datafusion(parts: Parts, work: Path) -> Written:
    from datafusion import ParquetWriterOptions, SessionContext

    work.mkdir(parents=True)
    context = SessionContext()
    for number, part in enumerate(parts.values):
        options = ParquetWriterOptions(
            bloom_filter_on_write=True, bloom_filter_fpp=Size.fpp, bloom_filter_ndv=len(part)
        )
        frame = context.from_arrow(pa.table({"k": part}))
        frame.write_parquet_with_options(work / f"{number}.parquet", options)
    return _of_parquet(work)

"""Samples a table with Spark to advise on its columns, for files that PyArrow cannot read.

It reads a few files, evenly spread, in two passes. The first counts rows, NULLs and distinct values, and finds minimum
and maximum, for each file and column. The second samples values of each file by their hash: a value that is sampled in
one file is sampled in every file that holds it. So the samples of two files show which fraction of values they share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.display.tables import RecordTable
from lakebloom.index.build.advise import advise_columns
from lakebloom.index.build.column_advice import ColumnAdvice, ColumnSample, FileSample
from lakebloom.index.build.column_sampling import chosen_files
from lakebloom.index.build.run import PARQUET
from lakebloom.spark.build.job import parallelism
from lakebloom.spark.build.spark_reader import column_of, read_files, session_for_scan
from lakebloom.spark.sources.catalog_tables import CatalogTables
from lakebloom.spark.sources.listing import list_table, reachable
from lakebloom.spark.sources.resolve import resolve
from lakebloom.spark.versions import metadata_column
from lakebloom.tables.columns import format_name
from lakebloom.tuning import ADVISED_BYTES_OF_CLUSTER, ADVISED_COLUMNS, ADVISED_ERROR, ADVISED_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from lakebloom.tables.parquet.columns import ColumnSpec

__all__ = ["advise"]


def advise(
    spark: SparkSession, source: Any, columns: Sequence[str] | None = None, options: Mapping[str, str] | None = None
) -> RecordTable[ColumnAdvice]:
    """Return for each column of a table, or for the named ones, whether it is worth an index, and why.

    ``source`` is that of ``create_index``. At most 24 files and 2 GiB are read. Raises ColumnNotFoundError, and the
    errors of ``create_index`` for a table that cannot be indexed.
    """
    record = resolve(spark, source, options)
    table = CatalogTables(spark, options or {}).current(record)
    files = list_table(spark, table, options or {})

    def sample(columns: list[ColumnSpec]) -> list[ColumnSample]:
        samples: list[ColumnSample] = []
        with session_for_scan(spark, parallelism(spark), record):
            frame = read_files(spark, record, chosen_files(files, ADVISED_BYTES_OF_CLUSTER))
            for start in range(0, len(columns), ADVISED_COLUMNS):
                samples += _sampled(frame, columns[start : start + ADVISED_COLUMNS])
        return samples

    direct = record.format == PARQUET and all(reachable(file.uri) for file in files)
    return advise_columns(record, files, columns, options or {}, None if direct else sample)


def _sampled(frame: DataFrame, columns: Sequence[ColumnSpec]) -> list[ColumnSample]:
    from pyspark.sql import functions as F  # noqa: N812

    # Not F.col: the table may have a column of this name.
    path = metadata_column(frame).getField("file_path").alias("file")
    values = frame.select(path, *(column_of(spec.path).alias(f"c{number}") for number, spec in enumerate(columns)))
    counts: list[Column] = [F.count(F.lit(1)).alias("rows")]
    for number in range(len(columns)):
        name = f"c{number}"
        counts += [
            F.count(name).alias(f"known{number}"),
            F.approx_count_distinct(name, ADVISED_ERROR).alias(f"distinct{number}"),
            F.min(name).alias(f"least{number}"),
            F.max(name).alias(f"greatest{number}"),
        ]
    counted = values.groupBy("file").agg(*counts).collect()
    one_in = [max([1, *(row[f"distinct{n}"] // ADVISED_KEYS for row in counted)]) for n in range(len(columns))]
    chosen = [
        F.collect_set(F.when(F.pmod(F.xxhash64(f"c{n}"), F.lit(one_in[n])) == 0, F.col(f"c{n}"))).alias(f"keys{n}")
        for n in range(len(columns))
    ]
    keys = {row["file"]: row for row in values.groupBy("file").agg(*chosen).collect()}
    return [
        ColumnSample(
            format_name(spec.path),
            spec.type,
            tuple(_file_sample(row, keys[row["file"]], n) for row in counted if row["file"] in keys),
        )
        for n, spec in enumerate(columns)
    ]


def _file_sample(counted: Any, keys: Any, n: int) -> FileSample:
    known = counted[f"known{n}"]
    return FileSample(
        rows=counted["rows"],
        nulls=counted["rows"] - known,
        distinct=min(known, max(counted[f"distinct{n}"], min(known, 1))),
        least=_comparable(counted[f"least{n}"]),
        greatest=_comparable(counted[f"greatest{n}"]),
        keys=frozenset(map(_comparable, keys[f"keys{n}"])),
    )


def _comparable(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value

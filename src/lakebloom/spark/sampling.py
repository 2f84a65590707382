"""Sampling a table with Spark, to advise on its columns: a few files, spread over all, in two passes.

The first pass counts: rows, NULLs, different values, minimum and maximum for each file and column. The second takes
some values of each file, chosen by their hash: a value that is chosen in one file is chosen in every file that holds
it, so that the samples of two files tell what share of their values they have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.errors import LakebloomError, NoFilesError, UnsupportedTypeError
from lakebloom.index.building import PARQUET
from lakebloom.index.create import find_column
from lakebloom.index.estimate import sample_shape
from lakebloom.index.worth import ColumnAdvice, ColumnSample, FileSample, TableShape, refused, worth
from lakebloom.printing import RecordTable
from lakebloom.spark.build import parallelism
from lakebloom.spark.listing import list_source, reachable
from lakebloom.spark.scan import column_of, read_files, session_for_scan
from lakebloom.spark.sources import resolve
from lakebloom.store.records import ColumnRecord
from lakebloom.tables.columns import arrow_type, folded_name, format_name, parse_name
from lakebloom.tables.parquet_columns import ColumnSpec
from lakebloom.tables.spark_schema import leaf_types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from lakebloom.store.records import SourceRecord
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.files import TableFile

__all__ = ["advise"]

_FILES = 24
_BYTES = 2 << 30
_KEYS = 64
_COLUMNS_AT_ONCE = 32
_ERROR = 0.02
"""Of the counts of different values."""


def advise(
    spark: SparkSession, source: Any, columns: Sequence[str] | None = None, options: Mapping[str, str] | None = None
) -> RecordTable[ColumnAdvice]:
    """Return for each column of a table, or for those named, whether it is worth a Bloom index and why.

    ``source`` is that of ``create_index``. At most 24 files and 2 GiB are read. Raises what ``create_index`` raises for
    a table that cannot be indexed, and ColumnNotFoundError.
    """
    record = resolve(spark, source)
    files = list_source(spark, record, options or {})
    if not files:
        raise NoFilesError("there is nothing to look at", found=f"no files in {', '.join(record.locations)}")
    wanted = _wanted(record, columns)
    why_not = {spec.path: _why_not(spec, record) for spec in wanted}
    possible = [spec for spec in wanted if not why_not[spec.path]]
    shape = _shape(record, files, possible, options or {})
    samples: dict[ColumnPath, ColumnSample] = {}
    with session_for_scan(spark, parallelism(spark), case_sensitive=record.case_sensitive):
        frame = read_files(spark, record, _chosen(files))
        for start in range(0, len(possible), _COLUMNS_AT_ONCE):
            some = possible[start : start + _COLUMNS_AT_ONCE]
            samples.update(zip((spec.path for spec in some), _sampled(frame, some), strict=True))
    return RecordTable(
        [
            worth(samples[spec.path], shape)
            if spec.path in samples
            else refused(format_name(spec.path), spec.type, why_not[spec.path])
            for spec in wanted
        ]
    )


def _wanted(record: SourceRecord, columns: Sequence[str] | None) -> list[ColumnSpec]:
    leaves = [ColumnSpec(path, kind) for path, kind in leaf_types(record.schema_json or "") if kind != "struct<...>"]
    if columns is None:
        return leaves
    schema = [ColumnRecord(leaf.path, leaf.type) for leaf in leaves]
    found = [find_column(parse_name(name), record.case_sensitive, schema) for name in columns]
    return [ColumnSpec(column.path, column.type) for column in found]


def _why_not(spec: ColumnSpec, record: SourceRecord) -> str:
    if folded_name(spec.path) in {folded_name((name,)) for name in record.partition_columns}:
        return "a partition column: queries on it skip directories already"
    try:
        arrow_type(spec.type)
    except UnsupportedTypeError as error:
        return error.message.partition(": ")[2]
    return ""


def _shape(
    record: SourceRecord, files: Sequence[TableFile], columns: Sequence[ColumnSpec], options: Mapping[str, str]
) -> TableShape:
    size_bytes = sum(file.size_bytes for file in files)
    if record.format != PARQUET or not columns or not all(reachable(file.uri) for file in files):
        return TableShape(len(files), size_bytes)
    try:
        shape = sample_shape(files, columns[:1], "row_group", options, case_sensitive=record.case_sensitive)
    except LakebloomError:
        return TableShape(len(files), size_bytes)
    return TableShape(len(files), size_bytes, shape.units / len(files))


def _chosen(files: Sequence[TableFile]) -> list[TableFile]:
    """Choose files that are evenly spread, two at least, and no more than the limits allow."""
    mean_bytes = max(1, sum(file.size_bytes for file in files) // len(files))
    count = min(len(files), _FILES, max(2, _BYTES // mean_bytes))
    return [files[number * len(files) // count] for number in range(count)]


def _sampled(frame: DataFrame, columns: Sequence[ColumnSpec]) -> list[ColumnSample]:
    from pyspark.sql import functions as F  # noqa: N812

    # Not F.col: the data may have a column of this name.
    path = frame.metadataColumn("_metadata").getField("file_path").alias("file")
    values = frame.select(path, *(column_of(spec.path).alias(f"c{number}") for number, spec in enumerate(columns)))
    counts: list[Column] = [F.count(F.lit(1)).alias("rows")]
    for number in range(len(columns)):
        name = f"c{number}"
        counts += [
            F.count(name).alias(f"known{number}"),
            F.approx_count_distinct(name, _ERROR).alias(f"distinct{number}"),
            F.min(name).alias(f"least{number}"),
            F.max(name).alias(f"greatest{number}"),
        ]
    counted = values.groupBy("file").agg(*counts).collect()
    one_in = [max([1, *(row[f"distinct{n}"] // _KEYS for row in counted)]) for n in range(len(columns))]
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

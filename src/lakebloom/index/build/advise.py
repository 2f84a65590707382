"""Advice on the columns of a table: which are worth a Bloom index, and why. Builds nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakebloom.display.tables import RecordTable
from lakebloom.errors import LakebloomError, NoFilesError, UnsupportedTypeError
from lakebloom.index.build.column_advice import ColumnAdvice, ColumnSample, TableShape, refused, worth
from lakebloom.index.build.column_sampling import chosen_files, sampled_columns
from lakebloom.index.build.parquet_directory import parquet_source
from lakebloom.index.build.run import PARQUET
from lakebloom.index.current_table import logged_table
from lakebloom.index.units import sample_shape
from lakebloom.tables.columns import ColumnNames, arrow_type, format_name, parse_name
from lakebloom.tables.file_identity import is_reachable
from lakebloom.tables.parquet.columns import ColumnSpec
from lakebloom.tuning import ADVISED_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakebloom.store.records import TableRecord
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.file_identity import TableFile

__all__ = ["advise_columns", "advise_on_path"]


def advise_on_path(
    source: object, columns: Sequence[str] | None = None, options: Mapping[str, str] | None = None
) -> RecordTable[ColumnAdvice]:
    """Advise on the columns of Parquet files at a path, without Spark; see ``advise_columns``."""
    record = parquet_source(source, options or {})
    files = logged_table(record, options or {}).list_files(options or {})
    return advise_columns(record, files, columns, options or {})


def advise_columns(
    record: TableRecord,
    files: Sequence[TableFile],
    columns: Sequence[str] | None,
    options: Mapping[str, str],
    sample: Callable[[list[ColumnSpec]], list[ColumnSample]] | None = None,
) -> RecordTable[ColumnAdvice]:
    """Return for each column of a table, or for those named, whether it is worth a Bloom index and why.

    ``sample`` looks at columns of files that PyArrow cannot read. Raises NoFilesError and ColumnNotFoundError.
    """
    if not files:
        raise NoFilesError("there is nothing to sample", found=f"no files in {', '.join(record.locations)}")
    wanted = _wanted(record, columns)
    why_not = {spec.path: _why_not(spec, record) for spec in wanted}
    possible = [spec for spec in wanted if not why_not[spec.path]]
    shape = _shape(record, files, possible, options)
    if sample is None:
        some = chosen_files(files, ADVISED_BYTES)
        found = sampled_columns(some, [record.spec(*_plain(spec)) for spec in possible], record.access(options))
        found = [replace(each, column=format_name(spec.path)) for each, spec in zip(found, possible, strict=True)]
    else:
        found = sample(possible)
    samples = dict(zip((spec.path for spec in possible), found, strict=True))
    return RecordTable(
        [
            worth(samples[spec.path], shape)
            if spec.path in samples
            else refused(format_name(spec.path), spec.type, why_not[spec.path])
            for spec in wanted
        ]
    )


def _wanted(record: TableRecord, columns: Sequence[str] | None) -> list[ColumnSpec]:
    types = {path: kind for path, kind in record.schema.types.items() if kind != "struct<...>"}
    if columns is None:
        return [ColumnSpec(path, kind) for path, kind in types.items()]
    names = ColumnNames(types, case_sensitive=record.case_sensitive)
    found = [names.require(parse_name(name)) for name in columns]
    return [ColumnSpec(path, types[path]) for path in found]


def _plain(spec: ColumnSpec) -> tuple[ColumnPath, str]:
    return spec.path, spec.type


def _why_not(spec: ColumnSpec, record: TableRecord) -> str:
    if spec.path in {(name,) for name in record.partition_columns}:
        return "a partition column: queries on it skip directories already"
    try:
        arrow_type(spec.type)
    except UnsupportedTypeError as error:
        return error.message.partition(": ")[2]
    return ""


def _shape(
    record: TableRecord, files: Sequence[TableFile], columns: Sequence[ColumnSpec], options: Mapping[str, str]
) -> TableShape:
    size_bytes = sum(file.size_bytes for file in files)
    if record.format != PARQUET or not columns or not all(is_reachable(file.uri) for file in files):
        return TableShape(len(files), size_bytes)
    try:
        shape = sample_shape(files, [record.spec(*_plain(columns[0]))], "row_group", record.access(options))
    except LakebloomError:
        return TableShape(len(files), size_bytes)
    return TableShape(len(files), size_bytes, shape.units / len(files))

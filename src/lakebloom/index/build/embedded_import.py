"""Imports filters that files already have into an index. Reads only footers and filters, no data page.

A filter inside a Parquet file hashes stored values, an index hashes Spark's values (docs/FORMAT.md). A filter can be
imported if both are the same bytes for every value that the column can hold. Otherwise the column is read, and the
build's report says why.

Bounds come from the footer's statistics for signed integers, dates and timestamps, which all writers order in the same
way. For other types they stay unknown: statistics of strings may be cut or in signed order, and those of decimals in
the order of bytes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lakebloom.errors import LakebloomError
from lakebloom.index.build.plan import ReadAnyway
from lakebloom.index.build.value_bounds import UNKNOWN, Bounds, joined
from lakebloom.parquet import filters
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.hashing.decimals import min_bytes
from lakebloom.tables.columns import format_name
from lakebloom.tables.parquet.calendars import trusted_values
from lakebloom.tables.parquet.columns import row_group_shapes
from lakebloom.tables.parquet.footer import ArrowFooter, read_arrow_footer
from lakebloom.tables.parquet.open import open_source, parquet_file, reading
from lakebloom.tables.parquet.paths import find_leaf
from lakebloom.tables.parquet.types import describe, require_readable
from lakebloom.tuning import WORST_UNION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.index.build.plan import BuildPlan
    from lakebloom.parquet import EmbeddedFilter
    from lakebloom.tables.parquet.columns import ColumnSpec, RowGroupShape
    from lakebloom.tables.parquet.types import Family

__all__ = ["FileFilters", "ImportedFilter", "filters_of"]

_PLAIN_FAMILIES: dict[str, frozenset[Family]] = {
    "int": frozenset({"int32", "uint8", "uint16"}),
    "bigint": frozenset({"int64"}),
    "string": frozenset({"bytes"}),
    "binary": frozenset({"bytes", "fixed bytes"}),
}
_ORDERED: frozenset[Family] = frozenset({"int32", "int64", "date", "timestamp", "timestamp_ntz"})
_NARROW = frozenset({(8, True), (16, True), (8, False)})


@dataclass(frozen=True, slots=True)
class ImportedFilter:
    """The filter and the null count of one column in one unit."""

    filter: Sbbf
    null_count: int
    bounds: Bounds | None = None
    """None if there are no values but NULLs."""


@dataclass(frozen=True, slots=True)
class FileFilters:
    """The filters of a file that an index can import."""

    row_groups: tuple[RowGroupShape, ...]
    columns: dict[int, list[ImportedFilter]]
    """By the column's number, one for each unit."""
    refused: tuple[ReadAnyway, ...]
    bytes_read: int


class _RefusedError(Exception):
    """Why a column is read after all."""


def filters_of(uri: str, plan: BuildPlan) -> FileFilters:
    """Return the filters that a file at a canonical URI has for the columns of an index.

    Raises DataFileError for a file that is not Parquet, and NotFoundError, AccessDeniedError or StorageError.
    """
    with open_source(uri, plan.access.options) as source, reading(uri):
        footer = read_arrow_footer(uri, source)
        parquet = parquet_file(uri, source, footer)
        file = _File(uri, footer, parquet.reader.column_paths, source, plan)
        imported: dict[int, list[ImportedFilter]] = {}
        refused = []
        for number, column in enumerate(plan.columns):
            try:
                imported[number] = file.take(column)
            except _RefusedError as error:
                refused.append(ReadAnyway(format_name(column.path), str(error), 1))
            except LakebloomError as error:
                refused.append(ReadAnyway(format_name(column.path), f"{error.code}: {error.message}", 1))
        return FileFilters(file.shapes, imported, tuple(refused), file.bytes_read)


class _File:
    """A file whose filters may be imported."""

    def __init__(
        self, uri: str, footer: ArrowFooter, paths: Sequence[Sequence[str]], source: Any, plan: BuildPlan
    ) -> None:
        self._uri, self._footer, self._paths, self._source, self._plan = uri, footer, paths, source, plan
        self._metadata = footer.metadata
        self.shapes = row_group_shapes(footer)
        self.bytes_read: int = self._metadata.serialized_size

    def take(self, column: ColumnSpec) -> list[ImportedFilter]:
        """Return a column's filters by unit."""
        number = find_leaf(self._paths, column.path, case_sensitive=self._plan.access.case_sensitive)
        if number is None:  # NULL in every row
            return self._units([ImportedFilter(Sbbf(1), shape.row_count) for shape in self.shapes])
        self._footer.require_plain(self._uri, [number])
        family = self._require_same_bytes(number, column)
        nulls = [self._null_count(group, number, family) for group in range(len(self.shapes))]
        if nulls == [shape.row_count for shape in self.shapes]:
            return self._units([ImportedFilter(Sbbf(1), count) for count in nulls])
        name = format_name(self._paths[number])
        bounds = [self._bounds(group, number, family) for group in range(len(self.shapes))]
        facts = zip(self.shapes, nulls, bounds, strict=True)
        return self._units([self._filter(self._found.get((name, i)), *known) for i, known in enumerate(facts)])

    @cached_property
    def _found(self) -> dict[tuple[str, int], EmbeddedFilter]:
        """The places of all filters, by column name and row group: the footer is parsed once."""
        numbers = (
            find_leaf(self._paths, column.path, case_sensitive=self._plan.access.case_sensitive)
            for column in self._plan.columns
        )
        names = [format_name(self._paths[number]) for number in numbers if number is not None]
        return {(each.column, each.row_group): each for each in filters(self._source, names)}

    def _filter(
        self, found: EmbeddedFilter | None, shape: RowGroupShape, null_count: int, bounds: Bounds
    ) -> ImportedFilter:
        if null_count == shape.row_count:
            return ImportedFilter(Sbbf(1), null_count)
        if found is None:
            raise _RefusedError("the file has no filter for it, or not in every row group")
        bits = found.filter
        self.bytes_read += found.length or bits.num_bytes
        if not bits.words.any():
            raise _RefusedError("the file has a filter with no bit set")
        return ImportedFilter(bits, null_count, bounds)

    def _units(self, imported: list[ImportedFilter]) -> list[ImportedFilter]:
        """Return one filter for each unit, no larger than the index needs."""
        if self._plan.granularity == "file" or not any(shape.row_count for shape in self.shapes):
            imported = [_union(imported)]
        fpp = self._plan.fpp
        return [ImportedFilter(each.filter.fold_to(fpp), each.null_count, each.bounds) for each in imported]

    def _null_count(self, group: int, number: int, family: Family) -> int:
        chunk = self._metadata.row_group(group).column(number)
        statistics = chunk.statistics if chunk.is_stats_set else None
        if statistics is None or not statistics.has_null_count or chunk.num_values != self.shapes[group].row_count:
            raise _RefusedError("the footer does not have the number of NULLs")
        trusted = trusted_values(family, self._metadata.metadata)
        has_values = statistics.null_count < chunk.num_values
        if trusted is not None and has_values and not (statistics.has_min_max and statistics.min_raw >= trusted.start):
            raise _RefusedError("Spark may read its old dates in another calendar")
        return int(statistics.null_count)

    def _bounds(self, group: int, number: int, family: Family) -> Bounds:
        chunk = self._metadata.row_group(group).column(number)
        statistics = chunk.statistics if family in _ORDERED and chunk.is_stats_set else None
        if statistics is None or not statistics.has_min_max or not statistics.min_raw <= statistics.max_raw:
            return UNKNOWN
        return Bounds(int(statistics.min_raw), int(statistics.max_raw))

    def _require_same_bytes(self, number: int, column: ColumnSpec) -> Family:
        """Return the family of the stored values, if their filter has the same hashes as an index."""
        schema = self._metadata.schema.column(number)
        kind = column.type.lower()
        family = require_readable(schema, column.type, format_name(column.path))
        if kind in ("float", "double"):
            raise _RefusedError("a filter in a file distinguishes -0.0 from 0.0, and one NaN from another")
        if kind == "binary" and str(self._metadata.created_by).startswith("DuckDB"):
            raise _RefusedError("DuckDB hashes the text of binary values")
        if not _has_same_bytes(schema, family, kind):
            raise _RefusedError(f"{column.type} is hashed differently from {describe(schema)}")
        return family


def _has_same_bytes(schema: Any, family: Family, kind: str) -> bool:
    logical = json.loads(schema.logical_type.to_json())
    if kind in _PLAIN_FAMILIES:
        return family in _PLAIN_FAMILIES[kind]
    if kind == "smallint":  # without this annotation, larger values wrap around in Spark
        return (logical.get("bitWidth"), logical.get("isSigned")) in _NARROW
    if kind == "date":
        return family == "date"
    if kind in ("timestamp", "timestamp_ntz"):
        return family == kind and logical.get("timeUnit") == "microseconds"
    return family == "decimal" and _is_canonical_decimal(schema, kind)


def _is_canonical_decimal(schema: Any, kind: str) -> bool:
    precision, scale = (int(number) for number in kind.removeprefix("decimal(").removesuffix(")").split(","))
    if schema.scale != scale:
        return False
    if precision <= 18:
        return bool(schema.physical_type == ("INT32" if precision <= 9 else "INT64"))
    return bool(schema.physical_type == "FIXED_LEN_BYTE_ARRAY" and schema.length == min_bytes(precision))


def _union(imported: list[ImportedFilter]) -> ImportedFilter:
    """Return one filter for all row groups: all fold to a common divisor of their sizes."""
    filled = [each.filter for each in imported if each.filter.words.any()]
    null_count = sum(each.null_count for each in imported)
    bounds = joined([each.bounds for each in imported if each.bounds is not None])
    if not filled:
        return ImportedFilter(Sbbf(1), null_count)
    blocks = math.gcd(*(each.num_blocks for each in filled))
    union = filled[0].fold(blocks)
    for other in filled[1:]:
        union |= other.fold(blocks)
    if len(filled) > 1 and union.fpp > WORST_UNION:
        raise _RefusedError(f"merged for a file, its filters would have a false-positive rate of {union.fpp:.0%}")
    return ImportedFilter(union, null_count, bounds)

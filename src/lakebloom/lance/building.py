"""Builds filters for the zones of fragments, and the index file that contains them.

A zone is a number of rows that are not deleted, in the order of the fragment; it ends with the fragment. Filter sizes:

    lance   the power of two that Lance uses for a full zone of distinct values, for every zone. Byte for byte what
            Lance builds.
    putze   the exact size for the distinct values in the zone, so no filter is larger than necessary.
            Lance reads filters of any size, and of different sizes in one index.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from lakebloom.errors import DataFileError, InvalidArgumentError
from lakebloom.lance.index_file import FILE_NAME, IndexFileContent, RowNumbers, write_index_file
from lakebloom.lance.pylance import lance_failures
from lakebloom.lance.segments import DatasetColumn, index_directory
from lakebloom.lance.zones import ZoneFilter
from lakebloom.sbbf import sizing
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.hashing.encoding import LANCE
from lakebloom.sbbf.hashing.hash_values import hash_array

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceFragment

    from lakebloom.sbbf.kernels import HashArray

__all__ = ["BuiltSegment", "ZonePlan", "ZoneRule", "build_segment", "zones_of"]

ZoneRule: TypeAlias = Literal["putze", "lance"]
_LEGACY = "0.1"
"""The file format of datasets before 2024. Lance writes no index in it."""
_OFFSET_BITS = 0xFFFF_FFFF
"""The upper half of a row address is the fragment, the lower half is the row."""


@dataclass(frozen=True, slots=True)
class ZonePlan:
    """The configuration of the filters of an index."""

    rows_per_zone: int
    fpp: float
    rule: ZoneRule

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows_per_zone", sizing.whole("rows_per_zone", self.rows_per_zone, least=1))
        object.__setattr__(self, "fpp", sizing.rate_argument(self.fpp))
        if self.rule not in get_args(ZoneRule):
            raise InvalidArgumentError(f"rule must be one of {', '.join(get_args(ZoneRule))}", found=self.rule)

    def filter_of(self, hashes: HashArray) -> Sbbf:
        """Return the filter of a zone with these values."""
        items = self.rows_per_zone if self.rule == "lance" else len(np.unique(hashes))
        made = Sbbf.for_items(items, self.fpp, self.rule)
        made.insert_hashes(hashes)
        return made


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """A written segment of an index that is not yet part of its dataset."""

    uuid: str
    fragment_ids: tuple[int, ...]
    size_bytes: int
    zones: int
    rows: int
    filter_bytes: int


@dataclass(slots=True)
class _Zone:
    """A zone that is being filled."""

    first: int
    last: int
    rows: int = 0
    hashes: list[HashArray] = field(default_factory=list)
    nulls: list[RowNumbers] = field(default_factory=list)

    def add(self, values: pa.Array, rows: RowNumbers) -> None:
        hashes, valid = hash_array(values, LANCE)
        self.hashes.append(hashes if valid is None else hashes[valid])
        if valid is not None:
            self.nulls.append(rows[~valid])
        self.rows += len(rows)
        self.last = int(rows[-1])

    def finished(self, fragment_id: int, plan: ZonePlan) -> ZoneFilter:
        made = plan.filter_of(np.concatenate(self.hashes))
        has_null = any(map(len, self.nulls))
        return ZoneFilter(fragment_id, self.first, self.last - self.first + 1, has_null, made)


def build_segment(
    dataset: LanceDataset,
    column: DatasetColumn,
    fragment_ids: Sequence[int],
    plan: ZonePlan,
    storage_options: Mapping[str, str] | None = None,
) -> BuiltSegment:
    """Read a column of some fragments and write an index file for them, under a new name."""
    zones: list[ZoneFilter] = []
    nulls: dict[int, list[RowNumbers]] = {}
    rows = 0
    for fragment_id in sorted(fragment_ids):
        fragment = dataset.get_fragment(fragment_id)
        if fragment is None:
            raise DataFileError(f"the dataset {dataset.uri} has no fragment {fragment_id}", hint="try again")
        nulls[fragment_id] = []
        for zone in zones_of(fragment, column, plan):
            zones.append(zone.finished(fragment_id, plan))
            nulls[fragment_id] += zone.nulls
            rows += zone.rows
    segment = str(uuid.uuid4())
    path = f"{index_directory(dataset, segment)}/{FILE_NAME}"
    content = IndexFileContent(tuple(zones), plan.rows_per_zone, plan.fpp)
    # Lance writes indexes in the format version of the dataset's files, so that one reader reads both.
    version = dataset.data_storage_version
    size = write_index_file(path, content, nulls, "2.0" if version == _LEGACY else version, storage_options)
    return BuiltSegment(
        segment, tuple(sorted(fragment_ids)), size, len(zones), rows, sum(zone.filter.num_bytes for zone in zones)
    )


def zones_of(fragment: LanceFragment, column: DatasetColumn, plan: ZonePlan) -> Iterator[_Zone]:
    """Yield the zones of one fragment, each with the hashes of its values."""
    zone: _Zone | None = None
    for values, rows in _batches(fragment, column, plan):
        start = 0
        while start < len(rows):
            if zone is None:
                zone = _Zone(int(rows[start]), int(rows[start]))
            stop = min(len(rows), start + plan.rows_per_zone - zone.rows)
            zone.add(values.slice(start, stop - start), rows[start:stop])
            start = stop
            if zone.rows == plan.rows_per_zone:
                yield zone
                zone = None
    if zone is not None:
        yield zone


def _batches(fragment: LanceFragment, column: DatasetColumn, plan: ZonePlan) -> Iterator[tuple[pa.Array, RowNumbers]]:
    """Yield the values of rows that are not deleted, with the row numbers within the fragment."""
    with lance_failures(
        f"cannot read column {column.name} of fragment {fragment.fragment_id}", DataFileError, "check it with Lance"
    ):
        scanner = fragment.scanner(columns={"value": column.quoted}, with_row_address=True)
        for batch in scanner.to_batches():
            addresses = batch.column("_rowaddr").to_numpy(zero_copy_only=False)
            yield batch.column("value"), (addresses & _OFFSET_BITS).astype(np.uint32)

"""One version of an index, open for queries."""

from __future__ import annotations

import operator
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakebloom.store.partition_lists import read_partitions
from lakebloom.store.segments import Segment
from lakebloom.tables.columns import ColumnNames
from lakebloom.tables.file_identity import is_same, unlike
from lakebloom.tables.listing.glob import fixed_part
from lakebloom.tables.listing.recheck import Recheck

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakebloom.predicate.prune.unit_filters import IntArray
    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.storage import Storage
    from lakebloom.store.records import Commit
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.formats.partition_list import PartitionList

_URI = operator.attrgetter("uri")


class _Compared(msgspec.Struct, frozen=True):
    """A listing of the table, compared with the index."""

    listed: Sequence[TableFile]
    known: frozenset[str]
    """The URIs of the listed files that are indexed."""
    unknown: list[TableFile]


class Snapshot:
    """The segments of one version. Unit tables are read once and kept; tiles are read block by block.

    ``earlier`` is another version of the same index: segments never change, so both share those in common.
    """

    def __init__(self, storage: Storage, commit: Commit, earlier: Snapshot | None = None) -> None:
        self.commit = commit
        self._last_compared: _Compared | None = None
        self.storage = storage
        known = {} if earlier is None else {segment.record.id: segment for segment in earlier.segments}
        self.segments: list[Segment] = [
            known.get(record.id) or Segment(storage, record, commit.config) for record in commit.segments
        ]

    @cached_property
    def partitions(self) -> PartitionList | None:
        """The partitions that a catalog listed when this version was made; None if there are none."""
        table = self.commit.table
        if table.partitions is None:
            return None
        base = fixed_part(table.locations[0])
        return read_partitions(self.storage, table.partitions, base, len(table.partition_columns))

    @cached_property
    def files(self) -> dict[str, TableFile]:
        """Each file of the index, with its identity when it was last indexed."""
        known: dict[str, TableFile] = {}
        for segment in self.segments:
            files = segment.units.distinct_files
            known.update(zip(map(_URI, files), files, strict=True))
        return known

    @property
    def is_remote(self) -> bool:
        """Whether probes wait for the network."""
        return not self.storage.uri.startswith("file:")

    @cached_property
    def names(self) -> ColumnNames:
        """The table's columns, found by the rule for names of the build."""
        table = self.commit.table
        if table.schema.types:
            return table.schema.names
        indexed = [column.path for column in self.commit.config.columns]
        return ColumnNames(indexed, case_sensitive=table.case_sensitive)

    def unknown(self, listed: Sequence[TableFile]) -> list[TableFile]:
        """Return the unindexed files among the listed ones."""
        return self._compared(listed).unknown

    def is_listed(self, file: TableFile, listed: Sequence[TableFile]) -> bool:
        """Tell whether an indexed file is listed with the same identity."""
        return file.uri in self._compared(listed).known

    def _compared(self, listed: Sequence[TableFile]) -> _Compared:
        kept = self._last_compared  # an unchanged table gives the same listing
        if kept is None or kept.listed is not listed:
            unknown = unlike(self.files, listed)
            known = frozenset(map(_URI, listed)).difference(map(_URI, unknown))
            self._last_compared = kept = _Compared(listed, known, unknown)
        return kept

    @cached_property
    def current(self) -> list[BoolArray]:
        """For each segment, the current units: a file that was indexed again counts in its last segment only."""
        last: dict[str, int] = {}
        for number, segment in enumerate(self.segments):
            last.update(dict.fromkeys(map(_URI, segment.units.distinct_files), number))
        if len(last) == sum(len(segment.units.distinct_files) for segment in self.segments):
            return [np.ones(segment.num_units, dtype=np.bool_) for segment in self.segments]
        return [
            segment.units.of_files(last[file.uri] == number for file in segment.units.distinct_files)
            for number, segment in enumerate(self.segments)
        ]

    @cached_property
    def numbered_files(self) -> tuple[list[TableFile], list[IntArray]]:
        """The files of the index, and for each segment the number of each unit's file.

        -1 means that the unit is not current.
        """
        numbers = {uri: number for number, uri in enumerate(self.files)}
        of_units = []
        for segment, current in zip(self.segments, self.current, strict=True):
            of_files = np.array([numbers[file.uri] for file in segment.units.distinct_files], dtype=np.int64)
            of_units.append(np.where(current, of_files[segment.units.file_numbers], -1))
        return list(self.files.values()), of_units

    @cached_property
    def recheck(self) -> Recheck:
        """Tells which of the numbered files changed, for callers whose listing may be old."""
        return Recheck(self.numbered_files[0])

    @cached_property
    def fingerprint(self) -> str:
        """A digest that is equal for versions with the same segments, because they number the files in the same way."""
        import hashlib  # imported here: it takes longer to load than a lookup takes

        ids = "\n".join(segment.record.id for segment in self.segments)
        return hashlib.blake2b(ids.encode(), digest_size=16).hexdigest()

    def listed(self, files: Iterable[TableFile]) -> list[BoolArray]:
        """For each segment, the current units of these files."""
        now = {file.uri: file for file in files}
        return [
            current & segment.units.of_files(is_same(file, now.get(file.uri)) for file in segment.units.distinct_files)
            for segment, current in zip(self.segments, self.current, strict=True)
        ]

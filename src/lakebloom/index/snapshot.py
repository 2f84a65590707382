"""One version of an index, open for questions."""

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
    from lakebloom.store.records import Entry
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.formats.partition_list import PartitionList

_URI = operator.attrgetter("uri")


class _Compared(msgspec.Struct, frozen=True):
    """A listing of the table, and what of it the index knows."""

    listed: Sequence[TableFile]
    known: frozenset[str]
    """The URIs of the files that are listed as the index knows them."""
    unknown: list[TableFile]


class Snapshot:
    """The segments of one version. Unit tables are read once and kept; tiles are read block by block.

    ``earlier`` is another version of the same index: segments never change, so those that both have are shared.
    """

    def __init__(self, storage: Storage, entry: Entry, earlier: Snapshot | None = None) -> None:
        self.entry = entry
        self._last_compared: _Compared | None = None
        self.storage = storage
        known = {} if earlier is None else {segment.record.id: segment for segment in earlier.segments}
        self.segments: list[Segment] = [
            known.get(record.id) or Segment(storage, record, entry.config) for record in entry.segments
        ]

    @cached_property
    def partitions(self) -> PartitionList | None:
        """The partitions that a catalog listed when this version was made; None where it lists none."""
        source = self.entry.source
        if source.partitions is None:
            return None
        base = fixed_part(source.locations[0])
        return read_partitions(self.storage, source.partitions, base, len(source.partition_columns))

    @cached_property
    def files(self) -> dict[str, TableFile]:
        """Each file that the index knows, as it was when it was last indexed."""
        known: dict[str, TableFile] = {}
        for segment in self.segments:
            files = segment.units.distinct_files
            known.update(zip(map(_URI, files), files, strict=True))
        return known

    @property
    def is_remote(self) -> bool:
        """Whether a question waits for the network."""
        return not self.storage.uri.startswith("file:")

    @cached_property
    def names(self) -> ColumnNames:
        """The table's columns, found by the rule under which the index was built."""
        source = self.entry.source
        if source.schema.types:
            return source.schema.names
        indexed = [column.path for column in self.entry.config.columns]
        return ColumnNames(indexed, case_sensitive=source.case_sensitive)

    def unknown(self, listed: Sequence[TableFile]) -> list[TableFile]:
        """Return those of the listed files that the index does not know as they are now."""
        return self._compared(listed).unknown

    def is_listed(self, file: TableFile, listed: Sequence[TableFile]) -> bool:
        """Tell whether a file that the index knows is listed as the index knows it."""
        return file.uri in self._compared(listed).known

    def _compared(self, listed: Sequence[TableFile]) -> _Compared:
        kept = self._last_compared  # of one list after the other: a table that nobody changes is listed once
        if kept is None or kept.listed is not listed:
            unknown = unlike(self.files, listed)
            known = frozenset(map(_URI, listed)).difference(map(_URI, unknown))
            self._last_compared = kept = _Compared(listed, known, unknown)
        return kept

    @cached_property
    def current(self) -> list[BoolArray]:
        """For each segment, the units that count: a file that was indexed again counts in the last segment only."""
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
        """The files that the index knows, and for each segment which of them each unit belongs to.

        -1 is a unit that does not count.
        """
        numbers = {uri: number for number, uri in enumerate(self.files)}
        of_units = []
        for segment, current in zip(self.segments, self.current, strict=True):
            of_files = np.array([numbers[file.uri] for file in segment.units.distinct_files], dtype=np.int64)
            of_units.append(np.where(current, of_files[segment.units.file_numbers], -1))
        return list(self.files.values()), of_units

    @cached_property
    def recheck(self) -> Recheck:
        """Tells which of the numbered files changed, for askers whose listing may be old."""
        return Recheck(self.numbered_files[0])

    @cached_property
    def fingerprint(self) -> str:
        """The same for versions with the same segments, which number the same files in the same way."""
        import hashlib  # here and not above: it takes longer to load than a question takes

        ids = "\n".join(segment.record.id for segment in self.segments)
        return hashlib.blake2b(ids.encode(), digest_size=16).hexdigest()

    def listed(self, files: Iterable[TableFile]) -> list[BoolArray]:
        """For each segment, the units that count and whose file is one of these."""
        now = {file.uri: file for file in files}
        return [
            current & segment.units.of_files(is_same(file, now.get(file.uri)) for file in segment.units.distinct_files)
            for segment, current in zip(self.segments, self.current, strict=True)
        ]

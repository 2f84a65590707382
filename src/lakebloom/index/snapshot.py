"""One version of an index, open for queries."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.index.granularity import granularity_of
from lakebloom.index.indexed_files import IndexedFiles
from lakebloom.store.partition_lists import read_partitions
from lakebloom.store.segments import Segment
from lakebloom.tables.columns import ColumnNames
from lakebloom.tables.file_identity import is_same
from lakebloom.tables.file_matching import ABSENT, Listing
from lakebloom.tables.listing.glob import fixed_part
from lakebloom.tables.listing.recheck import Recheck

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebloom.predicate.prune.unit_filters import BoolArray, IntArray
    from lakebloom.storage import Storage
    from lakebloom.store.records import Commit, Granularity
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.file_matching import Matched
    from lakebloom.tables.formats.partition_list import PartitionList


class Compared:
    """A listing of the table, compared with an index."""

    def __init__(self, files: IndexedFiles, listed: Sequence[TableFile]) -> None:
        self.listed = listed
        self.matched: Matched = files.match(Listing.of(listed))
        """Of the rows of ``files``."""
        self.known: BoolArray = np.zeros(len(listed), dtype=np.bool_)
        """For each listed file whether it is indexed."""
        self.known[self.matched.places[self.matched.same]] = True
        self.named: BoolArray = np.zeros(len(listed), dtype=np.bool_)
        """For each listed file whether it is indexed, as it is or as it was."""
        self.named[self.matched.places[self.matched.places != ABSENT]] = True

    @cached_property
    def unknown(self) -> list[TableFile]:
        """The unindexed files."""
        return [self.listed[number] for number in np.flatnonzero(~self.known).tolist()]

    @cached_property
    def _by_uri(self) -> Mapping[str, TableFile]:
        return {file.uri: file for file in self.listed}

    def has(self, file: TableFile) -> bool:
        """Tell whether a file is listed with the same identity."""
        # A listing is in order as a rule, and few files are looked up.
        place = bisect_left(self.listed, file.uri, key=itemgetter(0))
        if place < len(self.listed) and self.listed[place].uri == file.uri:
            return is_same(file, self.listed[place])
        return False if self.is_sorted else is_same(file, self._by_uri.get(file.uri))

    @cached_property
    def is_sorted(self) -> bool:
        """Whether the files are listed in the order of their URIs."""
        return all(first.uri < second.uri for first, second in zip(self.listed, self.listed[1:], strict=False))


class Snapshot:
    """The segments of one version. Reads of unit tables what is needed, and tiles block by block.

    ``earlier`` is another version of the same index: segments never change, so both share those in common.
    """

    def __init__(self, storage: Storage, commit: Commit, earlier: Snapshot | None = None) -> None:
        self.commit = commit
        self._last_compared: Compared | None = None
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
    def files(self) -> IndexedFiles:
        """Its files, each with its identity when it was last indexed."""
        return IndexedFiles(self.segments)

    @cached_property
    def granularity(self) -> Granularity:
        """What the units are."""
        return granularity_of(self.commit)

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
        return self.compared(listed).unknown

    def is_listed(self, file: TableFile, listed: Sequence[TableFile]) -> bool:
        """Tell whether an indexed file is listed with the same identity."""
        return self.compared(listed).has(file)

    def compared(self, listed: Sequence[TableFile]) -> Compared:
        """Compare a listing with the index. An unchanged table gives the same listing, which is compared once."""
        kept = self._last_compared
        if kept is None or kept.listed is not listed:
            self._last_compared = kept = Compared(self.files, listed)
        return kept

    @cached_property
    def current(self) -> list[BoolArray]:
        """For each segment, the current units: a file that was indexed again counts in its last segment only."""
        return self.units_of(self.files.current)

    def units_of(self, rows: BoolArray) -> list[BoolArray]:
        """For each segment, the units of the files whose rows (``IndexedFiles``) are chosen."""
        return [
            segment.units.of_files(self.files.of_segment(number, rows)) for number, segment in enumerate(self.segments)
        ]

    def file_numbers(self, segment: int, units: IntArray) -> IntArray:
        """Return the number of the file of each of these units of a segment."""
        return self.segments[segment].units.files.of_units(units) + self.files.starts[segment]

    @cached_property
    def recheck(self) -> Recheck:
        """Tells which of the files changed, for callers whose listing may be old."""
        return Recheck(self.files)

    @cached_property
    def fingerprints(self) -> list[str]:
        """For each number of leading segments a digest that is equal for versions that begin with the same ones.

        Such versions number the files of these segments in the same way.
        """
        import hashlib  # imported here: it takes longer to load than a lookup takes

        digest, found = hashlib.blake2b(digest_size=16), [""]
        for segment in self.segments:
            digest.update(f"{segment.record.id}\n".encode())
            found.append(digest.hexdigest())
        return found

    @property
    def fingerprint(self) -> str:
        """The digest of all segments."""
        return self.fingerprints[-1]

    def listed(self, files: Sequence[TableFile]) -> list[BoolArray]:
        """For each segment, the current units of these files."""
        return self.units_of(self.compared(files).matched.same)

"""What a build needs, as data that travels to the tasks and back.

The driver makes a ``BuildPlan`` and groups of files; whoever implements ``Builder`` runs ``build_segment`` once for
each group, anywhere, and brings the results back. Nothing here knows Spark.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import msgspec

from lakebloom.index.operation import new_operation_id
from lakebloom.store.records import Granularity, SegmentRecord
from lakebloom.tables.access import LOCAL, TableAccess
from lakebloom.tuning import SHARD_BYTES, SHARD_FILES, TASKS_PER_CORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lakebloom.display.progress import Progress
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.store.records import SourceRecord
    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.parquet.columns import ColumnSpec


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """Everything that the tasks of one build share."""

    index_uri: str
    columns: tuple[ColumnSpec, ...]
    granularity: Granularity
    fpp: float
    expected_items: int | None = None
    access: TableAccess = LOCAL
    global_blocks: int | None = None
    """The size of the partial global filters, None where none are wanted."""
    from_embedded: bool = False
    """Whether filters that files already have are taken where they can be."""
    allow_plaintext_filters: bool = False
    """Whether Spark's own reader, with its keys, reads Parquet files that are encrypted."""
    build_id: str = field(default_factory=new_operation_id)

    def segment_id(self, group: int) -> str:
        """Return a name that no other attempt at this group, or at anything, will use."""
        return f"{self.build_id}-{group:05d}-{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True)
class FileGroup:
    """The files of one segment, which one task reads."""

    number: int
    files: tuple[TableFile, ...]

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size_bytes for file in self.files)


class SkippedFile(msgspec.Struct, frozen=True):
    """A file that has no units, because it could not be read as it was listed."""

    uri: str
    code: str
    reason: str

    def __str__(self) -> str:
        return f"{self.uri}: {self.reason}"


class ReadAnyway(msgspec.Struct, frozen=True):
    """A column whose filters could not be taken from some files, and why."""

    column: str
    reason: str
    files: int

    def __str__(self) -> str:
        return f"{self.column} in {self.files:,} files: {self.reason}"


class GroupResult(msgspec.Struct, frozen=True):
    """What one task did."""

    group: int
    segment: SegmentRecord | None
    skipped: tuple[SkippedFile, ...]
    bytes_read: int
    elapsed_s: float
    filters_taken: int = 0
    """How many filters are those of the files themselves."""
    read_anyway: tuple[ReadAnyway, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What all tasks did."""

    groups: Sequence[GroupResult]
    global_filters: Sequence[Sbbf] = ()
    """One for each column, where the plan asked for them."""

    @property
    def segments(self) -> tuple[SegmentRecord, ...]:
        """The segments that were written."""
        return tuple(result.segment for result in self.groups if result.segment is not None)

    @property
    def skipped(self) -> tuple[SkippedFile, ...]:
        """The files that could not be indexed."""
        return tuple(skipped for result in self.groups for skipped in result.skipped)

    @property
    def filters_taken(self) -> int:
        """How many filters are those of the files themselves."""
        return sum(result.filters_taken for result in self.groups)

    @property
    def read_anyway(self) -> tuple[ReadAnyway, ...]:
        """The columns whose filters could not be taken from all files."""
        return summed(part for result in self.groups for part in result.read_anyway)


def summed(parts: Iterable[ReadAnyway]) -> tuple[ReadAnyway, ...]:
    """Return one record for each column and reason, the most frequent first."""
    files: Counter[tuple[str, str]] = Counter()
    for part in parts:
        files[part.column, part.reason] += part.files
    return tuple(ReadAnyway(column, reason, count) for (column, reason), count in files.most_common())


class Builder(Protocol):
    """Whoever can list a table and run tasks over its files."""

    def table(self, source: SourceRecord) -> CurrentTable:
        """Return the table as its owner describes it now."""

    def list_files(self, table: CurrentTable) -> list[TableFile]:
        """Return the table's files as they are now."""

    def parallelism(self) -> int:
        """Return how many tasks run at once."""

    def build(
        self,
        plan: BuildPlan,
        source: SourceRecord,
        groups: Sequence[FileGroup],
        progress: Callable[[Progress], None] | None,
    ) -> BuildResult:
        """Write one segment for each group of files."""


def group_files(files: Sequence[TableFile], parallelism: int) -> list[FileGroup]:
    """Divide files into segments: few, because each costs a lookup a read; even, because tasks should end together."""
    if not files:
        return []
    total = sum(file.size_bytes for file in files)
    wanted = max(
        1,
        min(len(files), TASKS_PER_CORE * parallelism),
        -(-total // SHARD_BYTES),
        -(-len(files) // SHARD_FILES),
    )
    # A file weighs at least the cost of opening it.
    weights = [file.size_bytes + (1 << 16) for file in files]
    target = sum(weights) / wanted
    groups: list[list[TableFile]] = [[]]
    filled = 0.0
    for file, weight in zip(files, weights, strict=True):
        if groups[-1] and filled + weight / 2 > target * len(groups):
            groups.append([])
        groups[-1].append(file)
        filled += weight
    return [FileGroup(number, tuple(group)) for number, group in enumerate(groups)]

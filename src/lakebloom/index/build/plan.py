"""The plan and the results of a build, as data that is sent to the tasks and back.

The driver makes a ``BuildPlan`` and shards of files; a ``Builder`` runs ``build_segment`` once for each shard, in any
process, and returns the results. Nothing here depends on Spark.
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
    from lakebloom.store.records import TableRecord
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
    """The size of the partial global filters, None if there are none."""
    from_embedded: bool = False
    """Whether filters that files already have are imported if possible."""
    allow_plaintext_filters: bool = False
    """Whether Spark's reader, with its keys, reads encrypted Parquet files."""
    build_id: str = field(default_factory=new_operation_id)

    def segment_id(self, shard: int) -> str:
        """Return a name that no other attempt will use."""
        return f"{self.build_id}-{shard:05d}-{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True)
class Shard:
    """The files of one segment, which one task reads."""

    number: int
    files: tuple[TableFile, ...]

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size_bytes for file in self.files)


class RejectedFile(msgspec.Struct, frozen=True):
    """A file without units, because it could not be read as listed."""

    uri: str
    code: str
    reason: str

    def __str__(self) -> str:
        return f"{self.uri}: {self.reason}"


class ReadAnyway(msgspec.Struct, frozen=True):
    """A column whose filters could not be imported from some files, and why."""

    column: str
    reason: str
    files: int

    def __str__(self) -> str:
        return f"{self.column} in {self.files:,} files: {self.reason}"


class ShardResult(msgspec.Struct, frozen=True):
    """What one task did."""

    shard: int
    segment: SegmentRecord | None
    rejected: tuple[RejectedFile, ...]
    bytes_read: int
    elapsed_s: float
    filters_imported: int = 0
    """How many filters were imported."""
    read_anyway: tuple[ReadAnyway, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What all tasks did."""

    shards: Sequence[ShardResult]
    global_filters: Sequence[Sbbf] = ()
    """One for each column, if the plan has global filters."""

    @property
    def segments(self) -> tuple[SegmentRecord, ...]:
        """The segments that were written."""
        return tuple(result.segment for result in self.shards if result.segment is not None)

    @property
    def rejected(self) -> tuple[RejectedFile, ...]:
        """The files that could not be indexed."""
        return tuple(rejected for result in self.shards for rejected in result.rejected)

    @property
    def filters_imported(self) -> int:
        """How many filters were imported."""
        return sum(result.filters_imported for result in self.shards)

    @property
    def read_anyway(self) -> tuple[ReadAnyway, ...]:
        """The columns whose filters could not be imported from all files."""
        return summed(part for result in self.shards for part in result.read_anyway)


def summed(parts: Iterable[ReadAnyway]) -> tuple[ReadAnyway, ...]:
    """Return one record for each column and reason, the most frequent first."""
    files: Counter[tuple[str, str]] = Counter()
    for part in parts:
        files[part.column, part.reason] += part.files
    return tuple(ReadAnyway(column, reason, count) for (column, reason), count in files.most_common())


class Builder(Protocol):
    """Lists a table and runs tasks over its files."""

    def table(self, record: TableRecord) -> CurrentTable:
        """Return the table as its owner describes it now."""

    def list_files(self, table: CurrentTable) -> Sequence[TableFile]:
        """Return the table's files as they are now."""

    def parallelism(self) -> int:
        """Return how many tasks run at once."""

    def build(
        self,
        plan: BuildPlan,
        table: TableRecord,
        shards: Sequence[Shard],
        progress: Callable[[Progress], None] | None,
    ) -> BuildResult:
        """Write one segment for each shard of files."""


def shard_files(files: Sequence[TableFile], parallelism: int, least_bytes: int = 1) -> list[Shard]:
    """Divide files into shards: few, because a lookup reads each segment; even, because tasks should end together.

    There is one shard only, unless they have at least so many bytes each.
    """
    if not files:
        return []
    # A file counts at least the cost of opening it.
    weights = [file.size_bytes + (1 << 16) for file in files]
    total = sum(weights)
    wanted = max(
        1,
        min(len(files), TASKS_PER_CORE * parallelism, total // least_bytes),
        -(-total // SHARD_BYTES),
        -(-len(files) // SHARD_FILES),
    )
    target = total / wanted
    shards: list[list[TableFile]] = [[]]
    filled = 0.0
    for file, weight in zip(files, weights, strict=True):
        if shards[-1] and filled + weight / 2 > target * len(shards):
            shards.append([])
        shards[-1].append(file)
        filled += weight
    return [Shard(number, tuple(shard)) for number, shard in enumerate(shards)]

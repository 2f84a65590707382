"""A filter over all current values of an indexed column, for the other side of a join.

A value that is not in it has no partner. That holds only if the filter covers every file of the table: unindexed files
are read here and added, up to a limit. Beyond the limit the filter is stale and must not be used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.display.tables import sized
from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError, StaleIndexError
from lakebloom.index.query.pruning import resolver
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.store.global_filters import read_global
from lakebloom.tables.columns import format_name
from lakebloom.tables.file_identity import is_reachable, is_same
from lakebloom.tables.listing.listing import look_again, stat_file
from lakebloom.tables.listing.settled import unsettled
from lakebloom.tables.parquet.columns import ColumnSpec, ParquetColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebloom.index.settings import Settings
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.store.records import GlobalRecord, TableRecord
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.file_identity import TableFile

__all__ = ["JoinFilter", "JoinFilters"]


@dataclass(frozen=True, slots=True)
class JoinFilter:
    """A filter over the values of a column in certain files."""

    name: str
    column: ColumnPath
    type: str
    filter: Sbbf
    fingerprint: str
    """The same for the same filter over the same files."""
    files_merged: int
    """How many unindexed files were added."""

    @property
    def rate(self) -> float:
        """The rate at which values without a partner pass."""
        return self.filter.fpp


class JoinFilters:
    """Makes join filters, and keeps the last one of each column, because adding files takes time."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._made: dict[tuple[str, ColumnPath], tuple[object, JoinFilter]] = {}

    def of(
        self,
        snapshot: Snapshot,
        column: ColumnPath,
        files: Sequence[TableFile],
        settings: Settings,
        table: TableRecord | None = None,
    ) -> JoinFilter:
        """Return the filter over a column's values in all indexed files, and in these.

        ``table`` is the version of a table with a log whose column is meant.

        Raises ColumnNotFoundError and InvalidArgumentError if there is no such filter, StaleIndexError if too
        many files are missing from it, and the errors of reading them.
        """
        config, path = snapshot.commit.config, _indexed(snapshot, column, table)
        if path is None:
            names = [format_name(known.path) for known in config.columns]
            raise ColumnNotFoundError.among(format_name(column), names, where=f"index {config.name!r}")
        number = [known.path for known in config.columns].index(path)
        record = _global_record(snapshot, number)
        missing = snapshot.unknown(files)
        if missing:
            _require_few(snapshot, missing, settings)
            missing = [self._now(snapshot, file) for file in missing]  # the listing may be older than the files
        key = record.file.path, frozenset(missing)
        kept = self._made.get((config.name, path))
        if kept is None or kept[0] != key:
            merged = read_global(snapshot.storage, record)
            spec = config.columns[number].spec
            if missing:
                merged = merged | Sbbf(merged.num_blocks)  # a copy: the stored filter must not change
                for file in missing:
                    self._add(merged, snapshot, file, spec, table or snapshot.commit.table)
            fingerprint = f"{record.file.path} {hash(key[1]):x}"
            kept = key, JoinFilter(config.name, path, spec.type, merged, fingerprint, len(missing))
            self._made[config.name, path] = kept
        return kept[1]

    def changed(self, snapshot: Snapshot) -> list[TableFile]:
        """Return the indexed files that changed, as they are now, for callers whose listing may be old."""
        changed = np.flatnonzero(snapshot.recheck.changed() & snapshot.files.current)
        found = (stat_file(file.uri, self._options) for file in snapshot.files.rows(changed))
        return [file for file in found if file is not None]

    def _now(self, snapshot: Snapshot, file: TableFile) -> TableFile:
        now = look_again(file, self._options)
        if now is None or unsettled([now]):
            raise _stale(snapshot.commit.config.name, f"{file.uri}, which is gone or was changed just now")
        return now

    def _add(self, f: Sbbf, snapshot: Snapshot, file: TableFile, spec: ColumnSpec, table: TableRecord) -> None:
        with ParquetColumns(file.uri, [spec], table.access(self._options)) as columns:
            for group in range(len(columns.row_groups)):
                for _, (array,) in columns.batches(group):
                    hashes, valid = hash_array(array)
                    f.insert_hashes(hashes if valid is None else hashes[valid])
        if not is_same(file, look_again(file, self._options)):
            raise _stale(snapshot.commit.config.name, f"{file.uri}, which changed while it was read")


def _indexed(snapshot: Snapshot, column: ColumnPath, table: TableRecord | None) -> ColumnPath | None:
    """Return the indexed column that a name means now; None if it is not indexed."""
    if table is None or table.snapshot is None:
        return resolver(snapshot)(column)
    now = table.schema.names.require(column)
    path = resolver(snapshot, table)(now)
    types = {known.path: known.type for known in snapshot.commit.config.columns}
    if path is not None and now in table.schema.initial_defaults:
        raise _stale(snapshot.commit.config.name, "a column with a default, which files without it do not hold")
    if path is not None and types[path] != table.schema.types[now]:
        raise _stale(
            snapshot.commit.config.name, f"values of the type {table.schema.types[now]}, which was {types[path]}"
        )
    return path


def _global_record(snapshot: Snapshot, number: int) -> GlobalRecord:
    commit = snapshot.commit
    for record in commit.global_filters:
        if record.column == number and record.ndv is not None:
            ids = {segment.id for segment in commit.segments}
            same_type = {segment.types[number] for segment in commit.segments} <= {commit.config.columns[number].type}
            if ids <= set(record.segments) and same_type:
                return record
            raise _stale(commit.config.name, "segments that it does not cover")
    if commit.config.global_filter:
        raise InvalidArgumentError(
            f"index {commit.config.name!r} has no global filter of this column",
            found="a filter that was dropped because it was full or damaged",
            hint='refresh_index(name, "full") builds it again, up to spark.lakebloom.global.maxBytes',
        )
    raise InvalidArgumentError(
        f"index {commit.config.name!r} has no global filter",
        hint="create it with BloomIndexConfig(..., global_filter=True)",
    )


def _require_few(snapshot: Snapshot, missing: Sequence[TableFile], settings: Settings) -> None:
    name = snapshot.commit.config.name
    size = sum(file.size_bytes for file in missing)
    found = f"{len(missing)} files ({sized(size, ' bytes')}) that came or changed since"
    if not settings.join_merge_new_files:
        raise _stale(name, f"{found}, and spark.lakebloom.join.mergeNewFiles is false")
    if size > settings.join_merge_max_bytes:
        raise _stale(name, f"{found}, more than spark.lakebloom.join.mergeMaxBytes")
    if snapshot.commit.table.format != "parquet" or not all(is_reachable(file.uri) for file in missing):
        raise _stale(name, f"{found}, which only Spark can read")


def _stale(name: str, found: str) -> StaleIndexError:
    return StaleIndexError(
        f"the global filter of index {name!r} lacks unindexed files", found=found, hint=f"refresh_index({name!r})"
    )

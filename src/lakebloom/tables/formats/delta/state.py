"""The state of a Delta table at one version, and how commits change it.

A file counts by its path *and* its deletion vector: a commit that deletes rows removes the one and adds the other. The
state of a version never changes; the next one is made from a copy, and costs what the new commits cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakebloom.errors import DataFileError
from lakebloom.tables.file_identity import LOGGED, TableFile
from lakebloom.tables.formats.delta.actions import broken
from lakebloom.tables.formats.delta.deletion_vectors import DeletionVector
from lakebloom.tables.formats.delta.features import require_readable
from lakebloom.tables.formats.delta.paths import file_uri
from lakebloom.tables.formats.table_snapshot import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakebloom.tables.formats.delta.actions import Action, Add, Metadata, Protocol, Remove
    from lakebloom.tables.formats.delta.deletion_vectors import Descriptor
    from lakebloom.tables.formats.table_snapshot import PartitionValues

__all__ = ["Changes", "State", "StateBuilder"]


class Changes(NamedTuple):
    """The files that two states do not share."""

    added: frozenset[TableFile]
    removed: frozenset[TableFile]


class State:
    """What a table is at one version."""

    __slots__ = ("changes", "entries", "in_commit_ms", "metadata", "num_deletes", "protocol", "version")

    def __init__(
        self,
        version: int,
        entries: dict[str, DataFile],
        metadata: Metadata,
        protocol: Protocol,
        in_commit_ms: int | None,
        num_deletes: int,
        changes: Changes | None,
    ) -> None:
        self.version, self.entries, self.metadata, self.protocol = version, entries, metadata, protocol
        self.in_commit_ms = in_commit_ms
        """The time that the last commit states itself; None where it states none, or was not read."""
        self.num_deletes = num_deletes
        """How many entries have deleted rows."""
        self.changes = changes
        """What differs from the state that this one was made from; None where it was read from the log alone."""


class StateBuilder:
    """Replays actions."""

    def __init__(self, table_uri: str, base: State | None = None) -> None:
        self._table_uri = table_uri
        self._base = base
        self._entries: dict[str, DataFile] | None = None
        self._metadata = None if base is None else base.metadata
        self._protocol = None if base is None else base.protocol
        self._in_commit_ms: int | None = None
        self._partitions: dict[PartitionValues, PartitionValues] = {}
        self._replaced: dict[str, DataFile | None] = {}
        """The entries of the base whose keys were touched, as they were there."""

    def apply(self, uri: str, actions: Iterable[Action]) -> None:
        """Apply the actions of a file of the log. Raises DataFileError."""
        if self._entries is None:
            self._entries = {} if self._base is None else dict(self._base.entries)
        self._in_commit_ms = None
        try:
            for action in actions:
                if action.add is not None:
                    self._add(action.add)
                elif action.remove is not None:
                    self._remove(action.remove)
                elif action.meta_data is not None:
                    self._metadata = action.meta_data
                elif action.protocol is not None:
                    self._protocol = action.protocol
                elif action.commit_info is not None:
                    self._in_commit_ms = action.commit_info.in_commit_timestamp
        except ValueError as error:
            raise broken(uri, str(error)) from error

    def finish(self, version: int) -> State:
        """Return the state after the actions. Raises UnsupportedSourceError, and DataFileError for half a table."""
        if self._metadata is None or self._protocol is None:
            missing = "metaData" if self._metadata is None else "protocol"
            raise DataFileError(
                f"the log of the Delta table {self._table_uri} is incomplete",
                found=f"no action {missing} up to version {version}",
                hint="restore the missing files of the log",
            )
        require_readable(self._table_uri, self._protocol, self._metadata)
        entries = self._entries if self._entries is not None else {}
        changes, num_deletes = None, 0
        if self._base is None:
            num_deletes = _with_deletes(entries.values())
        else:
            before = [entry for entry in self._replaced.values() if entry is not None]
            after = [entries[key] for key in self._replaced if key in entries]
            old, new = (frozenset(entry.file for entry in some) for some in (before, after))
            changes = Changes(new - old, old - new)
            num_deletes = self._base.num_deletes + _with_deletes(after) - _with_deletes(before)
        return State(version, entries, self._metadata, self._protocol, self._in_commit_ms, num_deletes, changes)

    def _add(self, add: Add) -> None:
        uri = file_uri(add.path, self._table_uri)
        vector = add.deletion_vector
        entry = DataFile(
            TableFile(uri, add.size, add.modification_time, LOGGED),
            self._shared(add.partition_values),
            None if vector is None else DeletionVector.of(vector, self._table_uri),
        )
        self._put(_key(uri, vector), entry)

    def _remove(self, remove: Remove) -> None:
        key = _key(file_uri(remove.path, self._table_uri), remove.deletion_vector)
        self._drop(key, remove.deletion_timestamp)

    def _put(self, key: str, entry: DataFile) -> None:
        assert self._entries is not None
        self._touch(key)
        self._entries[key] = entry

    def _drop(self, key: str, removed_ms: int | None) -> None:
        assert self._entries is not None
        self._touch(key)
        self._entries.pop(key, None)

    def _touch(self, key: str) -> None:
        if self._base is not None and key not in self._replaced:
            assert self._entries is not None
            self._replaced[key] = self._entries.get(key)

    def _shared(self, values: dict[str, str | None]) -> PartitionValues:
        """Return partition values, the same object for all files of a partition. An empty text is NULL in a log."""
        if not values:
            return ()
        found = tuple((name, value or None) for name, value in values.items())
        return self._partitions.setdefault(found, found)


def _with_deletes(entries: Iterable[DataFile]) -> int:
    return sum(entry.deletes is not None for entry in entries)


def _key(uri: str, vector: Descriptor | None) -> str:
    return uri if vector is None else f"{uri}\n{vector.unique_id}"

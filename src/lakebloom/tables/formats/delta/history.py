"""All versions of a Delta table that can be read, with the files of all of them, from one pass over the log.

Every commit is read once, so the cost follows the actions in the log and not versions times files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.errors import NotFoundError
from lakebloom.storage import open_storage
from lakebloom.tables.formats.delta.actions import parse_actions
from lakebloom.tables.formats.delta.checkpoints import read_checkpoint
from lakebloom.tables.formats.delta.features import mapping_of
from lakebloom.tables.formats.delta.intervals import interval_ms
from lakebloom.tables.formats.delta.log_files import LOG, commit_name, list_log
from lakebloom.tables.formats.delta.state import StateBuilder
from lakebloom.tables.formats.table_history import RetainedFile, RetainedVersion, TableHistory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.formats.delta.actions import Metadata
    from lakebloom.tables.formats.delta.log_files import LogFiles
    from lakebloom.tables.formats.delta.state import State
    from lakebloom.tables.formats.table_snapshot import DataFile

__all__ = ["delta_history"]

_FILE_RETENTION = "delta.deletedFileRetentionDuration"
_LOG_RETENTION = "delta.logRetentionDuration"
_VECTORS = "delta.enableDeletionVectors"
_DEFAULTS = {_FILE_RETENTION: "interval 1 week", _LOG_RETENTION: "interval 30 days"}


def delta_history(table_uri: str, options: Mapping[str, str]) -> TableHistory:
    """Return the retained versions of the Delta table at a canonical URI.

    Raises NotFoundError where there is no log, UnsupportedSourceError for a table with a version that must not be
    read (``features``) or with a gap at the end of its log, and DataFileError for a log that is damaged.
    """
    files = list_log(table_uri, options, whole=True)
    readable = files.readable
    if not readable or readable[-1] != files.newest:
        raise NotFoundError(
            f"the newest version of the Delta table {table_uri} cannot be read",
            found=f"version {files.newest}, and no checkpoint or commits that lead to it",
            hint="restore the missing files of the log",
        )
    recorder = _Recorder(table_uri, options, files)
    for version in readable:
        recorder.go_to(version)
    return recorder.history()


class _Recorder:
    """Goes from version to version, and notes when each file comes and goes."""

    def __init__(self, table_uri: str, options: Mapping[str, str], files: LogFiles) -> None:
        self._table_uri, self._files = table_uri, files
        self._options = {} if table_uri.startswith("file:") else options
        self._storage = open_storage(f"{table_uri}/{LOG}", self._options)
        self._state: State | None = None
        self._open: dict[str, tuple[DataFile, int]] = {}
        self._closed: list[RetainedFile] = []
        self._versions: list[RetainedVersion] = []

    def go_to(self, version: int) -> None:
        """Take the next readable version."""
        follows = self._state is not None and version == self._state.version + 1
        if (follows or version == 0) and version in self._files.commits:
            self._commit(version)
        else:
            self._checkpoint(version)
        assert self._state is not None
        self._versions.append(self._described(self._state))

    def history(self) -> TableHistory:
        """Return what was noted."""
        assert self._state is not None
        last = len(self._versions) - 1
        current = [RetainedFile(entry, first, last, None) for entry, first in self._open.values()]
        metadata = self._state.metadata
        hides = (metadata.configuration.get(_VECTORS) or "").lower() == "true"
        return TableHistory(
            tuple(self._versions),
            (*self._closed, *current),
            _duration_ms(metadata, _FILE_RETENTION),
            _duration_ms(metadata, _LOG_RETENTION),
            hides or any(file.data_file.deletes is not None for file in current),
        )

    def _commit(self, version: int) -> None:
        name = commit_name(version)
        uri = f"{self._storage.uri}/{name}"
        actions = parse_actions(uri, self._storage.read(name))
        builder = _Changes(self._table_uri, self._state)
        builder.apply(uri, actions)
        self._state = builder.finish(version)
        for key, removed_ms in builder.removed.items():
            self._close(key, removed_ms or self._time_ms(self._state))
        for key, entry in builder.added.items():
            self._add(key, entry)

    def _checkpoint(self, version: int) -> None:
        """Start again from a checkpoint: how the version before led to it is not known."""
        checkpoint = self._files.checkpoint_of(version)
        assert checkpoint is not None
        builder = StateBuilder(self._table_uri)
        uri = f"{self._storage.uri}/{checkpoint.names[0]}"
        builder.apply(uri, read_checkpoint(self._table_uri, checkpoint, self._options))
        self._state = builder.finish(version)
        for key in [key for key in self._open if key not in self._state.entries]:
            self._close(key, None)
        for key, entry in self._state.entries.items():
            self._add(key, entry)

    def _add(self, key: str, entry: DataFile) -> None:
        known = self._open.get(key)
        if known is not None and known[0] == entry:
            return
        if known is not None:
            self._close(key, None)
        self._open[key] = entry, len(self._versions)

    def _close(self, key: str, removed_ms: int | None) -> None:
        known = self._open.pop(key, None)
        if known is not None and known[1] < len(self._versions):
            self._closed.append(RetainedFile(known[0], known[1], len(self._versions) - 1, removed_ms))

    def _described(self, state: State) -> RetainedVersion:
        metadata = state.metadata
        return RetainedVersion(
            metadata.id,
            state.version,
            self._time_ms(state),
            metadata.schema_string,
            mapping_of(self._table_uri, metadata),
            metadata.partition_columns,
        )

    def _time_ms(self, state: State) -> int | None:
        if state.in_commit_ms is not None:
            return state.in_commit_ms
        commit = self._files.commits.get(state.version)
        return None if commit is None else commit.mtime_ms


class _Changes(StateBuilder):
    """Replays one commit on the state before it, which is changed: whoever has it needs only what it says of itself."""

    def __init__(self, table_uri: str, base: State | None) -> None:
        super().__init__(table_uri, base)
        self._entries = {} if base is None else base.entries
        self.removed: dict[str, int | None] = {}
        self.added: dict[str, DataFile] = {}

    def _put(self, key: str, entry: DataFile) -> None:
        super()._put(key, entry)
        self.added[key] = entry

    def _drop(self, key: str, removed_ms: int | None) -> None:
        super()._drop(key, removed_ms)
        self.removed[key] = removed_ms
        self.added.pop(key, None)


def _duration_ms(metadata: Metadata, key: str) -> int | None:
    return interval_ms(metadata.configuration.get(key) or _DEFAULTS[key])

"""All versions of a Delta table that can be read, with the files of all of them, from one pass over the log.

Every commit is read once, so the cost follows the actions in the log and not versions times files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.errors import NotFoundError
from lakebloom.storage import open_storage
from lakebloom.tables.formats.delta.actions import parse_actions
from lakebloom.tables.formats.delta.checkpoints import read_checkpoint
from lakebloom.tables.formats.delta.cleaned import noticing, until_stable
from lakebloom.tables.formats.delta.features import mapping_of
from lakebloom.tables.formats.delta.intervals import interval_ms
from lakebloom.tables.formats.delta.log_files import LOG, commit_name, list_log
from lakebloom.tables.formats.delta.state import StateBuilder
from lakebloom.tables.formats.history_recorder import HistoryRecorder
from lakebloom.tables.formats.table_history import RetainedVersion, TableHistory

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
    return until_stable(lambda: _history(table_uri, options))


def _history(table_uri: str, options: Mapping[str, str]) -> TableHistory:
    files = list_log(table_uri, options, whole=True)
    readable = files.readable
    if not readable or readable[-1] != files.newest:
        raise NotFoundError(
            f"the newest version of the Delta table {table_uri} cannot be read",
            found=f"version {files.newest}, and no checkpoint or commits that lead to it",
            hint="restore the missing files of the log",
        )
    walk = _Walk(table_uri, options, files)
    for version in readable:
        walk.go_to(version)
    return walk.history()


class _Walk:
    """Goes through the log from version to version."""

    def __init__(self, table_uri: str, options: Mapping[str, str], files: LogFiles) -> None:
        self._table_uri, self._files = table_uri, files
        self._options = {} if table_uri.startswith("file:") else options
        self._storage = open_storage(f"{table_uri}/{LOG}", self._options)
        self._state: State | None = None
        self._recorder = HistoryRecorder()

    def go_to(self, version: int) -> None:
        """Take the next readable version."""
        follows = self._state is not None and version == self._state.version + 1
        if (follows or version == 0) and version in self._files.commits:
            self._state = self._commit(version)
        else:
            self._state = self._checkpoint(version)
        self._recorder.finish_version(self._described(self._state))

    def history(self) -> TableHistory:
        """Return what was noted."""
        assert self._state is not None
        metadata, entries = self._state.metadata, self._state.entries
        hides = (metadata.configuration.get(_VECTORS) or "").lower() == "true"
        return TableHistory(
            tuple(self._recorder.versions),
            self._recorder.files(),
            _duration_ms(metadata, _FILE_RETENTION),
            _duration_ms(metadata, _LOG_RETENTION),
            hides or any(file.deletes is not None for file in entries.values()),
        )

    def _commit(self, version: int) -> State:
        name = commit_name(version)
        uri = f"{self._storage.uri}/{name}"
        with noticing():
            data = self._storage.read(name)
        actions = parse_actions(uri, data)
        builder = _Changes(self._table_uri, self._state)
        builder.apply(uri, actions)
        state = builder.finish(version)
        for key, removed_ms in builder.removed.items():
            self._recorder.drop(key, removed_ms or self._time_ms(state))
        for key, entry in builder.added.items():
            self._recorder.put(key, entry)
        return state

    def _checkpoint(self, version: int) -> State:
        """Start again from a checkpoint: how the version before led to it is not known."""
        checkpoint = self._files.checkpoint_of(version)
        assert checkpoint is not None
        builder = StateBuilder(self._table_uri)
        uri = f"{self._storage.uri}/{checkpoint.names[0]}"
        with noticing():
            builder.apply(uri, read_checkpoint(self._table_uri, checkpoint, self._options))
        state = builder.finish(version)
        self._recorder.replace(state.entries, None)
        return state

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

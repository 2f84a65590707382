"""The log of a Delta table: its newest version, and those before it.

The first question lists the log and reads a checkpoint and the commits after it. From then on the last state is kept,
and one small request asks for the commit after it: nothing else is read where nothing is new. Once a minute the log is
listed again, because the commit that is asked for may have been cleaned up behind a later checkpoint. A table that was
removed and made anew in the same place is noticed by the file of the last known commit, or of its checkpoint if only
that is left, before newer commits are added to the state of the old table; on local disk, where looking costs nothing,
that file is looked at each time.

Older versions that were asked for last are kept, too, as long as their commits are the same files: reading one again
would cost a listing, a checkpoint and the commits after it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from lakebloom.errors import InvalidArgumentError, NotFoundError
from lakebloom.locks import new_lock
from lakebloom.storage import open_storage
from lakebloom.tables.file_identity import is_object, is_reachable, is_same
from lakebloom.tables.formats.delta.actions import parse_actions
from lakebloom.tables.formats.delta.checkpoints import read_checkpoint
from lakebloom.tables.formats.delta.cleaned import LogCleanedError, noticing, until_stable
from lakebloom.tables.formats.delta.log_files import LOG, commit_name, list_log, require_no_gap
from lakebloom.tables.formats.delta.snapshot import DeltaSnapshot
from lakebloom.tables.formats.delta.state import StateBuilder
from lakebloom.tables.formats.delta.times import version_at
from lakebloom.tables.listing.listing import stat_file
from lakebloom.tuning import KEPT_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.formats.delta.log_files import LogFiles
    from lakebloom.tables.formats.delta.state import State

__all__ = ["DeltaLog"]

_LISTED_AGAIN_S = 60.0
"""After so long it is not enough that the next commit is not there."""


class DeltaLog:
    """The log at a table's canonical URI. Threads may share it."""

    def __init__(
        self, table_uri: str, options: Mapping[str, str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not is_reachable(table_uri):
            raise InvalidArgumentError(
                f"{table_uri} can only be reached through Spark",
                hint="use a local path, s3://, gs://, az:// or abfs://",
            )
        self.table_uri = table_uri
        self._options = {} if table_uri.startswith("file:") else dict(options or {})
        self._storage = open_storage(f"{table_uri}/{LOG}", self._options)
        self._clock = clock
        self._lock = new_lock()
        self._kept: _Kept | None = None
        self._older: dict[int, _Kept] = {}

    def newest(self) -> DeltaSnapshot:
        """Return the newest version; the same object as long as there is no newer one.

        Raises NotFoundError where there is no log, UnsupportedSourceError for a table that must not be read (see
        ``features``) or whose log has a gap, and DataFileError for a log that is damaged.
        """
        return until_stable(self._newest)

    def _newest(self) -> DeltaSnapshot:
        with self._lock:
            kept = self._kept
        if kept is None or self._clock() - kept.listed_at > _LISTED_AGAIN_S:
            return self._keep(kept, self._listed(kept))
        next_file = self._stat(kept.version + 1)
        # On an object store each look is a request: the known commit is looked at only where there is a newer one.
        if (next_file is not None or not is_object(self.table_uri)) and not self._is_there(kept):
            return self._keep(kept, self._listed(None))
        if next_file is None:
            return kept.snapshot
        try:
            return self._keep(kept, self._followed(kept))
        except LogCleanedError:
            return self._keep(kept, self._listed(kept))

    def at(self, version: int) -> DeltaSnapshot:
        """Return a version. Raises NotFoundError for one that is not there, and the errors of ``newest``."""
        if version < 0:
            raise InvalidArgumentError("a version must not be negative", found=version)
        newest = self.newest()
        if version == newest.version:
            return newest
        file = self._stat(version)
        with self._lock:
            known = self._older.get(version)
        if known is None or not is_same(known.file, file):
            known = _Kept(until_stable(lambda: self._read_again(version)), file, self._clock())
        self._keep_older(known)
        return known.snapshot

    def at_timestamp(self, timestamp_ms: int) -> DeltaSnapshot:
        """Return the version that was the newest at a time. Raises NotFoundError where there was none yet."""
        newest = self.newest()
        files = list_log(self.table_uri, self._options, whole=True)
        return self.at(version_at(newest, files, self._storage, timestamp_ms))

    def _read_again(self, version: int) -> DeltaSnapshot:
        return self._snapshot(self._read(list_log(self.table_uri, self._options, whole=True), version))

    def _listed(self, kept: _Kept | None) -> _Kept:
        """Return the newest version according to a listing, from a known one on where that is possible."""
        listed_at = self._clock()
        files = list_log(self.table_uri, self._options)
        newest = files.newest
        assert newest is not None
        if kept is None or newest < kept.version or not self._is_there(kept):
            file = self._file_of(newest, files)
            return self._followed(_Kept(self._snapshot(self._read(files, newest)), file, listed_at))
        if newest > kept.version:
            file = self._file_of(newest, files)
            state = self._read(files, newest, kept.state)
            return self._followed(_Kept(self._snapshot(state, kept.snapshot), file, listed_at))
        return self._followed(kept._replace(listed_at=listed_at))

    def _read(self, files: LogFiles, version: int, known: State | None = None) -> State:
        newest = files.newest
        if newest is None or version > newest:
            raise self._missing(files, version)
        checkpoint = files.checkpoint_of(version)
        if known is not None and (checkpoint is None or checkpoint.version <= known.version):
            require_no_gap(self.table_uri, files, known.version + 1, version)
            builder, first = StateBuilder(self.table_uri, known), known.version + 1
        elif checkpoint is not None:
            require_no_gap(self.table_uri, files, checkpoint.version + 1, version)
            builder, first = StateBuilder(self.table_uri), checkpoint.version + 1
            uri = f"{self._storage.uri}/{checkpoint.names[0]}"
            with noticing():
                builder.apply(uri, read_checkpoint(self.table_uri, checkpoint, self._options))
        else:
            if 0 not in files.commits and files.readable:
                raise self._missing(files, version)
            require_no_gap(self.table_uri, files, 0, version)
            builder, first = StateBuilder(self.table_uri), 0
        for number in range(first, version + 1):
            self._apply(builder, number)
        return builder.finish(version)

    def _followed(self, kept: _Kept) -> _Kept:
        """Return the newest version that is reached by reading the commits after one."""
        builder, version, file = StateBuilder(self.table_uri, kept.state), kept.version, kept.file
        while (next_file := self._stat(version + 1)) is not None:
            self._apply(builder, version + 1)
            version, file = version + 1, next_file
        if version == kept.version:
            return kept
        return _Kept(self._snapshot(builder.finish(version), kept.snapshot), file, kept.listed_at)

    def _apply(self, builder: StateBuilder, version: int) -> None:
        name = commit_name(version)
        uri = f"{self._storage.uri}/{name}"
        with noticing():
            data = self._storage.read(name)
        builder.apply(uri, parse_actions(uri, data))

    def _stat(self, version: int) -> TableFile | None:
        return stat_file(f"{self._storage.uri}/{commit_name(version)}", self._options)

    def _file_of(self, version: int, files: LogFiles) -> TableFile | None:
        """Return the file of a commit; that of its checkpoint where only that is left."""
        checkpoint = files.checkpoint_of(version)
        if (found := self._stat(version)) is not None or checkpoint is None:
            return found
        return stat_file(f"{self._storage.uri}/{checkpoint.names[0]}", self._options)

    def _is_there(self, kept: _Kept) -> bool:
        """Tell whether the file of a version is the same. If not, it was cleaned up, or this is another table."""
        return kept.file is not None and is_same(kept.file, stat_file(kept.file.uri, self._options))

    def _keep(self, before: _Kept | None, found: _Kept) -> DeltaSnapshot:
        with self._lock:
            if self._kept is before or self._kept is None:
                self._kept = found  # otherwise another thread was quicker
        return found.snapshot

    def _keep_older(self, found: _Kept) -> None:
        """Keep the versions that were asked for last. Without a file nothing would tell whether one is the same."""
        with self._lock:
            self._older.pop(found.version, None)
            if found.file is not None:
                self._older[found.version] = found
            for version in list(self._older)[:-KEPT_VERSIONS]:
                del self._older[version]

    def _snapshot(self, state: State, before: DeltaSnapshot | None = None) -> DeltaSnapshot:
        return DeltaSnapshot(self.table_uri, self._options, state, before)

    def _missing(self, files: LogFiles, version: int) -> NotFoundError:
        readable = files.readable
        return NotFoundError(
            f"the Delta table {self.table_uri} has no version {version}",
            found=f"versions {readable[0]} to {readable[-1]}" if readable else "no version that can be read",
            hint="the log keeps versions for delta.logRetentionDuration; choose one of these",
        )


class _Kept(NamedTuple):
    """A version: the newest as far as it is known, or one that was asked for."""

    snapshot: DeltaSnapshot
    file: TableFile | None
    """That of its commit, or of its checkpoint (``_file_of``), as it was before it was read; None if it vanished."""
    listed_at: float

    @property
    def state(self) -> State:
        return self.snapshot.state

    @property
    def version(self) -> int:
        return self.snapshot.version

"""The indexes below a location: each has its own directory and log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lakebloom.errors import CommitConflictError, IndexStateError, LakebloomError
from lakebloom.index.config import is_name, require_name
from lakebloom.storage import normalise, open_index_storage, open_storage
from lakebloom.storage.local.storage import LocalStorage
from lakebloom.storage.objects.redaction import StorageOptions
from lakebloom.store.log import Log
from lakebloom.timeout import side_by_side, within

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from lakebloom.index.snapshot import Snapshot
    from lakebloom.storage import Storage
    from lakebloom.store.records import Commit


class Index:
    """One index: its files and its log."""

    def __init__(self, name: str, storage: Storage, options: Mapping[str, str] | None = None) -> None:
        """``options`` configure the object store of the index and of its table."""
        self.name = name
        self.storage = storage
        self.options = StorageOptions(options or {})
        self.log = Log(storage, name)
        self._opened: Snapshot | None = None

    def opened(self, commit: Commit) -> Snapshot:
        """Return a version, open. Segments that the version opened before has, too, stay open."""
        from lakebloom.index.snapshot import Snapshot

        # What is returned learns which files the table has, which may be millions; what is kept has segments only.
        self._opened = Snapshot(self.storage, commit, self._opened)
        return Snapshot(self.storage, commit, self._opened)

    def release(self) -> None:
        """Keep no version open."""
        self._opened = None

    def active(self) -> Commit:
        """Return the newest state. Raises IndexNotFoundError, or IndexStateError for a deleted index."""
        return require_active(self.log.newest())


def require_active(commit: Commit) -> Commit:
    """Return the commit of an index that is not deleted."""
    if commit.state == "active":
        return commit
    raise IndexStateError(
        f"index {commit.config.name!r} is deleted",
        found=f"deleted in version {commit.version}",
        hint=f"lake.restore_index({commit.config.name!r}) brings it back",
    )


def require_same(base: Commit, started: Commit, doing: str) -> Commit:
    """Return a commit of the index that an operation started from. Raises IndexStateError or CommitConflictError."""
    if require_active(base).origin == started.origin:
        return base
    raise CommitConflictError(
        f"cannot finish {doing} of index {base.config.name!r}",
        found=f"another index replaced it meanwhile, at version {base.version}",
        hint="run it again",
    )


class Catalog:
    """The indexes below one location."""

    def __init__(
        self,
        location: str | os.PathLike[str],
        options: Mapping[str, str] | None = None,
        spark: Any = None,
        wrap: Callable[[Storage], Storage] = lambda storage: storage,
    ) -> None:
        self.location = normalise(location)
        self.options = StorageOptions(options or {})
        self._spark = spark
        self._wrap = wrap
        self._open: dict[str, Index] = {}

    def storage_uri(self, name: str) -> str:
        """Return the location of an index's own files."""
        return f"{self.location.rstrip('/')}/{require_name(name)}"

    def index(self, name: str) -> Index:
        """Return the index of this name, which may not exist. Its log is read on first use."""
        if name not in self._open:
            storage = open_index_storage(self.storage_uri(name), self.options, self._spark)
            self._open[name] = Index(name, self._wrap(storage), self.options)
        return self._open[name]

    def release(self) -> None:
        """Keep no version of an index open."""
        for index in list(self._open.values()):
            index.release()

    def newest_commits(self, timeout_s: float) -> dict[str, Commit | Exception]:
        """Return the newest state of each index, or why it cannot be read. All are read side by side, in this time.

        Raises TimeoutError where the location cannot be listed in time.
        """
        names = within(timeout_s, self.names)
        return dict(side_by_side(timeout_s, {name: partial(self._newest_commit, name) for name in names}))

    def _newest_commit(self, name: str) -> Commit | Exception:
        try:
            return self.index(name).log.newest()
        except LakebloomError as error:
            return error

    def names(self) -> list[str]:
        """Return the names of all indexes, deleted ones included. This lists the location."""
        storage = open_storage(self.location, self.options, self._spark)
        if isinstance(storage, LocalStorage):
            # One by one: the directory of an index may be a link, but links below it are not followed.
            folders = [name for name in storage.folders() if is_name(name)]
            return [name for name in folders if any(True for _ in LocalStorage(self.storage_uri(name)).list("log"))]
        paths = (file.path.split("/") for file in storage.list(""))
        return sorted({path[0] for path in paths if len(path) == 3 and path[1] == "log" and is_name(path[0])})

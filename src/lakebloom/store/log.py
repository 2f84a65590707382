"""The log: numbered, write-once commits. The newest commit is the whole state of the index.

    log/00000000000000000001.json       {"lakebloom": 2, "crc32": 2774354842}\\n
    log/00000000000000000002.json       {"version": 2, ...}\\n
    log/latest                          2

Put-if-absent decides which writer gets a version number, so no commit is ever lost or overwritten. ``latest`` is only a
hint, written after the commit: a reader starts there and goes on until a number is missing, so it finds the newest
commit without listing. A hint that is missing, damaged or old costs time, never correctness.

A number can also be missing because its commit was vacuumed, and a writer that was suspended may write it a second
time. So all keep one law: **the highest version is never removed**. Vacuum removes lower ones only, and an index that
is removed leaves a commit with the state ``removed``. A writer lists the log and builds on the highest version. After
its put it checks that its version is the highest, or an ancestor of the highest. If not, it was too late: it deletes
its commit and starts again. Readers look for the highest version once a minute, because an older version gives the same
results (docs/decisions/0025).
"""

from __future__ import annotations

import os
import re
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from lakebloom import __version__
from lakebloom.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptIndexError,
    IndexFormatError,
    IndexNotFoundError,
    NotFoundError,
    StorageError,
)
from lakebloom.store.commits import FOLDER, corrupt_commit, decode_commit, entry_path, readable
from lakebloom.store.records import LINEAGE, Commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakebloom.storage import Storage, StoredFile

WRITER = f"lakebloom {__version__}"

HINT = f"{FOLDER}/latest"
_COMMIT = re.compile(rf"{FOLDER}/(?P<version>[0-9]{{20}})\.json")
_NUMBER = re.compile(rb"[0-9]{1,20}")
_ORIGINS = ("create", "replace")
"""Operations that start another index in the same log."""
_ATTEMPTS = 100
_PAUSE_S, _MAX_PAUSE_S = 0.02, 0.5
_TRUSTED_S = 60.0
"""How long a reader follows the log from the version it knows before it checks whether that was vacuumed."""
_MOST_AHEAD_MS = 60 * 60 * 1000
"""A timestamp that is further ahead than this is considered wrong."""


class Log:
    """The log of one index."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name
        self._newest: Commit | None = None
        self._looked_at_s = 0.0
        self._next: tuple[Commit, str] | None = None

    # Reading

    def read(self, version: int) -> Commit:
        """Return one commit. Raises NotFoundError if it was never written, or was vacuumed."""
        path = entry_path(version)
        commit = decode_commit(bytes(self._storage.read(path)), path)
        if commit.version != version:
            raise corrupt_commit(path, f"version {commit.version}")
        return commit

    def newest(self) -> Commit:
        """Return the newest commit, for readers, with one read if nothing is new. Raises IndexNotFoundError.

        For up to a minute after a vacuum it may be an older one, which gives the same results.
        """
        known = self._newest
        if known is None:
            return self._known(self._from_hint())
        if time.monotonic() - self._looked_at_s > _TRUSTED_S:
            return self._known(self._looked_again(known))
        following = self._next
        if following is not None and following[0] is known and _is_absent(following[1]):
            return known
        self._newest = found = self.present(self._follow(known))
        file = getattr(self._storage, "file", None)  # of local storages, metered ones too
        self._next = None if file is None else (found, file(entry_path(found.version + 1)))
        return found

    def confirmed(self) -> Commit:
        """Return the newest commit as it is stored now, for writers. Lists the log. Raises IndexNotFoundError."""
        stored = self.tip()
        return self._known(self._newest if stored is not None and stored == self._newest else stored)

    def tip(self) -> Commit | None:
        """Return the commit with the highest version, also that of a removed index; None if there is no log.

        Only a listing can tell: a missing version may have been vacuumed, and a commit before a gap may be one that
        was written too late (``_stands``).
        """
        return self.listed()[0]

    def listed(self) -> tuple[Commit | None, dict[int, int]]:
        """Return the commit with the highest version, and the time of each version by the store's clock."""
        for _ in range(_ATTEMPTS):
            stored = _commit_times(self._storage.list(FOLDER))
            if not stored:
                return None, stored
            with suppress(NotFoundError):  # vacuumed since the listing: there is a newer one, or none
                return self.read(max(stored)), stored
        raise self._conflict("commits were vacuumed")

    def versions(self) -> list[int]:
        """Return the stored versions in order. Lists the log."""
        return sorted(_commit_times(self._storage.list(FOLDER)))

    def clock(self, newest: int) -> tuple[int, dict[int, int]]:
        """Return the current time and the time of each version, in milliseconds by the store's clock.

        The current time is that of the hint, which is written again. This machine's clock may differ from the store's,
        and must not make a new file look old.
        """
        for _ in range(_ATTEMPTS):
            self._storage.write(HINT, str(newest).encode())
            files = list(self._storage.list(FOLDER))
            for file in files:
                if file.path == HINT:
                    return file.mtime_ms, _commit_times(files)
        raise self._conflict("the hint was removed")

    def _known(self, commit: Commit | None) -> Commit:
        self._newest, self._looked_at_s = self.present(commit), time.monotonic()
        return self._newest

    def present(self, commit: Commit | None) -> Commit:
        """Return the commit of an existing index. Raises IndexNotFoundError."""
        if commit is not None and commit.state != "removed":
            return commit
        self._newest = None
        raise IndexNotFoundError(
            f"there is no index named {self._name!r}",
            found=f"no log at {self._storage.uri}" if commit is None else f"it was removed in version {commit.version}",
            hint="see lake.indexes() for those that exist",
        )

    def _follow(self, commit: Commit) -> Commit:
        file = getattr(self._storage, "file", None)
        while file is None or not _is_absent(file(entry_path(commit.version + 1))):
            try:
                commit = self.read(commit.version + 1)
            except NotFoundError:
                return commit
        return commit

    def _from_hint(self) -> Commit | None:
        hint = self._hint()
        if hint is not None:
            with suppress(NotFoundError):
                return self._follow(self.read(hint))
        return self.tip()

    def _looked_again(self, known: Commit) -> Commit | None:
        hint = self._hint()
        if hint is not None and hint <= known.version:
            commit = self._follow(known)
            if commit is not known:
                return commit
            with suppress(NotFoundError):
                stored = self.read(known.version)
                return known if stored == known else stored
        return self._from_hint()

    def _hint(self) -> int | None:
        with suppress(NotFoundError):
            hint = bytes(self._storage.read(HINT))
            return int(hint) if _NUMBER.fullmatch(hint) else None
        return None

    def is_cut(self) -> bool:
        """Tell whether the newest commit is missing: the hint is written after it, and no vacuum removes it."""
        hint = self._hint()
        return hint is not None and hint > max(self.versions(), default=hint)

    def forget(self) -> None:
        """Forget the newest commit: the next call reads from storage, as a new process would."""
        self._newest = None

    # Writing

    def create(self, commit: Commit) -> Commit:
        """Write the first commit, or the first one after the index was removed, and return it as written.

        Raises AlreadyExistsError if the index exists. An index whose newest commit cannot be read is replaced.
        """
        try:
            base = self.tip()
        except CorruptIndexError:
            return self.force(commit, max(self.versions()))
        if base is None or base.state == "removed":
            made = self._successor(base, commit)
            if self._put(made):
                return made
        raise AlreadyExistsError(
            f"there is an index named {self._name!r}",
            found="its log" if base is None else f"version {base.version}",
            hint="read what the other writer stored",
        )

    def commit(self, change: Callable[[Commit], Commit | None]) -> Commit | None:
        """Apply a change to the newest commit and write the next one; return None if the change returns None.

        ``change`` may run several times: if another writer is first, it is applied to that writer's commit. It raises
        for a state that it cannot change.
        """
        for attempt in range(_ATTEMPTS):
            self._pause(attempt)
            base = self.confirmed()
            changed = change(base)
            if changed is None:
                return None
            commit = self._successor(base, changed)
            if self._put(commit):
                return commit
        raise self._conflict("another writer was first")

    def replace(self, change: Callable[[Commit | None], Commit]) -> Commit:
        """Write the next commit on top of anything: an empty log, any state, or a damaged commit.

        ``change`` gets the newest commit, None if there is none or it is damaged. It may run several times, and raises
        for a state that it does not replace.
        """
        for attempt in range(_ATTEMPTS):
            self._pause(attempt)
            try:
                base = self.tip()
            except CorruptIndexError:
                return self.force(change(None), max(self.versions()))
            commit = self._successor(base, change(base))
            if self._put(commit):
                return commit
        raise self._conflict("another writer was first")

    @staticmethod
    def _pause(attempt: int) -> None:
        import random  # imported here: readers never need it

        # Without a random pause, writers that lost at the same moment would collide again.
        time.sleep(random.uniform(0, min(_MAX_PAUSE_S, attempt * _PAUSE_S)))

    def force(self, commit: Commit, highest: int) -> Commit:
        """Write a commit after the highest version without reading it; only for damaged logs.

        Raises CommitConflictError if another writer was first.
        """
        made = msgspec.structs.replace(self._successor(None, commit), version=highest + 1)
        if self._put(made):
            return made
        raise CommitConflictError(
            f"cannot commit to index {self._name!r}",
            found=f"another writer wrote version {made.version}",
            hint="try again if the index is still damaged",
        )

    def _successor(self, base: Commit | None, changed: Commit) -> Commit:
        made = new_id()
        return msgspec.structs.replace(
            changed,
            version=1 if base is None else base.version + 1,
            timestamp_ms=now_ms(0 if base is None else base.timestamp_ms),
            writer=WRITER,
            id=made,
            origin=made if changed.operation in _ORIGINS else changed.origin,
            lineage=() if base is None else (base.id, *base.lineage)[:LINEAGE],
        )

    def _put(self, commit: Commit) -> bool:
        """Write a commit, and tell whether it is the successor of its base."""
        try:
            self._storage.put_if_absent(entry_path(commit.version), readable(commit))
        except AlreadyExistsError:
            return False
        if not self._stands(commit):
            self._storage.delete(entry_path(commit.version))
            return False
        self._known_written(commit)
        return True

    def _stands(self, commit: Commit) -> bool:
        """Tell whether a commit that was just put is part of the log, and was not too late.

        A writer may be suspended for so long that others write its version, build on it and vacuum it; then its put
        succeeds again. But the highest version is never vacuumed: if there is no higher one, nobody wrote this version
        before. If there is one, its lineage tells.
        """
        try:
            for _ in range(_ATTEMPTS):
                highest = max(self.versions(), default=0)
                if highest <= commit.version:
                    return True
                with suppress(NotFoundError):
                    descends = self._descends(self.read(highest), commit)
                    if descends is not None:
                        return descends
                    break
        except IndexFormatError:
            pass
        raise StorageError(
            f"cannot tell whether version {commit.version} of index {self._name!r} was committed",
            found="later versions, and none whose lineage reaches back to it",
            hint=f"look at lake.history({self._name!r}) before trying again",
        )

    def _descends(self, later: Commit, commit: Commit) -> bool | None:
        """Tell whether a commit is an ancestor of a later one; None if commits between them were vacuumed."""
        while (descends := later.descends_from(commit)) is None:
            # The lineage does not reach back that far. The oldest commit that it names has the ids before.
            if not later.lineage or later.version - len(later.lineage) <= commit.version:
                return None
            try:
                ancestor = self.read(later.version - len(later.lineage))
            except NotFoundError:
                return None
            if ancestor.id != later.lineage[-1]:
                return None
            later = ancestor
        return descends

    def _conflict(self, found: str) -> CommitConflictError:
        return CommitConflictError(
            f"cannot commit to index {self._name!r}",
            found=f"{found} {_ATTEMPTS} times in a row",
            hint="try again when fewer writers are active",
        )

    def _known_written(self, commit: Commit) -> None:
        self._newest, self._looked_at_s = None if commit.state == "removed" else commit, time.monotonic()
        # The commit is written, and readers find it without the hint: no error here may fail it.
        with suppress(Exception):
            self._storage.write(HINT, str(commit.version).encode())


def _is_absent(file: str) -> bool:
    """Tell whether a local file is certainly not there. Each query looks, and an error takes much longer."""
    try:
        os.lstat(file)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _commit_times(files: Iterable[StoredFile]) -> dict[int, int]:
    matches = ((_COMMIT.fullmatch(file.path), file.mtime_ms) for file in files)
    return {int(match["version"]): mtime_ms for match, mtime_ms in matches if match is not None}


def new_id() -> str:
    """Return a random id for a commit."""
    return uuid.uuid4().hex[:16]


def now_ms(after: int = 0) -> int:
    """Return this machine's time in milliseconds, later than ``after`` even if a clock went back.

    If ``after`` is far ahead, its clock was wrong, and it is ignored. These times are for people only: vacuum uses the
    store's clock.
    """
    now = int(time.time() * 1000)
    return max(now, after + 1) if after <= now + _MOST_AHEAD_MS else now

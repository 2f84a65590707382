"""The files of a Delta log: which versions it has, and from which checkpoint one of them is read.

    <version>.json                              a commit
    <version>.checkpoint.parquet                a classic checkpoint: the whole state of a version
    <version>.checkpoint.<part>.<parts>.parquet a part of one; it counts only if all are there
    <version>.checkpoint.<uuid>.{json,parquet}  a checkpoint of version 2; parts of it are in _sidecars/
    _last_checkpoint                            the version of a checkpoint, as a hint

Versions have twenty digits. Anything else (checksums, compacted or staged commits) says nothing that these do not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from lakebloom.errors import NotFoundError, UnsupportedSourceError
from lakebloom.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakebloom.storage import Storage
    from lakebloom.storage.protocol import StoredFile

__all__ = ["LOG", "Checkpoint", "CommitFile", "LogFiles", "commit_name", "list_log"]

LOG = "_delta_log"
_HINT_FILE = "_last_checkpoint"
_VERSION = r"(?P<version>\d{20})"
_COMMIT = re.compile(rf"{_VERSION}\.json")
_CLASSIC = re.compile(rf"{_VERSION}\.checkpoint\.parquet")
_PART = re.compile(rf"{_VERSION}\.checkpoint\.(?P<part>\d{{10}})\.(?P<parts>\d{{10}})\.parquet")
_NEWER = re.compile(rf"{_VERSION}\.checkpoint\.[0-9A-Fa-f-]{{36}}\.(?:json|parquet)")


class CommitFile(NamedTuple):
    """A commit in a listing."""

    size_bytes: int
    mtime_ms: int


class Checkpoint(NamedTuple):
    """A complete checkpoint: the names of its files."""

    version: int
    names: tuple[str, ...]


class _Hint(msgspec.Struct, frozen=True):
    version: int


class LogFiles:
    """The commits and complete checkpoints of a listing, which may start at some version."""

    def __init__(self, files: Iterable[tuple[str, CommitFile]]) -> None:
        self.commits: dict[int, CommitFile] = {}
        self._checkpoints: dict[int, Checkpoint] = {}
        parts: dict[tuple[int, int], dict[int, str]] = {}
        for name, facts in files:
            if match := _COMMIT.fullmatch(name):
                self.commits[int(match["version"])] = facts
            elif match := _PART.fullmatch(name):
                parts.setdefault((int(match["version"]), int(match["parts"])), {})[int(match["part"])] = name
            elif match := _CLASSIC.fullmatch(name) or _NEWER.fullmatch(name):
                self._add(Checkpoint(int(match["version"]), (name,)))
        for (version, count), found in parts.items():
            if sorted(found) == list(range(1, count + 1)):
                self._add(Checkpoint(version, tuple(name for _, name in sorted(found.items()))))

    def _add(self, checkpoint: Checkpoint) -> None:
        """Of several checkpoints of a version any will do."""
        self._checkpoints.setdefault(checkpoint.version, checkpoint)

    @property
    def newest(self) -> int | None:
        """The newest version; None where there is none."""
        return max([*self.commits, *self._checkpoints], default=None)

    def checkpoint_of(self, version: int) -> Checkpoint | None:
        """Return the newest checkpoint that is not newer than a version."""
        best = max((number for number in self._checkpoints if number <= version), default=None)
        return None if best is None else self._checkpoints[best]

    def first_gap(self, first: int, last: int) -> int | None:
        """Return the first version from ``first`` to ``last`` without a commit."""
        return next((version for version in range(first, last + 1) if version not in self.commits), None)

    @property
    def readable(self) -> list[int]:
        """All versions that can be read, in their order: from a checkpoint, or from the first commit on."""
        found: list[int] = []
        known = -1
        for version in sorted({*self.commits, *self._checkpoints}):
            if version in self._checkpoints or (version in self.commits and version == known + 1):
                found.append(version)
                known = version
        return found


def commit_name(version: int) -> str:
    """Return the name of a commit's file."""
    return f"{version:020}.json"


def list_log(table_uri: str, options: Mapping[str, str], *, whole: bool = False) -> LogFiles:
    """List a log; on an object store from its last checkpoint on, unless ``whole``.

    Raises NotFoundError where there is no log.
    """
    storage = open_storage(f"{table_uri}/{LOG}", {} if table_uri.startswith("file:") else options)
    if table_uri.startswith("file:"):
        files = LogFiles(_facts(storage.list("")))
    else:
        # Here and not above: local tables work without loading obstore.
        from lakebloom.tables.listing.objects import names_after

        hint = None if whole else _hinted(storage)
        start = "" if hint is None else f"{hint:020}"
        files = LogFiles(_facts(names_after(storage.uri, start, options)))
        if hint is not None and (files.newest is None or files.checkpoint_of(hint) is None):
            files = LogFiles(_facts(names_after(storage.uri, "", options)))
    if files.newest is None:
        raise NotFoundError(f"there is no Delta log at {storage.uri}", hint="check the path of the table")
    return files


def require_no_gap(table_uri: str, files: LogFiles, first: int, last: int) -> None:
    """Raise UnsupportedSourceError where a commit is missing between two versions."""
    gap = files.first_gap(first, last)
    if gap is not None:
        raise UnsupportedSourceError(
            f"the log of the Delta table {table_uri} is incomplete: version {gap} is missing",
            found=f"no {commit_name(gap)}, and no later checkpoint up to version {last}",
            hint="restore the file; or query the table with Delta to see whether it can read it",
        )


def _hinted(storage: Storage) -> int | None:
    """Return the version of the last checkpoint, if the log says so."""
    try:
        return max(0, msgspec.json.decode(storage.read(_HINT_FILE), type=_Hint).version)
    except (NotFoundError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None  # it is a hint


def _facts(files: Iterable[StoredFile]) -> Iterable[tuple[str, CommitFile]]:
    return ((file.path, CommitFile(file.size_bytes, file.mtime_ms)) for file in files)

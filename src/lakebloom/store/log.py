"""The log: numbered, write-once entries, of which the newest is the whole state.

    log/00000000000000000001.json       {"lakebloom": 1, "crc32": 2774354842}\\n
    log/00000000000000000002.json       {"version": 2, ...}\\n
    log/latest                          2

Put-if-absent decides who writes a number, so no commit is ever lost or overwritten. ``latest`` is only a hint, written
after the fact: a reader starts there and goes on until a number is missing, so finding the newest entry lists nothing.
A hint that is missing, damaged or behind costs time, never correctness.

A number can also be missing because its entry was vacuumed. The oldest go first, so an entry that is still there after
its successor was found missing is the newest. Writers look every time, because a number must never be given twice;
readers look once a minute, because an older version answers as correctly.
"""

from __future__ import annotations

import random
import re
import time
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from lakebloom import __version__
from lakebloom.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptIndexError,
    IndexNotFoundError,
    NotFoundError,
    UnknownFormatError,
)
from lakebloom.store.records import FORMAT_VERSION, Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.storage import Storage

WRITER = f"lakebloom {__version__}"

_FOLDER = "log"
HINT = f"{_FOLDER}/latest"
_ENTRY = re.compile(rf"{_FOLDER}/(?P<version>[0-9]{{20}})\.json")
_NUMBER = re.compile(rb"[0-9]{1,20}")
_ATTEMPTS = 100
_PAUSE_S, _MAX_PAUSE_S = 0.02, 0.5
_TRUSTED_S = 60.0
"""How long a reader goes on from what it knows without looking whether that was vacuumed."""


class _Preamble(msgspec.Struct):
    lakebloom: int
    crc32: int


def encode_entry(entry: Entry) -> bytes:
    """Return an entry's bytes: a line with the format version and checksum, and a line with the entry."""
    body = msgspec.json.encode(entry)
    return msgspec.json.encode(_Preamble(FORMAT_VERSION, zlib.crc32(body))) + b"\n" + body + b"\n"


def decode_entry(data: bytes, path: str) -> Entry:
    """Return the entry of these bytes. Raises CorruptIndexError or UnknownFormatError."""
    first, _, rest = data.partition(b"\n")
    body = rest.removesuffix(b"\n")
    try:
        preamble = msgspec.json.decode(first, type=_Preamble)
    except msgspec.MsgspecError as error:
        raise _corrupt(path, str(error)) from error
    if preamble.lakebloom != FORMAT_VERSION:
        raise UnknownFormatError(
            f"cannot read {path}: this version of lakebloom reads format {FORMAT_VERSION}",
            found=f"format {preamble.lakebloom}",
            hint="upgrade lakebloom; until then queries read all files",
        )
    if zlib.crc32(body) != preamble.crc32:
        raise _corrupt(path, "a checksum that does not fit")
    try:
        return msgspec.json.decode(body, type=Entry)
    except msgspec.MsgspecError as error:
        raise _corrupt(path, str(error)) from error


def _corrupt(path: str, found: str) -> CorruptIndexError:
    return CorruptIndexError(
        f"cannot read the log entry {path}",
        found=found,
        hint="restore the file from a backup, or create the index anew; until then queries read all files",
    )


def entry_path(version: int) -> str:
    """Return where an entry is stored.

    >>> entry_path(7)
    'log/00000000000000000007.json'
    """
    return f"{_FOLDER}/{version:020d}.json"


class Log:
    """The log of one index."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name
        self._newest: Entry | None = None
        self._confirmed_at_s = 0.0

    def read(self, version: int) -> Entry:
        """Return one entry. Raises NotFoundError where the number is not taken, or its entry was vacuumed."""
        path = entry_path(version)
        entry = decode_entry(bytes(self._storage.read(path)), path)
        if entry.version != version:
            raise _corrupt(path, f"the entry of version {entry.version}")
        return entry

    def newest(self) -> Entry:
        """Return the newest entry; one read where nothing is new. Raises IndexNotFoundError where there is none."""
        if self._newest is None or time.monotonic() - self._confirmed_at_s > _TRUSTED_S:
            return self.confirmed()
        self._newest = self._follow(self._newest)
        return self._newest

    def confirmed(self) -> Entry:
        """Return the newest entry as it is stored now, whatever was vacuumed, removed or created anew since."""
        known = self._newest
        if known is not None:
            entry = self._follow(known)
            if entry is not known:
                return self._known(entry)
            with suppress(NotFoundError):
                stored = self.read(known.version)
                return self._known(known if stored == known else stored)
        return self._known(self._follow(self._first_guess()))

    def _known(self, entry: Entry) -> Entry:
        self._newest, self._confirmed_at_s = entry, time.monotonic()
        return entry

    def _follow(self, entry: Entry) -> Entry:
        while True:
            try:
                entry = self.read(entry.version + 1)
            except NotFoundError:
                return entry

    def _first_guess(self) -> Entry:
        with suppress(NotFoundError):
            hint = bytes(self._storage.read(HINT))
            if _NUMBER.fullmatch(hint):
                return self.read(int(hint))
        for _ in range(_ATTEMPTS):
            versions = self.versions()
            if not versions:
                raise IndexNotFoundError(
                    f"there is no index named {self._name!r}",
                    found=f"no log at {self._storage.uri}",
                    hint="see lake.indexes() for those that exist",
                )
            with suppress(NotFoundError):  # vacuumed since it was listed: there is a newer one, or none at all
                return self.read(versions[-1])
        raise self._conflict("entries were vacuumed")

    def versions(self) -> list[int]:
        """Return the numbers of the entries that are stored, in order. This lists the log."""
        matches = (_ENTRY.fullmatch(file.path) for file in self._storage.list(_FOLDER))
        return sorted({int(match["version"]) for match in matches if match is not None})

    def create(self, entry: Entry) -> Entry:
        """Write the first entry. Raises AlreadyExistsError where there is one."""
        self._storage.put_if_absent(entry_path(entry.version), encode_entry(entry))
        self._written(entry)
        return entry

    def commit(self, change: Callable[[Entry], Entry | None]) -> Entry | None:
        """Apply a change to the newest state and write it as the next entry; None where the change gives nothing.

        ``change`` may run several times: when another writer takes the number first, it is applied to that writer's
        state. It raises for a state that it cannot change.
        """
        for attempt in range(_ATTEMPTS):
            # Writers that lost at the same moment would collide again, all but one in vain.
            time.sleep(random.uniform(0, min(_MAX_PAUSE_S, attempt * _PAUSE_S)))
            base = self.confirmed()
            changed = change(base)
            if changed is None:
                return None
            entry = msgspec.structs.replace(
                changed, version=base.version + 1, timestamp_ms=now_ms(base.timestamp_ms), writer=WRITER
            )
            try:
                self._storage.put_if_absent(entry_path(entry.version), encode_entry(entry))
            except AlreadyExistsError:
                continue
            self._written(entry)
            return entry
        raise self._conflict("another writer was first")

    def _conflict(self, found: str) -> CommitConflictError:
        return CommitConflictError(
            f"cannot commit to index {self._name!r}",
            found=f"{found} {_ATTEMPTS} times in a row",
            hint="try again when fewer writers are at work",
        )

    def _written(self, entry: Entry) -> None:
        self._known(entry)
        # Whatever goes wrong here: the commit stands, and readers find it without the hint.
        with suppress(Exception):
            self._storage.write(HINT, str(entry.version).encode())

    def forget(self) -> None:
        """Read from storage at the next question, as a new process would."""
        self._newest = None


def now_ms(after: int = 0) -> int:
    """Return the time in milliseconds, later than ``after`` even if a clock went back."""
    return max(int(time.time() * 1000), after + 1)

"""A commit as bytes: a line with the format version and a checksum, then the commit as one line of JSON."""

from __future__ import annotations

import zlib

import msgspec

from lakebloom.errors import CorruptIndexError, IndexFormatError
from lakebloom.store.bounds import MAX_COMMIT_BYTES, contradiction
from lakebloom.store.records import FORMAT_VERSION, REPAIR, Commit
from lakebloom.store.versions import unknown_format

__all__ = ["FOLDER", "corrupt_commit", "decode_commit", "encode_commit", "entry_path", "readable"]

FOLDER = "log"
"""The directory of commits, below the index."""


class _Preamble(msgspec.Struct):
    lakebloom: int
    crc32: int


def encode_commit(commit: Commit) -> bytes:
    """Return the bytes of a commit."""
    body = msgspec.json.encode(commit)
    return msgspec.json.encode(_Preamble(FORMAT_VERSION, zlib.crc32(body))) + b"\n" + body + b"\n"


def decode_commit(data: bytes, path: str) -> Commit:
    """Return the commit in these bytes. Raises CorruptIndexError or UnknownFormatError."""
    if len(data) > MAX_COMMIT_BYTES:
        raise corrupt_commit(path, f"{len(data)} bytes")
    first, _, rest = data.partition(b"\n")
    body = rest.removesuffix(b"\n")
    try:
        preamble = msgspec.json.decode(first, type=_Preamble)
    except msgspec.MsgspecError as error:
        raise corrupt_commit(path, str(error)) from error
    if preamble.lakebloom != FORMAT_VERSION:
        raise unknown_format(path, str(preamble.lakebloom))
    if zlib.crc32(body) != preamble.crc32:
        raise corrupt_commit(path, "a wrong checksum")
    try:
        commit = msgspec.json.decode(body, type=Commit)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise corrupt_commit(path, str(error)) from error
    found = contradiction(commit)
    if found is not None:
        raise corrupt_commit(path, found)
    return commit


def readable(commit: Commit) -> bytes:
    """Return the bytes of a commit, after checking that they decode to the same commit: a put cannot be undone."""
    data = encode_commit(commit)
    try:
        found = "another commit" if decode_commit(data, entry_path(commit.version)) != commit else ""
    except IndexFormatError as error:
        found = error.found
    if found:
        raise IndexFormatError(
            f"cannot commit version {commit.version} of index {commit.config.name!r}: its bytes decode differently",
            found=found,
            hint="nothing was committed; please report this bug",
        )
    return data


def corrupt_commit(path: str, found: str) -> CorruptIndexError:
    """Return the error for a commit that is not what was written."""
    return CorruptIndexError(
        f"cannot read the commit {path}",
        found=found,
        hint=REPAIR,
    )


def entry_path(version: int) -> str:
    """Return the path of a commit.

    >>> entry_path(7)
    'log/00000000000000000007.json'
    """
    return f"{FOLDER}/{version:020d}.json"

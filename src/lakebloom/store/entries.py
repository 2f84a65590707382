"""A commit as bytes: a line with the format version and a checksum, then the commit as one line of JSON."""

from __future__ import annotations

import zlib

import msgspec

from lakebloom.errors import CorruptIndexError, IndexFormatError, UnknownFormatError
from lakebloom.store.bounds import MAX_ENTRY_BYTES, contradiction
from lakebloom.store.records import FORMAT_VERSION, REPAIR, Entry

__all__ = ["FOLDER", "corrupt_entry", "decode_entry", "encode_entry", "entry_path", "readable"]

FOLDER = "log"
"""The directory of commits, below the index."""


class _Preamble(msgspec.Struct):
    lakebloom: int
    crc32: int


def encode_entry(entry: Entry) -> bytes:
    """Return the bytes of a commit."""
    body = msgspec.json.encode(entry)
    return msgspec.json.encode(_Preamble(FORMAT_VERSION, zlib.crc32(body))) + b"\n" + body + b"\n"


def decode_entry(data: bytes, path: str) -> Entry:
    """Return the commit in these bytes. Raises CorruptIndexError or UnknownFormatError."""
    if len(data) > MAX_ENTRY_BYTES:
        raise corrupt_entry(path, f"{len(data)} bytes")
    first, _, rest = data.partition(b"\n")
    body = rest.removesuffix(b"\n")
    try:
        preamble = msgspec.json.decode(first, type=_Preamble)
    except msgspec.MsgspecError as error:
        raise corrupt_entry(path, str(error)) from error
    if preamble.lakebloom != FORMAT_VERSION:
        raise UnknownFormatError(
            f"cannot read {path}: this version of lakebloom reads format {FORMAT_VERSION}",
            found=f"format {preamble.lakebloom}",
            hint="upgrade lakebloom; until then queries read all files",
        )
    if zlib.crc32(body) != preamble.crc32:
        raise corrupt_entry(path, "a wrong checksum")
    try:
        entry = msgspec.json.decode(body, type=Entry)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise corrupt_entry(path, str(error)) from error
    found = contradiction(entry)
    if found is not None:
        raise corrupt_entry(path, found)
    return entry


def readable(entry: Entry) -> bytes:
    """Return the bytes of a commit, after checking that they decode to the same commit: a put cannot be undone."""
    data = encode_entry(entry)
    try:
        found = "another commit" if decode_entry(data, entry_path(entry.version)) != entry else ""
    except IndexFormatError as error:
        found = error.found
    if found:
        raise IndexFormatError(
            f"cannot commit version {entry.version} of index {entry.config.name!r}: its bytes decode to something else",
            found=found,
            hint="nothing was committed; please report this bug",
        )
    return data


def corrupt_entry(path: str, found: str) -> CorruptIndexError:
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

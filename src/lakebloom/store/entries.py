"""A log entry as bytes: a line with the format and a checksum, then the entry as one line of JSON."""

from __future__ import annotations

import zlib

import msgspec

from lakebloom.errors import CorruptIndexError, IndexFormatError, UnknownFormatError
from lakebloom.store.bounds import MAX_ENTRY_BYTES, contradiction
from lakebloom.store.records import FORMAT_VERSION, REPAIR, Entry

__all__ = ["FOLDER", "corrupt_entry", "decode_entry", "encode_entry", "entry_path", "readable"]

FOLDER = "log"
"""Where entries lie, below the index."""


class _Preamble(msgspec.Struct):
    lakebloom: int
    crc32: int


def encode_entry(entry: Entry) -> bytes:
    """Return an entry's bytes: a line with the format version and checksum, and a line with the entry."""
    body = msgspec.json.encode(entry)
    return msgspec.json.encode(_Preamble(FORMAT_VERSION, zlib.crc32(body))) + b"\n" + body + b"\n"


def decode_entry(data: bytes, path: str) -> Entry:
    """Return the entry of these bytes. Raises CorruptIndexError or UnknownFormatError."""
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
        raise corrupt_entry(path, "a checksum that does not fit")
    try:
        entry = msgspec.json.decode(body, type=Entry)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise corrupt_entry(path, str(error)) from error
    found = contradiction(entry)
    if found is not None:
        raise corrupt_entry(path, found)
    return entry


def readable(entry: Entry) -> bytes:
    """Return an entry's bytes, which are known to give the same entry again: what is put cannot be taken back."""
    data = encode_entry(entry)
    try:
        found = "another entry" if decode_entry(data, entry_path(entry.version)) != entry else ""
    except IndexFormatError as error:
        found = error.found
    if found:
        raise IndexFormatError(
            f"cannot commit version {entry.version} of index {entry.config.name!r}: it would not read back as it is",
            found=found,
            hint="nothing was committed; please report this",
        )
    return data


def corrupt_entry(path: str, found: str) -> CorruptIndexError:
    """Return the error for an entry that is not what was written."""
    return CorruptIndexError(
        f"cannot read the log entry {path}",
        found=found,
        hint=REPAIR,
    )


def entry_path(version: int) -> str:
    """Return where an entry is stored.

    >>> entry_path(7)
    'log/00000000000000000007.json'
    """
    return f"{FOLDER}/{version:020d}.json"

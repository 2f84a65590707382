"""Deletion vectors: which rows of a file a version of a Delta table no longer has.

    in a file       1 byte version, and at the vector's offset: size (4, big-endian), bitmap, CRC-32 of it (4,
                    big-endian). The file is named by an absolute path, or by a UUID: deletion_vector_<uuid>.bin
    in the log      the bitmap itself, in Z85
    bitmap          magic number 1681511377 (4, little-endian), then ``roaring.py``

A vector that is damaged, missing or of another form is an error: without it, deleted rows would come back.
"""

from __future__ import annotations

import base64
import binascii
import uuid
import zlib
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lakebloom.errors import DataFileError, StorageError
from lakebloom.tables.formats.delta.paths import absolute_uri
from lakebloom.tables.formats.delta.roaring import Roaring

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from lakebloom.sbbf.kernels import BoolArray

__all__ = ["DeletedRows", "DeletionVector", "Descriptor"]

_MAGIC = 1681511377
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = bytes.maketrans(_Z85, _B85)
_UUID_CHARACTERS = 20
_SIZE_BYTES = 4
_FIRST_OFFSET = 1
_MOST_BYTES = 1 << 29


class Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    """A vector as a log writes it."""

    storage_type: Literal["u", "i", "p"]
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """What tells vectors of one file apart, as Delta writes it."""
        place = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{place}"


class DeletionVector(msgspec.Struct, frozen=True):
    """Where a vector is. One of ``uri`` and ``inline`` is empty."""

    id: str
    uri: str
    inline: bytes
    offset: int
    size_bytes: int
    cardinality: int

    @classmethod
    def of(cls, descriptor: Descriptor, table_uri: str) -> DeletionVector:
        """Return a vector of a table. Raises ValueError."""
        if not 0 < descriptor.size_in_bytes < _MOST_BYTES or descriptor.cardinality < 0:
            raise ValueError(f"{descriptor.size_in_bytes} bytes for {descriptor.cardinality} rows")
        uri, inline, offset = "", b"", _FIRST_OFFSET if descriptor.offset is None else descriptor.offset
        if offset < 0:
            raise ValueError(f"the offset {offset}")
        if descriptor.storage_type == "i":
            inline, offset = _from_z85(descriptor.path_or_inline_dv)[: descriptor.size_in_bytes], 0
            if len(inline) != descriptor.size_in_bytes:
                raise ValueError(f"{len(inline)} bytes instead of {descriptor.size_in_bytes}")
        elif descriptor.storage_type == "p":
            uri = absolute_uri(descriptor.path_or_inline_dv, table_uri)
        else:
            uri = _uri_of_uuid(descriptor.path_or_inline_dv, table_uri)
        return cls(descriptor.unique_id, uri, inline, offset, descriptor.size_in_bytes, descriptor.cardinality)

    def open(self, options: Mapping[str, str]) -> DeletedRows:
        """Read the vector. Raises DataFileError where it is damaged, and the errors of its store."""
        try:
            data = memoryview(self.inline) if self.inline else self._read(options)
            magic = int.from_bytes(data[:4], "little")
            if magic != _MAGIC:
                raise ValueError(f"the magic number {magic}")
            rows = Roaring(data[4:])
            if len(rows) != self.cardinality:
                raise ValueError(f"{len(rows)} rows instead of {self.cardinality}")
        except ValueError as error:
            raise DataFileError(
                f"could not read the deletion vector {self.uri or self.id!r}",
                found=str(error),
                hint="without it deleted rows would come back: check the file, and run FSCK REPAIR or RESTORE in Delta",
            ) from error
        return DeletedRows(rows)

    def _read(self, options: Mapping[str, str]) -> memoryview:
        # Here and not above: a log without vectors needs neither.
        from lakebloom.storage import open_storage

        folder, _, name = self.uri.rpartition("/")
        storage = open_storage(folder, {} if folder.startswith("file:") else options)
        try:
            (data,) = storage.read_ranges(name, [(self.offset, self.size_bytes + 2 * _SIZE_BYTES)])
        except StorageError as error:
            raise type(error)(
                f"could not read the deletion vector {self.uri}",
                found=error.found,
                hint="without it deleted rows would come back: check that VACUUM did not remove it",
            ) from error
        size = int.from_bytes(data[:_SIZE_BYTES], "big")
        if size != self.size_bytes:
            raise ValueError(f"a size of {size} bytes instead of {self.size_bytes}")
        bitmap = data[_SIZE_BYTES:-_SIZE_BYTES]
        if zlib.crc32(bitmap) != int.from_bytes(data[-_SIZE_BYTES:], "big"):
            raise ValueError("a checksum that does not fit")
        return bitmap


class DeletedRows:
    """The deleted rows of a file. Rows behind the last of them count."""

    def __init__(self, rows: Roaring) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def deleted(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> BoolArray:
        """Tell for each of these rows, by its number in the file, whether it is deleted."""
        return self._rows.contains(rows)


def _uri_of_uuid(text: str, table_uri: str) -> str:
    prefix, encoded = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
    found = _from_z85(encoded)
    if len(found) != 16 or "/" in prefix or prefix in {".", ".."}:
        raise ValueError(f"the name {text!r}")
    folder = f"{table_uri}/{prefix}" if prefix else table_uri
    return f"{folder}/deletion_vector_{uuid.UUID(bytes=found)}.bin"


def _from_z85(text: str) -> bytes:
    try:
        data = text.encode("ascii")
        if data.translate(None, _Z85) or len(data) % 5:
            raise ValueError("other characters")
        return base64.b85decode(data.translate(_FROM_Z85))
    except (UnicodeError, ValueError, binascii.Error) as error:
        raise ValueError(f"no Z85: {text[:40]!r}") from error

"""The footer of a Parquet file for Arrow, looked at before Arrow sees it.

    ... pages ...  FileMetaData (Thrift)  [signature]  length (4 bytes, little-endian)  "PAR1", or "PARE" if encrypted

Arrow ends the process when it is asked for the metadata of a column chunk that is encrypted while the footer is plain.
So the footer is read here, its chunks are searched for encryption, and Arrow parses the same bytes from memory: the
file is read no more often than before. The search reads two fields of each chunk with thrift's own C decoder where
there is one, in about a microsecond a chunk.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from lakebloom.errors import CorruptFooterError, EncryptedFileError, NotParquetError
from lakebloom.tuning import TAIL_BYTES

__all__ = ["ArrowFooter", "read_arrow_footer"]

_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_TRAILER_BYTES = 8
_MAX_FOOTER_BYTES = 64 << 20
_STRUCT, _LIST, _BINARY = 12, 15, 11
"""Thrift's numbers of types."""


_ASK_SPARK = "query the table with Spark and its keys, or leave the column out"


class ArrowFooter(NamedTuple):
    """What a file says of itself, and which of its leaves are encrypted in some row group, by number."""

    metadata: Any
    encrypted: frozenset[int]

    def require_plain(self, name: str, leaves: Iterable[int], hint: str = _ASK_SPARK) -> None:
        """Raise EncryptedFileError if one of these leaves is encrypted. Arrow must not be asked about such a one."""
        for number in leaves:
            if number in self.encrypted:
                column = self.metadata.schema.column(number).path
                raise EncryptedFileError(
                    f"column {column} of {name} is encrypted",
                    found="a column chunk that needs a key",
                    hint=hint,
                )


class _Any:
    """A struct of which nothing is read; those below read what their ``thrift_spec`` names."""

    thrift_spec: ClassVar[tuple[Any, ...]] = (None,)

    def read(self, protocol: Any) -> None:
        """Fill in the fields, in thrift's Python form."""
        protocol.readStruct(self, self.thrift_spec)


class _Chunk(_Any):
    crypto_metadata: object | None = None
    encrypted_metadata: bytes | None = None


class _RowGroup(_Any):
    chunks: list[_Chunk] | None = None


class _File(_Any):
    row_groups: list[_RowGroup] | None = None


_Chunk.thrift_spec = (
    *[None] * 8,
    (8, _STRUCT, "crypto_metadata", [_Any, _Any.thrift_spec], None),
    (9, _BINARY, "encrypted_metadata", "BINARY", None),
)
_RowGroup.thrift_spec = (None, (1, _LIST, "chunks", (_STRUCT, [_Chunk, _Chunk.thrift_spec], False), None))
_File.thrift_spec = (
    *[None] * 4,
    (4, _LIST, "row_groups", (_STRUCT, [_RowGroup, _RowGroup.thrift_spec], False), None),
)


def read_arrow_footer(name: str, source: pa.NativeFile) -> ArrowFooter:
    """Read and parse the footer of an open file; nothing else of it is read.

    Raises NotParquetError, CorruptFooterError, EncryptedFileError where the footer itself is encrypted, and what Arrow
    raises for a footer that it cannot read.
    """
    footer = _read(name, source)
    metadata = pq.read_metadata(pa.BufferReader(_MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC))
    return ArrowFooter(metadata, _encrypted(name, footer))


def _read(name: str, source: pa.NativeFile) -> bytes:
    size = source.seek(0, io.SEEK_END)
    if size < len(_MAGIC) + _TRAILER_BYTES:
        raise _not_parquet(name, f"{size} bytes")
    source.seek(size - min(size, TAIL_BYTES))
    tail = bytes(source.read(min(size, TAIL_BYTES)))
    magic, length = tail[-len(_MAGIC) :], int.from_bytes(tail[-_TRAILER_BYTES : -len(_MAGIC)], "little")
    if magic == _ENCRYPTED_MAGIC:
        raise EncryptedFileError(f"the footer of {name} is encrypted", hint="decrypt the file, or leave it out")
    if magic != _MAGIC:
        raise _not_parquet(name, f"{magic.hex(' ')} at its end")
    if length > min(size - len(_MAGIC) - _TRAILER_BYTES, _MAX_FOOTER_BYTES):
        raise CorruptFooterError(
            f"the footer of {name} has an impossible length",
            found=f"{length} bytes in a file of {size}",
            hint=f"check that the file is complete; lakebloom reads footers of up to {_MAX_FOOTER_BYTES} bytes",
        )
    if length + _TRAILER_BYTES <= len(tail):
        return tail[-_TRAILER_BYTES - length : -_TRAILER_BYTES]
    source.seek(size - _TRAILER_BYTES - length)
    footer = bytes(source.read(length))
    if len(footer) != length:
        raise NotParquetError(f"{name} became shorter while it was read", hint="try again")
    return footer


def _encrypted(name: str, footer: bytes) -> frozenset[int]:
    file = _File()
    try:
        _decode(file, footer)
    except Exception as error:  # Arrow read it, so this is rare; the decoder raises many kinds
        raise CorruptFooterError(
            f"the footer of {name} cannot be read", found=str(error), hint="check that the file is complete"
        ) from error
    return frozenset(
        number
        for group in file.row_groups or ()
        for number, chunk in enumerate(group.chunks or ())
        if chunk.crypto_metadata is not None or chunk.encrypted_metadata is not None
    )


def _decode(file: _File, footer: bytes) -> None:
    # Here and not above: much of lakebloom needs no footer. The C decoder alone loads in two milliseconds.
    try:
        from thrift.protocol.fastbinary import decode_compact
    except ImportError:  # thrift was installed without it
        from thrift.protocol.TCompactProtocol import TCompactProtocol
        from thrift.transport.TTransport import TMemoryBuffer

        file.read(TCompactProtocol(TMemoryBuffer(footer), len(footer), len(footer)))
    else:
        decode_compact(file, _Bytes(footer), [_File, _File.thrift_spec])


class _Bytes:
    """What the C decoder wants to know of a protocol and its transport: where the bytes are, and how many at most."""

    def __init__(self, data: bytes) -> None:
        self.trans = self
        self.cstringio_buf = io.BytesIO(data)
        self.string_length_limit = self.container_length_limit = len(data)

    def cstringio_refill(self, partial: bytes, _: int) -> io.BytesIO:
        """Raise EOFError: there are no more bytes."""
        raise EOFError(f"{len(partial)} bytes left")


def _not_parquet(name: str, found: str) -> NotParquetError:
    return NotParquetError(
        f"{name} is not a Parquet file, or it is truncated",
        found=found,
        hint="check the path, and that the file is complete",
    )

"""The footer of a Parquet file for Arrow, looked at before Arrow sees it.

    ... pages ...  FileMetaData (Thrift)  [signature]  length (4 bytes, little-endian)  "PAR1", or "PARE" if encrypted

Arrow ends the process when it is asked for the metadata of a column chunk that is encrypted while the footer is plain.
So the footer is read here, its chunks are searched for encryption, and Arrow parses the same bytes from memory: the
file is read no more often than before. The same pass notes where the pages of each chunk lie, of which Arrow tells only
a part. It takes about three microseconds a chunk.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lakebloom.errors import CorruptFooterError, EncryptedFileError, NotParquetError
from lakebloom.tables.parquet.arrow_reader import open_footer
from lakebloom.tables.parquet.file_schema import FileSchema, read_file_schema
from lakebloom.tables.parquet.thrift_structs import (
    BINARY,
    I32,
    I64,
    Fields,
    UnreadableStructError,
    decode,
    list_of,
    struct_of,
)
from lakebloom.tuning import TAIL_BYTES

__all__ = ["ArrowFooter", "ChunkFacts", "read_arrow_footer"]

_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_TRAILER_BYTES = 8
_MAX_FOOTER_BYTES = 64 << 20
_UNKNOWN = -1
_BYTE_ARRAY = 6
"""The format's number of a type."""

_ASK_SPARK = "query the table with Spark and its keys, or leave the column out"


class ChunkFacts(NamedTuple):
    """What a footer says of one column chunk, as numbers of the format; -1 where it says nothing."""

    type: int
    codec: int
    num_values: int
    uncompressed_bytes: int
    compressed_bytes: int
    data_page_offset: int
    dictionary_page_offset: int
    offset_index_offset: int
    offset_index_bytes: int


class ArrowFooter:
    """What a file says of itself, and which of its leaves are encrypted in some row group, by number."""

    def __init__(
        self,
        metadata: Any,
        encrypted: frozenset[int],
        chunks: Any = None,
        raw: bytes = b"",
        arrow_schema: pa.Schema | None = None,
    ) -> None:
        """``chunks`` are the facts of each row group and leaf; None where they are not those of the schema."""
        self.metadata, self.encrypted = metadata, encrypted
        self.arrow_schema: pa.Schema = arrow_schema
        """The columns as Arrow reads them. Only of a footer that ``read_arrow_footer`` read."""
        self._chunks, self._raw = chunks, raw

    def chunk(self, row_group: int, leaf: int) -> ChunkFacts | None:
        """Return what is known of a column chunk."""
        if self._chunks is None or leaf in self.encrypted:
            return None
        return ChunkFacts(*self._chunks[row_group, leaf].tolist())

    def stored_with_dictionary(self, row_group: int) -> list[int]:
        """Return the leaves of bytes that have a dictionary in a row group."""
        if self._chunks is None:
            return []
        facts = self._chunks[row_group]
        of_bytes = facts[:, ChunkFacts._fields.index("type")] == _BYTE_ARRAY
        found = of_bytes & (facts[:, ChunkFacts._fields.index("dictionary_page_offset")] != _UNKNOWN)
        return [leaf for leaf in np.flatnonzero(found).tolist() if leaf not in self.encrypted]

    @cached_property
    def largest_chunk_bytes(self) -> float:
        """How many bytes the largest column chunk has in the file; infinite where that is not known."""
        if self._chunks is None or not self._chunks.size:
            return math.inf
        sizes = self._chunks[:, :, ChunkFacts._fields.index("compressed_bytes")]
        return math.inf if sizes.min() == _UNKNOWN else int(sizes.max())

    @cached_property
    def schema(self) -> FileSchema | None:
        """The columns as the file names them; None if that cannot be told."""
        schema = read_file_schema(self._raw)
        self._raw = b""
        return schema

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


class _Metadata(Fields):
    type: int | None = None
    codec: int | None = None
    num_values: int | None = None
    uncompressed_bytes: int | None = None
    compressed_bytes: int | None = None
    data_page_offset: int | None = None
    dictionary_page_offset: int | None = None

    thrift_spec = (
        None,
        (1, I32, "type", None, None),
        None,
        None,
        (4, I32, "codec", None, None),
        (5, I64, "num_values", None, None),
        (6, I64, "uncompressed_bytes", None, None),
        (7, I64, "compressed_bytes", None, None),
        None,
        (9, I64, "data_page_offset", None, None),
        None,
        (11, I64, "dictionary_page_offset", None, None),
    )


class _Chunk(Fields):
    file_path: bytes | None = None
    metadata: _Metadata | None = None
    offset_index_offset: int | None = None
    offset_index_bytes: int | None = None
    crypto_metadata: object | None = None
    encrypted_metadata: bytes | None = None

    thrift_spec = (
        None,
        (1, BINARY, "file_path", "BINARY", None),
        None,
        struct_of(3, "metadata", _Metadata),
        (4, I64, "offset_index_offset", None, None),
        (5, I32, "offset_index_bytes", None, None),
        None,
        None,
        struct_of(8, "crypto_metadata", Fields),
        (9, BINARY, "encrypted_metadata", "BINARY", None),
    )

    @property
    def is_encrypted(self) -> bool:
        return self.crypto_metadata is not None or self.encrypted_metadata is not None

    @property
    def numbers(self) -> list[int]:
        """The chunk's facts, in the order of ``ChunkFacts``."""
        known = self.metadata
        if known is None or self.file_path is not None:
            return [_UNKNOWN] * len(ChunkFacts._fields)
        found = (
            known.type,
            known.codec,
            known.num_values,
            known.uncompressed_bytes,
            known.compressed_bytes,
            known.data_page_offset,
            known.dictionary_page_offset,
            self.offset_index_offset,
            self.offset_index_bytes,
        )
        return [_UNKNOWN if number is None else number for number in found]


class _RowGroup(Fields):
    chunks: list[_Chunk] | None = None

    thrift_spec = (None, list_of(1, "chunks", _Chunk))


class _File(Fields):
    row_groups: list[_RowGroup] | None = None

    thrift_spec = (None, None, None, None, list_of(4, "row_groups", _RowGroup))


def read_arrow_footer(name: str, source: pa.NativeFile) -> ArrowFooter:
    """Read and parse the footer of an open file; nothing else of it is read.

    Raises NotParquetError, CorruptFooterError, EncryptedFileError where the footer itself is encrypted, and what Arrow
    raises for a footer that it cannot read.
    """
    footer = _read(name, source)
    parsed = open_footer(footer)
    metadata = parsed.metadata
    row_groups = _row_groups(name, footer)
    encrypted = frozenset(number for chunks in row_groups for number, chunk in enumerate(chunks) if chunk.is_encrypted)
    return ArrowFooter(metadata, encrypted, _facts(row_groups, metadata.num_columns), footer, parsed.schema_arrow)


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


def _row_groups(name: str, footer: bytes) -> list[list[_Chunk]]:
    file = _File()
    try:
        decode(file, footer)
    except UnreadableStructError as error:  # Arrow read it, so this is rare
        raise CorruptFooterError(
            f"the footer of {name} cannot be read", found=str(error), hint="check that the file is complete"
        ) from error
    return [group.chunks or [] for group in file.row_groups or ()]


def _facts(row_groups: list[list[_Chunk]], num_leaves: int) -> Any:
    if any(len(chunks) != num_leaves for chunks in row_groups):
        return None
    numbers = [chunk.numbers for chunks in row_groups for chunk in chunks]
    facts = np.array(numbers, dtype=np.int64)
    return facts.reshape(len(row_groups), num_leaves, len(ChunkFacts._fields))


def _not_parquet(name: str, found: str) -> NotParquetError:
    return NotParquetError(
        f"{name} is not a Parquet file, or it is truncated",
        found=found,
        hint="check the path, and that the file is complete",
    )

"""The footer of a Parquet file: typed access to some fields, and the whole tree, so that it can be written again.

    ... pages, indexes, filters ...  FileMetaData (Thrift)  length (4 bytes, little-endian)  "PAR1"

    footer = read_footer("lake/part-0.parquet")         # a path, a URI or an open file; one read, rarely two
    footer.num_rows, footer.schema, footer.leaves       # leaves are the columns, in the order of the chunks
    leaf = footer.leaves[0]                             # leaf.path, leaf.physical_type, leaf.element.logical_type
    for group in footer.row_groups:
        chunk = group.columns[leaf.number]
        chunk.bloom_filter_offset, chunk.bloom_filter_length    # None if the file has none

    chunk.set_bloom_filter(offset, length)              # changes footer.tree in place
    serialise(footer.tree)                              # the bytes of the footer, with all its fields

A file with an encrypted footer ends in "PARE": ``read_footer`` raises EncryptedFileError. ``read_tail`` returns the
encrypted bytes, and ``parse_footer`` parses the plain ones after decryption.
"""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from thrift.Thrift import TType

from lakebloom.errors import CorruptFooterError, EncryptedFileError, InvalidArgumentError, NotParquetError
from lakebloom.parquet.schema import Leaf, SchemaElement, leaves_of, physical_type, read_element, text
from lakebloom.parquet.thrift_tree import Items, Struct, parse, serialise
from lakebloom.storage.uri import normalise
from lakebloom.tables.parquet.open import open_source, reading
from lakebloom.tuning import TAIL_BYTES

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from lakebloom.sbbf.hashing.parquet import PhysicalType

__all__ = [
    "ColumnChunk",
    "Footer",
    "RandomAccess",
    "RowGroup",
    "Source",
    "Tail",
    "opened",
    "parse_footer",
    "read_footer",
    "read_tail",
    "serialise",
    "size_of",
]

MAGIC, ENCRYPTED_MAGIC = b"PAR1", b"PARE"
MAX_FOOTER_BYTES = 64 << 20
"""A footer of 100,000 column chunks has 20 MiB."""
_TRAILER_BYTES = 8
_LEAST_FILE_BYTES = len(MAGIC) + _TRAILER_BYTES


@runtime_checkable
class RandomAccess(Protocol):
    """An open file, of Python or of pyarrow."""

    def seek(self, offset: int, whence: int = ..., /) -> Any:
        """Go to a position."""

    def read(self, size: int = ..., /) -> Any:
        """Return that many bytes, or fewer at the end."""

    def tell(self) -> int:
        """Return the position."""


Source: TypeAlias = "str | os.PathLike[str] | RandomAccess"


@contextmanager
def opened(source: Source, options: Mapping[str, str] | None = None) -> Iterator[tuple[str, RandomAccess]]:
    """Yield a file's name for messages, and the file open for reading. A file that was open stays open.

    `options` configure an object store. Raises NotFoundError, AccessDeniedError or StorageError for a file that cannot
    be opened, and InvalidArgumentError for another object. Translates errors of reads in the block.
    """
    if isinstance(source, RandomAccess):
        name = getattr(source, "name", None)
        label = name if isinstance(name, str) else "the open file"
        with reading(label):
            yield label, source
        return
    if not isinstance(source, str) and not hasattr(source, "__fspath__"):
        raise InvalidArgumentError("a Parquet file must be a path, a URI or an open file", found=source)
    uri = normalise(source)
    with open_source(uri, options or {}) as file, reading(uri):
        yield uri, file


def size_of(file: RandomAccess) -> int:
    """Return the size of an open file in bytes, without reading."""
    file.seek(0, io.SEEK_END)
    return int(file.tell())


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a file: the bytes of its footer, and their offset."""

    footer: bytes
    start: int
    file_bytes: int
    is_encrypted: bool


def read_tail(file: RandomAccess, name: str = "the file") -> Tail:
    """Read the bytes of the footer, in one read if it is not longer than ``TAIL_BYTES``, otherwise in two.

    Raises NotParquetError for a file without Parquet's magic number at its end, and CorruptFooterError for a footer
    that has an impossible length.
    """
    size = size_of(file)
    if size < _LEAST_FILE_BYTES:
        raise _not_parquet(name, f"{size} bytes")
    tail = _read_at(file, name, size - min(size, TAIL_BYTES), min(size, TAIL_BYTES))
    magic = tail[-len(MAGIC) :]
    if magic not in (MAGIC, ENCRYPTED_MAGIC):
        raise _not_parquet(name, f"{magic.hex(' ')} at its end")
    length = int.from_bytes(tail[-_TRAILER_BYTES : -len(MAGIC)], "little")
    start = size - _TRAILER_BYTES - length
    if start < len(MAGIC) or length > MAX_FOOTER_BYTES:
        raise CorruptFooterError(
            f"the footer of {name} has an impossible length",
            found=f"{length} bytes in a file of {size}",
            hint=f"check that the file is complete; lakebloom reads footers of up to {MAX_FOOTER_BYTES} bytes",
        )
    held = tail[-_TRAILER_BYTES - length : -_TRAILER_BYTES]
    footer = held if length <= len(tail) - _TRAILER_BYTES else _read_at(file, name, start, length)
    return Tail(footer, start, size, magic == ENCRYPTED_MAGIC)


def _read_at(file: RandomAccess, name: str, offset: int, length: int) -> bytes:
    file.seek(offset)
    data = bytes(file.read(length))
    if len(data) != length:
        raise NotParquetError(
            f"{name} became shorter while it was read", found=f"{len(data)} bytes of {length}", hint="try again"
        )
    return data


def read_footer(source: Source, options: Mapping[str, str] | None = None) -> Footer:
    """Read and parse the footer of a Parquet file.

    Raises NotParquetError, CorruptFooterError, EncryptedFileError if the footer itself is encrypted, and
    NotFoundError, AccessDeniedError or StorageError for a file that cannot be read.
    """
    with opened(source, options) as (name, file):
        tail = read_tail(file, name)
    if tail.is_encrypted:
        raise EncryptedFileError(f"the footer of {name} is encrypted", hint="decrypt the file, or do not use it")
    return parse_footer(tail)


def parse_footer(tail: Tail) -> Footer:
    """Parse the plain bytes of a footer. Raises CorruptFooterError."""
    tree, length = parse(tail.footer)
    elements = tuple(map(read_element, _structs(tree, 2, "schema")))
    leaves = leaves_of(elements)
    groups = tuple(_row_group(group, leaves) for group in _structs(tree, 4, "row groups"))
    num_rows = tree.get(3, TType.I64)
    if num_rows is None or num_rows < 0:
        raise _damaged(f"{num_rows} rows")
    return Footer(
        tree=tree,
        start=tail.start,
        file_bytes=tail.file_bytes,
        signature=tail.footer[length:],
        num_rows=num_rows,
        schema=elements,
        leaves=leaves,
        row_groups=groups,
    )


@dataclass(frozen=True, slots=True)
class Footer:
    """The metadata of a Parquet file."""

    tree: Struct
    """All fields, known and unknown. Row groups and column chunks are parts of it."""
    start: int
    """The offset of the footer in the file."""
    file_bytes: int
    signature: bytes
    """The signature after a plain footer in an encrypted file; otherwise empty."""
    num_rows: int
    schema: tuple[SchemaElement, ...]
    leaves: tuple[Leaf, ...]
    row_groups: tuple[RowGroup, ...]

    @property
    def created_by(self) -> str | None:
        """The program that wrote the file."""
        data = self.tree.get(6, TType.STRING)
        return None if data is None else data.decode(errors="replace")

    @property
    def key_value_metadata(self) -> dict[bytes, bytes]:
        """The key-value metadata; the last of several values of one key."""
        pairs = _structs(self.tree, 5, "key-value metadata") if self.tree.get(5, TType.LIST) is not None else []
        return {pair.get(1, TType.STRING) or b"": pair.get(2, TType.STRING) or b"" for pair in pairs}

    @property
    def is_encrypted(self) -> bool:
        """True if some columns are encrypted although the footer is not."""
        return self.tree.get(8, TType.STRUCT) is not None or any(
            chunk.is_encrypted for group in self.row_groups for chunk in group.columns
        )


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group: some rows of the file, with a chunk for each column."""

    tree: Struct
    columns: tuple[ColumnChunk, ...]
    """In the order of ``Footer.leaves``."""
    num_rows: int


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """The values of one column in one row group."""

    tree: Struct
    metadata: Struct | None
    """None if it is encrypted separately from the footer. Then nothing below is known."""

    @property
    def physical_type(self) -> PhysicalType | None:
        """How the values are stored; the same as in the schema, if the footer is valid."""
        return physical_type(self._get(1, TType.I32))

    @property
    def path_in_schema(self) -> tuple[str, ...]:
        """The names of the column and of the schema groups around it."""
        items = self._get(3, TType.LIST)
        parts = [] if items is None else items.values
        if items is not None and parts and items.kind != TType.STRING:
            raise _damaged("a column's path that does not consist of names")
        return tuple(text("a column's path", part) for part in parts)

    @property
    def num_values(self) -> int:
        """The number of values, including NULLs and the elements of lists."""
        return self._number(5, TType.I64) or 0

    @property
    def null_count(self) -> int | None:
        """The number of NULLs, if the file has it."""
        statistics = self._get(12, TType.STRUCT)
        return None if statistics is None else statistics.get(3, TType.I64)

    @property
    def total_uncompressed_size(self) -> int | None:
        """The bytes of all pages, headers included, before compression."""
        return self._number(6, TType.I64)

    @property
    def total_compressed_size(self) -> int | None:
        """The bytes of all pages, headers included, in the file."""
        return self._number(7, TType.I64)

    @property
    def data_page_offset(self) -> int | None:
        """Where the first data page begins."""
        return self._number(9, TType.I64)

    @property
    def index_page_offset(self) -> int | None:
        """Where the first index page begins."""
        return self._number(10, TType.I64)

    @property
    def dictionary_page_offset(self) -> int | None:
        """Where the dictionary page begins."""
        return self._number(11, TType.I64)

    @property
    def offset_index(self) -> tuple[int, int] | None:
        """Offset and length of the page locations."""
        return self._range(4, 5)

    @property
    def column_index(self) -> tuple[int, int] | None:
        """Offset and length of the page statistics."""
        return self._range(6, 7)

    @property
    def bloom_filter_offset(self) -> int | None:
        """The offset of the filter. It is not trusted, and must be checked against the file."""
        return self._number(14, TType.I64)

    @property
    def bloom_filter_length(self) -> int | None:
        """The size of the filter with its header; older writers omit it."""
        return self._number(15, TType.I32)

    @property
    def file_path(self) -> bytes | None:
        """The file with the pages, if it is another one."""
        return self.tree.get(1, TType.STRING)  # type: ignore[no-any-return]

    @property
    def crypto_metadata(self) -> Struct | None:
        """How the chunk is encrypted, None if it is not."""
        return self.tree.get(8, TType.STRUCT)  # type: ignore[no-any-return]

    @property
    def is_encrypted(self) -> bool:
        """True if the pages need a key."""
        return self.crypto_metadata is not None or self.tree.get(9, TType.STRING) is not None

    def set_bloom_filter(self, offset: int, length: int) -> None:
        """Set offset and length of the filter in the footer's tree."""
        if self.metadata is None:
            raise EncryptedFileError("an encrypted column chunk cannot be given a filter")
        self.metadata.put(14, TType.I64, offset)
        self.metadata.put(15, TType.I32, length)

    def _number(self, number: int, kind: int) -> int | None:
        value: int | None = self._get(number, kind)
        return value

    def _get(self, number: int, kind: int) -> Any:
        return None if self.metadata is None else self.metadata.get(number, kind)

    def _range(self, offset: int, length: int) -> tuple[int, int] | None:
        start, size = self.tree.get(offset, TType.I64), self.tree.get(length, TType.I32)
        return None if start is None or size is None else (start, size)


def _row_group(tree: Struct, leaves: tuple[Leaf, ...]) -> RowGroup:
    chunks = tuple(ColumnChunk(chunk, chunk.get(3, TType.STRUCT)) for chunk in _structs(tree, 1, "column chunks"))
    if len(chunks) != len(leaves):
        raise _damaged(f"{len(chunks)} column chunks in a row group of {len(leaves)} columns")
    num_rows = tree.get(3, TType.I64)
    if num_rows is None or num_rows < 0:
        raise _damaged(f"{num_rows} rows in a row group")
    return RowGroup(tree, chunks, num_rows)


def _structs(tree: Struct, number: int, what: str) -> list[Struct]:
    items: Items | None = tree.get(number, TType.LIST)
    if items is None:
        raise _damaged(f"no {what}")
    if items.values and items.kind != TType.STRUCT:
        raise _damaged(f"{what} that are not structs")
    return items.values


def _not_parquet(name: str, found: str) -> NotParquetError:
    return NotParquetError(
        f"{name} is not a Parquet file, or it is truncated",
        found=found,
        hint="check the path, and that the file is complete",
    )


def _damaged(found: str) -> CorruptFooterError:
    return CorruptFooterError(
        "the footer of a Parquet file contradicts itself", found=found, hint="check that the file is complete"
    )

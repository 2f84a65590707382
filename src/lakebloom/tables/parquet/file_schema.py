"""The columns of a Parquet file as its footer writes them, so that they can be written again without loss.

A footer lists the elements of the schema depth first, behind a root. Each top-level column keeps the bytes of its
elements: what a newer version of the format adds to them stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakebloom.tables.parquet.thrift_structs import I32, LONG_LIST, STRUCT, Fields, UnreadableStructError, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FileColumn", "FileSchema", "read_file_schema"]

_VERSION_BEGINS, _SCHEMA_BEGINS, _SCHEMA_BEGINS_FIRST = b"\x15", b"\x19", b"\x29"
"""Thrift's compact form of: the first field, an i32; the second, a list, with the first before it and without."""
_MAX_VARINT_BYTES = 5
_REQUIRED_OR_OPTIONAL = (0, 1)
_MAX_DEPTH = 100


class FileColumn(msgspec.Struct, frozen=True):
    """A top-level column."""

    elements: bytes
    num_elements: int
    leaves: range
    """The numbers of its leaves among those of the file."""
    is_repeated: bool
    """Whether one row can have several values, or none."""

    @property
    def is_flat(self) -> bool:
        """Whether each row has one value, which may be NULL."""
        return self.num_elements == 1 and not self.is_repeated


FileSchema = tuple[FileColumn, ...]
"""The top-level columns, in the order of the file."""


class _Element(Fields):
    type: int | None = None
    repetition: int | None = None
    num_children: int | None = None

    thrift_spec = (
        None,
        (1, I32, "type", None, None),
        None,
        (3, I32, "repetition", None, None),
        None,
        (5, I32, "num_children", None, None),
    )


class _Shape(msgspec.Struct):
    """What is known of a column while its elements are read."""

    num_elements: int = 0
    num_leaves: int = 0
    is_repeated: bool = False


def read_file_schema(footer: bytes) -> FileSchema | None:
    """Return the columns of a footer; None where its schema is not one that lakebloom understands."""
    try:
        at, count = _find_elements(footer)
        elements = _elements(footer, at, count)
        root, _ = next(elements)
        columns = [_column(footer, elements) for _ in range(min(root.num_children or 0, count))]
    except (UnreadableStructError, StopIteration, _UnknownSchemaError):
        return None
    first = 0
    numbered = []
    for shape, data in columns:
        leaves = range(first, first + shape.num_leaves)
        numbered.append(FileColumn(data, shape.num_elements, leaves, shape.is_repeated))
        first = leaves.stop
    return tuple(numbered)


class _UnknownSchemaError(Exception):
    pass


def _find_elements(footer: bytes) -> tuple[int, int]:
    """Return where the first element begins, and how many there are: behind the version, as all writers have it.

    0x15 version (a varint)   0x19, a list of   0xNC, N structs, or 0xFC and their number (a varint)
    """
    at = 0
    if footer[:1] == _VERSION_BEGINS:
        _, at = _varint(footer, 1)
    if footer[at : at + 1] != (_SCHEMA_BEGINS if at else _SCHEMA_BEGINS_FIRST):
        raise _UnknownSchemaError
    begin = footer[at + 1 : at + 2]
    if not begin or begin[0] & 0x0F != STRUCT:
        raise _UnknownSchemaError
    if begin[0] >> 4 < LONG_LIST:
        return at + 2, begin[0] >> 4
    count, at = _varint(footer, at + 2)
    return at, count


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    value = 0
    for number, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value, at + number + 1
    raise _UnknownSchemaError


def _elements(footer: bytes, at: int, count: int) -> Iterator[tuple[_Element, tuple[int, int]]]:
    for _ in range(count):
        element = _Element()
        end = decode(element, footer, at)
        yield element, (at, end)
        at = end


def _column(footer: bytes, elements: Iterator[tuple[_Element, tuple[int, int]]]) -> tuple[_Shape, bytes]:
    shape = _Shape()
    start, end = _add(shape, elements, _MAX_DEPTH)
    return shape, footer[start:end]


def _add(shape: _Shape, elements: Iterator[tuple[_Element, tuple[int, int]]], depth: int) -> tuple[int, int]:
    """Add the next element and those below it; return which bytes they have."""
    element, (start, end) = next(elements)
    children = element.num_children or 0
    if depth == 0 or children < 0 or (element.type is None) == (children == 0):
        raise _UnknownSchemaError
    shape.num_elements += 1
    shape.num_leaves += element.type is not None
    shape.is_repeated |= element.repetition not in _REQUIRED_OR_OPTIONAL
    for _ in range(children):
        _, end = _add(shape, elements, depth - 1)
    return start, end

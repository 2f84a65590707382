"""Data to write: one contiguous buffer, or several that are stored one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from lakebloom.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Buffer", "Buffers", "Views", "as_views"]

# A string, so that pyarrow is not loaded for an annotation.
Buffer: TypeAlias = "bytes | bytearray | memoryview | pyarrow.Buffer"
Buffers: TypeAlias = "Buffer | Sequence[Buffer]"
# For classes with a method `list`, which cannot write list[...] in their annotations.
Views: TypeAlias = list[memoryview]


def as_views(data: Buffers) -> Views:
    """Return `data` as flat views of unsigned bytes, without a copy.

    >>> [bytes(view) for view in as_views([b"ab", bytearray(b"c")])]
    [b'ab', b'c']
    """
    # bytes and memoryviews are also sequences, of integers.
    if isinstance(data, (bytes, bytearray, memoryview)) or not isinstance(data, Sequence):
        return [_as_view(data)]
    return [_as_view(part) for part in data]


def _as_view(buffer: Buffer) -> memoryview:
    try:
        view = memoryview(buffer)
    except TypeError as error:
        raise InvalidArgumentError(
            "only buffers can be stored",
            found=type(buffer).__name__,
            hint="encode text and numbers to bytes first",
        ) from error
    if not view.c_contiguous:
        raise InvalidArgumentError(
            "only contiguous buffers can be stored",
            found=f"strides {view.strides}",
            hint="copy the slice to bytes",
        )
    # pyarrow's buffers are signed bytes and numpy's have shapes; a view without elements cannot be cast.
    return view.cast("B") if view.nbytes else memoryview(b"")

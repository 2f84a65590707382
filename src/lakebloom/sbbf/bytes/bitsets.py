"""The bits of a filter as words in memory, as raw bytes, and with the header of a Parquet file."""

from __future__ import annotations

from typing import Any

import numpy as np

from lakebloom.errors import CorruptFilterError, FilterMismatchError, InvalidArgumentError
from lakebloom.sbbf import sizing
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, MAX_BLOCKS, WORDS_PER_BLOCK
from lakebloom.sbbf.kernels import WordArray

__all__ = ["from_bytes", "from_parquet", "require_words", "to_bytes", "to_parquet"]


def require_words(words: Any) -> WordArray:
    """Return [num_blocks, 8] words as the kernels need them; copied only if not native, aligned and contiguous.

    Raises InvalidArgumentError for an array of another type or shape.
    """
    array = np.asarray(words)
    if array.dtype.newbyteorder("=") != np.uint32 or array.ndim != 2 or array.shape[1] != WORDS_PER_BLOCK:
        raise InvalidArgumentError(
            f"the words of a filter are a numpy array of uint32 with {WORDS_PER_BLOCK} columns",
            found=f"{array.dtype} of shape {array.shape}",
            hint="read bytes with Sbbf.from_bytes",
        )
    if not 1 <= len(array) <= MAX_BLOCKS:
        raise sizing.too_large(len(array)) if len(array) else InvalidArgumentError("a filter has at least one block")
    return np.require(array, dtype=np.uint32, requirements=["C", "A"])


def to_bytes(words: WordArray) -> bytes:
    """Return the bitset: little-endian words, block after block."""
    return words.astype("<u4", copy=False).tobytes()


def from_bytes(data: Any) -> WordArray:
    """Return the words of a bitset, in its own memory where that is read-only and aligned.

    A tail of fewer than 32 bytes, which some writers leave, is ignored. Raises CorruptFilterError for fewer than 32
    bytes, InvalidArgumentError for other objects.
    """
    view = _byte_view(data)
    blocks = len(view) // BYTES_PER_BLOCK
    if blocks < 1:
        raise CorruptFilterError(
            f"a filter has at least {BYTES_PER_BLOCK} bytes", found=f"{len(view)} bytes", hint="pass a whole bitset"
        )
    words = np.frombuffer(view[: blocks * BYTES_PER_BLOCK], dtype="<u4").reshape(blocks, WORDS_PER_BLOCK)
    return require_words(words.copy() if words.flags.writeable else words)


def to_parquet(words: WordArray) -> bytes:
    """Return Thrift header and bitset. Raises FilterMismatchError for a bitset that is too large for a header."""
    from lakebloom.sbbf.bytes.header import MAX_BITSET_BYTES, write_header

    if words.nbytes > MAX_BITSET_BYTES:
        raise FilterMismatchError(
            f"a filter in a Parquet file has at most {MAX_BITSET_BYTES} bytes",
            found=f"{words.nbytes} bytes",
            hint="fold it first",
        )
    return write_header(words.nbytes) + to_bytes(words)


def from_parquet(data: Any) -> WordArray:
    """Return the words of the bitset after the Thrift header at the start of ``data``. Later bytes are ignored.

    Raises CorruptFilterError, UnsupportedFilterError, or InvalidArgumentError for an object without bytes.
    """
    from lakebloom.sbbf.bytes.header import read_header

    view = _byte_view(data)
    num_bytes, header_bytes = read_header(view)
    bitset = view[header_bytes : header_bytes + num_bytes]
    if len(bitset) < num_bytes:
        raise CorruptFilterError(
            f"the header announces a bitset of {num_bytes} bytes",
            found=f"{len(bitset)} bytes after it",
            hint="read the whole filter: bloom_filter_length bytes from bloom_filter_offset",
        )
    return from_bytes(bitset)


def _byte_view(data: Any) -> memoryview:
    try:
        view = memoryview(data)
        return view.cast("B") if view.nbytes else memoryview(b"")
    except (TypeError, ValueError) as error:  # not a buffer, or one with gaps or records
        raise InvalidArgumentError(
            "a filter is read from bytes, or from another buffer without gaps",
            found=data.__class__.__name__,
            hint="pass bytes",
        ) from error

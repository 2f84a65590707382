"""The number types in which a filter must be probed.

The hash of 5 depends on its width: an int has four bytes, a bigint eight. A filter records the number types that were
inserted, and a probe is repeated in each of them. If they are unknown (the filter was read from bytes, or filled with
hashes), a Python number, which has no width, is probed in every usual type. See docs/decisions/0003.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from lakebloom.sbbf.hashing.encoding import CANONICAL, LANCE, PARQUET, Encoding
from lakebloom.sbbf.values.numbers import as_other_number, is_number
from lakebloom.sbbf.values.unwrap import plain_type

__all__ = ["ANY_WIDTH", "NO_WIDTH", "Widths", "widths_of"]

_FLOATS = (pa.float32(), pa.float64())
_USUAL: dict[Encoding, tuple[pa.DataType, ...]] = {
    # Short and uint16 hash like int, uint32 like bigint; uint64 is a decimal(20,0) to Spark.
    CANONICAL: (pa.int32(), pa.int64(), pa.uint64(), *_FLOATS),
    # An unsigned number beyond the signed range keeps its bits.
    PARQUET: (pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), *_FLOATS),
    LANCE: (
        pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), *_FLOATS
    ),
}  # fmt: skip
"""The types that hash differently. A Parquet encoding with a physical type has one width."""


class Widths(msgspec.Struct, frozen=True):
    """The known number types in a filter."""

    types: frozenset[pa.DataType] = frozenset()
    complete: bool = True
    """False if numbers of other types may be in the filter, too."""

    def __or__(self, other: Widths) -> Widths:
        return Widths(self.types | other.types, self.complete and other.complete)

    def other_forms(self, array: pa.Array, encoding: Encoding, *, typed: bool) -> Iterator[pa.Array]:
        """Yield the numbers of an array in each other type that the filter may contain."""
        if not is_number(plain_type(array.type)):
            return
        types = self.types if encoding == CANONICAL else frozenset()
        if not (self.complete or typed):
            types |= frozenset(_USUAL.get(encoding, ()))
        for kind in types:
            other = as_other_number(array, kind)
            if other is not None:
                yield other


NO_WIDTH = Widths()
ANY_WIDTH = Widths(complete=False)


def widths_of(chunks: Iterable[pa.Array], encoding: Encoding) -> Widths:
    """Return the number types of these arrays. They are unknown unless the encoding is canonical."""
    kinds = (plain_type(chunk.type) for chunk in chunks if chunk.null_count < len(chunk))
    numbers = frozenset(kind for kind in kinds if is_number(kind))
    if encoding == CANONICAL:
        return Widths(numbers)
    return ANY_WIDTH if numbers else NO_WIDTH

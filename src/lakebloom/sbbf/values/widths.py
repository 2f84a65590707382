"""Which widths of a number a filter has to be asked for.

The hash of 5 depends on its width: an int is four bytes, a bigint eight. A filter remembers the number types that were
inserted, and a probe is repeated in each of them. Where a filter does not know them (it was read from bytes, or filled
with hashes), a Python number, which has no width itself, is tried in every usual one. See docs/decisions/0003.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
"""The widths that hash differently. A Parquet target with a physical type fixes the width itself."""


@dataclass(frozen=True, slots=True)
class Widths:
    """The number types in a filter, as far as they are known."""

    types: frozenset[pa.DataType] = frozenset()
    complete: bool = True
    """False: numbers of other types may be in the filter, too."""

    def __or__(self, other: Widths) -> Widths:
        return Widths(self.types | other.types, self.complete and other.complete)

    def other_forms(self, array: pa.Array, encoding: Encoding, *, typed: bool) -> Iterator[pa.Array]:
        """Yield the numbers of an array in each other type in which the filter may hold them."""
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
    """Return what a filter learns from these arrays. Only canonical bytes can be made again from the type alone."""
    kinds = (plain_type(chunk.type) for chunk in chunks if chunk.null_count < len(chunk))
    numbers = frozenset(kind for kind in kinds if is_number(kind))
    if encoding == CANONICAL:
        return Widths(numbers)
    return ANY_WIDTH if numbers else NO_WIDTH

"""Hashes of values: Arrow arrays in, XXH64 out, in slices that stay in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.calls import typed_call
from lakebloom.sbbf.hashing.buffers import validity
from lakebloom.sbbf.hashing.encoding import CANONICAL, Encoding, encode, require_encoding
from lakebloom.sbbf.hashing.layouts import Gathered
from lakebloom.sbbf.kernels.choose import choose
from lakebloom.sbbf.values.read import is_scalar, to_chunks
from lakebloom.sbbf.values.unwrap import unwrapped
from lakebloom.tuning import SLICE_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebloom.sbbf.hashing.layouts import Layout
    from lakebloom.sbbf.kernels import BoolArray, HashArray
    from lakebloom.sbbf.kernels.choose import Kernels


class Prepared(NamedTuple):
    """An array ready to be hashed."""

    layout: Layout
    valid: BoolArray | None
    """False for each NULL; None if there are no NULLs."""


def prepare(array: pa.Array, encoding: Encoding) -> Prepared:
    """Prepare an array for hashing. It may be a dictionary or an extension type."""
    array = unwrapped(array)
    if not pt.is_dictionary(array.type):
        return Prepared(encode(array, encoding), validity(array))
    hashes, known = hash_array(array.dictionary, encoding)
    if len(hashes) == 0:  # only NULLs, whose indices are undefined
        hashes = np.zeros(1, dtype=np.uint64)
    indices = pc.fill_null(array.indices, 0) if array.null_count else array.indices
    positions = indices.to_numpy(zero_copy_only=False)
    valid = validity(array.indices)
    if known is not None:
        valid = known[positions] if valid is None else valid & known[positions]
    return Prepared(Gathered(hashes, positions), valid)


def kernels_for(*prepared: Prepared) -> Kernels:
    """Return the kernels for this total amount of work."""
    layouts = [part.layout for part in prepared]
    return choose(sum(map(len, layouts)), sum(layout.long_bytes for layout in layouts))


def hash_slices(prepared: Prepared, kernels: Kernels | None = None) -> Iterator[tuple[slice, HashArray]]:
    """Yield the hashes of a prepared array slice by slice. The next slice overwrites the one before."""
    kernels = kernels_for(prepared) if kernels is None else kernels
    count = len(prepared.layout)
    buffer = np.empty(min(count, SLICE_VALUES), dtype=np.uint64)
    for start in range(0, count, SLICE_VALUES):
        stop = min(start + SLICE_VALUES, count)
        hashes = buffer[: stop - start]
        prepared.layout.slice(start, stop).hash_into(kernels, hashes)
        yield slice(start, stop), hashes


def hash_array(array: pa.Array, encoding: Encoding = CANONICAL) -> tuple[HashArray, BoolArray | None]:
    """Return the hash of each value, 0 for a NULL, and which values are not NULL (None: all of them)."""
    prepared = prepare(array, encoding)
    out = np.empty(len(array), dtype=np.uint64)
    for where, hashes in hash_slices(prepared):
        out[where] = hashes
    if prepared.valid is not None:
        out[~prepared.valid] = 0
    return out, prepared.valid


@typed_call
def hash_values(values: object, *, type: pa.DataType | None = None, encoding: Encoding = CANONICAL) -> Any:
    """Return the XXH64 (seed 0) of each value's bytes as numpy uint64: a scalar for a scalar, otherwise an array.

    A NULL has no hash; it gives 0. ``type`` says how to read Python objects, ``encoding`` which bytes of a value
    are hashed (see ``lakebloom.sbbf.hashing.encoding``).

    Raises UnsupportedTypeError, ValueConversionError or InvalidArgumentError.

    >>> hash_values(["a", "b"]).tolist()
    [15154266338359012955, 8666379929374662555]
    """
    require_encoding(encoding)
    hashes = [hash_array(chunk, encoding)[0] for chunk in to_chunks(values, type)]
    joined = hashes[0] if len(hashes) == 1 else np.concatenate([np.empty(0, dtype=np.uint64), *hashes])
    return joined[0] if is_scalar(values) else joined

"""Removes extension types, dictionaries and run-end encoding, which may be nested in any order.

The hash of a value does not depend on them. ``unwrapped`` returns a plain array, or one dictionary of plain values,
each of which is hashed once. It copies no value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc

__all__ = ["plain_type", "unwrapped", "without_runs"]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the plain type inside a type.

    >>> plain_type(pa.dictionary(pa.int8(), pa.uuid()))
    FixedSizeBinaryType(fixed_size_binary[16])
    """
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
            kind = kind.value_type
        else:
            return kind


def unwrapped(array: pa.Array) -> pa.Array:
    """Return the same values as a plain array or as a dictionary over one."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pt.is_run_end_encoded(array.type):
            array = without_runs(array)
        elif pt.is_dictionary(array.type) and _is_wrapped(array.dictionary.type):
            array = _of_dictionary(array.indices, unwrapped(array.dictionary))
        else:
            return array


def without_runs(array: pa.Array) -> pa.Array:
    """Return run-end encoded values as a dictionary of the runs' values; any other array as it is."""
    if not pt.is_run_end_encoded(array.type):
        return array
    ends = np.clip(array.run_ends.to_numpy().astype(np.int64) - array.offset, 0, len(array))
    runs = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(ends, prepend=0))
    return _of_dictionary(pa.array(runs), array.values)


def _is_wrapped(kind: pa.DataType) -> bool:
    return plain_type(kind) is not kind


def _of_dictionary(indices: pa.Array, values: pa.Array) -> pa.Array:
    if pt.is_dictionary(values.type):
        return pa.DictionaryArray.from_arrays(pc.take(values.indices, indices), values.dictionary)
    return pa.DictionaryArray.from_arrays(indices, values)

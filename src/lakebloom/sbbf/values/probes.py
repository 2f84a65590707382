"""A probe: values as hashes for the filters of one column, and which of the values a filter can decide.

A filter decides only about a value that has exactly one form in the file. Other values pass: one that the column's type
cannot hold, and NaN, which has many forms. Zero has two forms in a float, and both are probed. A NULL is in no filter
and does not pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

from lakebloom.errors import UnsupportedTypeError, ValueConversionError
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.sbbf.values.read import to_chunks
from lakebloom.sbbf.values.unwrap import unwrapped

if TYPE_CHECKING:
    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.sbbf.hashing.encoding import Encoding
    from lakebloom.sbbf.kernels import BoolArray, HashArray

__all__ = ["Probe", "probe_values"]


@dataclass(frozen=True, slots=True)
class Probe:
    """The probe for the filters of one column."""

    forms: tuple[HashArray, ...]
    """The hashes of the values, one array for each form that they can have."""
    decided: BoolArray
    """Which values the filter decides about."""
    kept: BoolArray
    """The result for the other values: True for one that cannot be probed, False for a NULL."""

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def needs_filter(self) -> bool:
        """False if the filter decides about no value."""
        return bool(self.decided.any())

    @property
    def nulls(self) -> BoolArray:
        """Which values are NULL."""
        return ~(self.decided | self.kept)

    def without_filter(self) -> BoolArray:
        """Tell which values may be there without a filter."""
        return self.decided | self.kept

    def run(self, filter: Sbbf) -> BoolArray:
        """Tell which values may be there."""
        found = np.zeros(len(self), dtype=np.bool_)
        for hashes in self.forms:
            found |= filter.might_contain_hashes(hashes)
        return (found & self.decided) | self.kept


def probe_values(values: object, encoding: Encoding, fit: Callable[[pa.Array], pa.Array | None]) -> Probe:
    """Return the probe for values in a column whose filters hash with `encoding`.

    `fit` returns plain values as values of the column, NULL for a value that it cannot hold, and None if it can hold
    none of them. Raises ValueConversionError for Python values that have no common type.
    """
    parts = [_probe_chunk(_plain(chunk), encoding, fit) for chunk in to_chunks(values)]
    if len(parts) == 1:
        return parts[0]
    most = max(len(part.forms) for part in parts)
    return Probe(
        tuple(np.concatenate([part.forms[min(i, len(part.forms) - 1)] for part in parts]) for i in range(most)),
        np.concatenate([part.decided for part in parts]),
        np.concatenate([part.kept for part in parts]),
    )


def _plain(chunk: pa.Array) -> pa.Array:
    array = unwrapped(chunk)
    return array.dictionary_decode() if pt.is_dictionary(array.type) else array


def _probe_chunk(array: pa.Array, encoding: Encoding, fit: Callable[[pa.Array], pa.Array | None]) -> Probe:
    given = array.is_valid().to_numpy(zero_copy_only=False)
    fits = fit(array)
    if fits is None:
        return _undecided(given)
    try:
        forms = tuple(hash_array(form, encoding)[0] for form in _forms(fits))
    except (UnsupportedTypeError, ValueConversionError):
        return _undecided(given)
    decided = fits.is_valid().to_numpy(zero_copy_only=False)
    if pt.is_floating(fits.type):
        decided = decided & ~np.isnan(_floats(fits))
    return Probe(forms, decided, given & ~decided)


def _undecided(given: BoolArray) -> Probe:
    return Probe((np.zeros(len(given), dtype=np.uint64),), np.zeros(len(given), dtype=np.bool_), given)


def _forms(array: pa.Array) -> list[pa.Array]:
    if not pt.is_floating(array.type):
        return [array]
    values = _floats(array)
    zeros = values == 0
    if not zeros.any():
        return [array]
    return [pa.array(np.where(zeros, zero, values).astype(values.dtype), type=array.type) for zero in (0.0, -0.0)]


def _floats(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.floating]]:
    return array.fill_null(1).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

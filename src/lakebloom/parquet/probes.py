"""Values as the hashes to ask the filters of one column for, with everything that a filter must not be asked.

A filter's "no" is believed only where the value has exactly one form in the file. What has none that is known is kept:
a value that the column's type cannot hold, NaN (of which there are many), a date that Spark may have written in another
calendar. Zero has two forms in a float, and both are asked for. A NULL is in no filter, and its answer is no.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.errors import UnsupportedTypeError, ValueConversionError
from lakebloom.parquet.column_types import family_of, value_type
from lakebloom.parquet.fitting import fitted
from lakebloom.sbbf.encoding import Parquet
from lakebloom.sbbf.hashing import hash_array
from lakebloom.sbbf.unwrap import unwrapped
from lakebloom.sbbf.values import to_chunks
from lakebloom.tables.calendars import trusted_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.parquet.schema import SchemaElement
    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.sbbf.kernels import BoolArray, HashArray

__all__ = ["Probe", "probe_for"]

_MICROS_PER_TICK = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Probe:
    """What to ask of each filter of a column."""

    forms: tuple[HashArray, ...]
    """The hashes of the values, once for each form that they can have."""
    asked: BoolArray
    """Where the filter decides."""
    kept: BoolArray
    """The answer elsewhere: True for what cannot be asked, False for a NULL."""

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def needs_filter(self) -> bool:
        """False where the answer is the same whatever the filter holds."""
        return bool(self.asked.any())

    def without_filter(self) -> BoolArray:
        """Tell which values may be there, if nothing is known of what is."""
        return self.asked | self.kept

    def ask(self, filter: Sbbf) -> BoolArray:
        """Tell which values may be there."""
        found = np.zeros(len(self), dtype=np.bool_)
        for hashes in self.forms:
            found |= filter.might_contain_hashes(hashes)
        return (found & self.asked) | self.kept


def probe_for(element: SchemaElement, values: object, notes: Mapping[bytes, bytes]) -> Probe:
    """Return the probe for values in a column; `notes` are the footer's key-value metadata.

    Raises ValueConversionError for Python values that have no common type.
    """
    parts = [_probe_chunk(element, _plain(chunk), notes) for chunk in to_chunks(values)]
    if len(parts) == 1:
        return parts[0]
    most = max(len(part.forms) for part in parts)
    return Probe(
        tuple(np.concatenate([part.forms[min(i, len(part.forms) - 1)] for part in parts]) for i in range(most)),
        np.concatenate([part.asked for part in parts]),
        np.concatenate([part.kept for part in parts]),
    )


def _plain(chunk: pa.Array) -> pa.Array:
    array = unwrapped(chunk)
    return array.dictionary_decode() if pt.is_dictionary(array.type) else array


def _probe_chunk(element: SchemaElement, array: pa.Array, notes: Mapping[bytes, bytes]) -> Probe:
    given = array.is_valid().to_numpy(zero_copy_only=False)
    target = value_type(element)
    fits = None if target is None else _fit(element, array, target)
    if target is None or fits is None:
        return _unasked(given)
    fits = _within_calendar(element, fits, notes)
    encoding = Parquet(element.physical_type, _type_length(element))
    try:
        forms = tuple(hash_array(form, encoding)[0] for form in _forms(fits))
    except (UnsupportedTypeError, ValueConversionError):
        return _unasked(given)
    asked = fits.is_valid().to_numpy(zero_copy_only=False)
    if pt.is_floating(fits.type):
        asked = asked & ~np.isnan(_floats(fits))
    return Probe(forms, asked, given & ~asked)


def _unasked(given: BoolArray) -> Probe:
    return Probe((np.zeros(len(given), dtype=np.uint64),), np.zeros(len(given), dtype=np.bool_), given)


def _fit(element: SchemaElement, array: pa.Array, target: pa.DataType) -> pa.Array | None:
    if element.physical_type != "INT96":
        return fitted(array, target)
    if not pt.is_timestamp(array.type):
        return None
    # It has no room to say whether it is in UTC; writers take UTC, and readers show what is stored.
    wall = array.view(pa.timestamp(array.type.unit))
    return wall if wall.type.unit == "ns" else fitted(wall, target)


def _type_length(element: SchemaElement) -> int | None:
    return element.type_length if element.physical_type == "FIXED_LEN_BYTE_ARRAY" else None


def _within_calendar(element: SchemaElement, array: pa.Array, notes: Mapping[bytes, bytes]) -> pa.Array:
    trusted = trusted_values(family_of(array.type, element), notes)
    if trusted is None:
        return array
    ticks = array.view(pa.int32() if pt.is_date32(array.type) else pa.int64()).cast(pa.int64())
    if pt.is_timestamp(array.type) and array.type.unit == "ns":
        ticks = pc.divide(ticks, 1000)
    start, before = trusted
    if pt.is_timestamp(array.type) and array.type.unit in _MICROS_PER_TICK:
        per_tick = _MICROS_PER_TICK[array.type.unit]
        start, before = start // per_tick, None if before is None else before // per_tick
    known = pc.greater_equal(ticks, start)
    if before is not None:
        known = pc.and_(known, pc.less(ticks, before))
    return pc.if_else(known, array, pa.scalar(None, array.type))


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

"""Probes of a Parquet column: values in the form of the file's physical and logical type.

Built on ``sbbf/values/probes.py``. A date that Spark may have written in another calendar is not probed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.parquet.column_types import family_of, value_type
from lakebloom.sbbf.hashing.encoding import PARQUET, Parquet
from lakebloom.sbbf.values.fitting import fitted
from lakebloom.sbbf.values.probes import Probe, probe_values
from lakebloom.tables.parquet.calendars import trusted_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.parquet.schema import SchemaElement

__all__ = ["probe_for"]

_MICROS_PER_TICK = {"s": 1_000_000, "ms": 1_000, "us": 1}


def probe_for(element: SchemaElement, values: object, notes: Mapping[bytes, bytes]) -> Probe:
    """Return the probe for values in a column; `notes` are the footer's key-value metadata.

    Raises ValueConversionError for Python values that have no common type.
    """
    target = value_type(element)

    def fit(array: pa.Array) -> pa.Array | None:
        fits = None if target is None else _fit(element, array, target)
        return None if fits is None else _within_calendar(element, fits, notes)

    # A column without a value type is not probed, and its type may be damaged.
    encoding = PARQUET if target is None else Parquet(element.physical_type, _type_length(element))
    return probe_values(values, encoding, fit)


def _fit(element: SchemaElement, array: pa.Array, target: pa.DataType) -> pa.Array | None:
    if element.physical_type != "INT96":
        return fitted(array, target)
    if not pt.is_timestamp(array.type):
        return None
    # INT96 cannot tell whether it is in UTC. Writers use UTC, and readers show what is stored.
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

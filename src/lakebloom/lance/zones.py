"""A Lance index in memory: the filters of its zones, and probes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakebloom.errors import InvalidArgumentError
from lakebloom.sbbf.hashing.encoding import LANCE, encode
from lakebloom.sbbf.values.fitting import fitted
from lakebloom.sbbf.values.probes import probe_values

if TYPE_CHECKING:
    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.sbbf.kernels import BoolArray
    from lakebloom.sbbf.values.probes import Probe

__all__ = ["LanceIndex", "ZoneFilter", "require_type"]


@dataclass(frozen=True, slots=True)
class ZoneFilter:
    """The filter of one zone: the rows of a fragment from ``zone_start`` to before ``zone_start + zone_length``.

    Row numbers include rows that were deleted before the index was built; these are in no filter.
    """

    fragment_id: int
    zone_start: int
    zone_length: int
    has_null: bool
    filter: Sbbf


@dataclass(frozen=True, slots=True)
class LanceIndex:
    """A Bloom filter index of a Lance dataset, or one file of such an index."""

    zones: tuple[ZoneFilter, ...] = field(repr=False)
    """By fragment and row. Only zones of fragments that the dataset still has, if it was opened from a dataset."""
    rows_per_zone: int
    fpp: float
    """The configured rate. Lance's sizes are powers of two, so the real rate is often much lower."""
    files: tuple[str, ...]
    name: str | None = None
    column: str | None = None
    type: pa.DataType | None = None
    """The column's type; None if a file was opened by its path, because it does not contain the type."""
    unindexed_fragments: tuple[int, ...] | None = None
    """Unindexed fragments of the dataset, which must be read. None if the index was opened without a dataset."""

    def might_contain(self, values: object, *, type: pa.DataType | None = None) -> BoolArray:
        """Tell for each zone and value whether the value may be there: False is certain.

        Returns an array of bools [zones, values], also for a single value. Values are compared by value with those of
        the column; None means NULL. The result is True for what a filter cannot decide: NaN, and a value that the
        column's type cannot hold. ``type`` is the column's type, needed if the index does not know it.

        Raises InvalidArgumentError for a missing or different type; UnsupportedTypeError for a type that has no filters
        in Lance; ValueConversionError for Python values that have no common type.
        """
        if type is not None and self.type is not None and type != self.type:
            raise InvalidArgumentError(
                f"the column {self.column} of this index already has a type",
                found=f"{type}, not {self.type}",
                hint="leave type out",
            )
        target = require_type(type if self.type is None else self.type)
        probe = probe_values(values, LANCE, lambda array: fitted(array, target))
        answers = [_probe_zone(zone, probe) for zone in self.zones]
        return np.array(answers, dtype=np.bool_).reshape(len(answers), len(probe))

    def candidates(self, values: object, *, type: pa.DataType | None = None) -> list[ZoneFilter]:
        """Return the zones that may contain any of the values; None means NULL. Raises what might_contain raises."""
        found = np.flatnonzero(self.might_contain(values, type=type).any(axis=1))
        return [self.zones[number] for number in found]


def require_type(type: pa.DataType | None) -> pa.DataType:
    """Return a type that Lance has filters for. Raises InvalidArgumentError if it is missing; UnsupportedTypeError."""
    if type is None:
        raise InvalidArgumentError(
            "hashes depend on the column's type, which a Lance index file does not store",
            found="no type",
            hint="pass the column's type, such as type=pyarrow.int64(), or open the index through its dataset",
        )
    encode(pa.nulls(0, type), LANCE)
    return type


def _probe_zone(zone: ZoneFilter, probe: Probe) -> BoolArray:
    # A zone has rows. A filter of zeros means that all of them are NULL; if the zone has no NULL, it was never filled.
    trusted = zone.has_null or bool(zone.filter.words.any())
    answer = probe.run(zone.filter) if trusted else probe.without_filter()
    return answer | probe.nulls if zone.has_null else answer

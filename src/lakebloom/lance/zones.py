"""A Lance index in memory: the filters of its zones, and what can be asked of them."""

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

    Rows are counted with those deleted before the index was built, which are in no filter.
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
    """By fragment and row. Only those that the dataset still has, where the index was opened from one."""
    rows_per_zone: int
    fpp: float
    """What its builder asked for; Lance's sizes are powers of two, so the real rate is often far lower."""
    files: tuple[str, ...]
    name: str | None = None
    column: str | None = None
    type: pa.DataType | None = None
    """The column's; None where a file was opened by its path, which does not say."""
    unindexed_fragments: tuple[int, ...] | None = None
    """The dataset's fragments that no zone speaks of: they must be read. None where there is no dataset to tell."""

    def might_contain(self, values: object, *, type: pa.DataType | None = None) -> BoolArray:
        """Tell for each zone and value whether the value may be there: False is certain.

        Returns an array of bools [zones, values], also for a single value. Values are compared by value with what the
        column holds; None asks for NULLs. Whatever a filter cannot answer is True: NaN, and a value that the column's
        type cannot hold. ``type`` is the column's, needed where the index does not know it.

        Raises InvalidArgumentError where no type is known, or another; UnsupportedTypeError for one that Lance has no
        filters for; ValueConversionError for Python values that have no common type.
        """
        if type is not None and self.type is not None and type != self.type:
            raise InvalidArgumentError(
                f"the column {self.column} of this index already has a type",
                found=f"{type}, not {self.type}",
                hint="leave type out",
            )
        target = require_type(type if self.type is None else self.type)
        probe = probe_values(values, LANCE, lambda array: fitted(array, target))
        answers = [_ask(zone, probe) for zone in self.zones]
        return np.array(answers, dtype=np.bool_).reshape(len(answers), len(probe))

    def candidates(self, values: object, *, type: pa.DataType | None = None) -> list[ZoneFilter]:
        """Return the zones that may hold any of the values; None stands for NULL. Raises what might_contain raises."""
        found = np.flatnonzero(self.might_contain(values, type=type).any(axis=1))
        return [self.zones[number] for number in found]


def require_type(type: pa.DataType | None) -> pa.DataType:
    """Return a type that Lance has filters for. Raises InvalidArgumentError for none, and UnsupportedTypeError."""
    if type is None:
        raise InvalidArgumentError(
            "hashes depend on the column's type, which a Lance index file does not store",
            found="no type",
            hint="pass the column's type, such as type=pyarrow.int64(), or open the index through its dataset",
        )
    encode(pa.nulls(0, type), LANCE)
    return type


def _ask(zone: ZoneFilter, probe: Probe) -> BoolArray:
    # A zone has rows. A filter of zeros says that all of them are NULL; where the zone has no NULL, nobody filled it.
    believed = zone.has_null or bool(zone.filter.words.any())
    answer = probe.ask(zone.filter) if believed else probe.without_filter()
    return answer | probe.nulls if zone.has_null else answer

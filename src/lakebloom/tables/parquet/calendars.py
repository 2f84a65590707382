"""Dates and timestamps that Spark may read as other ones than Arrow does.

*Old values.* Spark 2 and Hive count days in the Julian calendar before 1582-10-15, and local times before 1900 in a way
that depends on the time zone. Spark 3 and later convert such values when they read them, if the footer says so or,
where it says nothing, if the session is configured to. For a file that Spark might convert, only values younger than
the switch are what they seem.

*INT96.* Spark lets the day number of this format wrap around; Arrow takes it for an unsigned one, and gives other
years. Values within the years 1 to 9999, beyond which Spark promises nothing, are trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.parquet.types import Family

__all__ = ["TrustedValues", "require_trusted", "trusted_values"]

_WRITER = b"org.apache.spark.version"
# The first Spark version that writes the modern calendar, and the mark of one that was told not to.
_RULES: Mapping[Family, tuple[bytes, bytes]] = {
    "date": (b"3.0.0", b"org.apache.spark.legacyDateTime"),
    "timestamp": (b"3.0.0", b"org.apache.spark.legacyDateTime"),
    "int96": (b"3.1.0", b"org.apache.spark.legacyINT96"),
}
FIRST_MODERN_DAY = -141_427
"""1582-10-15, in days."""
FIRST_MODERN_MICROSECOND = -2_208_988_800_000_000
"""1900-01-01T00:00:00Z: from here on no time zone needs a conversion."""
_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000


class TrustedValues(NamedTuple):
    """The values that mean the same to Spark and to Arrow, in days or microseconds since 1970."""

    start: int
    before: int | None
    """The first value that is not trusted any more; None where there is none."""


def trusted_values(family: Family, footer: Mapping[bytes, bytes] | None) -> TrustedValues | None:
    """Return which values of a column can be trusted, going by the footer's key-value metadata; None is all of them."""
    if family not in _RULES:
        return None  # a timestamp without time zone is never converted
    rebased = _may_be_rebased(family, footer or {})
    if family == "int96":
        return TrustedValues(FIRST_MODERN_MICROSECOND if rebased else _YEAR_1, _YEAR_10000)
    if not rebased:
        return None
    return TrustedValues(FIRST_MODERN_DAY if family == "date" else FIRST_MODERN_MICROSECOND, None)


def _may_be_rebased(family: Family, footer: Mapping[bytes, bytes]) -> bool:
    first_modern, legacy_mark = _RULES[family]
    writer = footer.get(_WRITER)
    # Versions are compared as text, as Spark does.
    return writer is None or writer < first_modern or legacy_mark in footer


def require_trusted(array: pa.Array, trusted: TrustedValues, name: str) -> None:
    """Raise UnsupportedTypeError if a date or timestamp is not one of the trusted values."""
    unit, stored = ("days", pa.int32()) if pt.is_date32(array.type) else ("microseconds", pa.int64())
    extremes = pc.min_max(array.view(stored))
    oldest, newest = extremes["min"].as_py(), extremes["max"].as_py()
    if oldest is None or (oldest >= trusted.start and (trusted.before is None or newest < trusted.before)):
        return
    raise UnsupportedTypeError(
        f"what Spark makes of the values in column {name} of the file depends on its version and configuration",
        found=f"values between {oldest} and {newest} {unit} since 1970",
        hint="rewrite the file with Spark 3 or later, rebase mode CORRECTED, outputTimestampType TIMESTAMP_MICROS; "
        "until then it has no filter",
    )

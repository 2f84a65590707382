"""Files whose old dates Spark reads as other dates.

Spark 2 and Hive count days in the Julian calendar before 1582-10-15, and local times before 1900 in a way that depends
on the time zone. Spark 3 and later convert such values when they read them, if the footer says so or, where it says
nothing, if the session is configured to. For a file that Spark might convert, only values younger than the switch are
what they seem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.parquet_types import Family

__all__ = ["may_be_rebased", "require_modern"]

_WRITER = b"org.apache.spark.version"
# The first Spark version that writes the modern calendar, and the mark of one that was told not to.
_RULES: Mapping[Family, tuple[bytes, bytes]] = {
    "date": (b"3.0.0", b"org.apache.spark.legacyDateTime"),
    "timestamp": (b"3.0.0", b"org.apache.spark.legacyDateTime"),
    "int96": (b"3.1.0", b"org.apache.spark.legacyINT96"),
}
FIRST_SAFE_DAY = -141_427
"""1582-10-15, in days."""
FIRST_SAFE_MICROSECOND = -2_208_988_800_000_000
"""1900-01-01T00:00:00Z: from here on no time zone needs a conversion."""


def may_be_rebased(family: Family, footer: Mapping[bytes, bytes] | None) -> bool:
    """Whether Spark may change old values of such a column, going by the footer's key-value metadata."""
    if family not in _RULES:
        return False  # a timestamp without time zone is never converted
    first_modern, legacy_mark = _RULES[family]
    facts = footer or {}
    writer = facts.get(_WRITER)
    # Versions are compared as text, as Spark does.
    return writer is None or writer < first_modern or legacy_mark in facts


def require_modern(array: pa.Array, name: str) -> None:
    """Raise UnsupportedTypeError if a date or timestamp lies before the switch."""
    stored, limit = (pa.int32(), FIRST_SAFE_DAY) if pt.is_date32(array.type) else (pa.int64(), FIRST_SAFE_MICROSECOND)
    oldest = pc.min(array.view(stored)).as_py()
    if oldest is not None and oldest < limit:
        raise UnsupportedTypeError(
            f"what Spark makes of the old values in column {name} of the file depends on its configuration",
            found=f"{oldest} {'days' if pt.is_date32(array.type) else 'microseconds'} since 1970",
            hint="rewrite the file with Spark 3 or later in the CORRECTED rebase mode; until then it has no filter",
        )

"""A connector of another version, whose classes lack something. Part of ``on_iceberg_catalog``.

The Java sources are compiled so that they look for other names where a system property says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.spark import jvm

if TYPE_CHECKING:
    from tests.spark.iceberg_catalog import Catalog

__all__ = ["let_names_change", "unknown"]

LACKING = ("resetTasks", "startSnapshotId", "fileSequenceNumber", "SchemaParser", "expectedSchema", "tasks", "uuid")


def let_names_change() -> None:
    """Compile the sources so; before any session has compiled them."""
    anything: Any = jvm
    real = anything.java_source

    def changed(*given: str) -> str:
        text: str = real(*given)
        for name in LACKING:
            text = text.replace(f'"{name}"', f'System.getProperty("lakebloom.{name}", "{name}")')
        return text

    anything.java_source = changed


def unknown(catalog: Catalog) -> None:
    """Read everything where anything is missing, and say so."""
    table = catalog.create("unknown")
    system = catalog.spark.sparkContext._jvm.System  # type: ignore[union-attr]
    for name in LACKING:
        system.setProperty(f"lakebloom.{name}", "thatIsNotThere")
        catalog.cases.sql(name, f"SELECT * FROM {table} WHERE k = 25")
        system.clearProperty(f"lakebloom.{name}")
    catalog.cases.sql("all there", f"SELECT * FROM {table} WHERE k = 25")

"""A catalog of pyiceberg on local disk, which lakebloom knows by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.catalog.sql import SqlCatalog

from lakebloom.tables.formats.iceberg.catalogs import forget_catalogs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CATALOG = "lake"


def local_catalog(home: Path) -> SqlCatalog:
    """Return a new connection to the catalog at a place, with a namespace ``db``."""
    catalog = SqlCatalog(CATALOG, **_settings(home))
    catalog.create_namespace_if_not_exists("db")
    return catalog


def named_catalog(monkeypatch: pytest.MonkeyPatch, home: Path) -> SqlCatalog:
    """Return the same, after making its name known."""
    for key, value in {**_settings(home), "type": "sql"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{CATALOG.upper()}__{key.upper()}", value)
    forget_catalogs()
    return local_catalog(home)


def _settings(home: Path) -> dict[str, str]:
    return {"uri": f"sqlite:///{home}/c.db", "warehouse": f"file://{home}/w"}

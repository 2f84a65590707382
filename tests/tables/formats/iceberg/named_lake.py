"""A table in a catalog of pyiceberg, known by its name only, and the index of it: what every catalog must do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.build.run import Workshop
from lakebloom.index.catalog import Catalog
from lakebloom.index.current_table import iceberg_record
from lakebloom.index.settings import Settings
from lakebloom.tables.formats.iceberg.catalogs import forget_catalogs
from lakebloom.tables.formats.iceberg.named import iceberg_source
from tests.index.local_builder import LocalBuilder

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest
    from pyiceberg.table import Table

    from lakebloom.index.build.report import BuildReport

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
INDEX = "i"


def rows(*keys: int) -> pa.Table:
    return pa.table([pa.array(keys, pa.int64()), [f"s{key}" for key in keys]], schema=SCHEMA)


def configure(monkeypatch: pytest.MonkeyPatch, catalog: str, properties: Mapping[str, str]) -> None:
    """Tell pyiceberg about a catalog as users do, in the environment."""
    for key, value in properties.items():
        name = key.upper().replace("-", "_").replace(".", "__")
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{catalog.upper()}__{name}", value)
    forget_catalogs()


class NamedLake:
    """Indexes of a table that is given by its name, at a place of the same storage."""

    def __init__(self, name: str, location: str, options: Mapping[str, str] | None = None) -> None:
        self.name, self.location, self.options = name, location, dict(options or {})

    def create(self) -> BuildReport:
        source = iceberg_source(self.name, self.options)
        assert source is not None
        assert source.catalog == self.name
        return create_index(self._shop(), iceberg_record(source, self.options), BloomIndexConfig(INDEX, ["k"]))

    def refresh(self) -> BuildReport:
        return refresh_index(self._shop(), INDEX, "quick")

    def open(self) -> Lakebloom:
        return Lakebloom(location=self.location, options=self.options or None)

    def _shop(self) -> Workshop:
        catalog = Catalog(self.location, self.options)
        return Workshop(catalog, LocalBuilder(catalog, options=self.options), Settings(global_max_bytes=1 << 16))


def found(lake: Lakebloom, key: int, **options: Any) -> list[str]:
    values: list[str] = lake.lookup(INDEX, col("k") == key, **options)["s"].to_pylist()
    return values


def follow(lake: NamedLake, table: Table) -> None:
    """Index an empty table after two commits, and look up in it while its owner goes on writing."""
    for keys in ((1, 2), (3, 4)):
        table.append(rows(*keys))
    assert lake.create().files == 2
    with lake.open() as opened:
        assert [found(opened, key) for key in (1, 4, 9)] == [["s1"], ["s4"], []]
        assert opened.candidates(INDEX, col("k") == 4).num_rows == 1
        before = table.current_snapshot()
        assert before is not None
        table.append(rows(4, 9))
        assert [found(opened, key) for key in (4, 9)] == [["s4", "s4"], ["s9"]]
        assert [found(opened, key, version=before.snapshot_id) for key in (4, 9)] == [["s4"], []]
        assert lake.refresh().files == 1
        assert found(opened, 9, unindexed="error") == ["s9"]
        table.delete("k == 4")
        assert found(opened, 4) == []
        assert found(opened, 4, version=before.snapshot_id) == ["s4"]
        assert opened.verify_index(INDEX).false_negatives == 0

"""Iceberg tables of a Spark session's catalogs, without a session: pyiceberg is asked for a catalog of the name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from lakebloom import Lakebloom, col
from lakebloom.errors import UnsupportedSourceError
from lakebloom.index.current_table import iceberg_record, logged_table
from lakebloom.tables.formats.iceberg.catalogs import forget_catalogs
from lakebloom.tables.formats.iceberg.table import Source
from tests.index.logged_lake import NAME, LoggedIndexes
from tests.tables.formats.iceberg.sql_catalog import CATALOG, local_catalog, named_catalog

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table

    from lakebloom.store.records import TableRecord

SCHEMA = pa.schema([("k", pa.int64())])


class SessionIndexes(LoggedIndexes):
    """Indexes of a table as a session names it."""

    def __init__(self, home: Path, table: Table) -> None:
        super().__init__(home)
        self.table = table

    def record(self) -> TableRecord:
        return iceberg_record(Source(session=(CATALOG, "db", "t")), {}, self.table.metadata_location)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    found = local_catalog(tmp_path).create_table("db.t", SCHEMA)
    found.append(pa.table([[1, 2]], schema=SCHEMA))
    return found


def test_a_catalog_of_the_same_name_is_asked(tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = named_catalog(monkeypatch, tmp_path)
    indexes = SessionIndexes(tmp_path, table)
    indexes.create("k")
    with Lakebloom(location=indexes.location) as lake:
        assert lake.lookup(NAME, col("k") == 2).num_rows == 1
        before = table.current_snapshot().snapshot_id  # type: ignore[union-attr]
        table.append(pa.table([[2, 3]], schema=SCHEMA))
        assert lake.lookup(NAME, "k = 2").num_rows == 2
        assert lake.lookup(NAME, "k = 2", version=before).num_rows == 1
        indexes.refresh()
        assert lake.lookup(NAME, col("k") == 3, unindexed="error").num_rows == 1
        catalog.drop_table("db.t")
        catalog.create_table("db.t", SCHEMA).append(pa.table([[2]], schema=SCHEMA))
        with pytest.raises(UnsupportedSourceError, match=r"another table than the one that was indexed as lake\.db\.t"):
            lake.lookup(NAME, col("k") == 2)


def test_without_one_nothing_is_assumed(tmp_path: Path, table: Table) -> None:
    """The recorded metadata may be old by now: it is no answer."""
    forget_catalogs()
    record = SessionIndexes(tmp_path, table).record()
    assert (record.name, record.is_of_session) == ("lake.db.t", True)
    with pytest.raises(UnsupportedSourceError, match="only the catalog lake of a Spark session knows"):
        logged_table(record, {})
    told = logged_table(record, {}, told=table.metadata_location)
    assert told.metadata_uri == table.metadata_location
    assert len(told.list_files({})) == 1

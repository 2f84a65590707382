"""Who else reads these tables: deltalake and pyiceberg scan them for one key, and for the files of many keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from bench.parameters import Tables


class TableScan(Protocol):
    """A library's own scan of a table."""

    name: str
    longest: int
    """Of longer lists it is given so many keys only: it would take minutes."""

    def rows(self, key: str) -> list[dict[str, Any]]:
        """Return the rows of a key."""

    def counting(self, keys: list[str]) -> Callable[[], int]:
        """Return what counts the rows of the keys; what it needs for this is ready."""


class DeltalakeScan:
    """deltalake's own engine."""

    name = "deltalake's scan"
    longest = 1_000_000

    def __init__(self, place: Path) -> None:
        self._table = DeltaTable(str(place))
        self._keys = place.with_name(f"{place.name}-keys")

    def rows(self, key: str) -> list[dict[str, Any]]:
        found = QueryBuilder().register("t", self._table).execute(f"SELECT * FROM t WHERE user = '{key}'")
        return pa.table(found.read_all()).to_pylist()

    def counting(self, keys: list[str]) -> Callable[[], int]:
        """Join with the keys in another Delta table: a long list in SQL takes many times longer."""
        write_deltalake(str(self._keys), pa.table({"key": keys}), mode="overwrite")
        found = QueryBuilder().register("t", self._table).register("k", DeltaTable(str(self._keys)))
        query = "SELECT count(*) AS n FROM t JOIN k ON t.user = k.key"
        return lambda: int(pa.table(found.execute(query).read_all())["n"][0].as_py())


class PyicebergScan:
    """pyiceberg's own scan, which PyArrow runs."""

    name = "pyiceberg's scan"
    longest = Tables.pyiceberg_keys

    def __init__(self, metadata: str) -> None:
        from pyiceberg.table import StaticTable

        self._table = StaticTable.from_metadata(metadata)

    def rows(self, key: str) -> list[dict[str, Any]]:
        from pyiceberg.expressions import EqualTo

        return self._table.scan(row_filter=EqualTo("user", key)).to_arrow().to_pylist()

    def counting(self, keys: list[str]) -> Callable[[], int]:
        from pyiceberg.expressions import In

        scan = self._table.scan(row_filter=In("user", keys), selected_fields=("user",))
        return lambda: int(scan.to_arrow().num_rows)

"""DuckDB as the judge of ``row_mask``: three-valued logic. Spark is one in tests/spark/test_comparisons.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings

from lakebloom.predicate.rows.evaluate import row_mask
from lakebloom.predicate.tree import Predicate
from tests.examples import most
from tests.predicate.sql_text import duckdb_literal, to_sql
from tests.predicate.strategies import TYPES, leaves, literals_of, rows, table_of, trees

if TYPE_CHECKING:
    pass


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@pytest.mark.slow
@settings(max_examples=most(100), deadline=None)
@given(predicate=trees(leaves([("big",), ("t",), ("d",), ("s", "k")], literals_of)), rows=rows(min_size=1))
def test_duckdb_finds_the_same_rows(
    connection: duckdb.DuckDBPyConnection, predicate: Predicate, rows: list[dict[Any, Any]]
) -> None:
    connection.register("data", table_of(rows).append_column("n", pa.array(range(len(rows)))))
    where = to_sql(predicate, '"', "IS NOT DISTINCT FROM", duckdb_literal)
    found = connection.execute(f"SELECT n FROM data WHERE {where} ORDER BY n").fetchall()
    mask = row_mask(predicate, table_of(rows), TYPES).to_pylist()
    assert [n for (n,) in found] == [n for n, true in enumerate(mask) if true]

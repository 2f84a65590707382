"""Conditions on the command line mean what they mean in SQL: DuckDB is the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

if TYPE_CHECKING:
    from tests.cli.running import Cli
    from tests.index.lake import Lake


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition",
    [
        "k = 25",
        "k IN (3, 45, 1000) AND n IS NOT NULL",
        "s = 's7' OR s = 's41' AND k < 10",
        "(s = 's7' OR s = 's41') AND NOT k < 10",
        "n IS NULL AND k BETWEEN 10 AND 30",
        "k NOT IN (1, 2) AND k <= 5",
        "NOT (k > 3 OR s = 's1')",
        "n <> 1 AND k >= 50",
        "k = 25.0 OR k = -1",
        "n NOT BETWEEN 0 AND 1",
    ],
)
def test_conditions_are_sql(cli: Cli, lake: Lake, condition: str) -> None:
    rows = cli("lookup", "i", condition, "--output", "json").json["rows"]
    expected = duckdb.sql(f"SELECT k, s, n FROM '{lake.table}/*.parquet' WHERE {condition}").fetchall()
    assert 0 < len(expected) < 60
    assert sorted(row["k"] for row in rows) == sorted(row[0] for row in expected)

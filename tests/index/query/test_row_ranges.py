"""The rows of a candidate, read by other engines: what docs/LOOKUPS.md shows, on a file of several units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom import BloomIndexConfig, col
from tests.index.lake import NAME, Lake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS, GROUP, PAGE = 140_000, 70_000, 20_000


def by_duckdb(unit: dict[str, Any]) -> list[int]:
    import duckdb

    query = """
        SELECT k FROM read_parquet($path, file_row_number = true)
        WHERE file_row_number BETWEEN $first AND $last ORDER BY file_row_number"""
    last = unit["row_start"] + unit["row_count"] - 1
    params = {"path": unit["path"], "first": unit["row_start"], "last": last}
    return [key for (key,) in duckdb.sql(query, params=params).fetchall()]


def by_polars(unit: dict[str, Any]) -> list[int]:
    import polars as pl

    return pl.scan_parquet(unit["path"]).slice(unit["row_start"], unit["row_count"]).collect()["k"].to_list()


def by_pyarrow(unit: dict[str, Any]) -> list[int]:
    file = pq.ParquetFile(unit["path"])
    before = sum(file.metadata.row_group(group).num_rows for group in range(unit["row_groups"][0]))
    whole = file.read_row_groups(unit["row_groups"])
    keys: list[int] = whole["k"].slice(unit["row_start"] - before, unit["row_count"]).to_pylist()
    return keys


@pytest.mark.parametrize("read", [by_duckdb, by_polars, by_pyarrow])
@pytest.mark.parametrize("granularity", ["auto", 17_000])
def test_rows_of_candidates(tmp_path: Path, read: Callable[[dict[str, Any]], list[int]], granularity: Any) -> None:
    lake = Lake(tmp_path, {"k": "bigint"})
    keys = np.random.default_rng(7).permutation(ROWS)
    options: dict[str, Any] = {"row_group_size": GROUP, "max_rows_per_page": PAGE, "use_dictionary": False}
    lake.write("f", {"k": pa.array(keys)}, **options)
    lake.create(BloomIndexConfig(NAME, ["k"], granularity=granularity, fpp=1e-6))
    for row in (0, 69_999, 70_000, 101_234, 139_999):
        (unit,) = lake.open().candidates(NAME, col("k") == int(keys[row])).to_pylist()
        assert unit["row_start"] <= row < unit["row_start"] + unit["row_count"] <= unit["row_start"] + 2 * PAGE
        assert read(unit) == keys[unit["row_start"] : unit["row_start"] + unit["row_count"]].tolist()

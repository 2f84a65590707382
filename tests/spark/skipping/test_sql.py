"""Whole queries as people write them, with indexes on every column and without: the same rows, often from fewer files.

The queries are in queries.sql, which says how it is read.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.needs import marks_of
from tests.spark.skipping.support import EXACT, configured, file_counts, skipping
from tests.spark.support import write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FEW_TASKS = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
T = {"a": [1, 2, 3, 4, 5], "b": [11, 12, 13, 14, 15], "c": [21, 22, 25], "d": [31, 32, 33], "e": [None, None], "f": []}
U = {"a": [1, 2, 3, 3, None], "b": [5, 11, 14], "c": [31, 32]}
E = {"a": [3, 4, None], "b": [14, 15], "c": [31]}


@dataclass(frozen=True)
class Query:
    """A query of the fixture, and whether it must read fewer files with indexes."""

    text: str
    skips: bool


def queries() -> list[Query]:
    found = []
    text, skips = "", False
    for line in Path(__file__).with_name("queries.sql").read_text().splitlines():
        if line.startswith("--"):
            skips = line == "-- skips"
        elif line:
            text = f"{text} {line}".strip()
            if text.endswith(";"):
                found.append(Query(text.removesuffix(";"), skips))
                text, skips = "", False
    return found


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakebloom]:
    home = tmp_path_factory.mktemp("sql")
    lake = Lakebloom(spark, home / "indexes")
    tables = {"t": (T, wide_columns), "u": (U, other_columns), "e": (E, narrow_columns)}
    for name, (files, columns) in tables.items():
        for letter, keys in files.items():
            write(home / name / f"{letter}.parquet", columns(keys))
        frame = spark.read.parquet(str(home / name))
        frame.createOrReplaceTempView(name)
        indexed = [column for column in frame.columns if column != "st"]
        indexed += ["st.a", "st.b"] if "st" in frame.columns else []
        lake.create_index(frame, BloomIndexConfig(f"by_{name}", indexed, fpp=EXACT))
    spark.sql("CREATE OR REPLACE TEMP VIEW inner_view AS SELECT k AS key, s, n + 1 AS more FROM t WHERE n IS NOT NULL")
    spark.sql("CREATE OR REPLACE TEMP VIEW nested_view AS SELECT key, upper(s) AS s, more FROM inner_view")
    yield lake
    for view in (*tables, "inner_view", "nested_view"):
        spark.catalog.dropTempView(view)


def wide_columns(keys: list[int | None]) -> dict[str, Any]:
    """The columns of t: n, c, f, day and st follow the key, each with NULLs of its own; zeros and NaN are in file a."""
    special = {1: 0.0, 2: -0.0, 3: math.nan, 4: None}
    fields = [("a", pa.int32()), ("b", pa.string())]
    structs = [None if key in (None, 4) else {"a": None if key == 5 else key, "b": f"x{key}"} for key in keys]
    first = datetime.date(2024, 1, 1)
    return {
        "k": pa.array(keys, pa.int64()),
        "n": pa.array([None if key == 12 else key for key in keys], pa.int32()),
        "s": pa.array([None if key in (None, 13) else "abcd"[key % 4] for key in keys], pa.string()),
        "d": pa.array([special.get(key or 0, float(key or 0) + 100) for key in keys], pa.float64()),
        "day": pa.array([key and first + datetime.timedelta(days=key) for key in keys], pa.date32()),
        "c": pa.array([key and Decimal(key) / 2 for key in keys], pa.decimal128(10, 2)),
        "f": pa.array([None if key is None else key + 0.5 for key in keys], pa.float32()),
        "st": pa.array(structs, pa.struct(fields)),
    }


def other_columns(keys: list[int | None]) -> dict[str, Any]:
    """The columns of u."""
    return {
        "k": pa.array(keys, pa.int64()),
        "n": pa.array([None if key == 2 else key for key in keys], pa.int32()),
        "s": pa.array([None if key is None else "abcd"[key % 4] for key in keys], pa.string()),
        "w": pa.array([key and key * 100 for key in keys], pa.int64()),
    }


def narrow_columns(keys: list[int | None]) -> dict[str, Any]:
    """The columns of e, whose key is narrower than that of the others."""
    return {"k": pa.array(keys, pa.int32()), "s": pa.array([key and f"e{key}" for key in keys], pa.string())}


QUERIES = [pytest.param(query, marks=marks_of(query.text), id=query.text[:70]) for query in queries()]


@pytest.mark.parametrize("query", QUERIES)
def test_same_rows(spark: SparkSession, lake: Lakebloom, query: Query) -> None:
    with configured(spark, FEW_TASKS):
        without = spark.sql(query.text)
        expected = Counter(map(repr, without.collect()))
        with skipping(lake):
            frame = spark.sql(query.text)
            assert Counter(map(repr, frame.collect())) == expected
        read, all_files = sum(file_counts(frame)), sum(file_counts(without))
        assert read < all_files if query.skips else read <= all_files


def test_there_are_many() -> None:
    assert len(queries()) > 150
    assert sum(query.skips for query in queries()) > 60

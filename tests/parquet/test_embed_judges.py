"""What other engines make of embedded filters: they skip row groups, find every key, and read the same table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.parquet import embed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUPS, ROWS = 4, 1000
COLUMNS = ["id", "name", "price", "day", "moment"]


def interleaved() -> pa.Table:
    """Return rows of which each row group covers the whole range, so that only filters can tell them apart."""
    ids = np.arange(GROUPS * ROWS).reshape(ROWS, GROUPS).T.reshape(-1)  # the first row group has 0, 4, 8 …
    return pa.table(
        {
            "id": pa.array(ids * 3),
            "name": pa.array([f"user-{i * 3}" for i in ids]),
            "price": pa.array(ids * 3).cast(pa.decimal128(19, 0)).cast(pa.decimal128(19, 2), safe=False),
            "day": pa.array(ids * 3, pa.int32()).cast(pa.date32()),
            "moment": pa.array(ids * 3_000_000).cast(pa.timestamp("us", "UTC")),
            "payload": pa.array(ids * 0.5),
        }
    )


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A file of four row groups without filters or dictionaries."""
    path = tmp_path / "plain.parquet"
    pq.write_table(interleaved(), path, row_group_size=ROWS, use_dictionary=False, compression="zstd")
    return path


@pytest.fixture
def filtered(plain: Path, tmp_path: Path) -> Path:
    """The same file with filters."""
    path = tmp_path / "filtered.parquet"
    embed(plain, path, COLUMNS, fpp=1e-5)  # so low that no judge finds a row group by chance
    return path


# A key of the third row group, and one that is in no row group but within the range of all.
QUESTIONS = [
    ("id = 3006", 1),
    ("id = 3007", 0),
    ("name = 'user-3006'", 1),
    ("name = 'user-3007'", 0),
    ("day = DATE '1978-03-26'", 1),
    ("day = DATE '1978-03-27'", 0),
]


def test_pyarrow_reads_every_column_as_before(plain: Path, filtered: Path) -> None:
    before, after = pq.ParquetFile(plain), pq.ParquetFile(filtered)
    assert before.schema_arrow.equals(after.schema_arrow, check_metadata=True)
    for name in interleaved().column_names:
        assert before.read([name]).equals(after.read([name]))
        for group in range(GROUPS):
            assert before.read_row_group(group, [name]).equals(after.read_row_group(group, [name]))


@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
def test_duckdb(plain: Path, filtered: Path, question: str, expected: int) -> None:
    column, _, value = question.partition(" = ")
    probe = f"SELECT bloom_filter_excludes FROM parquet_bloom_probe('{filtered}', '{column}', {value})"
    excluded = [answer for (answer,) in duckdb.sql(probe).fetchall()]
    assert excluded == [not (expected and group == 2) for group in range(GROUPS)]
    for path in (plain, filtered):
        assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {question}").fetchall() == [(expected,)]
    with_decimal = f"SELECT count(*) FROM '{filtered}' WHERE price = 3006"
    assert duckdb.sql(with_decimal).fetchall() == [(1,)]


def pruned(path: Path, question: str) -> tuple[int, int]:
    """Return how many row groups DataFusion's filters dropped, and the rows it found."""
    from datafusion import SessionContext

    context = SessionContext()
    context.register_parquet("t", str(path))
    found = sum(batch.num_rows for batch in context.sql(f"SELECT * FROM t WHERE {question}").collect())
    plan = context.sql(f"EXPLAIN ANALYZE SELECT * FROM t WHERE {question}").to_pydict()["plan"][0]
    metric = re.search(r"row_groups_pruned_bloom_filter=(\d+) total(?: → | -> |.{1,5})(\d+) matched", plan)
    assert metric is not None, plan
    return int(metric[1]) - int(metric[2]), found


@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
def test_datafusion(plain: Path, filtered: Path, question: str, expected: int) -> None:
    assert pruned(plain, question) == (0, expected)
    asks = not question.startswith("day")  # DataFusion 55 asks no filter about a date
    assert pruned(filtered, question) == (GROUPS - expected if asks else 0, expected)


def rows_decoded(query: DataFrame) -> int:
    """Run a query and return how many rows its scan put out."""
    query.collect()
    plan: Any = query._jdf.queryExecution().executedPlan()
    leaf = plan.collectLeaves().head()
    scan = leaf.executedPlan().collectLeaves().head() if leaf.nodeName() == "AdaptiveSparkPlan" else leaf
    return int(scan.metrics().apply("numOutputRows").value())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("question", "expected"),
    [*QUESTIONS, ("price = 3006.00BD", 1), ("price = 3007.00BD", 0), ("moment = timestamp_seconds(3006)", 1)],
)
def test_spark(spark: SparkSession, plain: Path, filtered: Path, question: str, expected: int) -> None:
    before, after = (spark.read.parquet(str(path)).where(question) for path in (plain, filtered))
    assert before.count() == after.count() == expected
    assert rows_decoded(before) == GROUPS * ROWS
    assert rows_decoded(after) == expected * ROWS

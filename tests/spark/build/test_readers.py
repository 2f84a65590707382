"""Two ways to read a table, one index: PyArrow in the tasks and Spark's own scan give the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, hash_values
from lakebloom.errors import InvalidArgumentError
from lakebloom.spark.build.expressions import canonical_hash
from lakebloom.tables.columns import arrow_type
from tests.spark.needs import needs_widening, to_arrow
from tests.spark.support import UnitFilter, unit_filters, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("compiled")]

# Column: type, values on the edge, all other values as an expression of id.
COLUMNS: dict[str, tuple[str, list[str], str]] = {
    "small": ("smallint", ["-32768", "32767"], "id - 20"),
    "whole": ("int", ["-2147483648", "2147483647"], "id * 1000003"),
    "big": ("bigint", ["-9223372036854775807 - 1", "9223372036854775807"], "id * 10000000019"),
    "single": ("float", ["-0.0D", "0.0", "'NaN'", "'-Infinity'", "1.4E-45D"], "id / 3"),
    "twice": ("double", ["-0.0D", "0.0", "'NaN'", "'Infinity'", "4.9E-324D"], "id / 3"),
    "day": (
        "date",
        ["'0001-01-01'", "'1582-10-04'", "'1582-10-15'", "'9999-12-31'"],
        "make_date(2000, 1, int(id % 28 + 1))",
    ),
    # ORC has no 1582-10-05 to 14.
    "moment": (
        "timestamp",
        ["'0001-01-01 00:00:00.000001Z'", "'1500-03-01 00:00:00Z'", "'1899-12-31 23:59:59.999999Z'"],
        "timestamp_micros(id * 1234567890123)",
    ),
    "local": (
        "timestamp_ntz",
        ["'0001-01-01 12:00:00.000001'", "'2024-03-31 02:30:00'"],
        "timestamp_ntz'2024-01-01' + make_dt_interval(id)",
    ),
    "d9": ("decimal(9,2)", ["-9999999.99", "9999999.99", "0"], "id / 100"),
    "d18": ("decimal(18,2)", ["-9999999999999999.99", "0.01"], "id * 12345678.91"),
    "d20": ("decimal(20,2)", ["-999999999999999999.99", "-0.01"], "id * 123456789.01"),
    "d38": ("decimal(38,10)", ["-9999999999999999999999999999.9999999999", "0"], "id * 1.0000000001"),
    "text": ("string", ["''", "'ünï ☃ 😀'", "repeat('x', 300)"], "concat('k', id)"),
    "bytes": ("binary", ["X''", "X'00FF80'"], "concat('b', id)"),
}
ROWS = (26, 13, 5)
"""The rows of each file: distinct, so that a file is known by its rows whatever its name."""


def rows(spark: SparkSession, first: int, count: int) -> DataFrame:
    """Rows of every type; the edges come in the first file, a NULL in each."""
    expressions = []
    for name, (kind, edges, other) in COLUMNS.items():
        cases = "".join(f" WHEN id = {i} THEN CAST({edge} AS {kind})" for i, edge in enumerate(edges))
        expressions.append(f"CASE WHEN id % 5 = 4 THEN NULL{cases} ELSE CAST({other} AS {kind}) END AS {name}")
    leaf = "IF(id % 6 = 5, NULL, named_struct('leaf', IF(id % 7 = 6, NULL, concat('s', id)), 'n', id)) AS s"
    return spark.range(first, first + count, 1, 1).selectExpr(*expressions, leaf)


def save(spark: SparkSession, path: Path, file_format: str) -> None:
    for count in ROWS:
        first = 0 if count == ROWS[0] else 100 * count
        writer = rows(spark, first % 30, count).write.format(file_format).mode("append")
        writer.option("parquet.enable.dictionary", str(count != ROWS[1]).lower()).save(str(path))


def contents(units: list[UnitFilter]) -> list[tuple[int, int | None, tuple[bytes, ...], str]]:
    """Units without the names of their files."""
    return sorted((unit.row_count, unit.null_count, unit.layers, unit.bounds) for unit in units)


@pytest.fixture
def through_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data files are where only Spark can read them; the index is not."""
    from lakebloom.spark.build import job

    monkeypatch.setattr(job, "reachable", lambda uri: uri.endswith("/by_all"))


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("readers") / "t"
    save(spark, path, "parquet")
    return path


NAMES = [*COLUMNS, "s.leaf"]


@pytest.mark.parametrize("fpp", [0.01, 1e-5], ids=["one layer", "two layers"])
def test_parquet(
    lake: Lakebloom, tmp_path: Path, table: Path, request: pytest.FixtureRequest, spark: SparkSession, fpp: float
) -> None:
    lake.create_index(table, BloomIndexConfig("by_all", NAMES, fpp=fpp))
    other = Lakebloom(spark, tmp_path / "other")
    request.getfixturevalue("through_spark")
    report = other.create_index(table, BloomIndexConfig("by_all", NAMES, fpp=fpp))
    assert (report.files, report.rows, report.skipped) == (len(ROWS), sum(ROWS), ())
    for number, name in enumerate(NAMES):
        assert unit_filters(other, "by_all", number) == unit_filters(lake, "by_all", number), name


def test_orc(spark: SparkSession, lake: Lakebloom, tmp_path: Path, table: Path) -> None:
    save(spark, tmp_path / "orc", "orc")
    lake.create_index(table, BloomIndexConfig("parquet", NAMES))
    lake.create_index(spark.read.orc(str(tmp_path / "orc")), BloomIndexConfig("orc", NAMES))
    for number, name in enumerate(NAMES):
        assert contents(unit_filters(lake, "orc", number)) == contents(unit_filters(lake, "parquet", number)), name


def test_hashes_of_spark(spark: SparkSession, table: Path) -> None:
    names = list(COLUMNS)
    frame = spark.read.parquet(str(table))
    hashed = [canonical_hash(frame[name], COLUMNS[name][0]).alias(f"hash_{name}") for name in names]
    found = to_arrow(frame.select(*names, *hashed))
    for name in names:
        values = found[name].cast(arrow_type(COLUMNS[name][0])).combine_chunks()
        expected = hash_values(values.drop_null())
        hashes = found[f"hash_{name}"].combine_chunks()
        assert hashes.is_valid().equals(values.is_valid()), name
        assert hashes.drop_null().to_numpy().view(np.uint64).tolist() == expected.tolist(), name


@pytest.mark.usefixtures("through_spark")
def test_nans_and_zeros_of_any_bits(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001, 1 << 63], dtype=np.uint64)
    write(tmp_path / "t/0.parquet", {"x": pa.array(nans.view(np.float64))})
    write(tmp_path / "u/0.parquet", {"x": pa.array([float("nan"), 0.0])})
    lake.create_index(tmp_path / "t", BloomIndexConfig("by_all", ["x"], expected_items=10))
    other = Lakebloom(spark, tmp_path / "other")
    other.create_index(tmp_path / "u", BloomIndexConfig("by_all", ["x"], expected_items=10))
    assert unit_filters(lake, "by_all")[0].layers == unit_filters(other, "by_all")[0].layers


@pytest.mark.usefixtures("through_spark")
@needs_widening
def test_widened_and_missing_columns(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    write(tmp_path / "t/0.parquet", {"k": pa.array([1, 2, None], pa.int32())})
    write(tmp_path / "t/1.parquet", {"k": pa.array([1, 2, None], pa.int64()), "v": pa.array(["a", "b", "c"])})
    frame = spark.read.schema("k BIGINT, v STRING").parquet(str(tmp_path / "t"))
    lake.create_index(frame, BloomIndexConfig("by_all", ["k", "v"]))
    old, new = unit_filters(lake, "by_all", 0)
    assert old.layers == new.layers
    assert [unit.null_count for unit in unit_filters(lake, "by_all", 1)] == [3, 0]


@pytest.mark.usefixtures("through_spark")
@pytest.mark.parametrize("granularity", ["row_group", 10])
def test_no_positions_through_spark(lake: Lakebloom, tmp_path: Path, table: Path, granularity: str | int) -> None:
    with pytest.raises(InvalidArgumentError, match="gives no row positions"):
        lake.create_index(table, BloomIndexConfig("by_all", ["big"], granularity=granularity))
    assert not (tmp_path / "indexes").exists()

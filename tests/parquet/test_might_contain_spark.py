"""Files by Spark, whose filters come in every size: what is in a file is found, what is not is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lakebloom.parquet
from tests.spark.needs import needs_chosen_sizes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 1000
EXPRESSIONS = {
    "narrow": "CAST(id * 7 AS SMALLINT)",
    "number": "CAST(id * 7 AS INT)",
    "big": "id * 7000000000",
    "single": "CAST(id * 7 + 0.5 AS FLOAT)",
    "double": "CAST(id * 7 + 0.5 AS DOUBLE)",
    "day": "DATE_ADD(DATE'2000-01-01', CAST(id * 7 AS INT))",
    "instant": "TIMESTAMP'2000-01-01 00:00:00.123456Z' + MAKE_DT_INTERVAL(0, 0, 0, id * 7)",
    "local": "TIMESTAMP_NTZ'2000-01-01 00:00:00.123456' + MAKE_DT_INTERVAL(0, 0, 0, id * 7)",
    "text": "CONCAT('key-', id * 7)",
    "bytes": "CAST(CONCAT('key-', id * 7) AS BINARY)",
    "decimal9": "CAST(id * 7 + 0.25 AS DECIMAL(9,2))",
    "decimal18": "CAST(id * 7 + 0.25 AS DECIMAL(18,2))",
    "decimal38": "CAST(id * 7 + 0.25 AS DECIMAL(38,2))",
}
START, START_UTC = (dt.datetime(2000, 1, 1, 0, 0, 0, 123456, tzinfo=zone) for zone in (None, dt.timezone.utc))
BLOOM = "parquet.bloom.filter"
NDV = {f"{BLOOM}.expected.ndv#{name}": str(ROWS) for name in EXPRESSIONS}
CANDIDATES = {f"{BLOOM}.candidates.number#{name}": "10" for name in EXPRESSIONS}
# How Spark is told to write, the bytes of its filters, and whether timestamps are INT96.
SETTINGS: dict[str, tuple[dict[str, str], int, bool]] = {
    "ndv": (NDV, 2048, False),
    "INT96": (NDV, 2048, True),
    "default": ({}, 1 << 20, False),
    "adaptive": ({f"{BLOOM}.adaptive.enabled": "true", **CANDIDATES}, 2048, False),
    "odd size": ({f"{BLOOM}.max.bytes": "3000"}, 93 * 32, False),
}


def values(name: str, numbers: list[int]) -> list[Any]:
    """What the expression makes of these, in Python."""
    made: dict[str, Any] = {
        "narrow": lambda n: n,
        "number": lambda n: n,
        "big": lambda n: n * 1_000_000_000,
        "single": lambda n: n + 0.5,
        "double": lambda n: n + 0.5,
        "day": lambda n: dt.date(2000, 1, 1) + dt.timedelta(days=n),
        "instant": lambda n: START_UTC + dt.timedelta(seconds=n),
        "local": lambda n: START + dt.timedelta(seconds=n),
        "text": lambda n: f"key-{n}",
        "bytes": lambda n: f"key-{n}".encode(),
    }
    return [made.get(name, lambda n: Decimal(n) + Decimal("0.25"))(number) for number in numbers]


PRESENT = [i * 7 for i in range(ROWS)]
ABSENT = [i * 7 + 3 for i in range(ROWS)]


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One file by each setting."""
    made = {}
    frame = spark.range(0, ROWS, 1, 1).selectExpr(*(f"{sql} AS {name}" for name, sql in EXPRESSIONS.items()))
    for name, (options, _, int96) in SETTINGS.items():
        folder = tmp_path_factory.mktemp("spark") / "t"
        spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96" if int96 else "TIMESTAMP_MICROS")
        # Where all pages have a dictionary, parquet-java drops the filter.
        writer = frame.write.options(**{f"{BLOOM}.enabled": "true", "parquet.enable.dictionary": "false"}, **options)
        writer.parquet(str(folder))
        (made[name],) = folder.glob("*.parquet")
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    return made


@pytest.mark.parametrize(
    "setting",
    [pytest.param(name, marks=needs_chosen_sizes if name in ("adaptive", "odd size") else ()) for name in SETTINGS],
)
def test_every_type_in_every_size(setting: str, files: dict[str, Path]) -> None:
    path, (_, num_bytes, _) = files[setting], SETTINGS[setting]
    found = lakebloom.parquet.filters(path)
    assert [each.column for each in found] == list(EXPRESSIONS)
    assert {each.filter.num_bytes for each in found} == {num_bytes}
    for name in EXPRESSIONS:
        assert lakebloom.parquet.might_contain(path, name, values(name, PRESENT)).all(), name
        kept = lakebloom.parquet.might_contain(path, name, values(name, ABSENT)).mean()
        assert kept < 0.02, name


def test_int96_is_what_spark_wrote(files: dict[str, Path]) -> None:
    from lakebloom.parquet.footer import read_footer

    kinds = {leaf.path[0]: leaf.physical_type for leaf in read_footer(files["INT96"]).leaves}
    assert (kinds["instant"], kinds["local"]) == ("INT96", "INT64")
    assert (kinds["decimal9"], kinds["decimal18"], kinds["decimal38"]) == ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")
    nanos = pa.array([START_UTC], pa.timestamp("ns", "UTC"))
    assert lakebloom.parquet.might_contain(files["INT96"], "instant", nanos).all()


def test_booleans_zeros_nulls_and_nested_leaves(spark: SparkSession, tmp_path: Path) -> None:
    plain = "-0.0D AS zero, true AS flag, CAST(NULL AS STRING) AS nothing"
    frame = spark.sql(f"SELECT {plain}, NAMED_STRUCT('k', 5L) AS s, ARRAY('x') AS l")
    writer = frame.coalesce(1).write.options(**{f"{BLOOM}.enabled": "true", f"{BLOOM}.max.bytes": "1024"})
    writer.option("parquet.enable.dictionary", "false").parquet(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob("*.parquet")

    def ask(column: str, *asked: object) -> list[bool]:
        return lakebloom.parquet.might_contain(path, column, list(asked))[0].tolist()  # type: ignore[no-any-return]

    assert ask("zero", 0.0, -0.0, 1.0, float("nan")) == [True, True, False, True]
    (flags,) = lakebloom.parquet.filters(path, "flag")
    assert not np.any(flags.filter.words)  # parquet-java's are empty
    assert ask("flag", True, False) == [True, True]
    assert ask("nothing", "x", None) == [False, False]
    assert ask("s.k", 5, 6) == [True, False]
    assert ask("l.list.element", "x", "y") == [True, False]

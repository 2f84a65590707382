"""Dates before calendars and clocks were reformed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom import hash_values
from lakebloom.errors import UnsupportedTypeError
from lakebloom.tables.parquet.calendars import FIRST_MODERN_DAY, FIRST_MODERN_MICROSECOND
from tests.tables.reading import read, spark_hashes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

VERSION, LEGACY, LEGACY_INT96 = (
    "org.apache.spark.version",
    "org.apache.spark.legacyDateTime",
    "org.apache.spark.legacyINT96",
)
# What a footer says: whether old dates and timestamps, and whether old INT96 timestamps, are what they seem.
FOOTERS = [
    ({}, False, False),
    ({VERSION: "4.0.0"}, True, True),
    ({VERSION: "3.0.3"}, True, False),
    ({VERSION: "2.4.8"}, False, False),
    ({VERSION: "3.5.0", LEGACY: ""}, False, True),
    ({VERSION: "3.5.0", LEGACY_INT96: ""}, True, False),
    ({LEGACY: ""}, False, False),
]


@pytest.mark.parametrize(("footer", "modern", "modern_int96"), FOOTERS)
@pytest.mark.parametrize("early_by", [0, 1])
def test_old_values_are_refused_unless_the_footer_vouches_for_them(
    footer: dict[str, str], modern: bool, modern_int96: bool, early_by: int, tmp_path: Path
) -> None:
    micros = pa.array([FIRST_MODERN_MICROSECOND - early_by, None, 0], pa.int64())
    columns = {
        "d": pa.array([FIRST_MODERN_DAY - early_by, None, 0], pa.int32()).view(pa.date32()),
        "t": micros.view(pa.timestamp("us", "UTC")),
        "n": micros.view(pa.timestamp("us")),
    }
    path, path96 = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table(columns).replace_schema_metadata(footer), path)
    pq.write_table(
        pa.table({"t": columns["t"]}).replace_schema_metadata(footer), path96, use_deprecated_int96_timestamps=True
    )
    assert_read(path, "d", "date", refused=bool(early_by) and not modern)
    assert_read(path, "t", "timestamp", refused=bool(early_by) and not modern)
    assert_read(path, "n", "timestamp_ntz", refused=False)
    assert_read(path96, "t", "timestamp", refused=bool(early_by) and not modern_int96)


def assert_read(path: Path, name: str, kind: str, *, refused: bool) -> None:
    if not refused:
        assert len(read(path, **{name: kind})[0]) == 3
        return
    with pytest.raises(UnsupportedTypeError, match=f"what Spark makes of the values in column {name}"):
        read(path, **{name: kind})


@pytest.mark.spark
def test_the_limits_are_those_of_spark(spark: SparkSession) -> None:
    rebase: Any = spark._jvm.org.apache.spark.sql.catalyst.util.RebaseDateTime
    assert rebase.lastSwitchJulianDay() == FIRST_MODERN_DAY
    assert rebase.lastSwitchJulianTs() == FIRST_MODERN_MICROSECOND


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["CORRECTED", "LEGACY"])
def test_old_values_that_spark_wrote(mode: str, spark: SparkSession, tmp_path: Path) -> None:
    keys = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
        "spark.sql.parquet.int96RebaseModeInWrite": mode,
    }
    old = "SELECT DATE'1001-01-01' d, TIMESTAMP'1001-01-01 00:00:00' t, TIMESTAMP_NTZ'1001-01-01 00:00:00' n"
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        for kind in ("INT96", "TIMESTAMP_MICROS"):
            spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
            spark.sql(old).coalesce(1).write.parquet(str(tmp_path / kind))
    finally:
        for key in (*keys, "spark.sql.parquet.outputTimestampType"):
            spark.conf.unset(key)
    types = {"d": "date", "t": "timestamp", "n": "timestamp_ntz"}
    for kind in ("INT96", "TIMESTAMP_MICROS"):
        (path,) = (tmp_path / kind).glob("*.parquet")
        theirs = dict(zip(types, spark_hashes(spark.read.parquet(str(path)), *types), strict=True))
        for name, spark_type in types.items():
            if mode == "LEGACY" and name != "n":
                with pytest.raises(UnsupportedTypeError, match="what Spark makes of"):
                    read(path, **{name: spark_type})
            else:
                assert hash_values(read(path, **{name: spark_type})[0]).tolist() == theirs[name]


@pytest.mark.spark
def test_int96_beyond_the_range_of_nanoseconds(spark: SparkSession, tmp_path: Path) -> None:
    """Arrow reads them as nanoseconds unless told otherwise, and these overflow in silence."""
    path = tmp_path / "a.parquet"
    micros = [253_402_300_799_999_999, 20_000_000_000_000_000, -2_208_988_799_999_999]  # years 9999, 2603, 1900
    column = pa.array(micros, pa.int64()).view(pa.timestamp("us"))
    pq.write_table(pa.table({"t": column}), path, use_deprecated_int96_timestamps=True)
    (ours,) = read(path, t="timestamp")
    assert ours.view(pa.int64()).to_pylist() == micros
    assert [hash_values(ours).tolist()] == spark_hashes(spark.read.parquet(str(path)), "t")


@pytest.mark.spark
def test_int96_that_wrapped_around(spark: SparkSession, tmp_path: Path) -> None:
    """Beyond the year 285,000 the day number overflows: Spark undoes that when it reads, Arrow does not."""
    spark.sql("SELECT TIMESTAMP_MICROS(9089380393200000000) t").coalesce(1).write.parquet(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob("*.parquet")
    assert [hash_values(9089380393200000000).item()] in spark_hashes(spark.read.parquet(str(path)), "t")
    with pytest.raises(UnsupportedTypeError, match="column t"):
        read(path, t="timestamp")

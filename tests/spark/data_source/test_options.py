"""The options of ``spark.read.format("lakebloom")``: which there are, where indexes are, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col, errors
from lakebloom.predicate.tree import to_json
from lakebloom.spark.data_source.source import LakebloomSource, register
from tests.spark.data_source.test_source import through
from tests.spark.support import fresh_name, keys
from tests.storage.conftest import BUCKET, s3_endpoint, s3_options  # noqa: F401

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def made(lake: Lakebloom, schema: StructType | None = None, **options: str) -> Any:
    source = LakebloomSource({"location": lake.location, **options})
    return source.reader(schema or source.schema())


def test_options_that_are_wrong(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException
    from pyspark.sql.types import LongType, StringType, StructType

    source.create_index(keys(tmp_path / "t", range(10)), BloomIndexConfig("by_k", ["k"], fpp=1e-6))
    wrong: dict[str, dict[str, str]] = {
        "found indx. Hint: did you mean index": {"indx": "by_k"},
        "found partitionbites. Hint: did you mean partitionBytes": {"path": "by_k", "partitionbites": "1"},
        "found zzz. Hint: known are": {"path": "by_k", "zzz": "1"},
        "one index; found no name": {},
        "one index; found by_a and by_k": {"path": "by_k", "index": "by_a"},
        "INDEX_NOT_FOUND": {"index": "nope"},
        "no column z": {"index": "by_k", "columns": "z"},
        "whole columns": {"index": "by_k", "columns": "k.a"},
        "must be a number": {"index": "by_k", "partitionBytes": "0"},
        "must be true or false": {"index": "by_k", "readOnce": "1"},
        "not a predicate tree": {"index": "by_k", "where": "{}"},
        "needs a value": {"index": "by_k", "where": "k = "},
        "the table has no column z": {"index": "by_k", "where": to_json(col("z") == 1).decode()},
    }
    for message, options in wrong.items():
        with pytest.raises(errors.LakebloomError, match=message):
            made(source, **options)
    with pytest.raises(errors.InvalidArgumentError, match=r"location of the indexes is not set.*register_source"):
        LakebloomSource({"path": "by_k"}).schema()
    for schema in (StructType().add("k", StringType()), StructType().add("k", LongType(), nullable=False)):
        with pytest.raises(errors.InvalidArgumentError, match="must not rename or convert"):
            made(source, schema, index="by_k")
    with pytest.raises(AnalysisException, match=r"\[INVALID_ARGUMENT\].*did you mean index"):
        through(spark, "by_k", indx="by_k")
    source.delete_index("by_k")
    with pytest.raises(errors.IndexStateError, match="restore_index"):
        made(source, index="by_k")


def test_other_formats_are_refused(spark: SparkSession, source: Lakebloom, tmp_path: Path) -> None:
    spark.range(3).write.orc(str(tmp_path / "t"))
    source.create_index(spark.read.orc(str(tmp_path / "t")), BloomIndexConfig("orc", ["id"]))
    with pytest.raises(errors.UnsupportedSourceError, match=r"a orc table.*enable\(\)"):
        made(source, index="orc")


def test_indexes_in_an_object_store(
    spark: SparkSession,
    tmp_path: Path,
    s3_options: dict[str, str],  # noqa: F811
) -> None:
    location = f"s3://{BUCKET}/{fresh_name()}"
    lake = Lakebloom(spark, location, options=s3_options)
    lake.create_index(keys(tmp_path / "t", range(10), range(10, 20)), BloomIndexConfig("by_k", ["k"], fpp=1e-6))
    assert lake.read("by_k", col("k") == 15).collect() == [(15,)]
    register(spark, tmp_path)
    given = {f"storage.{key}": value for key, value in s3_options.items()}
    assert through(spark, "by_k", location=location, **given).count() == 20


def test_the_default_location_is_that_of_lakebloom(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.lakebloom.location", str(tmp_path / "by_conf"))
    try:
        lake = Lakebloom(spark)
        lake.create_index(keys(tmp_path / "t", range(10)), BloomIndexConfig("by_k", ["k"], fpp=1e-6))
        register(spark)
    finally:
        spark.conf.unset("spark.lakebloom.location")
    assert through(spark, "by_k").count() == 10

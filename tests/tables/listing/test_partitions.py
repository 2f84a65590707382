"""Values of partition columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom.errors import InvalidArgumentError
from lakebloom.storage import normalise
from lakebloom.tables.listing.listing import list_files
from lakebloom.tables.listing.partitions import partition_values, unescape_name

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

VALUES = ["a", "a b", "a/b", "a%b", "a%2Fb", "a=b", "a:b", "a#b", "a?b", "a+b", "ü", "日本", "100%", "{x}", "[y]", "'",
          '"', "\\", "*", ".", "__HIVE", None]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("k=1/x.parquet", {"k": "1"}),
        ("k=1/sub/x.parquet", {"k": "1"}),
        ("k=a%2Fb/x.parquet", {"k": "a/b"}),
        ("k=a=b/x.parquet", {"k": "a=b"}),
        ("k=__HIVE_DEFAULT_PARTITION__/x.parquet", {"k": None}),
        ("j=2/k=1/x.parquet", {"k": "1", "j": "2"}),
        ("%6B=1/x.parquet", {"k": "1"}),
        ("K=1/x.parquet", {"k": "1"}),
        ("K=2/k=1/x.parquet", {"k": "1"}),
        ("k=1/x=2.parquet", {"k": "1"}),
        ("x.parquet", {}),
    ],
)
@pytest.mark.parametrize("base", ["file:///t", "s3://lake", "file:///"])
def test_values_come_from_directories(path: str, values: dict[str, str | None], base: str) -> None:
    uri = base + path if base.endswith("/") else f"{base}/{path}"
    assert partition_values(uri, [base], list(values)) == values


def test_directories_above_the_base_are_no_partitions() -> None:
    uri = "file:///t/j=1/k=2/x.parquet"
    assert partition_values(uri, ["file:///t", "file:///t/j=1"], ["k"]) == {"k": "2"}
    for bases in (["file:///t/j=1"], ["file:///t/j=1/k=2"], [uri]):
        with pytest.raises(InvalidArgumentError, match="not in a directory of the partition column j"):
            partition_values(uri, bases, ["j"])


def test_a_file_of_another_table() -> None:
    with pytest.raises(InvalidArgumentError, match="not a file of this table"):
        partition_values("file:///table2/k=1/x.parquet", ["file:///table"], ["k"])


@pytest.mark.spark
def test_spark_unescapes_names_the_same_way(spark: SparkSession) -> None:
    spark_utils = spark._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
    for text in [
        "",
        "a",
        "%41",
        "%4",
        "%",
        "a%2",
        "%2F%2f",
        "%zz",
        "%%41",
        "a%2Fb%",
        "%25%32%30",
        "x%e9",
        "%00",
        "ü%41",
    ]:
        assert unescape_name(text) == spark_utils.unescapePathName(text), text


@pytest.mark.spark
def test_what_spark_wrote_is_read_back(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    rows = [(i, value) for i, value in enumerate(VALUES)]
    spark.createDataFrame(rows, "n int, `odd=name` string").repartition(1).write.partitionBy("odd=name").parquet(
        str(table)
    )
    base = normalise(table)
    files = list_files([str(table)])
    found = {partition_values(file.uri, [base], ["odd=name"])["odd=name"] for file in files}
    assert found == set(VALUES)

"""Java compares a file with the one that is known as Python does."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.spark.jvm import new_object
from lakebloom.spark.rule.wire import file_lines
from lakebloom.tables.file_columns import FileColumns
from lakebloom.tables.file_identity import TableFile, is_same, spark_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TAGGED = """
public class TaggedStatus extends org.apache.hadoop.fs.FileStatus implements org.apache.hadoop.fs.EtagSource {
    private final String etag;
    public TaggedStatus(long size, long time, String path, String etag) {
        super(size, false, 1, 1, time, new org.apache.hadoop.fs.Path(path));
        this.etag = etag;
    }
    public String getEtag() {
        return etag;
    }
    public org.apache.spark.sql.execution.datasources.FileStatusWithMetadata listed() {
        return new org.apache.spark.sql.execution.datasources.FileStatusWithMetadata(
            this, scala.collection.immutable.Map$.MODULE$.empty());
    }
}
"""
"""What Hadoop's S3A and ABFS return; their own classes are not part of Spark."""


@pytest.fixture(scope="module")
def tagged(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(TAGGED)
    made = compiler.getClassLoader().loadClass("TaggedStatus").getConstructors()[0]

    def status(size: int, time: int, path: str, etag: str | None) -> Any:
        values = spark._sc._gateway.new_array(jvm.java.lang.Object, 4)  # type: ignore[union-attr]
        values[0], values[1] = jvm.java.lang.Long.valueOf(size), jvm.java.lang.Long.valueOf(time)
        values[2], values[3] = path, etag
        return made.newInstance(values).listed()

    return status


def test_the_same_files_are_the_same(spark: SparkSession, tagged: Any) -> None:
    known = [
        TableFile(uri, 10, 1_700_000_000_000, tag)
        for uri, tag in [
            ("s3://b/tagged", "9b2c"),
            ("s3://b/untagged", ""),
            ("abfs://c@a/tagged", "0x8D"),
            ("hdfs://n/t", ""),
            ("file:///t/a b", "7f.1.0"),
        ]
    ]
    java = new_object(spark, "KnownFiles", file_lines(FileColumns.of(known).chunks()), None, 0)
    asked = list(
        product(
            ["s3a://b/tagged", "s3a://b/untagged", "abfss://c@a/tagged", "hdfs://n/t", "file:/t/a b", "s3a://b/new"],
            [10, 11],
            [1_700_000_000_000, 1_700_000_000_999, 1_700_000_001_000],
            [None, "", "9b2c", '"9b2c"', 'W/"9b2c"', '"0x8D"', '"other"'],
        )
    )
    found = [java.number(tagged(size, time, path, etag)) for path, size, time, etag in asked]
    expected = []
    for path, size, time, etag in asked:
        file = spark_file(path, size, time, None if path.startswith("file:") else etag)
        expected.append(next((i for i, each in enumerate(known) if is_same(each, file)), -1))
    assert found == expected
    assert set(expected) == {-1, 0, 1, 2, 3, 4}


def test_files_that_come_later_follow_the_others(spark: SparkSession, tagged: Any) -> None:
    """A version that adds segments sends their files only; of a file that was indexed again the last one counts."""
    first = [TableFile(f"s3://b/{name}", 10, 1_700_000_000_000) for name in "abc"]
    second = [TableFile("s3://b/b", 11, 1_700_000_000_000), TableFile("s3://b/d", 10, 1_700_000_000_000)]
    before = new_object(spark, "KnownFiles", file_lines(FileColumns.of(first).chunks()), None, 0)
    after = new_object(spark, "KnownFiles", file_lines(FileColumns.of(second).chunks()), before, len(first))

    def numbers(java: Any) -> list[int]:
        return [
            java.number(tagged(size, 1_700_000_000_000, f"s3a://b/{name}", None))
            for name in "abcd"
            for size in (10, 11)
        ]

    assert numbers(before) == [0, -1, 1, -1, 2, -1, -1, -1]
    assert numbers(after) == [0, -1, -1, 3, 2, -1, 4, -1]

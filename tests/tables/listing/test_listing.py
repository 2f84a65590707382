"""Listing local tables, with Spark as the judge."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.errors import AccessDeniedError, InvalidArgumentError, NotFoundError
from lakebloom.storage import from_encoded, normalise
from lakebloom.tables.listing.glob import escape
from lakebloom.tables.listing.listing import list_files, stat_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD_NAMES = ["a b", "a%20b", "a%2520b", "100%", "a+b", "a#b", "x=y", "ü", "日本", "a&b;c", "it's", "a,b", "~", "@"]

# What is in a table: what Spark reads of it. Names that end in "!" hold no bytes.
TABLES = {
    "flat": (["a.parquet", "b", "c.txt"], ["a.parquet", "b", "c.txt"]),
    "hidden": (
        ["a", "_b", ".c", "_SUCCESS", "d._COPYING_", "_metadata", "_common_metadata", "_metadata.1", "_change_data/e",
         ".git/f", "_day=1x", "._d=1"],
        ["a", "_day=1x"],
    ),
    "plain subdirectories": (["a", "sub/b", "sub/deep/c"], ["a"]),
    "partitions": (["k=1/a", "k=2/b", "k=2/sub/c", "k=2/_temporary/d", "k=2/_e"], ["k=1/a", "k=2/b", "k=2/sub/c"]),
    "two levels": (["j=1/k=1/a", "j=1/k=2/b", "j=2/k=__HIVE_DEFAULT_PARTITION__/c"],
                   ["j=1/k=1/a", "j=1/k=2/b", "j=2/k=__HIVE_DEFAULT_PARTITION__/c"]),
    "hidden partitions": (["_k=1/a", "_k=2/a"], ["_k=1/a", "_k=2/a"]),
    "a file beside partitions": (["k=1/a", "b"], ["k=1/a"]),
    "below a plain directory": (["x/k=1/a", "x/k=2/b"], ["x/k=1/a", "x/k=2/b"]),
    "no partition but in a file name": (["k=1.parquet", "sub/b"], ["k=1.parquet"]),
    "empty files": (["a", "b!"], ["a"]),
    "an empty file makes a partition": (["k=1/a!", "b"], []),
    "hidden files make none": (["k=1/_a", "b"], ["b"]),
    "odd names": (ODD_NAMES, ODD_NAMES),
    "odd partitions": ([f"k={name}/{name}" for name in ODD_NAMES], [f"k={name}/{name}" for name in ODD_NAMES]),
}  # fmt: skip


def make(base: Path, names: list[str]) -> Path:
    for name in names:
        file = base / name.removesuffix("!")
        file.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("!"):
            file.touch()
        else:
            pq.write_table(pa.table({"x": [1]}), file)
    return base


def listed(*locations: Path | str, below: Path) -> list[str]:
    prefix = normalise(below) + "/"
    return [file.uri.removeprefix(prefix) for file in list_files([str(location) for location in locations])]


def scanned(spark: SparkSession, *locations: Path | str, below: Path) -> list[str]:
    """The files that a query of Spark's opens."""
    frame = spark.read.schema("x bigint").parquet(*map(str, locations))
    rows = frame.select("_metadata.file_path").collect()
    return sorted({from_encoded(row[0]).removeprefix(normalise(below) + "/") for row in rows})


@pytest.mark.parametrize("name", TABLES)
def test_directories(name: str, tmp_path: Path) -> None:
    names, expected = TABLES[name]
    make(tmp_path / "t", names)
    assert listed(tmp_path / "t", below=tmp_path / "t") == sorted(expected)


@pytest.mark.spark
@pytest.mark.parametrize("name", TABLES)
def test_spark_reads_the_same_files(name: str, tmp_path: Path, spark: SparkSession) -> None:
    names, expected = TABLES[name]
    make(tmp_path / "t", names)
    assert scanned(spark, tmp_path / "t", below=tmp_path / "t") == sorted(expected)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["flat", "partitions", "two levels", "odd names", "odd partitions"])
def test_spark_lists_the_same_files(name: str, tmp_path: Path, spark: SparkSession) -> None:
    table = make(tmp_path / "t", TABLES[name][0])
    theirs = {from_encoded(uri) for uri in spark.read.parquet(str(table)).inputFiles()}
    assert theirs == {file.uri for file in list_files([str(table)])}


GLOBBED = ["k=1/a", "k=2/b", "k=2/sub/c", "k=3/a", "top", "_hid/d", "_e", "x.y/f", "[k]/g", "k/h", "a b/i"]
GLOBS = ["*", "k=*", "k=?", "k=[12]", "k=[!1]", "k=[2-9]/*", "{k=1,x.y}", "{k=1/a,k=2/b}", "k=*/a", "*/*", "x.?", "[k]",
         r"\[k\]", "_*", "to?", "a ?", "k=2/s*", "*=1"]  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("pattern", GLOBS)
def test_globs(pattern: str, tmp_path: Path, spark: SparkSession) -> None:
    make(tmp_path, GLOBBED)
    ours = listed(f"{tmp_path}/{pattern}", below=tmp_path)
    assert ours
    assert ours == scanned(spark, f"{tmp_path}/{pattern}", below=tmp_path)


def test_a_single_file(tmp_path: Path) -> None:
    make(tmp_path, ["a.parquet", "_b"])
    assert listed(tmp_path / "a.parquet", below=tmp_path) == ["a.parquet"]
    assert listed(tmp_path / "_b", below=tmp_path) == []


def test_hidden_names_above_the_location_do_not_matter(tmp_path: Path) -> None:
    make(tmp_path / "_x" / ".y", ["a"])
    assert listed(tmp_path / "_x" / ".y", below=tmp_path) == ["_x/.y/a"]


def test_overlapping_locations_count_once(tmp_path: Path) -> None:
    make(tmp_path, ["a", "sub/b"])
    everything = [tmp_path, tmp_path / "a", tmp_path / "sub", f"{tmp_path}/*", f"file:{tmp_path}/sub/../a"]
    assert listed(*everything, below=tmp_path) == ["a", "sub/b"]


def test_files_are_sorted_by_uri(tmp_path: Path) -> None:
    make(tmp_path, ["k=b/1", "k=a/2", "k=a/10", "k=B/1"])
    assert listed(tmp_path, below=tmp_path) == ["k=B/1", "k=a/10", "k=a/2", "k=b/1"]


def test_relative_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, ["t/a"])
    monkeypatch.chdir(tmp_path)
    assert listed("t", "t/*", "./t/a", below=tmp_path) == ["t/a"]


@pytest.mark.spark
def test_links_are_followed(tmp_path: Path, spark: SparkSession) -> None:
    elsewhere = make(tmp_path / "elsewhere", ["b", "c"])
    table = make(tmp_path / "t", ["k=1/a"])
    (table / "k=2").symlink_to(elsewhere)
    (table / "k=1" / "link").symlink_to(elsewhere / "b")
    (table / "k=1" / "nowhere").symlink_to(tmp_path / "gone")
    assert listed(table, below=table) == ["k=1/a", "k=1/link", "k=2/b", "k=2/c"]
    assert listed(table, below=table) == scanned(spark, table, below=table)


def test_a_link_to_a_directory_above_ends(tmp_path: Path) -> None:
    table = make(tmp_path, ["k=1/a"])
    (table / "k=1" / "up").symlink_to(table)
    assert listed(table, below=table) == ["k=1/a"]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.parquet", "wb") as file:  # noqa: PTH123
        file.write(b"x")
    (found,) = list_files([str(tmp_path)])
    assert found == stat_file(found.uri)


@pytest.mark.parametrize("name", ["no", "no/such/place", "n*", "a/below", "a/*", "{x,y}/z"])
def test_a_missing_location(name: str, tmp_path: Path) -> None:
    make(tmp_path, ["a"])
    with pytest.raises(NotFoundError):
        list_files([str(tmp_path), f"{tmp_path}/{name}"])


def test_an_empty_directory_is_an_empty_table(tmp_path: Path) -> None:
    assert list_files([str(tmp_path)]) == []
    assert list_files([]) == []


@pytest.mark.usefixtures("unprivileged")
def test_a_forbidden_directory(tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1").chmod(0)
    for location in (tmp_path, f"{tmp_path}/*", f"{tmp_path}/*/x"):
        with pytest.raises(AccessDeniedError):
            list_files([str(location)])
    with pytest.raises(AccessDeniedError):
        stat_file(normalise(tmp_path / "k=1" / "a"))
    (tmp_path / "k=1").chmod(0o700)


def test_what_only_spark_reaches() -> None:
    with pytest.raises(InvalidArgumentError, match="through Spark"):
        list_files(["hdfs://namenode/t"])
    with pytest.raises(InvalidArgumentError, match="through Spark"):
        stat_file("hdfs://namenode/t/a")


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    make(tmp_path, ["a"])
    assert stat_file(normalise(tmp_path / "a")) is not None
    for gone in ("b", "b/c", "a/b", ""):
        assert stat_file(normalise(tmp_path / gone)) is None


def test_literal_locations_can_be_escaped(tmp_path: Path) -> None:
    make(tmp_path, ["[x]/{y}*?/a", "x/b"])
    assert listed(escape(f"{tmp_path}/[x]/{{y}}*?"), below=tmp_path) == ["[x]/{y}*?/a"]


def test_each_directory_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, [f"k={i}/{name}" for i in range(10) for name in "abc"] + ["_hidden/d"])
    read: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: read.append(path) or scandir(path))
    assert len(list_files([str(tmp_path)])) == 30
    assert sorted(read) == sorted([str(tmp_path), *(f"{tmp_path}/k={i}" for i in range(10))])

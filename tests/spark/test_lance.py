"""Building Lance indexes with Spark, and Lance's zones as lakebloom's own units."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lakebloom.lance
from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import (
    BuildFailedError,
    ColumnNotFoundError,
    IndexExistsError,
    InvalidArgumentError,
    LakebloomError,
    NoFilesError,
    NotFoundError,
    UnsupportedTypeError,
)  # fmt: skip
from lakebloom.spark.lance import build_index
from tests.lance.datasets import (
    COLUMNS,
    FPP,
    ROWS_PER_ZONE,
    SOME_DELETED,
    index_by_lance,
    index_file,
    literal,
    numbers,
    size_of,
    uses_index,
    with_nulls,
    write,
)  # fmt: skip
from tests.spark.support import fresh_name
from tests.spark.support import write as write_parquet
from tests.storage.conftest import BUCKET, s3_endpoint, s3_options  # noqa: F401  (fixtures)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

lance = pytest.importorskip("lance")
pytestmark = pytest.mark.spark

ZONES: dict[str, Any] = {"rows_per_zone": ROWS_PER_ZONE, "fpp": FPP}


@pytest.mark.parametrize("name", ["int8", "int64", "double", "timestamp[ms, Asia/Tokyo]", "string"])
def test_by_lances_rule_it_is_lances_file(spark: SparkSession, name: str, tmp_path: Path) -> None:
    dataset = index_by_lance(write(tmp_path / "d", with_nulls(COLUMNS[name]), deleted=SOME_DELETED))
    report = build_index(spark, tmp_path / "d", "c", name="ours", rule="lance", **ZONES)
    dataset = lance.dataset(dataset.uri)
    assert index_file(dataset, "ours") == index_file(dataset, "theirs")
    assert (report.fragments, report.segments, report.rows) == (3, 1, dataset.count_rows())
    assert report.index_bytes == size_of(dataset, "ours") == size_of(dataset, "theirs")
    assert report.version == dataset.version
    assert len(list(tmp_path.glob("d/_indices/*"))) == 2  # what the tasks wrote was merged and removed


def test_lance_answers_from_it(spark: SparkSession, tmp_path: Path) -> None:
    """The smaller filters, one file for each task: Lance plans with them and answers as without."""
    column = with_nulls(COLUMNS["string"])
    dataset = write(tmp_path / "d", column, deleted=SOME_DELETED)
    report = build_index(spark, dataset, "c", segments=None, **ZONES)
    assert (report.name, report.rule, report.column) == ("c_idx", "putze", "c")
    assert report.segments == 2  # as many as there are cores
    assert "c_idx" in str(report)
    dataset = lance.dataset(dataset.uri)
    values = [literal(column[i]) for i in (1, 301, 1100, 2005)]
    for condition in (*(f"c = {value}" for value in values), f"c IN ({', '.join(values)})", "c IS NULL", "c = 'no'"):
        assert uses_index(dataset, condition, "c_idx")
        assert numbers(dataset, condition) == numbers(dataset, condition, with_index=False)
    index = lakebloom.lance.open_index(dataset, "c_idx")
    assert (len(index.zones), len(index.files), index.unindexed_fragments) == (report.zones, 2, ())
    assert index.candidates(column[1])[0] == index.zones[0]
    assert report.index_bytes < size_of(index_by_lance(dataset), "theirs")


def test_a_dataset_in_an_object_store(spark: SparkSession, s3_options: dict[str, str]) -> None:  # noqa: F811
    uri = f"s3://{BUCKET}/{fresh_name()}"
    table = pa.table({"c": range(3000), "i": range(3000)})
    dataset = lance.write_dataset(table, uri, max_rows_per_file=1000, storage_options=s3_options)
    report = build_index(spark, dataset, "c", **ZONES)  # its options are known
    assert (report.segments, report.rows) == (1, 3000)
    index = lakebloom.lance.open_index(uri, "c_idx", storage_options=s3_options)
    assert index.candidates(2999)[-1] == index.zones[-1]
    assert lakebloom.lance.filters(index.files[0], storage_options=s3_options) == list(index.zones)
    assert uses_index(lance.dataset(uri, storage_options=s3_options), "c = 5", "c_idx")
    with pytest.raises(NotFoundError):
        lakebloom.lance.open_index(f"{uri}/nowhere.lance", storage_options=s3_options)


def test_replacing_an_index(spark: SparkSession, tmp_path: Path) -> None:
    dataset = index_by_lance(write(tmp_path / "d", COLUMNS["int32"]), name="x")
    with pytest.raises(IndexExistsError):
        build_index(spark, dataset, "c", name="x")
    report = build_index(spark, dataset, "c", name="x", rule="lance", replace=True, **ZONES)
    replaced = lance.dataset(dataset.uri)
    assert [index.name for index in replaced.describe_indices()] == ["x"]
    assert lakebloom.lance.open_index(replaced, "x").zones == lakebloom.lance.open_index(dataset, "x").zones
    assert (report.version, len(replaced.describe_indices()[0].segments)) == (dataset.version + 1, 1)


def test_wrong_input(spark: SparkSession, tmp_path: Path) -> None:
    dataset = write(tmp_path / "d", pa.array([True, False]))
    empty = lance.write_dataset(pa.table({"c": pa.array([], pa.int32())}), str(tmp_path / "empty"))
    expected: list[tuple[type[LakebloomError], Any, str, dict[str, Any]]] = [
        (UnsupportedTypeError, dataset, "c", {}),
        (ColumnNotFoundError, dataset, "d", {}),
        (NotFoundError, tmp_path / "nowhere", "c", {}),
        (NoFilesError, empty, "c", {}),
        (InvalidArgumentError, dataset, "i", {"rule": "parquet"}),
        (InvalidArgumentError, dataset, "i", {"fpp": 2}),
        (InvalidArgumentError, dataset, "i", {"rows_per_zone": 0}),
        (InvalidArgumentError, dataset, "i", {"segments": 0}),
    ]
    for error, source, column, options in expected:
        with pytest.raises(error) as raised:
            build_index(spark, source, column, **options)
        assert type(raised.value) is error
    assert lance.dataset(dataset.uri).version == dataset.version


def test_a_task_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    dataset = write(tmp_path / "d", COLUMNS["int32"])
    next(tmp_path.glob("d/data/*.lance")).write_bytes(b"damaged")
    with pytest.raises(BuildFailedError, match="cannot read column c of fragment"):
        build_index(spark, dataset, "c")
    assert lance.dataset(dataset.uri).describe_indices() == []


def test_zones_of_a_lakebloom_index(spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
    """Lance's zones over Parquet files: Equals and IsIn are "at most", IsNull is exact where counts say so."""
    rng = np.random.default_rng(8)
    files = {name: rng.permutation(10**6)[:count] for name, count in (("0", 20_000), ("1", 8192))}
    truth: dict[tuple[str, int], set[int | None]] = {}
    for name, keys in files.items():
        numbers_of = np.arange(len(keys))
        nulls = (numbers_of >= 8192) & ((numbers_of < 16_384) | (numbers_of % 10 == 0))
        column = pa.array(keys, pa.int64(), mask=nulls)
        path = write_parquet(tmp_path / f"t/{name}.parquet", {"k": column}, row_group_size=5000)
        for start in range(0, len(keys), 8192):
            truth[str(path), start] = set(column.slice(start, 8192).to_pylist())
    lake.create_index(tmp_path / "t", BloomIndexConfig.lance("zones", ["k"]))

    def zones(predicate: Any) -> set[tuple[str, int]]:
        found = lake.candidates("zones", predicate).to_pylist()
        assert all(
            row["row_count"] == min(8192, len(files[Path(row["path"]).stem]) - row["row_start"]) for row in found
        )
        return {(row["path"], row["row_start"]) for row in found}

    assert len(truth) == 4
    kept = 0
    for keys in files.values():
        for key in keys[::97].tolist():
            holding = {zone for zone, values in truth.items() if key in values}
            assert holding <= zones(col("k") == key)
            kept += len(zones(col("k") == key)) - len(holding)
    assert kept <= 4  # about 300 keys asked of 3 zones, wrong once in 1754 times
    some = [int(files["0"][5]), int(files["1"][7]), -1]
    assert {zone for zone, values in truth.items() if values & set(some)} <= zones(col("k").isin(some))
    with_null = {zone for zone, values in truth.items() if None in values}
    assert zones(col("k").is_null()) == with_null
    only_null = {zone for zone, values in truth.items() if values == {None}}
    assert len(only_null) == 1
    assert zones(col("k").is_not_null()) == truth.keys() - only_null
    assert not only_null & zones(col("k").isin(list(range(1000))))
    rows = lake.lookup("zones", col("k").is_null())
    assert rows.num_rows == sum(8192 <= i < 16_384 or (i >= 8192 and i % 10 == 0) for i in range(20_000))


def test_configuration_of_zones() -> None:
    zones = BloomIndexConfig.lance("x", ["k"], granularity=100, fpp="auto", expected_items=50, global_filter=True)
    assert zones == BloomIndexConfig("x", ["k"], "auto", 50, 100, True)
    with pytest.raises(InvalidArgumentError):
        BloomIndexConfig.lance("x", ["k"], granularity=0)

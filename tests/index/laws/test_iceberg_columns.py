"""The columns of an Iceberg table are the ids of fields: whatever they are called, and whatever a file lacks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import col
from lakebloom.errors import (
    DataFileError,
    InvalidArgumentError,
    LakebloomError,
    StaleIndexError,
    UnsupportedTypeError,
    ValueConversionError,
)
from tests.index.iceberg_lake import P_SPEC, Column, IcebergIndexes, Model
from tests.index.logged_lake import NAME
from tests.tables.formats.iceberg.hand_table import HandTable, column, with_id
from tests.tables.formats.iceberg.judge import judged_rows

if TYPE_CHECKING:
    from pathlib import Path

K = with_id("k", pa.int64(), 1)


def test_a_dropped_column_does_not_answer_for_a_new_one_of_its_name(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([{1: 1, 2: "old", 3: "a"}])
    first = model.hand.current
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", "s")
    lake = indexes.open()
    model.columns[1] = Column(9, "s", "string")
    model.alter()
    model.append([{1: 2, 9: "new", 3: "a"}])
    for refresh in (False, True):
        if refresh:
            indexes.refresh()
        assert lake.lookup(NAME, col("s") == "old").num_rows == 0
        assert lake.lookup(NAME, col("s") == "new")["k"].to_pylist() == [2]
        assert lake.lookup(NAME, "s is null")["k"].to_pylist() == [1]
        assert lake.lookup(NAME, col("s") == "old", version=first)["k"].to_pylist() == [1]


def test_a_renamed_column_keeps_its_index(tmp_path: Path) -> None:
    """A rename has no snapshot of its own: the schema of the newest metadata counts."""
    model = Model(tmp_path / "t")
    for number in range(8):
        model.append([{1: number, 2: f"s{number}", 3: "a"}])
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    assert lake.candidates(NAME, col("k") == 3).num_rows == 1
    model.columns[0].name = "Key of it"
    model.alter()
    assert lake.candidates(NAME, col("`Key of it`") == 3).num_rows == 1
    assert lake.lookup(NAME, "`Key of it` = 3")["s"].to_pylist() == ["s3"]
    assert lake.lookup(NAME, "k = 3", version=model.hand.current).num_rows == 1
    with pytest.raises(LakebloomError, match="no column k"):
        lake.lookup(NAME, col("k") == 3)
    assert lake.explain(NAME, "`Key of it` = 3").scans[0].files_kept == 1


def test_promoted_values_are_never_cut(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([{1: 5, 2: "small", 3: "a"}])
    first = model.hand.current
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    model.columns[0].kind = "long"
    model.alter()
    large = 5 + (1 << 32)
    model.append([{1: large, 2: "large", 3: "a"}, {1: 5, 2: "small too", 3: "a"}])
    lake = indexes.open()
    for refresh in (False, True):
        if refresh:
            assert indexes.refresh().files == 1
        assert lake.lookup(NAME, col("k") == large)["s"].to_pylist() == ["large"]
        assert sorted(lake.lookup(NAME, col("k") == 5)["s"].to_pylist()) == ["small", "small too"]
        assert lake.lookup(NAME, col("k") == 5, version=first)["s"].to_pylist() == ["small"]
    assert {segment.types for segment in indexes.entry().segments} == {("int",), ("bigint",)}


def mapping(*fields: tuple[int, list[str]]) -> dict[str, str]:
    listed = [{"field-id": number, "names": names} for number, names in fields]
    return {"schema.name-mapping.default": json.dumps(listed)}


def test_files_without_ids_are_read_by_the_name_mapping_only(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t", [column(1, "key", "long"), column(2, "s", "string")])
    plain = table.data(pa.table({"k": [1, 2], "s": ["a", "b"]}))
    with_ids = table.data(
        pa.table([[3], ["x"]], schema=pa.schema([with_id("s", pa.int64(), 1), with_id("k", pa.string(), 2)]))
    )
    table.commit(plain, with_ids)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("key")  # without the file that has no ids: it is rejected, and never skipped
    assert indexes.entry().summary["files_rejected"] == 1
    lake = indexes.open()
    with pytest.raises(DataFileError, match="has no ids of columns"):
        lake.lookup(NAME, col("key") == 1)
    table.metadata["properties"] = mapping((1, ["k", "key"]), (2, ["s"]))
    table.write_metadata()
    assert lake.lookup(NAME, col("key") == 1).to_pylist() == [{"key": 1, "s": "a"}]
    assert lake.lookup(NAME, col("key") == 3).to_pylist() == [{"key": 3, "s": "x"}]
    assert sorted(map(str, lake.lookup(NAME, "key is not null").to_pylist())) == sorted(
        map(str, judged_rows(table.metadata_file))
    )
    indexes.refresh()
    assert lake.lookup(NAME, col("key") == 2).to_pylist() == [{"key": 2, "s": "b"}]


def test_other_names_in_the_mapping_make_another_column(tmp_path: Path) -> None:
    """The same file then holds other values: an index of the old ones must not answer."""
    table = HandTable(
        tmp_path / "t", [column(1, "k", "long")], properties=mapping((1, ["a"]))
    )  # fmt: skip
    table.commit(table.data(pa.table({"a": [1, 2], "b": [3, 4]})))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    assert lake.lookup(NAME, col("k") == 3).num_rows == 0
    assert lake.candidates(NAME, col("k") == 3).num_rows == 0
    table.metadata["properties"] = mapping((1, ["b"]))
    table.write_metadata()
    assert lake.lookup(NAME, col("k") == 3).num_rows == 1
    assert lake.lookup(NAME, col("k") == 1).num_rows == 0
    indexes.refresh("full")
    assert lake.lookup(NAME, col("k") == 3).num_rows == 1


def test_nested_fields_by_ids_and_by_the_name_mapping(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [column(3, "now", "long"), column(4, "was", "string")]}
    array = {"type": "list", "element-id": 5, "element": "int", "element-required": False}
    pairs = {"type": "map", "key-id": 6, "key": "string", "value-id": 7, "value": "long", "value-required": False}
    names = [
        {"field-id": 1, "names": ["s"], "fields": [{"field-id": 3, "names": ["x"]}, {"field-id": 4, "names": ["y"]}]},
        {"field-id": 2, "names": ["a"], "fields": [{"field-id": 5, "names": ["element"]}]},
        {
            "field-id": 8,
            "names": ["m"],
            "fields": [{"field-id": 6, "names": ["key"]}, {"field-id": 7, "names": ["value"]}],
        },
    ]
    table = HandTable(
        tmp_path / "t",
        [column(1, "s", inner), column(2, "a", array), column(8, "m", pairs)],
        properties={"schema.name-mapping.default": json.dumps(names)},
    )
    struct = pa.struct([with_id("was", pa.int64(), 3), with_id("now", pa.string(), 4)])
    entries = pa.map_(pa.field("key", pa.string(), False, {"PARQUET:field_id": "6"}), with_id("value", pa.int64(), 7))
    elements = pa.list_(with_id("element", pa.int32(), 5))
    schema = pa.schema([with_id("q", struct, 1), with_id("r", elements, 2), with_id("t", entries, 8)])
    ids = table.data(pa.table([[{"was": 7, "now": "seven"}, None], [[1], []], [[("a", 1)], None]], schema=schema))
    plain = table.data(pa.table({"s": [{"x": 8, "y": "eight"}], "a": pa.array([[2]], pa.list_(pa.int32()))}))
    table.commit(ids, plain)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("s.now")
    lake = indexes.open()
    seven = {"s": {"now": 7, "was": "seven"}, "a": [1], "m": [("a", 1)]}
    assert lake.lookup(NAME, col("s.now") == 7).to_pylist() == [seven]
    assert lake.lookup(NAME, col("s.now") == 8).to_pylist() == [{"s": {"now": 8, "was": "eight"}, "a": [2], "m": None}]
    assert lake.lookup(NAME, "s.was = 'eight'").num_rows == 1
    assert lake.candidates(NAME, col("s.now") == 8).num_rows == 1


def test_a_missing_column_is_its_initial_default_and_not_null(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t", [column(1, "k", "long")], version=3)
    table.commit(table.data(pa.table([[1, 2]], schema=pa.schema([K]))))
    defaults = [
        column(2, "d", "date", **{"initial-default": "2024-02-29"}),
        column(3, "n", "decimal(9, 2)", **{"initial-default": "14.20"}),
        column(4, "t", "timestamptz", **{"initial-default": "2024-02-29T01:02:03.000004+00:00"}),
        column(5, "b", "binary", **{"initial-default": "00ff"}),
        column(6, "f", "double", **{"initial-default": 1.5}),
        column(7, "i", "int", **{"initial-default": 34}),
        column(8, "w", "int", **{"write-default": 35}),
    ]
    table.schema([column(1, "k", "long"), *defaults])
    schema = pa.schema([K, with_id("i", pa.int32(), 7), with_id("n", pa.decimal128(9, 2), 3)])
    table.commit(table.data(pa.table([[3], [None], [None]], schema=schema)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("i", "k", global_filter=True)
    lake = indexes.open()
    assert lake.lookup(NAME, col("i") == 34)["k"].to_pylist() == [1, 2]
    assert lake.lookup(NAME, "i is null")["k"].to_pylist() == [3]
    assert lake.lookup(NAME, "i = 35").num_rows == 0
    assert lake.lookup(NAME, "w is null").num_rows == 3
    judged = judged_rows(table.metadata_file)
    assert sorted(map(str, lake.lookup(NAME, "k is not null").to_pylist())) == sorted(map(str, judged))
    wrong = [column(1, "k", "long"), column(9, "x", "int", **{"initial-default": "text"})]
    table.schema(wrong)
    with pytest.raises(ValueConversionError, match="no int32 for column x"):
        lake.lookup(NAME, "k is not null")
    assert lake.lookup(NAME, "k is not null", columns=["k"]).num_rows == 3


def test_a_join_filter_does_not_know_defaults(tmp_path: Path) -> None:
    from lakebloom.index.catalog import Catalog
    from lakebloom.index.current_table import logged_table
    from lakebloom.index.query.join_filters import JoinFilters
    from lakebloom.index.query.reader import Reader
    from lakebloom.index.settings import Settings

    table = HandTable(tmp_path / "t", [column(1, "k", "long")], version=3)
    table.commit(table.data(pa.table([[1, 2]], schema=pa.schema([K]))))
    table.schema([column(1, "k", "long"), column(7, "i", "int", **{"initial-default": 34})])
    schema = pa.schema([K, with_id("i", pa.int32(), 7)])
    table.commit(table.data(pa.table([[3], [5]], schema=schema)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("i", "k", global_filter=True)
    snapshot = Reader(Catalog(indexes.location).index(NAME)).snapshot()
    current = logged_table(snapshot.commit.table, {})
    files = current.list_files({})
    made = JoinFilters({}).of(snapshot, ("k",), files, Settings(), current.record)
    assert made.filter.might_contain([1, 2, 3]).all()
    with pytest.raises(StaleIndexError, match="default"):
        JoinFilters({}).of(snapshot, ("i",), files, Settings(), current.record)
    table.commit(table.data(pa.table([[11], [5]], schema=schema)))
    current = logged_table(snapshot.commit.table, {})
    made = JoinFilters({}).of(snapshot, ("k",), current.list_files({}), Settings(), current.record)
    assert made.files_merged == 1
    assert made.filter.might_contain([11]).all()


def test_a_default_inside_a_struct_is_refused_where_a_file_lacks_the_field(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [column(3, "a", "long")]}
    table = HandTable(tmp_path / "t", [column(1, "k", "long"), column(2, "s", inner)], version=3)
    schema = pa.schema([K, with_id("s", pa.struct([with_id("a", pa.int64(), 3)]), 2)])
    table.commit(table.data(pa.table([[1], [{"a": 5}]], schema=schema)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", "s.a")
    wider = {"type": "struct", "fields": [column(3, "a", "long"), column(4, "b", "long", **{"initial-default": 7})]}
    table.schema([column(1, "k", "long"), column(2, "s", wider)])
    lake = indexes.open()
    assert lake.lookup(NAME, col("k") == 1, columns=["k"]).num_rows == 1
    with pytest.raises(UnsupportedTypeError, match="a field in it has a default"):
        lake.lookup(NAME, col("s.b") == 7)


def test_partition_values_of_migrated_files(tmp_path: Path) -> None:
    """The files of a table that came from Hive do not have the partition's column."""
    model = Model(tmp_path / "t")
    model.append([{1: 1, 2: "x", 3: "a b"}], with_partition=False)
    model.append([{1: 2, 2: "y", 3: None}], with_partition=False)
    model.append([{1: 3, 2: "z", 3: "c"}])
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    with pytest.raises(InvalidArgumentError, match="is a partition column"):
        indexes.create("p")
    indexes.create("k")
    lake = indexes.open()
    assert lake.lookup(NAME, col("p") == "a b")["k"].to_pylist() == [1]
    assert lake.lookup(NAME, "p is null")["k"].to_pylist() == [2]
    assert lake.lookup(NAME, col("k") == 1).to_pylist() == [{"k": 1, "s": "x", "p": "a b"}]
    assert sorted(map(str, lake.lookup(NAME, "k is not null").to_pylist())) == sorted(
        map(str, judged_rows(model.hand.metadata_file))
    )


def test_a_column_that_becomes_a_partition_is_no_longer_pruned_by_its_filters(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.spec = model.hand.partitioned([])
    del model.hand.specs[0]
    model.append([{1: 1, 2: "x", 3: "a"}])
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("p")
    lake = indexes.open()
    assert lake.candidates(NAME, col("p") == "b").num_rows == 0
    model.spec = model.hand.partitioned([P_SPEC])
    model.append([{1: 2, 2: "x", 3: "b"}], with_partition=False)
    indexes.refresh()
    assert lake.lookup(NAME, col("p") == "b")["k"].to_pylist() == [2]
    assert lake.lookup(NAME, col("p") == "a")["k"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("kind", "stored", "value", "is_indexed"),
    [
        ("uuid", pa.binary(16), b"0123456789abcdef", False),
        ("time", pa.time64("us"), 5, False),
        ("timestamp_ns", pa.timestamp("ns"), 5, False),
        ("fixed[4]", pa.binary(4), b"abcd", True),
        ("timestamp", pa.timestamp("us"), 5, True),
        ("timestamptz", pa.timestamp("us", "UTC"), 5, True),
        ("decimal(20, 3)", pa.decimal128(20, 3), "1.500", True),
        ("geometry", pa.binary(), b"x", False),
    ],
)
def test_types_that_spark_has_otherwise(
    tmp_path: Path, kind: str, stored: pa.DataType, value: Any, is_indexed: bool
) -> None:
    table = HandTable(tmp_path / "t", [column(1, "k", "long"), column(2, "v", kind)], version=3)
    from decimal import Decimal

    given = Decimal(value) if isinstance(value, str) else value
    schema = pa.schema([K, with_id("v", stored, 2)])
    table.commit(table.data(pa.table([pa.array([1]), pa.array([given], stored)], schema=schema)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    if is_indexed:
        indexes.create("v")
        assert indexes.open().lookup(NAME, "v is not null").num_rows == 1
        return
    with pytest.raises(UnsupportedTypeError):
        indexes.create("v")
    indexes.create("k")
    assert indexes.open().lookup(NAME, "k = 1", columns=["k"]).num_rows == 1
    with pytest.raises(UnsupportedTypeError, match="leave the column out"):
        indexes.open().lookup(NAME, "k = 1")

"""The columns of a Delta table are those that its log means, whatever they are called now or were called before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import col
from lakebloom.errors import (
    DataFileError,
    LakebloomError,
)
from tests.index.delta_lake import Column, DeltaIndexes, Model, keys
from tests.index.logged_lake import NAME
from tests.tables.formats.delta.hand_table import HandTable, field, mapped

if TYPE_CHECKING:
    from pathlib import Path


def test_a_dropped_column_does_not_answer_for_a_new_one_of_its_name(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([{"k": 1, "s": "old"}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", "s")
    lake = indexes.open()
    model.columns[1] = Column("s", "col-9", 9, "string")
    model.alter()
    model.append([{"k": 2, "col-9": "new"}])
    for refresh in (False, True):
        if refresh:
            indexes.refresh()
        assert lake.lookup(NAME, col("s") == "old").num_rows == 0
        assert lake.lookup(NAME, col("s") == "new")["k"].to_pylist() == [2]
        assert lake.lookup(NAME, "s is null")["k"].to_pylist() == [1]
        assert lake.lookup(NAME, col("s") == "old", version=1)["k"].to_pylist() == [1]


def test_a_renamed_column_keeps_its_index(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    for number in range(8):
        model.append([{"k": number, "s": f"s{number}"}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    model.columns[0].name = "Key of it"
    model.alter()
    lake = indexes.open()
    assert lake.candidates(NAME, col("`Key of it`") == 3).num_rows == 1
    assert lake.lookup(NAME, "`Key of it` = 3")["s"].to_pylist() == ["s3"]
    assert lake.lookup(NAME, "k = 3", version=3).num_rows == 0
    assert lake.lookup(NAME, "k = 3", version=4).num_rows == 1
    with pytest.raises(LakebloomError, match="no column k"):
        lake.lookup(NAME, col("k") == 3)
    report = lake.explain(NAME, "`Key of it` = 3")
    assert report.scans[0].files_kept == 1


def test_widened_values_are_never_cut(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([{"k": 5, "s": "small"}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    model.columns[0].kind = "long"
    model.alter()
    large = 5 + (1 << 32)
    model.append([{"k": large, "s": "large"}, {"k": 5, "s": "small too"}])
    lake = indexes.open()
    for refresh in (False, True):
        if refresh:
            assert indexes.refresh().files == 1
        assert lake.lookup(NAME, col("k") == large)["s"].to_pylist() == ["large"]
        assert sorted(lake.lookup(NAME, col("k") == 5)["s"].to_pylist()) == ["small", "small too"]
        assert lake.lookup(NAME, col("k") == 5, version=1)["s"].to_pylist() == ["small"]
    assert {segment.types for segment in indexes.entry().segments} == {("int",), ("bigint",)}
    assert lake.candidates(NAME, col("k") == 6).num_rows == 0


def test_nested_columns_are_found_by_physical_names_and_ids(tmp_path: Path) -> None:
    for mode in ("name", "id"):
        root = tmp_path / mode
        inner = [
            {"name": "now", "type": "long", "nullable": True,
             "metadata": {"delta.columnMapping.physicalName": "was", "delta.columnMapping.id": 3}},
            {"name": "was", "type": "string", "nullable": True,
             "metadata": {"delta.columnMapping.physicalName": "col-4", "delta.columnMapping.id": 4}},
        ]  # fmt: skip
        struct = {"type": "struct", "fields": inner}
        array = {"type": "array", "elementType": struct, "containsNull": True}
        mapping = {"delta.columnMapping.mode": mode}
        keys_of = [("s", struct, "p1", 1), ("a", array, "p2", 2)]
        schema = [
            {"name": name, "type": kind, "nullable": True,
             "metadata": {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}}
            for name, kind, physical, number in keys_of
        ]  # fmt: skip
        table = HandTable(root / "t", schema, features=["columnMapping"], configuration=mapping)
        names = {"p1": "p1", "p2": "p2", "was": "was", "col-4": "col-4"} if mode == "name" else {
            "p1": "x", "p2": "y", "was": "col-4", "col-4": "was"
        }  # fmt: skip
        stored = pa.struct(
            [
                pa.field(names["was"], pa.int64(), metadata={"PARQUET:field_id": "3"}),
                pa.field(names["col-4"], pa.string(), metadata={"PARQUET:field_id": "4"}),
            ]
        )
        file_schema = pa.schema(
            [
                pa.field(names["p1"], stored, metadata={"PARQUET:field_id": "1"}),
                pa.field(names["p2"], pa.list_(stored), metadata={"PARQUET:field_id": "2"}),
            ]
        )
        value = {names["was"]: 7, names["col-4"]: "seven"}
        table.commit(table.add("f.parquet", pa.table([[value, None], [[value], []]], schema=file_schema)))
        indexes = DeltaIndexes(root, root / "t")
        indexes.create("s.now")
        expected = {"now": 7, "was": "seven"}
        found = indexes.open().lookup(NAME, col("s.now") == 7).to_pylist()
        assert found == [{"s": expected, "a": [expected]}], mode
        assert indexes.open().lookup(NAME, "s.was = 'seven'").num_rows == 1
        assert indexes.open().candidates(NAME, col("s.now") == 8).num_rows == 0


def test_files_without_ids_are_refused_where_ids_decide(tmp_path: Path) -> None:
    model = Model(tmp_path / "t", mode="id")
    model.append([{"k": 1}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    bare = model.hand.add("bare.parquet", pa.table({"k": pa.array([1], pa.int32()), "s": ["x"]}), {"p": "a"})
    model.hand.commit(bare)
    with pytest.raises(DataFileError, match="no ids"):
        indexes.open().lookup(NAME, col("k") == 1)
    assert ["no ids" in str(rejected) for rejected in indexes.refresh().skipped] == [True]


def test_a_global_filter_is_that_of_the_column_that_is_meant_now(tmp_path: Path) -> None:
    from lakebloom.errors import ColumnNotFoundError, StaleIndexError
    from lakebloom.index.current_table import logged_table
    from lakebloom.index.query.join_filters import JoinFilters
    from lakebloom.index.settings import Settings

    model = Model(tmp_path / "t")
    model.append([{"k": 1, "s": "old"}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", "s", global_filter=True)
    model.columns[0].name = "key"
    model.columns[1] = Column("s", "col-9", 9, "string")
    model.alter()
    model.append([{"k": 2, "col-9": "new"}])
    indexes.refresh()
    snapshot = indexes.open()._reader(NAME).snapshot()

    def filter_of(column: str) -> Any:
        table = logged_table(snapshot.commit.table, {})
        return JoinFilters({}).of(snapshot, (column,), table.list_files({}), Settings(), table.record)

    assert filter_of("key").filter.might_contain(pa.array([1, 2], pa.int32())).all()
    with pytest.raises(ColumnNotFoundError):
        filter_of("s")
    model.columns[0].kind = "long"
    model.alter()
    with pytest.raises(StaleIndexError, match="bigint"):
        filter_of("key")


def test_a_table_that_begins_to_map_its_columns_keeps_its_index(tmp_path: Path) -> None:
    """From then on files call the old columns by their old names, whatever they are called in the table."""
    table = HandTable(tmp_path / "t", [field("k", "long"), field("s", "string")], features=["columnMapping"])
    table.commit(*(table.add(f"{number}.parquet", keys(number)) for number in range(4)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", "s")
    lake = indexes.open()
    table._configuration = {"delta.columnMapping.mode": "name"}
    table.commit(table.schema([mapped("k", "long", "k", 1), mapped("s", "string", "s", 2)]))
    assert lake.candidates(NAME, col("k") == 2).num_rows == 1
    table.commit(table.schema([mapped("s", "long", "k", 1), mapped("k", "string", "s", 2)]))  # they change names
    for refresh in (False, True):
        if refresh:
            indexes.refresh()
        assert lake.lookup(NAME, col("s") == 2).to_pylist() == [{"s": 2, "k": "s2"}]
        assert lake.lookup(NAME, col("k") == "s3").to_pylist() == [{"s": 3, "k": "s3"}]
        assert lake.candidates(NAME, (col("s") == 2) & (col("k") == "s2")).num_rows == 1
        assert lake.lookup(NAME, "k = 2 and s = 's2'", version=1).num_rows == 1
    assert indexes.refresh("full").version
    assert lake.verify_index(NAME).false_negatives == 0

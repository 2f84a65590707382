"""Erasure from directories of Parquet files: exact rows, for keys of every type, and typed errors."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import (
    ColumnNotFoundError,
    IndexNotFoundError,
    InvalidArgumentError,
    LakebloomError,
    ValueConversionError,
)
from lakebloom.index.current_table import CurrentTable
from lakebloom.index.erasure.keys import keys_of, keys_of_texts
from tests.index.lake import NAME, Lake
from tests.index.local_builder import source_of

if TYPE_CHECKING:
    from pathlib import Path


def open_lake(lake: Lake) -> Lakebloom:
    return Lakebloom(location=lake.location)


@pytest.mark.parametrize("granularity", ["file", "row_group", "page", 3])
def test_rows_and_row_numbers_equal_a_scan(tmp_path: Path, granularity: Any) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string"})
    choose = random.Random(7)
    for number in range(8):
        keys = [choose.choice([None, *range(60)]) for _ in range(40)]
        lake.write(f"f{number}", {"k": pa.array(keys, pa.int64()), "s": ["x"] * 40}, row_group_size=10)
    lake.create(BloomIndexConfig(NAME, ["k"], granularity=granularity))
    lake.write("unindexed", {"k": pa.array([5, 6, 5], pa.int64()), "s": ["x"] * 3})
    lake.write("f1", {"k": pa.array([5, 90], pa.int64()), "s": ["x"] * 2})  # changed since
    (lake.table / "f2.parquet").unlink()
    wanted = {5, 6, 33, 90, 1000}
    right = sorted((uri, number, row["k"]) for uri, number, row in lake.rows() if row["k"] in wanted)
    plan = open_lake(lake).erasure_plan(NAME, wanted)
    found = plan.matches.to_pylist()
    assert sorted((f"file://{row['path']}", row["row_number"], row["key"]) for row in found) == right
    assert plan.rows == len(right)
    assert plan.keys_found == len({key for _, _, key in right})
    assert {(file.path, file.rows) for file in plan.held_by} == {
        (uri.removeprefix("file://"), sum(each == uri for each, _, _ in right)) for uri, _, _ in right
    }
    assert (plan.version, plan.versions, list(plan.snapshots)) == (None, None, [])
    assert [step.statement for step in plan.steps] == [""]
    assert not plan.check().erased
    assert plan.check("index").rows == plan.rows
    for path in lake.table.glob("*.parquet"):  # as a user would
        table = pq.read_table(path)
        pq.write_table(table.filter(pa.array([key not in wanted for key in table["k"].to_pylist()])), path)
    assert plan.check().erased
    assert plan.check("index").erased
    assert plan.check().files_read == 8


DAY = datetime.date(2024, 2, 29)
TIME = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)
TYPED: list[tuple[str, pa.DataType, list[Any], Any, str]] = [
    ("smallint", pa.int16(), [1, 2, None], 2, "2"),
    ("int", pa.int32(), [1, -2], -2, "-2"),
    ("bigint", pa.int64(), [1, 1 << 62], 1 << 62, str(1 << 62)),
    ("string", pa.string(), ["a", "ä'\\", ""], "ä'\\", "ä'\\"),
    ("binary", pa.binary(), [b"\0", b"a"], b"a", "a"),
    ("date", pa.date32(), [DAY, datetime.date(1999, 1, 1)], DAY, "2024-02-29"),
    ("timestamp", pa.timestamp("us", "UTC"), [TIME], TIME, "2024-02-29T12:30:00+00:00"),
    ("timestamp_ntz", pa.timestamp("us"), [TIME.replace(tzinfo=None)], TIME.replace(tzinfo=None), "2024-02-29 12:30"),
    ("decimal(10,2)", pa.decimal128(10, 2), [decimal.Decimal("1.50")], decimal.Decimal("1.5"), "1.5"),
    ("decimal(38,0)", pa.decimal128(38, 0), [decimal.Decimal(10**30)], 10**30, str(10**30)),
    ("double", pa.float64(), [-0.0, 1.5], 0.0, "0"),
    ("double", pa.float64(), [float("nan"), 1.5], float("nan"), "NaN"),
    ("float", pa.float32(), [0.5, 1.5], 0.5, "0.5"),
]


@pytest.mark.parametrize(("kind", "arrow", "values", "key", "text"), TYPED)
def test_keys_of_every_type(tmp_path: Path, kind: str, arrow: Any, values: Any, key: Any, text: str) -> None:
    lake = Lake(tmp_path, {"k": kind})
    lake.write("a", {"k": pa.array(values, arrow)})
    lake.create(BloomIndexConfig(NAME, ["k"], granularity="file"))
    plan = open_lake(lake).erasure_plan(NAME, [key])
    assert plan.rows == 1
    assert not plan.check().erased
    assert len(keys_of_texts([text], ("k",), kind)) == 1
    by_text = keys_of_texts([text], ("k",), kind).values
    by_value = keys_of([key], ("k",), kind).values
    assert by_text.equals(by_value) or str(by_text) == str(by_value)  # NaN differs from itself


def test_a_leaf_of_a_struct_and_several_columns(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"s": "struct<k:bigint>", "n": "bigint"})
    table = pa.table({"s": pa.array([{"k": 1}, None, {"k": None}, {"k": 3}]), "n": pa.array([1, 2, 3, 4], pa.int64())})
    lake.table.mkdir()
    pq.write_table(table, lake.table / "a.parquet")
    schema = {"name": "s", "type": {"type": "struct", "fields": [_field("k")]}, "nullable": True, "metadata": {}}
    create_with_schema(lake, [schema, _field("n")], ["s.k", "n"])
    opened = open_lake(lake)
    assert opened.erasure_plan(NAME, [1, 3, 4], column="s.k").rows == 2
    assert opened.erasure_plan(NAME, [1, 3, 4], column="N").rows == 3
    with pytest.raises(InvalidArgumentError, match=r"several columns.*column='s\.k'"):
        opened.erasure_plan(NAME, [1])
    with pytest.raises(ColumnNotFoundError, match="the index 'i'"):
        opened.erasure_plan(NAME, [1], column="m")


def _field(name: str) -> dict[str, Any]:
    return {"name": name, "type": "long", "nullable": True, "metadata": {}}


def create_with_schema(lake: Lake, fields: list[dict[str, Any]], columns: list[str]) -> None:
    import json

    from lakebloom.index.build.create import create_index
    from lakebloom.store.records import TableRecord
    from tests.index.local_builder import workshop

    schema = json.dumps({"type": "struct", "fields": fields})
    record = TableRecord(format="parquet", locations=(f"file://{lake.table}",), schema_json=schema)
    create_index(workshop(lake.catalog(), global_max_bytes=1 << 16), record, BloomIndexConfig(NAME, columns))


def test_collections_of_keys(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint"})
    lake.write("a", {"k": pa.array([1, 2, 3, 3], pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["k"]))
    opened = open_lake(lake)
    given = [
        [1, 3],
        (3, 1, 1),
        {1, 3},
        iter([1, 3]),
        range(1, 4, 2),
        np.array([1, 3], np.int32),
        pa.array([1, 3], pa.int8()),
        pa.chunked_array([[1], [3]]),
    ]
    for keys in given:
        plan = opened.erasure_plan(NAME, keys)
        assert (plan.rows, plan.keys, plan.keys_found) == (3, 2, 2)
    assert opened.erasure_plan(NAME, iter([3])).check().rows == 2  # the keys of an iterator are kept


def test_what_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "int", "s": "string"})
    lake.write("a", {"k": pa.array([1], pa.int32()), "s": ["x"]})
    lake.create(BloomIndexConfig(NAME, ["k"]))
    lake.create(BloomIndexConfig("t", ["s"]))
    opened = open_lake(lake)
    cases: list[tuple[Any, str, type[LakebloomError], str]] = [
        ([], NAME, InvalidArgumentError, "at least one key"),
        ([1, None], NAME, InvalidArgumentError, "IS NULL"),
        (pa.array([None, 1]), NAME, InvalidArgumentError, "1 of 2 keys"),
        ("user-1", "t", InvalidArgumentError, "collection of values"),
        (7, NAME, InvalidArgumentError, r"erasure_plan\(name, \[7\]\)"),
        (None, NAME, InvalidArgumentError, "collection"),
        ({"a": 1}, "t", InvalidArgumentError, "collection"),
        (["x"], NAME, ValueConversionError, "not a valid int for column k"),
        ([1 << 40], NAME, ValueConversionError, "not a valid int"),
        ([1.5], NAME, ValueConversionError, "not a valid int"),
        ([7], "t", ValueConversionError, "not a valid string for column s"),
        (range(1_000_001), NAME, InvalidArgumentError, "at most 1,000,000 keys"),
        ([1], "missing", IndexNotFoundError, "missing"),
    ]
    for keys, name, error, words in cases:
        with pytest.raises(error, match=words):
            opened.erasure_plan(name, keys)
    with pytest.raises(InvalidArgumentError, match="name of a column"):
        opened.erasure_plan(NAME, [1], column=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="evidence"):
        opened.erasure_plan(NAME, [1]).check("filters")  # type: ignore[arg-type]
    for text in ("x", "1.5", "0x10", "1_0", "", str(1 << 40), "NULL"):
        with pytest.raises(ValueConversionError, match="not a valid int"):
            keys_of_texts([text], ("k",), "int")


def test_hashes_that_collide_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path, {"k": "bigint"})
    lake.write("a", {"k": pa.array(range(50), pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["k"]))
    from lakebloom.index.erasure import keys as module

    plain = module.hash_array
    monkeypatch.setattr(module, "hash_array", lambda array: ((found := plain(array))[0] % 3, found[1]))
    plan = open_lake(lake).erasure_plan(NAME, [7, 8, 9, 90])
    assert plan.check().rows == 3
    assert sorted(plan.matches["row_number"].to_pylist()) == [7, 8, 9]


def test_a_column_that_the_table_no_longer_has_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "n": "bigint"})
    lake.write("a", {"k": pa.array([1], pa.int64()), "n": pa.array([1], pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["k"]))
    opened = open_lake(lake)

    def without_k(snapshot: Any) -> CurrentTable:  # as a catalog may describe the table later
        return CurrentTable(source_of(lake.table, {"n": "bigint"}))

    monkeypatch.setattr(opened, "_current", without_k)
    plan = opened.erasure_plan(NAME, [1])
    assert len(plan.problems) == 1
    assert not plan.check().erased


def test_a_plan_reads_only_candidates(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint"})
    for number in range(50):
        lake.write(f"f{number}", {"k": pa.array(range(number * 100, number * 100 + 100), pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["k"]))
    plan = open_lake(lake).erasure_plan(NAME, [150, 4999])
    assert (plan.files_retained, plan.files_read, plan.files) == (50, 2, 2)
    assert plan.check().files_read == 50
    assert plan.check("index").files_read == 2


@pytest.mark.parametrize("name", ["_temporary/0/t/part-0.parquet", ".part-0.parquet", "below/000000_0", "x._COPYING_"])
def test_files_that_are_not_rows_of_the_table_are_looked_at(tmp_path: Path, name: str) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string"})
    lake.write("f0", {"k": pa.array([1, 2], pa.int64()), "s": ["x", "y"]})
    lake.create(BloomIndexConfig(NAME, ["k"]))
    assert open_lake(lake).erasure_plan(NAME, [77]).check().erased
    (lake.table / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"k": pa.array([77], pa.int64()), "s": ["z"]}), lake.table / name)
    plan = open_lake(lake).erasure_plan(NAME, [77])
    assert plan.rows == 0
    check = plan.check()
    assert not check.erased
    assert [(file.path, file.state) for file in check.held_by] == [(str(lake.table / name), "unreferenced")]
    assert "Remove" in check.steps[0].title

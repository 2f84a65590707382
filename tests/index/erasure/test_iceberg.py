"""Erasure from Iceberg tables: counts of every snapshot equal a model's, and "erased" is said only where it is true."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom import col
from lakebloom.errors import UnsupportedSourceError
from lakebloom.index.erasure.steps import table_name
from lakebloom.tables.formats.iceberg.history import iceberg_history
from lakebloom.tables.formats.iceberg.table import IcebergTable, Source
from tests.index.iceberg_lake import Column, IcebergIndexes, Model
from tests.index.laws.test_iceberg import History
from tests.index.logged_lake import NAME
from tests.tables.formats.iceberg.hand_table import HandTable, column, with_id

if TYPE_CHECKING:
    from lakebloom.index.erasure.records import ErasureReport


def by_snapshot(report: ErasureReport, order: list[int]) -> dict[int, tuple[int, int]]:
    """The shown and hidden rows of each snapshot that holds any."""
    return {
        order[place]: (each.rows, each.rows_hidden)
        for each in report.snapshots
        for place in range(order.index(each.first_version), order.index(each.last_version) + 1)
    }


def expected(model: Model, wanted: set[int]) -> dict[int, tuple[int, int]]:
    """What the model says of each snapshot. Column 1 is never dropped."""
    found = {}
    for number, (_, files, _) in model.snapshots.items():
        held = [(at in file.deleted) for file in files for at, row in enumerate(file.rows) if row[1] in wanted]
        if held:
            found[number] = held.count(False), held.count(True)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "version"), [(21, 2), (22, 2), (23, 3), (24, 3)])
def test_every_retained_snapshot_is_counted(tmp_path: Path, seed: int, version: int) -> None:
    history = History(tmp_path / "t", seed, version)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    for number in range(20):
        history.step()
        if number == 10:
            indexes.refresh()
    model, wanted = history.model, {1, 2, 30, 77}
    table = IcebergTable(Source(directory=f"file://{tmp_path}/t"))
    order = [each.version for each in iceberg_history(table).versions]
    assert set(order) == set(model.snapshots)
    assert order[-1] == model.hand.current
    plan = indexes.open().erasure_plan(NAME, sorted(wanted))
    assert by_snapshot(plan, order) == expected(model, wanted)
    check = plan.check()
    assert {file.path for file in plan.held_by} <= {file.path for file in check.held_by}
    assert not check.erased


@pytest.mark.slow
def test_erased_means_that_no_file_holds_the_key(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([{1: key, 2: f"s{key}", 3: "a"} for key in range(10)])
    model.append([{1: key, 2: f"s{key}", 3: "a"} for key in range(10, 20)])
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    plan = lake.erasure_plan(NAME, [3])
    assert (plan.rows, plan.rows_hidden, plan.held_by[0].state) == (1, 0, "current")
    assert "DELETE FROM" in plan.steps[0].statement
    assert "rewrite_data_files" in plan.steps[1].statement
    assert "expire_snapshots" in plan.steps[2].statement
    model.delete_equal([1], [(3,)], None)
    plan = lake.erasure_plan(NAME, [3])
    assert (plan.rows, plan.rows_hidden) == (0, 1)
    model.compact([file for file in model.files if any(row[1] == 3 for row in file.rows)])
    plan = lake.erasure_plan(NAME, [3])
    assert (plan.rows, plan.rows_hidden, plan.versions_holding) == (0, 0, 3)
    assert not plan.check().erased
    model.expire(set())
    check = lake.erasure_plan(NAME, [3]).check()
    assert not check.erased  # the files are still there, and so is the key in the file that deletes it
    assert [file.state for file in check.held_by] == ["deletes", "unreferenced"]
    assert len(check.held_by) == 2
    for file in check.held_by:
        Path(file.path).unlink()
    model.hand.commit(removed=model.deletes)
    model.remember()
    model.expire(set())
    assert lake.erasure_plan(NAME, [3]).check().erased


def test_statements_name_the_table_of_a_catalog(tmp_path: Path) -> None:
    import msgspec

    model = Model(tmp_path / "t")
    model.append([{1: 1, 2: "s", 3: "a"}])
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    record = indexes.entry().table
    assert record.snapshot is not None
    assert table_name(record) == f"iceberg.`{tmp_path / 't'}`"
    named = msgspec.structs.replace(record.snapshot, catalog="lake.shop.events")
    assert table_name(msgspec.structs.replace(record, snapshot=named)) == "`lake`.`shop`.`events`"


def row(key: int) -> dict[int, Any]:
    return {1: key, 2: f"s{key}", 3: "a"}


def without_k(model: Model) -> None:
    """Drop the column."""
    model.columns = [each for each in model.columns if each.name != "k"]
    model.alter()


def test_the_current_snapshot_is_also_read_with_its_own_columns(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([row(1)])
    model.append([row(7)])
    with_key = model.hand.current
    model.remove(next(file for file in model.files if file.rows[0][1] == 7))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    without_k(model)
    model.hand.roll_back(with_key)
    assert lake.lookup(NAME, col("k") == 7, version=with_key).num_rows == 1
    plan = lake.erasure_plan(NAME, [7])
    assert (plan.rows, plan.rows_hidden, plan.versions_holding, plan.versions) == (0, 1, 1, 3)
    for report in (plan.check(), plan.check("index")):
        assert not report.erased
        assert [file.state for file in report.held_by] == ["current"]
    model.expire(set())  # no other snapshot has the column
    assert [each.rows for each in lake.erasure_plan(NAME, [7]).check().snapshots] == [0, 1]
    assert not lake.erasure_plan(NAME, [8]).check().problems


def test_a_file_of_snapshots_without_the_column_is_read(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([row(1)])
    tagged = model.hand.current
    model.append([row(7)])
    held = model.files[-1].entry.path
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    without_k(model)
    model.append([{2: "x", 3: "a"}])
    model.expire({tagged})
    for report in (lake.erasure_plan(NAME, [7]), lake.erasure_plan(NAME, [7]).check()):
        assert [(file.path, file.state, file.rows, file.rows_hidden) for file in report.held_by] == [
            (held, "current", 0, 1)
        ]
        assert not report.problems
    assert not lake.erasure_plan(NAME, [7]).check().erased


def test_a_default_is_not_what_a_file_holds(tmp_path: Path) -> None:
    """A file of snapshots before a column with a default was added does not hold that default."""
    model = Model(tmp_path / "t", version=3)
    model.append([row(1)])
    old = model.files[-1]
    model.remove(old)
    model.columns.append(Column(9, "d", "int", 7))
    model.alter()
    model.append([{**row(2), 9: 3}])
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("d")
    lake = indexes.open()
    assert lake.erasure_plan(NAME, [7]).check().erased
    model.expire(set())
    assert Path(old.entry.path).exists()
    assert lake.erasure_plan(NAME, [7]).check().erased
    assert not lake.erasure_plan(NAME, [3]).check().erased


def test_leftovers_hold_their_keys_whatever_the_partitions_are(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([row(1)])
    model.append([row(7)])
    left = model.files[-1]
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    model.remove(left)
    model.delete_equal([1], [(8,)], None)
    model.expire(set())
    deleting = model.deletes[-1].path
    model.hand.partitioned([{"name": "k", "transform": "identity", "source-id": 1, "field-id": 1005, "result": "int"}])
    for key, path in ((7, left.entry.path), (8, deleting)):
        check = lake.erasure_plan(NAME, [key]).check()
        assert not check.erased
        assert [file.path for file in check.held_by] == [path]
    assert lake.erasure_plan(NAME, [9]).check().erased


def test_a_file_of_another_format_in_an_old_snapshot_is_a_problem(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([row(1)])
    entry = model.write([row(7)])
    entry.format = "ORC"
    model.hand.commit(entry)
    model.remember()
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    model.remove(model.files[-1])
    indexes.create("k")
    check = indexes.open().erasure_plan(NAME, [7]).check()
    assert not check.erased
    assert len(check.problems) == 1
    assert entry.path in check.problems[0]
    model.hand.commit(entry)
    model.remember()
    with pytest.raises(UnsupportedSourceError):
        indexes.open().erasure_plan(NAME, [7])


def test_statistics_of_partitions_are_not_rows(tmp_path: Path) -> None:
    """Their columns have the ids 1, 2, 3 …, as the columns of the table may have."""
    hand = HandTable(tmp_path / "t", [column(1, "s", "string"), column(3, "k", "long")])
    kinds = [with_id("s", pa.string(), 1), with_id("k", pa.int64(), 3)]
    hand.commit(hand.data(pa.table([["x"], [1]], schema=pa.schema(kinds))))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    partition = pa.struct([with_id("p", pa.string(), 1000)])
    statistics = pa.schema(
        [with_id("partition", partition, 1), with_id("spec_id", pa.int32(), 2), with_id("records", pa.int64(), 3)]
    )
    rows = pa.table([pa.array([{"p": "a"}], partition), pa.array([0], pa.int32()), pa.array([2])], schema=statistics)
    pq.write_table(rows, tmp_path / "t/metadata/partition-stats-1.parquet")
    assert indexes.open().erasure_plan(NAME, [2]).check().erased


def test_copies_of_rows_in_position_deletes_are_found(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([row(1), row(7)])
    file = model.files[-1]
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    model.delete_positions([(file, {1})], alone=False)
    path = model.deletes[-1].path
    copied = pa.struct([with_id("s", pa.string(), 2), with_id("another", pa.int32(), 1)])
    kinds = [
        with_id("file_path", pa.string(), 2147483546),
        with_id("pos", pa.int64(), 2147483545),
        with_id("row", copied, 2147483544),
    ]
    columns = [pa.array([file.entry.path]), pa.array([1]), pa.array([{"s": "s7", "another": 7}], copied)]
    pq.write_table(pa.table(columns, schema=pa.schema(kinds)), path)
    model.compact(list(model.files))
    model.expire(set())
    Path(file.entry.path).unlink()
    check = lake.erasure_plan(NAME, [7]).check()
    assert not check.erased
    assert [(each.path, each.state, each.rows_hidden) for each in check.held_by] == [(path, "deletes", 1)]
    assert not check.problems
    assert check.files_read == check.files_retained == 2
    assert lake.erasure_plan(NAME, [8]).check().erased


def test_equality_deletes_outside_the_directory_are_read(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([row(1)])
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    inside = model.hand.next_path
    (tmp_path / "elsewhere").mkdir()
    model.hand.next_path = lambda ending="parquet": str(tmp_path / f"elsewhere/d.{ending}")  # type: ignore[method-assign]
    model.delete_equal([1], [(8,)], None)
    model.hand.next_path = inside  # type: ignore[method-assign]
    check = indexes.open().erasure_plan(NAME, [8]).check()
    assert [(each.path, each.state) for each in check.held_by] == [(str(tmp_path / "elsewhere/d.parquet"), "deletes")]


def statements(report: ErasureReport) -> list[str]:
    """The procedures of the steps, by name; another statement by its first word."""
    found = [re.match(r"CALL `?\w+`?\.system\.(\w+)\(|(\w+)", step.statement) for step in report.steps]
    return [each[1] or each[2] for each in found if each is not None]


def test_steps_fit_what_holds_the_keys(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([row(1)])
    model.append([row(7)])
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    plan = lake.erasure_plan(NAME, [7])
    assert statements(plan) == ["DELETE", "rewrite_data_files", "expire_snapshots"]
    assert "dangling" not in plan.statement
    assert all("catalog" in step.why for step in plan.steps)  # the table was given by its path
    assert "Branches and tags" in plan.steps[-1].why
    assert "current_timestamp" not in plan.statement
    assert re.search(r"older_than => TIMESTAMP '\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z'", plan.statement)
    left = model.files[-1]
    model.remove(left)
    assert statements(lake.erasure_plan(NAME, [7]).check()) == ["expire_snapshots"]
    model.expire(set())
    os.utime(left.entry.path, (1_700_000_000, 1_700_000_000))
    check = lake.erasure_plan(NAME, [7]).check()
    assert statements(check) == ["remove_orphan_files"]
    assert "older_than => TIMESTAMP '2023-11-14 22:13:21.000Z'" in check.statement
    assert check.steps[0].not_before_ms == 1_700_000_001_000 + 24 * 3600 * 1000
    model.delete_equal([1], [(8,)], None)
    check = lake.erasure_plan(NAME, [8]).check()
    assert statements(check) == ["rewrite_data_files", "expire_snapshots"]
    assert "'remove-dangling-deletes', 'true'" in check.statement
    assert not lake.erasure_plan(NAME, [9]).check().steps


def test_branches_and_tags_that_keep_the_rows_are_named(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([row(1)])
    model.hand.refer("before", "tag")
    model.append([row(7)])
    tagged = model.hand.current
    for name, kind in (("of `7`", "tag"), ("audit", "branch")):
        model.hand.refer(name, kind)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    model.remove(model.files[-1])
    for report in (lake.erasure_plan(NAME, [7]), lake.erasure_plan(NAME, [7]).check()):
        assert [each.refs for each in report.snapshots] == [("branch audit", "tag of `7`")]
        assert "branch audit, tag of `7`" in str(report)
        assert report.as_data()["snapshots"][0]["refs"] == ("branch audit", "tag of `7`")
        assert statements(report) == ["ALTER", "expire_snapshots"]
        target = f"ALTER TABLE iceberg.`{tmp_path / 't'}` DROP"
        assert report.steps[0].statement.splitlines() == [f"{target} BRANCH `audit`;", f"{target} TAG `of ``7```;"]
    model.expire({tagged})
    assert not lake.erasure_plan(NAME, [7]).check().erased
    for name in ("of `7`", "audit"):
        del model.hand.metadata["refs"][name]
    model.expire(set())
    assert statements(lake.erasure_plan(NAME, [7]).check()) == ["remove_orphan_files"]

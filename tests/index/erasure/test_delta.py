"""Erasure from Delta tables: counts of every version equal a model's, and "erased" is said only where it is true."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebloom.errors import DataFileError, NotFoundError
from lakebloom.index.erasure import findings
from lakebloom.tables.formats.delta.history import delta_history
from tests.examples import most
from tests.index.delta_lake import Column, DeltaIndexes, Model, keys, plain_table
from tests.index.logged_lake import NAME
from tests.tables.formats.delta.hand_table import HandTable, field

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.index.erasure.records import ErasureReport

WEEK_MS = 7 * 24 * 3600 * 1000
REMOVED_MS = 1_700_000_000_000
"""The time that tables written by hand give to every removed file."""


def by_version(report: ErasureReport) -> dict[int, tuple[int, int]]:
    """The shown and hidden rows of each version that holds any."""
    return {
        version: (each.rows, each.rows_hidden)
        for each in report.snapshots
        for version in range(each.first_version, each.last_version + 1)
    }


def expected(model: Model, wanted: set[int]) -> dict[int, tuple[int, int]]:
    """What the model says of each version."""
    found = {}
    for version, (columns, files) in enumerate(model.versions):
        has_column = any(column.physical == "k" for column in columns)
        shown = hidden = 0
        for file in files:
            for number, row in enumerate(file.rows):
                if row.get("k") in wanted:
                    is_shown = has_column and number not in file.deleted
                    shown, hidden = shown + is_shown, hidden + (not is_shown)
        if shown or hidden:
            found[version] = shown, hidden
    return found


def random_history(model: Model, indexes: DeltaIndexes, choose: random.Random, steps: int) -> None:
    """Append, delete, drop files, restore, rename and drop the column, and refresh the index."""
    indexes.create("k", granularity=choose.choice(["file", "row_group"]))
    for step in range(steps):
        action = choose.choice(["append", "append", "delete", "drop", "restore", "rename", "forget", "refresh"])
        column = model.column("k")
        if action == "refresh" and column is not None:
            indexes.refresh(choose.choice(["quick", "full"]))
        elif action == "delete" and model.files:
            file = choose.choice(model.files)
            model.delete(file, {choose.randrange(len(file.rows))}, inline=choose.random() < 0.5)
        elif action == "drop" and model.files:
            model.drop_file(choose.choice(model.files))
        elif action == "restore":
            model.restore(choose.randrange(len(model.versions)))
        elif action == "rename" and column is not None:
            column.name = f"k{step}"
            model.alter()
        elif action == "forget" and column is not None and choose.random() < 0.3:
            model.columns.remove(column)
            model.columns.append(Column("k", f"other{step}", 100 + step, "integer"))
            model.alter()
        elif column is not None:
            model.append([{"k": choose.randrange(12), "s": "x"} for _ in range(choose.randint(1, 6))])


@pytest.mark.slow
@given(seed=st.integers(0, 1 << 30), steps=st.integers(2, 14), mode=st.sampled_from(["name", "id"]))
@settings(max_examples=most(60), deadline=None)
def test_every_version_of_a_random_history_is_counted_right(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: int, mode: str
) -> None:
    home = tmp_path_factory.mktemp("history")
    choose = random.Random(seed)
    model = Model(home / "t", mode=mode)
    model.append([{"k": 1, "s": "x"}])
    indexes = DeltaIndexes(home, home / "t")
    random_history(model, indexes, choose, steps)
    wanted = {choose.randrange(12) for _ in range(3)}
    with indexes.open() as lake:
        plan = lake.erasure_plan(NAME, wanted)
        right = expected(model, wanted)
        newest = len(model.versions) - 1
        assert by_version(plan) == right
        assert (plan.rows, plan.rows_hidden) == right.get(newest, (0, 0))
        assert plan.matches.num_rows == plan.rows
        assert not plan.problems
        assert plan.versions_holding == len(right)
        for evidence in ("data", "index"):
            check = plan.check(evidence)  # type: ignore[arg-type]
            assert by_version(check) == right
            assert check.erased == (not right)
    shutil.rmtree(home)


def test_the_history_of_a_log_equals_its_versions_one_by_one(tmp_path: Path) -> None:
    """Also where the log starts at a checkpoint, and where it has a gap before one."""
    table = plain_table(tmp_path / "t")
    added = [table.add(f"{number}.parquet", keys(number)) for number in range(6)]
    for number in range(3):
        table.commit(added[number])
    table.checkpoint()
    table.commit(table.remove(added[0]), added[3])
    table.commit(added[4], added[0])
    table.checkpoint(parts=2)
    table.commit(table.remove(added[1]), added[5])

    def spans() -> dict[int, set[str]]:
        history = delta_history(f"file://{tmp_path}/t", {})
        places = range(len(history.versions))
        return {
            history.versions[place].version: {
                file.data_file.file.uri.rpartition("/")[2] for file in history.files if file.first <= place <= file.last
            }
            for place in places
        }

    def judged(versions: list[int]) -> dict[int, set[str]]:
        found = {}
        for version in versions:
            actions = DeltaTable(str(tmp_path / "t"), version=version).get_add_actions(flatten=True)
            found[version] = set(pa.table(actions)["path"].to_pylist())
        return found

    assert spans() == judged([0, 1, 2, 3, 4, 5, 6]) | {0: set()}
    table.forget(0, 1, 2, 3)
    assert spans() == judged([3, 4, 5, 6])
    table.forget(4)
    assert sorted(spans()) == [3, 5, 6]
    table.forget(6)
    assert sorted(spans()) == [3, 5]


def test_times_until_files_may_be_removed(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t", configuration={"delta.deletedFileRetentionDuration": "interval 2 days"})
    first, second = table.add("a.parquet", keys(1, 2)), table.add("b.parquet", keys(2, 3))
    table.commit(first, second)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.remove(first))
    lake = indexes.open()
    plan = lake.erasure_plan(NAME, [1])
    assert (plan.rows, plan.versions_holding) == (0, 1)
    assert [each.removable_ms for each in plan.snapshots] == [REMOVED_MS + 2 * 24 * 3600 * 1000]
    assert [step.title for step in plan.steps] == ["Remove old files"]
    assert plan.steps[0].not_before_ms == plan.snapshots[0].removable_ms
    # A version with a file that is still current stays as long as that file does.
    both = lake.erasure_plan(NAME, [2])
    assert {each.is_newest: each.removable_ms for each in both.snapshots} == {True: None, False: None}
    assert [(file.state, file.removable_ms) for file in both.held_by] == [
        ("current", None),
        ("old", REMOVED_MS + 2 * 24 * 3600 * 1000),
    ]


@pytest.mark.parametrize("retention", ["interval 999999999999 weeks", "interval 1 month", "soon", "-1 days"])
def test_times_that_make_no_sense_are_not_known(tmp_path: Path, retention: str) -> None:
    table = plain_table(tmp_path / "t", configuration={"delta.deletedFileRetentionDuration": retention})
    added = table.add("a.parquet", keys(1))
    table.commit(added)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    removed = table.remove(added)
    removed["remove"]["deletionTimestamp"] = (1 << 62) - 1 if retention == "-1 days" else 5
    table.commit(removed)
    (held,) = indexes.open().erasure_plan(NAME, [1]).snapshots
    assert held.removable_ms in (None, (1 << 62) - 1 - 24 * 3600 * 1000)
    assert str(indexes.open().erasure_plan(NAME, [1]))


def test_a_file_that_got_a_vector_is_not_removable(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    added = table.add("a.parquet", keys(1, 2))
    table.commit(added)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.remove(added), table.again(added, table.inline([0])))
    plan = indexes.open().erasure_plan(NAME, [1])
    assert (plan.rows, plan.rows_hidden, plan.keys_found) == (0, 1, 0)
    assert [each.removable_ms for each in plan.snapshots] == [None, None]
    assert "APPLY (PURGE)" in plan.statement
    assert "DELETE" not in plan.statement
    assert not plan.check().erased


def events(*ids: int) -> pa.Table:
    return pa.table({"user_id": [f"user-{i}" for i in ids], "amount": pa.array(ids, pa.int64())})


def test_an_erasure_from_plan_to_proof_with_deltalake(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    for part in range(5):
        write_deltalake(place, events(*range(part * 100, part * 100 + 100)), mode="append")
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("user_id")
    lake = indexes.open()
    ids = ["user-7", "user-250", "nobody"]
    plan = lake.erasure_plan(NAME, ids)
    assert (plan.rows, plan.files, plan.keys_found, plan.files_read) == (2, 2, 2, 2)
    assert by_version(plan) == {0: (1, 0), 1: (1, 0), 2: (2, 0), 3: (2, 0), 4: (2, 0)}
    delete = next(step.statement for step in plan.steps if step.title == "Delete the rows")
    condition = delete.partition(" WHERE ")[2].rstrip(";").replace("`", "")
    DeltaTable(place).delete(condition)
    left = plan.check()
    assert not left.erased
    assert left.rows == left.rows_hidden == 0
    assert by_version(left) == {0: (1, 0), 1: (1, 0), 2: (2, 0), 3: (2, 0), 4: (2, 0)}
    assert all(each.removable_ms is not None for each in left.snapshots)
    DeltaTable(place).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    gone = plan.check()
    assert gone.erased
    assert gone.files_gone == 2
    assert gone.steps == ()
    assert gone.verdict().startswith("erased")
    assert plan.check("index").erased
    assert lake.lookup(NAME, "user_id = 'user-8'").num_rows == 1


def test_new_and_unindexed_files_are_read(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    table.commit(table.add("a.parquet", keys(1)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    assert lake.erasure_plan(NAME, [9]).rows == 0
    table.commit(table.add("b.parquet", keys(9, 9)))
    plan = lake.erasure_plan(NAME, [9])
    assert (plan.rows, plan.files, plan.files_read) == (2, 1, 1)
    assert not plan.check("index").erased


def test_a_check_of_the_data_does_not_believe_the_index(tmp_path: Path) -> None:
    """A file that was exchanged behind the log's back: filters of the old one exclude the key, the rows do not."""
    table = plain_table(tmp_path / "t")
    table.commit(table.add("a.parquet", keys(1)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    pq.write_table(keys(9), tmp_path / "t" / "a.parquet")
    plan = indexes.open().erasure_plan(NAME, [9])
    assert not plan.check("data").erased
    assert plan.check("data").rows == 1


def test_files_that_no_version_has_are_found(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    table.commit(table.add("a.parquet", keys(1)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    plan = indexes.open().erasure_plan(NAME, [9])
    assert plan.check().erased
    for name in ("failed write.parquet", "_change_data/cdc-1.parquet"):
        stray = tmp_path / "t" / name
        stray.parent.mkdir(exist_ok=True)
        pq.write_table(keys(9, 10), stray)
        check = plan.check()
        assert not check.erased
        assert [(file.path, file.state, file.rows_hidden) for file in check.held_by] == [
            (str(stray), "unreferenced", 1)
        ]
        assert [step.title for step in check.steps] == ["Remove old files"]
        stray.write_bytes(b"half a file")
        check = plan.check()
        assert not check.erased
        assert not check.held_by
        assert len(check.problems) == 1
        assert check.verdict().startswith("not proven")
        stray.unlink()
    assert plan.check().erased


def test_damage_in_old_files_is_a_problem_and_in_current_ones_an_error(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    old, new = table.add("a.parquet", keys(1)), table.add("b.parquet", keys(2))
    table.commit(old)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.remove(old), new)
    (tmp_path / "t" / "a.parquet").write_bytes(b"PAR1 broken")
    lake = indexes.open()
    check = lake.erasure_plan(NAME, [7]).check()
    assert not check.erased
    assert len(check.problems) == 1
    assert "a.parquet" in check.problems[0]
    (tmp_path / "t" / "b.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(DataFileError, match="newest version"):
        lake.erasure_plan(NAME, [2])
    (tmp_path / "t" / "b.parquet").unlink()
    with pytest.raises(NotFoundError, match="newest version"):
        lake.erasure_plan(NAME, [2])


def test_a_vector_that_is_gone_counts_its_rows_as_held(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    added = table.add("a.parquet", keys(1, 2))
    hidden = table.again(added, table.stored([0])[0])
    table.commit(hidden)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.remove(hidden), table.add("b.parquet", keys(2)))
    (vector,) = (tmp_path / "t").glob("deletion_vector_*.bin")
    vector.unlink()
    plan = indexes.open().erasure_plan(NAME, [1])
    assert by_version(plan) == {1: (1, 0)}
    assert len(plan.problems) == 1


def test_a_column_that_became_another_type_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    """Without column mapping a schema can be overwritten: the old files hold texts under the same name."""
    table = HandTable(tmp_path / "t", [field("k", "string")])
    old = table.add("a.parquet", pa.table({"k": ["1", "2"]}))
    table.commit(old)
    new = table.add("b.parquet", pa.table({"k": pa.array([1, 3], pa.int64())}))
    table.commit(table.remove(old), table.schema([field("k", "long")]), new)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    plan = indexes.open().erasure_plan(NAME, [1])
    assert plan.rows == 1
    (problem,) = plan.problems
    assert "has the type string" in problem
    assert not indexes.open().erasure_plan(NAME, [77]).check().erased


def test_widened_columns_are_compared_in_each_type(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t", [field("k", "integer")], features=["typeWidening"])
    old = table.add("a.parquet", pa.table({"k": pa.array([1, 2], pa.int32())}))
    table.commit(old)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.schema([field("k", "long")]))
    table.commit(table.add("b.parquet", pa.table({"k": pa.array([1, 1 << 40], pa.int64())})))
    lake = indexes.open()
    plan = lake.erasure_plan(NAME, [1])
    assert by_version(plan) == {1: (1, 0), 2: (1, 0), 3: (2, 0)}
    assert not plan.problems
    large = lake.erasure_plan(NAME, [1 << 40])
    assert by_version(large) == {3: (1, 0)}


def test_a_version_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is vacuumed between the log and the read: the next version is looked at."""
    table = plain_table(tmp_path / "t")
    old, new = table.add("a.parquet", keys(1)), table.add("b.parquet", keys(2))
    table.commit(old)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    changes = [lambda: (tmp_path / "t" / "a.parquet").unlink(), lambda: table.commit(table.remove(old), new)]
    read = findings.retained_history

    def changing(*arguments: Any) -> Any:
        history = read(*arguments)
        while changes:
            changes.pop()()
        return history

    monkeypatch.setattr(findings, "retained_history", changing)
    plan = indexes.open().erasure_plan(NAME, [1, 2])
    assert (plan.version, plan.rows, plan.files_gone) == (2, 1, 1)

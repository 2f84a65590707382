"""The log of a Delta table: the same files as deltalake finds, at every version, whatever was written before."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from lakebloom.errors import NotFoundError, UnsupportedSourceError
from lakebloom.tables.formats.delta.log import DeltaLog
from tests.tables.formats.delta.hand_table import HandTable, field
from tests.tables.formats.delta.judge import judged_files, listed_files

FIELDS = [field("k", "long"), field("p", "string")]


def log_of(root: Path) -> DeltaLog:
    return DeltaLog(f"file://{root}")


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


class History:
    """A random history of a table, written by deltalake."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random = root, random.Random(seed)
        self.partitioned = bool(seed % 2)
        self.key = 0
        self.append()

    def _rows(self) -> pa.Table:
        count = self.random.randint(1, 5)
        self.key += count
        names = self.random.choices(["a", "b c", "ü/=%", None, "x:y"], k=count)
        return pa.table(
            {"k": pa.array(range(self.key - count, self.key), pa.int64()), "p": pa.array(names, pa.string())}
        )

    def _write(self, mode: str) -> None:
        by = ["p"] if self.partitioned else None
        deltalake.write_deltalake(str(self.root), self._rows(), mode=mode, partition_by=by)  # type: ignore[call-overload]

    @property
    def table(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(str(self.root))

    def append(self) -> None:
        self._write("append")

    def overwrite(self) -> None:
        self._write("overwrite")

    def delete(self) -> None:
        self.table.delete(f"k % 5 = {self.random.randint(0, 4)}")

    def update(self) -> None:
        self.table.update(updates={"k": "k + 1000"}, predicate=f"k % 7 = {self.random.randint(0, 6)}")

    def compact(self) -> None:
        self.table.optimize.compact()

    def checkpoint(self) -> None:
        self.table.create_checkpoint()

    def restore(self) -> None:
        newest = self.table.version()
        if newest:
            self.table.restore(self.random.randint(max(0, newest - 3), newest - 1))

    def step(self) -> None:
        steps = [self.append, self.append, self.overwrite, self.delete, self.update, self.compact, self.checkpoint]
        self.random.choice([*steps, self.restore])()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_random_history_has_the_files_that_deltalake_finds(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "a b", seed)
    known = log_of(history.root)
    for _ in range(25):
        history.step()
        newest = known.newest()
        assert newest.version == history.table.version()
        assert listed_files(newest) == judged_files(history.root)
        assert newest.table_id == str(history.table.metadata().id)
        version = history.random.randint(0, newest.version)
        assert listed_files(known.at(version)) == judged_files(history.root, version)
    assert listed_files(log_of(history.root).newest()) == listed_files(known.newest())
    assert known.newest() is known.newest()


def test_cleaned_logs_and_vacuumed_files_change_nothing_that_is_current(tmp_path: Path) -> None:
    history = History(tmp_path / "t", 1)
    for _ in range(6):
        history.append()
    history.delete()
    history.table.create_checkpoint()
    before = judged_files(history.root)
    history.table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    for version in range(5):
        (history.root / "_delta_log" / f"{version:020}.json").unlink()
    log = log_of(history.root)
    assert listed_files(log.newest()) == before
    with pytest.raises(NotFoundError, match="no version 2"):
        log.at(2)


def test_a_newer_version_costs_only_its_own_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HandTable(tmp_path, FIELDS)
    for number in range(20):
        table.commit(table.add(f"{number}.parquet", rows(number)))
    log = log_of(tmp_path)
    assert len(log.newest().files) == 20
    table.commit(table.add("new.parquet", rows(99)))
    read: list[str] = []
    whole = type(log._storage).read
    monkeypatch.setattr(type(log._storage), "read", lambda self, path: read.append(path) or whole(self, path))
    assert len(log.newest().files) == 21
    assert log.newest().version == 21
    assert read == [f"{21:020}.json"]


def test_an_older_version_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lookups in one version, or in two in turn, do not replay the log each time."""
    table = HandTable(tmp_path, FIELDS)
    for number in range(9):
        table.commit(table.add(f"{number}.parquet", rows(number)))
    log = log_of(tmp_path)
    read: list[str] = []
    whole = type(log._storage).read
    monkeypatch.setattr(type(log._storage), "read", lambda self, path: read.append(path) or whole(self, path))
    found = {version: log.at(version) for version in (3, 5)}
    table.commit(table.add("new.parquet", rows(99)))
    assert log.newest().version == 10
    read.clear()
    for version in (3, 5, 3, 5, 5):
        assert log.at(version) is found[version]
    assert read == []
    assert [len(log.at(version).files) for version in (1, 2, 3)] == [1, 2, 3]
    assert log.at(3) is not found[3], "memory is bounded"


def test_an_older_version_of_a_table_that_was_made_anew_is_read_again(tmp_path: Path) -> None:
    def make(*numbers: int) -> None:
        table = HandTable(tmp_path, FIELDS)
        for number in numbers:
            table.commit(table.add(f"{number}.parquet", rows(number)))

    make(1, 2, 3)
    log = log_of(tmp_path)
    assert [file.uri.rpartition("/")[2] for file in log.at(2).files] == ["1.parquet", "2.parquet"]
    shutil.rmtree(tmp_path)
    make(4, 5, 6)
    assert [file.uri.rpartition("/")[2] for file in log.at(2).files] == ["4.parquet", "5.parquet"]
    (tmp_path / "_delta_log" / f"{1:020}.json").unlink()
    (tmp_path / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(UnsupportedSourceError, match="version 1 is missing"):
        log.at(2)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["classic", "parts", "v2 json", "v2 parquet"])
@pytest.mark.parametrize("partitioned", [True, False])
def test_all_forms_of_checkpoints_are_read(tmp_path: Path, form: str, partitioned: bool) -> None:
    names = ["p"] if partitioned else []
    features = ["deletionVectors", *(["v2Checkpoint"] if "v2" in form else [])]
    fields = FIELDS if partitioned else FIELDS[:1]
    table = HandTable(tmp_path, fields, partitions=names, features=features)
    added = [
        table.add(f"f {number}.parquet", rows(number, number), {"p": value} if partitioned else {})
        for number, value in enumerate(["a", "b/c", None, "", "d", "e"])
    ]
    table.commit(*added)
    table.commit(table.remove(added[0]), table.remove(added[1]), table.again(added[1], table.inline([1])))
    if form == "classic":
        table.checkpoint()
    elif form == "parts":
        table.checkpoint(parts=3)
    else:
        table.checkpoint_v2(form.split()[1])
    table.forget(0, 1, 2)
    table.commit(table.add("later.parquet", rows(7), {"p": "z"} if partitioned else {}))
    snapshot = log_of(tmp_path).newest()
    assert len(snapshot.files) == 6
    assert listed_files(snapshot) == judged_files(tmp_path)
    vectors = [entry.deletes for entry in snapshot.data_files.values() if entry.deletes is not None]
    assert [vector.cardinality for vector in vectors] == [1]


def test_a_checkpoint_of_which_a_part_is_missing_does_not_count(tmp_path: Path) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    table.commit(*(table.add(f"{number}.parquet", rows(number)) for number in range(4)))
    table.checkpoint(parts=2)
    (tmp_path / "_delta_log" / f"{1:020}.checkpoint.{2:010}.{2:010}.parquet").unlink()
    assert len(log_of(tmp_path).newest().files) == 4


@pytest.mark.parametrize("missing", [0, 2, 3])
def test_a_hole_in_the_log_is_refused(tmp_path: Path, missing: int) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    for number in range(4):
        table.commit(table.add(f"{number}.parquet", rows(number)))
    table.forget(missing)
    with pytest.raises(UnsupportedSourceError, match=f"version {missing} is missing"):
        log_of(tmp_path).newest()


def test_a_log_that_was_cleaned_up_behind_a_reader_is_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    table.commit(table.add("0.parquet", rows(0)))
    time_s = [0.0]
    log = DeltaLog(f"file://{tmp_path}", clock=lambda: time_s[0])
    assert log.newest().version == 1
    for number in range(1, 4):
        table.commit(table.add(f"{number}.parquet", rows(number)))
    table.checkpoint()
    table.forget(0, 1, 2, 3)
    monkeypatch.setattr(DeltaLog, "_is_there", lambda self, kept: True)  # as on an object store, until it is listed
    assert log.newest().version == 1
    monkeypatch.undo()
    time_s[0] = 61.0
    assert log.newest().version == 4
    assert len(log.newest().files) == 4


@pytest.mark.parametrize("commits", [1, 2, 3, 5])
def test_a_table_that_was_made_anew_in_the_same_place_is_noticed(tmp_path: Path, commits: int) -> None:
    table = HandTable(tmp_path / "t", FIELDS[:1])
    table.commit(table.add("old.parquet", rows(0)))
    table.commit(table.add("old2.parquet", rows(0)))
    log = DeltaLog(f"file://{tmp_path}/t")
    log.newest()
    shutil.rmtree(tmp_path / "t")
    table = HandTable(tmp_path / "t", FIELDS[:1])
    for number in range(commits):
        table.commit(table.add(f"{number}.parquet", rows(number)))
    assert log.newest().table_id == table.id
    assert listed_files(log.newest()) == judged_files(tmp_path / "t")


@pytest.mark.parametrize("commits", [1, 2, 3, 5])
def test_a_table_made_anew_is_noticed_if_only_a_checkpoint_of_the_old_one_was_left(
    tmp_path: Path, commits: int
) -> None:
    table = HandTable(tmp_path / "t", FIELDS[:1])
    for number in range(2):
        table.commit(table.add(f"old{number}.parquet", rows(number)))
    table.checkpoint()
    table.forget(0, 1, 2)
    log = log_of(tmp_path / "t")
    assert log.newest() is log.newest()
    shutil.rmtree(tmp_path / "t")
    table = HandTable(tmp_path / "t", FIELDS[:1])
    for number in range(commits):
        table.commit(table.add(f"{number}.parquet", rows(number)))
    assert log.newest().table_id == table.id
    assert listed_files(log.newest()) == judged_files(tmp_path / "t")


def test_one_path_encoded_in_two_ways_is_one_file(tmp_path: Path) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    added = table.add("a b.parquet", rows(1))
    table.commit(added)
    table.commit({"remove": {"path": "a b.parquet", "dataChange": True}})
    assert log_of(tmp_path).newest().files == []


def test_a_file_with_two_vectors_at_once_is_refused(tmp_path: Path) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    added = table.add("a.parquet", rows(1, 2, 3))
    table.commit(added, table.again(added, table.inline([1])))
    with pytest.raises(UnsupportedSourceError, match="several deletion vectors"):
        _ = log_of(tmp_path).newest().files


def test_removing_a_file_with_another_vector_removes_nothing(tmp_path: Path) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    added = table.add("a.parquet", rows(1, 2, 3))
    first, second = table.again(added, table.inline([0])), table.again(added, table.inline([1]))
    table.commit(first)
    table.commit(second, table.remove(first))
    (entry,) = log_of(tmp_path).newest().data_files.values()
    assert entry.deletes is not None
    assert entry.deletes.open({}).deleted(_numbers(3)).tolist() == [False, True, False]


def _numbers(count: int) -> Any:
    import numpy as np

    return np.arange(count, dtype=np.int64)


def test_versions_at_a_time_follow_the_files(tmp_path: Path) -> None:
    import os

    table = HandTable(tmp_path, FIELDS[:1])
    for number in range(3):
        table.commit(table.add(f"{number}.parquet", rows(number)))
    for version, second in enumerate([100, 300, 200, 400]):  # the clock of a writer was late
        os.utime(table.log / f"{version:020}.json", (second, second))
    log = log_of(tmp_path)
    times = {100_000: 0, 299_999: 0, 300_000: 1, 300_001: 2, 399_999: 2, 400_000: 3, 10**15: 3}
    assert {time_ms: log.at_timestamp(time_ms).version for time_ms in times} == times
    with pytest.raises(NotFoundError, match="1970-01-01T00:01:40"):
        log.at_timestamp(99_999)


def test_versions_at_a_time_follow_the_commits_that_state_theirs(tmp_path: Path) -> None:
    import os

    properties = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "500000",
    }
    table = HandTable(tmp_path, FIELDS[:1], configuration=properties)
    table.commit()
    for time_ms in (500_000, 600_000, 700_000):
        table.commit(info={"inCommitTimestamp": time_ms})
    for version in range(5):
        os.utime(table.log / f"{version:020}.json", (100 + version, 100 + version))
    log = log_of(tmp_path)
    assert log.newest().timestamp_ms == 700_000
    table.checkpoint()
    assert log_of(tmp_path).newest().timestamp_ms == 700_000
    times = {100_500: 0, 101_000: 1, 499_999: 1, 500_000: 2, 650_000: 3, 700_000: 4, 10**15: 4}
    assert {time_ms: log.at_timestamp(time_ms).version for time_ms in times} == times


def test_the_log_is_read_from_an_object_store(tmp_path: Path) -> None:
    import uuid

    from lakebloom.storage import open_storage

    table = HandTable(tmp_path, FIELDS[:1], features=("deletionVectors", "v2Checkpoint"))
    for number in range(5):
        added = table.add(f"{number}.parquet", rows(number, number))
        table.commit(table.again(added, table.stored([1])[0]))
    table.checkpoint_v2("parquet")
    uri = f"memory://{uuid.uuid4().hex}/lake/t"
    storage = open_storage(uri)

    def copy() -> None:
        for path in tmp_path.rglob("*"):
            if path.is_file():
                storage.write(str(path.relative_to(tmp_path)), path.read_bytes())

    copy()
    storage.write("_delta_log/_last_checkpoint", json.dumps({"version": 5, "size": 7}).encode())
    log = DeltaLog(uri)
    assert log.newest().version == 5
    assert [file.uri for file in log.newest().files] == [f"{uri}/{number}.parquet" for number in range(5)]
    table.commit(table.add("new.parquet", rows(1)))
    copy()
    assert len(log.newest().files) == 6
    assert len(log.at(3).files) == 3
    for entry in log.newest().data_files.values():
        if entry.deletes is not None:
            assert entry.deletes.open({}).deleted(_numbers(2)).tolist() == [False, True]
    for wrong in (b"{}", b'{"version": 99}', b'{"version": -3}', b"\xff"):
        storage.write("_delta_log/_last_checkpoint", wrong)
        assert DeltaLog(uri).newest().version == 6

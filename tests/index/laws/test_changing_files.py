"""A file that is replaced, cut, deleted or rewritten while it is indexed is not indexed as valid; the others are."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.index.build import task
from lakebloom.predicate.prune import row_groups
from lakebloom.tables.listing.listing import look_again
from lakebloom.tables.parquet.columns import ParquetColumns
from lakebloom.tables.parquet.rows import OpenFile, TableRows
from tests.index.lake import NAME, Lake, assert_answers, questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from lakebloom.tables.file_identity import TableFile

KEYS = range(20, 40)
QUESTIONS = [question for question in questions([5, 25, 45, 1025]) if "('n',)" not in repr(question.predicate)]
PLAIN = {"compression": "none", "use_dictionary": False, "write_statistics": False, "row_group_size": 5}
MOMENTS = ["before it is looked at", "before it is opened", "before its first rows", "between its rows", "after them"]


def columns(keys: range) -> dict[str, pa.Array]:
    return {"k": pa.array(keys, pa.int64()), "s": pa.array([f"{key:04d}" for key in keys])}


def replaced(path: Path) -> None:
    other = Lake(path.parent.parent / "elsewhere", {}).write("x", columns(range(1000, 1007)), **PLAIN)
    other.replace(path)


def rewritten_in_place(path: Path) -> None:
    """Other values, the same size: only the time tells."""
    other = Lake(path.parent.parent / "elsewhere", {}).write("x", columns(range(1020, 1040)), **PLAIN)
    contents = other.read_bytes()
    assert len(contents) == path.stat().st_size
    with path.open("r+b") as file:
        file.write(contents)


def appended(path: Path) -> None:
    other = Lake(path.parent.parent / "elsewhere", {}).write("x", columns(range(20, 60)), **PLAIN)
    path.write_bytes(other.read_bytes())


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scribbled_on(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"and more")


def deleted(path: Path) -> None:
    path.unlink()


class Watch:
    """Does something to a file once, at a chosen moment of its being indexed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path, moment: str, act: Callable[[Path], None]) -> None:
        self._uri = f"file://{path}"
        self._path, self._moment, self._act = path, moment, act
        self._looks = 0
        self.done = False
        watch = self

        class Watched(ParquetColumns):
            def __init__(self, uri: str, *args: object, **kwargs: object) -> None:
                watch.reached("before it is opened", uri)
                super().__init__(uri, *args, **kwargs)  # type: ignore[arg-type]

            def batches(self, row_group: int) -> Iterator[tuple[int, list[pa.Array]]]:
                watch.reached("before its first rows", self._uri)
                for batch in super().batches(row_group):
                    yield batch
                    watch.reached("between its rows", self._uri)

        monkeypatch.setattr(task, "ParquetColumns", Watched)
        monkeypatch.setattr(task, "look_again", self._look)

    def _look(self, file: TableFile, options: dict[str, str]) -> TableFile | None:
        if file.uri == self._uri:
            self._looks += 1
            self.reached("before it is looked at" if self._looks == 1 else "after them", file.uri)
        return look_again(file, options)

    def reached(self, moment: str, uri: str) -> None:
        if uri == self._uri and moment == self._moment and not self.done:
            self.done = True
            self._act(self._path)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, {"k": "bigint", "s": "string"})
    for number in range(3):
        path = made.write(f"f{number}", columns(range(number * 20, number * 20 + 20)), **PLAIN)
        os.utime(path, (time.time() - 100,) * 2)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["file", "row_group", 7])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("act", [replaced, rewritten_in_place, appended, truncated, scribbled_on, deleted])
def test_it_is_not_indexed_as_valid(
    lake: Lake, act: Callable[[Path], None], moment: str, granularity: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = lake.table / "f1.parquet"
    watch = Watch(monkeypatch, victim, moment, act)
    report = lake.create(BloomIndexConfig(NAME, ["k", "s"], granularity=granularity), tasks=1)
    assert watch.done
    (skipped,) = report.skipped
    assert skipped.uri == f"file://{victim}"
    assert skipped.code in {"FILE_CHANGED", "DATA_FILE", "NOT_PARQUET", "NOT_FOUND"}
    assert skipped.reason
    assert {file.uri for file in lake.snapshot().files} == {
        f"file://{lake.table}/f{number}.parquet" for number in (0, 2)
    }
    assert lake.stored() == lake.entry().paths, "nothing is left of the attempt"
    assert lake.kept(col("k") == 45) == {("f2", {"file": 0, "row_group": 5, 7: 0}[granularity])}
    if act in (truncated, scribbled_on):
        # The table itself cannot be read now. A full scan would fail, and so does a lookup that cannot skip the file.
        with pytest.raises(errors.DataFileError, match=r"f1\.parquet"):
            lake.open().lookup(NAME, col("k") == 45)
        assert lake.open().lookup(NAME, col("k") == 45, unindexed="skip").num_rows == 1
        victim.unlink()
    assert_answers(lake, QUESTIONS)
    monkeypatch.undo()
    lake.refresh()
    assert lake.indexed() == lake.uris()


def test_many_files_change_in_one_task(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs no more than one reading of the others: they are left out together."""
    for number in range(3, 30):
        lake.write(f"f{number:02d}", columns(range(number * 20, number * 20 + 20)), **PLAIN)
    reads: list[str] = []

    class Counted(ParquetColumns):
        def __init__(self, uri: str, *args: object, **kwargs: object) -> None:
            reads.append(uri)
            super().__init__(uri, *args, **kwargs)  # type: ignore[arg-type]

        def batches(self, row_group: int) -> Iterator[tuple[int, list[pa.Array]]]:
            yield from super().batches(row_group)
            if "f1" in self._uri:
                os.utime(self._uri.removeprefix("file://"))

    monkeypatch.setattr(task, "ParquetColumns", Counted)
    report = lake.create(BloomIndexConfig(NAME, ["k"]), tasks=1)
    assert len(report.skipped) == 11
    assert report.files == 19
    assert len(reads) == 30 + 19


def test_tiles_that_were_written_before_a_file_changed_are_taken_back(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebloom.index.build.tile_builder.PENDING_HASHES", 10)
    monkeypatch.setattr("lakebloom.index.build.tile_builder.PENDING_FILTER_BYTES", 1)
    Watch(monkeypatch, lake.table / "f2.parquet", "after them", replaced)
    report = lake.create(BloomIndexConfig(NAME, ["k", "s"], granularity=7, global_filter=True), tasks=1)
    assert [skipped.code for skipped in report.skipped] == ["FILE_CHANGED"]
    assert lake.stored() == lake.entry().paths
    assert lake.open().verify_index(NAME).ok


def test_a_file_without_rows_in_its_last_row_groups(lake: Lake) -> None:
    import pyarrow.parquet as pq

    path = lake.table / "f3.parquet"
    table = pa.table(columns(range(60, 66)))
    with pq.ParquetWriter(path, table.schema) as writer:
        for part in (table[:0], table[:4], table[:0], table[4:], table[:0], table[:0]):
            writer.write_table(part)
    lake.create(BloomIndexConfig(NAME, ["k"], granularity="row_group"))
    groups = pq.ParquetFile(path).metadata.num_row_groups
    units = [unit for segment in lake.snapshot().segments for unit in segment.units.units()]
    mine = [unit for unit in units if unit.file.uri == f"file://{path}"]
    assert [(unit.row_group_start, unit.row_group_count) for unit in mine] == [(number, 1) for number in range(groups)]
    assert sum(unit.row_count for unit in mine) == 6
    assert {start for _, start in lake.kept(col("k") == 65)} == {4}


# Files that cannot be read at all


def test_a_corrupt_file_among_good_ones_is_skipped_with_a_reason(lake: Lake) -> None:
    bad = lake.table / "f1.parquet"
    bad.write_bytes(b"PAR1 this is no Parquet file PAR1")
    report = lake.create(BloomIndexConfig(NAME, ["k"]))
    (skipped,) = report.skipped
    assert (skipped.uri, skipped.code) == (f"file://{bad}", "CORRUPT_FOOTER")
    assert "footer" in skipped.reason
    assert (report.files, lake.entry().summary["files_rejected"]) == (2, 1)
    with pytest.raises(errors.DataFileError, match=r"f1\.parquet"):
        lake.open().lookup(NAME, col("k") == 5)
    again = lake.refresh()
    assert not again.committed
    assert [skipped.uri for skipped in again.skipped] == [f"file://{bad}"]
    full = lake.refresh("full", tasks=1)
    assert [skipped.uri for skipped in full.skipped] == [f"file://{bad}"]
    lake.write("f1", columns(KEYS), **PLAIN)
    repaired = lake.refresh()
    assert (repaired.committed, repaired.files, repaired.skipped) == (True, 1, ())
    assert lake.kept(col("k") == 25) == {("f1", 0)}


def test_a_file_of_another_type_is_skipped_and_read(lake: Lake) -> None:
    lake.write("f1", {"k": pa.array(["x"] * 3), "s": pa.array(["a"] * 3)})
    report = lake.create(BloomIndexConfig(NAME, ["k"]))
    assert [(skipped.uri[-10:], skipped.code) for skipped in report.skipped] == [("f1.parquet", "UNSUPPORTED_TYPE")]
    assert lake.indexed() == lake.uris() - {f"file://{lake.table}/f1.parquet"}


def test_a_page_that_is_damaged(lake: Lake) -> None:
    path = lake.table / "f1.parquet"
    contents = bytearray(path.read_bytes())
    contents[4:40] = bytes(36)
    path.write_bytes(contents)
    report = lake.create(BloomIndexConfig(NAME, ["k"], granularity=3))
    assert [skipped.code for skipped in report.skipped] == ["DATA_FILE"]
    assert lake.kept(col("k") == 5) == {("f0", 3)}


def test_none_can_be_read(lake: Lake) -> None:
    for number in range(3):
        (lake.table / f"f{number}.parquet").write_bytes(b"rubbish")
    with pytest.raises(errors.DataFileError, match=r"f0\.parquet"):
        lake.create(BloomIndexConfig(NAME, ["k"]))
    assert lake.stored() == set()


def test_all_change_while_they_are_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    class Touched(ParquetColumns):
        def close(self) -> None:
            os.utime(self._uri.removeprefix("file://"))
            super().close()

    monkeypatch.setattr(task, "ParquetColumns", Touched)
    with pytest.raises(errors.DataFileError, match="none of 3 files could be indexed"):
        lake.create(BloomIndexConfig(NAME, ["k"]))
    assert lake.stored() == set()


def test_a_lookup_reads_a_file_that_was_replaced_since_it_was_listed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the index says of row groups is about the old file."""
    lake.create(BloomIndexConfig(NAME, ["k"], granularity="row_group"))
    path = lake.table / "f1.parquet"
    opened = TableRows.opened
    new_files = [columns(range(100, 103)), None, columns(range(21, 41)), None]

    def replace_then_open(
        self: TableRows, file: TableFile, asked: pa.Schema, **given: bool
    ) -> AbstractContextManager[OpenFile]:
        new = new_files.pop(0)
        if new is not None:
            lake.write("f1", new, **PLAIN)
        return opened(self, file, asked, **given)

    monkeypatch.setattr(TableRows, "opened", replace_then_open)
    reader = lake.open()
    assert reader.lookup(NAME, col("k") == 35).num_rows == 0  # the row group is gone, and so is the key
    monkeypatch.setattr(TableRows, "opened", opened)
    lake.write("f1", columns(KEYS), **PLAIN)
    lake.refresh()
    assert reader.lookup(NAME, col("k") == 35).num_rows == 1
    monkeypatch.setattr(TableRows, "opened", replace_then_open)
    assert reader.lookup(NAME, col("k") == 35).num_rows == 1  # it has moved to another row group
    assert new_files == []
    assert path.exists()


@pytest.mark.parametrize("embedded", [False, True])
def test_a_lookup_reads_a_new_file_that_is_replaced_while_it_is_read(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, embedded: bool
) -> None:
    """Of a file that no index knows, neither the footer that was kept nor what its filters said holds for another."""
    monkeypatch.setattr(row_groups, "EMBEDDED_FILE_BYTES", 0 if embedded else 1 << 30)
    lake.create(BloomIndexConfig(NAME, ["k"], granularity="row_group"))
    options = {**PLAIN, "bloom_filter_options": {"k": {"ndv": 10, "fpp": 1e-4}}}
    opened = TableRows.opened
    for keys in (range(1000, 1003), range(1010, 1060), range(1015, 1035)):
        lake.write("new", columns(range(1000, 1020)), **options)
        reader = lake.open()
        assert reader.lookup(NAME, col("k") == 1015).num_rows == 1
        new = [keys]

        def replace_then_open(
            self: TableRows, file: TableFile, asked: pa.Schema, new: list[range] = new, **given: bool
        ) -> Any:
            if file.uri.endswith("/new.parquet") and new:
                lake.write("new", columns(new.pop()), **options)
            return opened(self, file, asked, **given)

        monkeypatch.setattr(TableRows, "opened", replace_then_open)
        found = reader.lookup(NAME, col("k") == 1015)
        monkeypatch.setattr(TableRows, "opened", opened)
        assert new == []
        assert found["k"].to_pylist() == [1015] * (1015 in keys)
        assert found["s"].to_pylist() == ["1015"] * (1015 in keys)

"""Refresh: what is new is indexed, what is gone is never trusted, and nothing new commits nothing."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, col, errors, hash_values
from lakebloom.index.build.plan import shard_files
from lakebloom.index.maintain import optimize
from lakebloom.index.maintain.lifecycle import delete_index, restore_index
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.store.global_filters import read_global
from lakebloom.tables.file_identity import TableFile
from lakebloom.tuning import REFRESHED_BYTES
from tests.index.lake import NAME, Lake, assert_answers, columns_of, questions
from tests.index.meddling import Meanwhile
from tests.storage.faults import FaultyStorage

if TYPE_CHECKING:
    from lakebloom.store.records import Commit

QUESTIONS = questions([5, 25, 45, 65, 85, 999])
GLOBAL = BloomIndexConfig(NAME, ["k", "s"], global_filter=True)


def units(lake: Lake) -> dict[str, int]:
    """How many units each file has, those counted that do not count any more."""
    counts: dict[str, int] = {}
    for segment in lake.snapshot().segments:
        for unit in segment.units.units():
            name = unit.file.uri.rpartition("/")[2].removesuffix(".parquet")
            counts[name] = counts.get(name, 0) + 1
    return counts


# Nothing new


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_nothing_new_commits_nothing(lake: Lake, mode: str) -> None:
    lake.fill(range(3))
    lake.create(tasks=1 if mode == "full" else 2)
    if mode == "full":
        lake.refresh("full")
    before, files = lake.entry(), lake.stored()
    report = lake.refresh(mode)
    assert (report.committed, report.files, report.version) == (False, 0, before.version)
    assert (lake.entry(), lake.stored()) == (before, files)


def test_an_unknown_mode(lake: Lake) -> None:
    with pytest.raises(errors.InvalidArgumentError, match='"quick" or "full"'):
        lake.refresh("fast")  # type: ignore[arg-type]


# Quick


def test_quick_indexes_appended_files_only(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    before = lake.entry()
    lake.fill([3, 4])
    report = lake.refresh()
    assert (report.committed, report.files, report.rows, report.version) == (True, 2, 40, 2)
    assert lake.entry().segments[: len(before.segments)] == before.segments
    assert lake.entry().summary["files_added"] == 2
    assert lake.kept(col("k") == 65) == {("f3", 0)}
    assert_answers(lake, QUESTIONS)


@pytest.mark.slow
def test_quick_indexes_files_that_were_rewritten(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    lake.write("f1", columns_of(range(80, 90)))
    assert lake.kept(col("k") == 25) == {("f1", 0)}, "as it was"
    assert_answers(lake, QUESTIONS)
    report = lake.refresh()
    assert report.files == 1
    assert lake.kept(col("k") == 25) == set()
    assert lake.kept(col("k") == 85) == {("f1", 0)}
    assert units(lake) == {"f0": 1, "f1": 2, "f2": 1}
    assert_answers(lake, QUESTIONS)


def test_quick_leaves_vanished_files_and_never_trusts_them(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    (lake.table / "f1.parquet").unlink()
    assert not lake.refresh().committed
    assert_answers(lake, QUESTIONS)
    lake.fill([3])
    assert lake.refresh().files == 1
    assert units(lake) == {"f0": 1, "f1": 1, "f2": 1, "f3": 1}
    assert_answers(lake, QUESTIONS)
    lake.write("f1", columns_of(range(80, 100)))  # another file of the same name
    assert_answers(lake, QUESTIONS)


def test_quick_reads_nothing_of_old_tiles(lake: Lake) -> None:
    """The cost is that of the new files: of the old segments only unit tables are read, to know what is new."""
    lake.fill(range(6))
    lake.create()
    old = lake.entry().paths
    lake.fill([6])
    storages: list[FaultyStorage] = []

    def watch(storage):  # type: ignore[no-untyped-def]
        storages.append(FaultyStorage(storage))
        return storages[-1]

    lake.refresh(catalog=lake.catalog(watch))
    (storage,) = storages
    read = {operation.path for operation in storage.log if operation.name in ("read", "read_ranges")}
    assert {path for path in read & old if not path.endswith("files.arrow")} == set()
    listed = {operation.path for operation in storage.log if operation.name == "list"}
    new = {path.rpartition("/")[0] for path in lake.entry().paths - old}
    assert listed == {"log"} | new, "the log, and what was just built"


@pytest.mark.slow
@pytest.mark.parametrize("files", [2, 12], ids=["the global filter is replaced by a larger one", "it has room"])
def test_two_quick_refreshes_at_once_both_count(lake: Lake, files: int) -> None:
    lake.fill(range(files))
    lake.create(GLOBAL)
    lake.fill([files])

    def refresh() -> None:
        lake.fill([files + 1])
        lake.refresh()

    report = lake.refresh(catalog=lake.catalog(Meanwhile(refresh)))
    # The larger filter is made by a build of all files, which leaves nothing for the other refresh to do.
    assert (report.version, report.files) == ((2, 0) if files == 2 else (3, 1))
    assert_global_filters_hold_everything(lake)
    assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)


@pytest.mark.parametrize(("size_bytes", "segments"), [(1, 1), (REFRESHED_BYTES, 3)])
def test_small_new_files_share_a_segment(size_bytes: int, segments: int) -> None:
    new = [TableFile(f"file:///t/f{number}", size_bytes, 1) for number in range(3)]
    shards = shard_files(new, 2, REFRESHED_BYTES)
    assert len(shards) == segments
    assert [file for shard in shards for file in shard.files] == new
    assert len(shard_files(new, 2)) == 3, "a first build uses all cores"


def test_a_refresh_adds_one_segment_for_a_few_files(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    before = len(lake.entry().segments)
    lake.fill(range(3, 9))
    lake.refresh()
    assert len(lake.entry().segments) == before + 1
    assert_answers(lake, QUESTIONS)


# Full


def test_full_drops_what_is_gone_and_compacts(lake: Lake) -> None:
    lake.fill(range(5))
    lake.create()
    (lake.table / "f0.parquet").unlink()
    lake.write("f1", columns_of(range(80, 90)))
    lake.fill([5])
    report = lake.refresh("full")
    assert (report.committed, report.files) == (True, 2)
    assert units(lake) == {f"f{number}": 1 for number in range(1, 6)}
    assert len(lake.entry().segments) == 1
    assert lake.entry().summary["units_dropped"] == 2
    assert lake.orphans() & set(lake.entry().paths) == set()
    assert_answers(lake, QUESTIONS)
    assert not lake.refresh("full").committed


def test_full_leaves_nothing_of_its_own_behind(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create()
    old = lake.stored()
    lake.fill([4, 5])
    lake.refresh("full")
    assert lake.orphans() == old, "only what the version before names"


def test_full_of_an_emptied_table_and_back(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create(GLOBAL)
    shutil.rmtree(lake.table)
    report = lake.refresh("full", allow_shrink=True)
    assert (report.committed, lake.entry().segments) == (True, ())
    assert lake.kept(col("k") == 5) == set()
    assert not lake.refresh("full").committed
    assert not lake.refresh().committed
    lake.fill(range(2, 5))
    lake.refresh()
    assert lake.indexed() == lake.uris()
    assert_global_filters_hold_everything(lake)
    assert lake.entry().global_filters[0].ndv == pytest.approx(60, rel=0.1), "nothing of before"
    assert_answers(lake, QUESTIONS)


def test_full_makes_one_segment_for_each_set_of_types(lake: Lake) -> None:
    """Segments that were hashed under different types cannot be merged: their hashes are of another kind."""
    lake.fill(range(3))
    lake.create(BloomIndexConfig(NAME, ["n"]))
    lake.fill([3])
    lake.refresh()
    index = lake.catalog().index(NAME)

    def widen(base: Commit) -> Commit:
        segments = [msgspec.structs.replace(segment, types=("bigint",)) for segment in base.segments[-1:]]
        return msgspec.structs.replace(base, segments=(*base.segments[:-1], *segments))

    index.log.commit(widen)
    assert lake.refresh("full").committed
    assert sorted(segment.types for segment in lake.entry().segments) == [("bigint",), ("int",)]
    assert not lake.refresh("full").committed


def test_segments_that_are_large_enough_stay_as_they_are(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize, "MERGED_BYTES", 1)
    lake.write("large", columns_of(range(10**6, 10**6 + 50_000)))
    lake.create()
    before = lake.entry().segments
    assert not lake.refresh("full").committed
    lake.fill(range(3))
    assert lake.refresh("full").committed
    assert lake.entry().segments[:-1] == before


@pytest.mark.slow
def test_a_quick_refresh_during_a_full_one_is_kept(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create()
    lake.fill([4])

    def refresh() -> None:
        lake.fill([5])
        lake.refresh()

    lake.refresh("full", catalog=lake.catalog(Meanwhile(refresh)))
    assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("config", [None, GLOBAL])
def test_a_full_refresh_that_lost_leaves_nothing_behind(lake: Lake, config: BloomIndexConfig | None) -> None:
    lake.fill(range(4))
    lake.create(config)
    lake.fill([4])

    def refresh() -> None:
        lake.fill([5])
        lake.refresh("full")
        lake.vacuum()

    with pytest.raises(errors.CommitConflictError, match="run it again"):
        lake.refresh("full", catalog=lake.catalog(Meanwhile(refresh)))
    assert not lake.orphans()
    assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_an_index_that_is_deleted_during_a_refresh(lake: Lake, mode: str) -> None:
    lake.fill(range(2))
    lake.create()
    lake.fill([2])
    files = lake.stored()
    delete = Meanwhile(lambda: delete_index(lake.catalog(), NAME))
    with pytest.raises(errors.IndexStateError):
        lake.refresh(mode, catalog=lake.catalog(delete))
    assert lake.stored() == files
    restore_index(lake.catalog(), NAME)
    assert_answers(lake, QUESTIONS)


# Types and sizes


def test_files_whose_type_was_widened_are_hashed_alike(lake: Lake) -> None:
    lake.write("old", {"k": pa.array([1, 2, 3], pa.int32())})
    lake.write("new", {"k": pa.array([3, 4, 2**40], pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["k"]))
    assert lake.kept(col("k") == 3) == {("old", 0), ("new", 0)}
    assert lake.kept(col("k") == 2**40) == {("new", 0)}


def test_an_index_that_outgrows_its_limit_is_refused(lake: Lake) -> None:
    lake.fill(range(2), rows=1000)
    lake.create(max_index_bytes=100_000)
    lake.fill(range(2, 12), rows=1000)
    files = lake.stored()
    with pytest.raises(errors.IndexTooLargeError, match="larger than the 20,000 bytes allowed"):
        lake.refresh(max_index_bytes=20_000)
    assert lake.stored() == files
    assert lake.refresh(max_index_bytes=1_000_000).files == 10


@pytest.mark.slow
def test_the_rate_follows_the_number_of_units(lake: Lake) -> None:
    lake.fill(range(4), rows=2)
    lake.create(BloomIndexConfig(NAME, ["k"]))
    assert {segment.fpp for segment in lake.entry().segments} == {0.01}
    lake.fill(range(4, 250), rows=2)
    lake.refresh()
    assert lake.entry().segments[-1].fpp == pytest.approx(0.25 / 250)


# Global filters


def assert_global_filters_hold_everything(lake: Lake) -> None:
    entry = lake.entry()
    storage = lake.catalog().index(NAME).storage
    assert [record.column for record in entry.global_filters] == list(range(len(entry.config.columns)))
    for record in entry.global_filters:
        assert set(record.segments) == {segment.id for segment in entry.segments}, "it is current"
        f = read_global(storage, record)
        (name,) = entry.config.columns[record.column].path
        values = [row[name] for _, _, row in lake.rows() if row[name] is not None]
        hashes = hash_values(pa.array(values, pa.int64() if name == "k" else pa.string()))
        assert f.might_contain_hashes(hashes).all()
        assert record.num_blocks == f.num_blocks


def test_global_filters_follow_the_table(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create(GLOBAL)
    assert_global_filters_hold_everything(lake)
    lake.fill([3])
    lake.refresh()
    assert_global_filters_hold_everything(lake)
    optimize_index(lake.catalog(), NAME)
    assert_global_filters_hold_everything(lake)
    lake.fill([4])
    lake.refresh()
    assert_global_filters_hold_everything(lake)
    lake.vacuum()
    before = lake.entry().global_filters
    report = lake.refresh("full")  # nothing new: the segments are merged, the filters stay
    assert (report.committed, report.files) == (True, 0)
    assert [record.file for record in lake.entry().global_filters] == [record.file for record in before]
    assert_global_filters_hold_everything(lake)
    assert_answers(lake, QUESTIONS)


def test_full_rebuilds_global_filters_without_what_is_gone(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create(GLOBAL)
    for number in range(3):
        (lake.table / f"f{number}.parquet").unlink()
    lake.refresh("full", allow_shrink=True)
    assert_global_filters_hold_everything(lake)
    (keys, _) = lake.entry().global_filters
    assert keys.ndv == pytest.approx(20, rel=0.2)


def test_global_filters_are_capped(lake: Lake) -> None:
    lake.fill(range(3), rows=3_000)
    lake.create(GLOBAL, global_max_bytes=1 << 12)
    (keys, _) = lake.entry().global_filters
    assert 32 * keys.num_blocks <= 1 << 12
    assert keys.fpp > 0.01
    f = read_global(lake.catalog().index(NAME).storage, keys)
    absent = hash_values(np.arange(10_000_000, 10_100_000))
    assert keys.fpp == pytest.approx(f.might_contain_hashes(absent).mean(), rel=0.2, abs=1e-3)


def test_a_rebuild_that_can_read_nothing_changes_nothing(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create(GLOBAL)
    before, files = lake.entry(), lake.stored()
    for number in range(2):
        (lake.table / f"f{number}.parquet").write_bytes(b"rubbish")
    with pytest.raises(errors.DataFileError, match="none of 2 files"):
        lake.refresh("full")
    assert (lake.entry(), lake.stored()) == (before, files)

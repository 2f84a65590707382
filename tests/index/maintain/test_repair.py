"""A damaged index can always be mended or removed, and harms nothing but itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.index.build.create import create_index
from lakebloom.index.config import config_of
from lakebloom.index.maintain.lifecycle import delete_index
from lakebloom.index.maintain.repair import Rebuild, Salvage, remove_index, repair_index
from lakebloom.index.maintain.verify import verify_index
from lakebloom.index.query.reader import Reader
from lakebloom.store.entries import encode_entry, entry_path
from tests.index.lake import NAME, SMALL, Lake, assert_answers, questions
from tests.index.local_builder import source_of, workshop
from tests.index.meddling import Passing

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.index.build.report import BuildReport
    from lakebloom.index.maintain.repair import RepairReport
    from lakebloom.storage import Storage, Views

QUESTIONS = questions([5, 45])
OTHER = "healthy"


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


WAYS: dict[str, Callable[[bytes], bytes | None]] = {
    "flipped": flipped,
    "cut": lambda data: data[: len(data) // 3],
    "emptied": lambda data: b"",
    "gone": lambda data: None,
    "rubbish": lambda data: b"\xff\x00" * (len(data) // 2),
}


def storage_of(lake: Lake) -> Storage:
    return lake.catalog().index(NAME).storage


def damage(lake: Lake, path: str, way: str) -> None:
    storage = storage_of(lake)
    data = WAYS[way](bytes(storage.read(path)))
    if data is None:
        storage.delete(path)
    else:
        storage.write(path, data)


def made(lake: Lake, *, global_filter: bool = False) -> None:
    """An index in two versions, with several segments, beside one that nothing happens to."""
    lake.fill(range(3))
    config = BloomIndexConfig(NAME, ["k", "s"], fpp=1e-4, global_filter=global_filter)
    lake.create(config)
    lake.create(BloomIndexConfig(OTHER, ["k"]))
    lake.fill([3])
    lake.refresh()


def repaired(lake: Lake, *, with_builder: bool = True) -> RepairReport:
    def created(found: Salvage) -> BuildReport:
        remove_index(lake.catalog(), NAME)
        shop = workshop(lake.catalog(), **SMALL)
        return create_index(shop, *source_of(lake.table, lake.types), config_of(found.config))

    rebuild = Rebuild(refresh=lambda mode: lake.refresh(mode), create=created) if with_builder else None
    return repair_index(lake.catalog(), NAME, rebuild)


def assert_whole(lake: Lake, *, indexed: bool = True) -> None:
    report = lake.open().verify_index(NAME)
    assert (report.ok, report.corrupt) == (True, ())
    if indexed:
        assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)


# Files


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["units", "tile", "global"])
def test_every_damaged_file_is_mended(lake: Lake, kind: str, way: str) -> None:
    made(lake, global_filter=True)
    entry = lake.entry()
    segment = entry.segments[0]
    path = {"units": segment.units, "tile": segment.tiles[-1].file, "global": entry.global_filters[1].file}[kind].path
    damage(lake, path, way)
    assert not lake.open().verify_index(NAME).ok
    report = repaired(lake)
    assert any(path in line for line in report.done)
    assert (report.version, report.left) == (lake.entry().version, ())
    assert len(lake.entry().global_filters) == 2
    assert_whole(lake)
    assert repaired(lake) == type(report)(NAME, report.version), "nothing is left to do"


@pytest.mark.parametrize("kind", ["units", "tile", "global"])
def test_a_full_refresh_mends_as_well(lake: Lake, kind: str) -> None:
    made(lake, global_filter=True)
    entry = lake.entry()
    segment = entry.segments[0]
    files = {
        "units": [segment.units],
        "tile": [t.file for t in segment.tiles],
        "global": [entry.global_filters[0].file],
    }
    for file in files[kind]:
        damage(lake, file.path, "flipped")
    assert lake.refresh("full").committed
    assert len(lake.entry().global_filters) == 2
    assert_whole(lake)


@pytest.mark.parametrize("way", ["flipped", "gone"])
def test_without_spark_what_is_damaged_is_dropped(lake: Lake, way: str) -> None:
    made(lake)
    segment = lake.entry().segments[0]
    damage(lake, segment.units.path, way)
    with pytest.raises(errors.CorruptIndexError, match="lakebloom repair"):
        lake.open().lookup(NAME, col("k") == 5)
    report = lake.open().repair_index(NAME)
    assert "with Spark" in report.left[0]
    assert segment not in lake.entry().segments
    assert len(lake.entry().segments) > 0
    assert_whole(lake, indexed=False)
    lake.refresh()
    assert_whole(lake)


def test_a_sound_index_is_left_alone(lake: Lake) -> None:
    made(lake)
    before = lake.entry()
    report = lake.open().repair_index(NAME)
    assert (report.done, report.left, report.version) == ((), (), before.version)
    assert lake.entry() == before
    with pytest.raises(errors.IndexNotFoundError):
        lake.open().repair_index("nowhere")


# The log


@pytest.mark.parametrize("way", [way for way in WAYS if way != "gone"])
def test_a_damaged_newest_entry_gives_way_to_the_one_before(lake: Lake, way: str) -> None:
    made(lake)
    damage(lake, entry_path(2), way)
    with pytest.raises(errors.CorruptIndexError, match="lakebloom repair"):
        lake.entry()
    report = repaired(lake)
    assert "version 1 is the newest again" in report.done[0]
    assert lake.entry().version > 2
    assert_whole(lake)


def test_the_only_entry_with_one_flipped_bit(lake: Lake) -> None:
    """Somewhere in its segments: what it says of the table and the columns is still there."""
    lake.fill(range(3))
    lake.create()
    data = bytes(storage_of(lake).read(entry_path(1)))
    at = data.index(b'"crc32"', data.index(b'"tiles"')) + 9
    storage_of(lake).write(entry_path(1), data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(errors.CorruptIndexError, match=r"with Spark.*force=True"):
        lake.open().repair_index(NAME)
    assert "created anew" in repaired(lake).done[0]
    assert lake.entry().config.columns == lake.entry().config.columns
    assert_whole(lake)


def test_an_entry_that_says_nothing_any_more(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    damage(lake, entry_path(1), "rubbish")
    with pytest.raises(errors.CorruptIndexError, match="force=True"):
        repaired(lake)


def test_a_damaged_older_entry_goes(lake: Lake) -> None:
    made(lake)
    before = lake.entry()
    damage(lake, entry_path(1), "flipped")
    assert not lake.open().verify_index(NAME).ok
    report = lake.open().repair_index(NAME)
    assert "an older version, removed" in report.done[0]
    assert report.left == ()
    assert lake.entry() == before
    assert [record.version for record in lake.open().history(NAME)] == [2]
    assert_whole(lake)


# Removing


@pytest.mark.parametrize("way", [*WAYS, "nothing"])
@pytest.mark.parametrize("kind", ["entry", "all entries", "units", "tile", "deleted"])
def test_whatever_is_damaged_an_index_can_be_removed(lake: Lake, kind: str, way: str) -> None:
    made(lake)
    segment = lake.entry().segments[0]
    if kind == "deleted":
        delete_index(lake.catalog(), NAME)
    paths = {
        "entry": [entry_path(2)],
        "all entries": [entry_path(1), entry_path(2)],
        "units": [segment.units.path],
        "tile": [segment.tiles[0].file.path],
        "deleted": [entry_path(3)],
    }[kind]
    for path in paths if way != "nothing" else []:
        damage(lake, path, way)
    if (kind, way) == ("all entries", "gone"):
        with pytest.raises(errors.IndexNotFoundError):
            lake.open().delete_index(NAME, force=True)
    else:
        assert lake.open().delete_index(NAME, force=True).operation == "remove"
        assert lake.stored() == set()
    assert [record.name for record in lake.open().indexes()] == [OTHER]
    with pytest.raises(errors.IndexNotFoundError):
        lake.entry()
    lake.create()
    assert_whole(lake)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "gone"])
def test_an_index_is_created_in_place_of_one_that_cannot_be_read(lake: Lake, way: str) -> None:
    made(lake)
    damage(lake, entry_path(2), way)
    lake.create(BloomIndexConfig(NAME, ["s"]))
    assert (lake.entry().version, lake.open().index(NAME).columns) == (3, ("s",))
    lake.vacuum()
    assert lake.stored() == lake.entry().paths
    assert_whole(lake)


def test_only_what_is_there_can_be_removed(lake: Lake) -> None:
    made(lake)
    lake.open().delete_index(NAME, force=True)
    for name in (NAME, "nowhere"):
        with pytest.raises(errors.IndexNotFoundError):
            lake.open().delete_index(name, force=True)


# The others


def test_one_damaged_index_is_in_nobodys_way(lake: Lake) -> None:
    made(lake)
    damage(lake, entry_path(2), "flipped")
    api = lake.open()
    states = {record.name: record.state for record in api.indexes()}
    assert states == {NAME: "damaged", OTHER: "active"}
    (broken,) = [record for record in api.indexes() if record.name == NAME]
    assert broken.version == 2
    assert "CORRUPT_INDEX" in broken.problem
    assert "damaged" in str(api.indexes())
    assert api.lookup(OTHER, col("k") == 5).num_rows == 1


# Errors of the store


class Flaky(Passing):
    """A store that does not answer for a while, when it is asked for files of this kind."""

    ending = ".tile.arrow"

    def read(self, path: str) -> memoryview:
        self._fail(path)
        return super().read(path)

    def read_ranges(self, path: str, ranges) -> Views:  # type: ignore[no-untyped-def]
        self._fail(path)
        return super().read_ranges(path, ranges)

    def _fail(self, path: str) -> None:
        if path.endswith(self.ending):
            raise errors.StorageError(f"could not read {path}", found="HTTP 503 Slow Down", hint="try again")


@pytest.mark.parametrize("ending", [".tile.arrow", "units.arrow", ".sbbf", ".json"])
def test_a_store_that_fails_is_not_called_corrupt(lake: Lake, ending: str) -> None:
    made(lake, global_filter=True)
    before, files = lake.entry(), lake.stored()
    flaky = type("Flaky", (Flaky,), {"ending": ending})
    index = lake.catalog(flaky).index(NAME)
    if ending != ".sbbf":
        with pytest.raises(errors.StorageError, match="503"):
            Reader(index).candidates(col("k") == 5)
    if ending == ".json":
        with pytest.raises(errors.StorageError, match="503"):
            verify_index(index, None, {})
    else:
        report = verify_index(index, None, {})
        assert (report.ok, report.corrupt, len(report.unreadable) > 0) == (False, (), True)
    for act in (
        lambda: repair_index(lake.catalog(flaky), NAME, None),
        lambda: lake.refresh("full", catalog=lake.catalog(flaky)),
    ):
        with pytest.raises(errors.StorageError, match="503"):
            act()
    assert (lake.entry(), lake.stored()) == (before, files), "nothing was thrown away"


# Global filters that are too small


def test_a_table_that_grows_gets_a_larger_global_filter(lake: Lake) -> None:
    import pyarrow as pa

    lake.types = {"k": "bigint"}
    config = BloomIndexConfig(NAME, ["k"], global_filter=True)
    rows = 0
    for number, count in enumerate([10, 2000, 3000, 100, 40_000]):
        lake.write(f"f{number}", {"k": pa.array(range(rows, rows + count), pa.int64())})
        rows += count
        report = (
            lake.create(config, global_max_bytes=1 << 20) if number == 0 else lake.refresh(global_max_bytes=1 << 20)
        )
        assert (report.committed, report.left_out) == (True, ())
        (record,) = lake.entry().global_filters
        assert record.fpp <= 0.1
        assert record.ndv == pytest.approx(rows, rel=0.2)
        assert lake.indexed() == lake.uris()
    assert lake.open().verify_index(NAME).ok


@pytest.mark.parametrize("grown", [False, True])
def test_a_global_filter_that_is_full_is_left_out(lake: Lake, grown: bool) -> None:
    """It may not be larger, neither when the index is created nor later."""
    import pyarrow as pa

    lake.types = {"k": "bigint"}
    config = BloomIndexConfig(NAME, ["k"], global_filter=True)
    lake.write("f0", {"k": pa.array(range(100 if grown else 40_000), pa.int64())})
    report = lake.create(config, global_max_bytes=1 << 10)
    if grown:
        assert report.left_out == ()
        lake.write("f1", {"k": pa.array(range(100, 40_000), pa.int64())})
        report = lake.refresh(global_max_bytes=1 << 10)
    assert "k has no global filter" in report.left_out[0]
    assert "left out" in str(report)
    assert lake.entry().global_filters == ()
    assert lake.open().lookup(NAME, col("k") == 5).num_rows == 1
    lake.write("f2", {"k": pa.array(range(40_000, 40_010), pa.int64())})
    assert lake.refresh(global_max_bytes=1 << 10).committed
    assert lake.open().verify_index(NAME).ok
    assert lake.refresh("full", global_max_bytes=1 << 20).committed
    assert len(lake.entry().global_filters) == 1


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_no_entry_is_put_that_does_not_read_back(lake: Lake, number: float) -> None:
    made(lake)
    before = lake.entry()
    log = lake.catalog().index(NAME).log
    with pytest.raises(errors.IndexFormatError, match="nothing was committed"):
        log.commit(lambda base: msgspec.structs.replace(base, summary={"rows": number}))
    assert lake.entry() == before
    assert log.versions() == [1, 2]


def test_an_entry_with_the_null_of_a_full_filter_is_read(lake: Lake) -> None:
    """Earlier versions wrote such entries, and could not read them any more."""
    made(lake, global_filter=True)
    entry = lake.entry()
    full = tuple(msgspec.structs.replace(record, ndv=None, fpp=1.0) for record in entry.global_filters)
    storage_of(lake).write(entry_path(2), encode_entry(msgspec.structs.replace(entry, global_filters=full)))
    assert_whole(lake)
    lake.fill([4])
    assert lake.refresh().committed
    assert all(record.ndv for record in lake.entry().global_filters)
    assert_whole(lake)


@pytest.mark.parametrize("damaged", [1, 2, 3])
def test_a_damaged_entry_is_told_by_history_and_verify(lake: Lake, damaged: int) -> None:
    """What can be answered is answered: the other versions, and what the newest readable one says of the table."""
    lake.fill(range(3))
    lake.create()
    lake.fill([3])
    lake.refresh()
    lake.fill([4])
    lake.refresh()
    (Path(lake.location) / NAME / entry_path(damaged)).write_bytes(b"half an en")
    reader = lake.open()
    versions = reader.history(NAME)
    assert [record.version for record in versions] == [3, 2, 1]
    assert [record.state for record in versions] == ["damaged" if n == damaged else "active" for n in (3, 2, 1)]
    assert "cannot read the commit" in str(versions)
    report = reader.verify_index(NAME)
    assert not report.ok
    assert [entry_path(damaged) in found for found in report.corrupt] == [True]
    assert report.version == (2 if damaged == 3 else 3)
    lake.open().repair_index(NAME)
    assert lake.open().verify_index(NAME).ok


def test_a_log_of_which_nothing_can_be_read(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    (Path(lake.location) / NAME / entry_path(1)).write_bytes(b"half an en")
    (record,) = lake.open().history(NAME)
    assert (record.version, record.state) == (1, "damaged")
    report = lake.open().verify_index(NAME)
    assert (report.ok, report.version, len(report.corrupt)) == (False, 1, 1)
    with pytest.raises(errors.IndexNotFoundError):
        lake.open().history("nothing")

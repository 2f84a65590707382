"""A damaged index can always be mended or removed, and harms nothing but itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.index.maintain.lifecycle import delete_index
from lakebloom.index.maintain.repair import repair_index
from lakebloom.index.maintain.verify import verify_index
from lakebloom.index.query.reader import Reader
from lakebloom.store.commits import entry_path
from tests.index.lake import NAME, Lake
from tests.index.maintain.damage import (
    OTHER,
    WAYS,
    assert_whole,
    damage,
    made,
    repaired,
)
from tests.index.meddling import Passing

if TYPE_CHECKING:
    from lakebloom.storage import Views


# Files


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["units", "tile", "global"])
def test_every_damaged_file_is_mended(lake: Lake, kind: str, way: str) -> None:
    made(lake, global_filter=True)
    entry = lake.entry()
    segment = entry.segments[0]
    path = {"units": segment.units, "tile": segment.tiles[-1].parts[0].file, "global": entry.global_filters[1].file}[
        kind
    ].path
    damage(lake, path, way)
    assert not lake.open().verify_index(NAME).ok
    report = repaired(lake)
    assert any(path in line for line in report.done)
    assert (report.version, report.left) == (lake.entry().version, ())
    assert len(lake.entry().global_filters) == 2
    assert_whole(lake)
    assert repaired(lake) == type(report)(NAME, report.version), "nothing is left to do"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["units", "tile", "global"])
def test_a_full_refresh_mends_as_well(lake: Lake, kind: str) -> None:
    made(lake, global_filter=True)
    entry = lake.entry()
    segment = entry.segments[0]
    files = {
        "units": [segment.units],
        "tile": [part.file for tile in segment.tiles for part in tile.parts],
        "global": [entry.global_filters[0].file],
    }
    for file in files[kind]:
        damage(lake, file.path, "flipped")
    assert lake.refresh("full").committed
    assert len(lake.entry().global_filters) == 2
    assert_whole(lake)


@pytest.mark.slow
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


# Removing


@pytest.mark.slow
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
        "tile": [segment.tiles[0].parts[0].file.path],
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


@pytest.mark.slow
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

    ending = ".tile"

    def read(self, path: str) -> memoryview:
        self._fail(path)
        return super().read(path)

    def read_ranges(self, path: str, ranges) -> Views:  # type: ignore[no-untyped-def]
        self._fail(path)
        return super().read_ranges(path, ranges)

    def _fail(self, path: str) -> None:
        if path.endswith(self.ending):
            raise errors.StorageError(f"could not read {path}", found="HTTP 503 Slow Down", hint="try again")


@pytest.mark.parametrize("ending", [".tile", "units.arrow", ".sbbf", ".json"])
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
            verify_index(index, None)
    else:
        report = verify_index(index, None)
        assert (report.ok, report.corrupt, len(report.unreadable) > 0) == (False, (), True)
    for act in (
        lambda: repair_index(lake.catalog(flaky), NAME, None),
        lambda: lake.refresh("full", catalog=lake.catalog(flaky)),
    ):
        with pytest.raises(errors.StorageError, match="503"):
            act()
    assert (lake.entry(), lake.stored()) == (before, files), "nothing was thrown away"

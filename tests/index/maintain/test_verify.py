"""Verify finds what is wrong: values that filters miss, damage, files that are stale, gone, new or left over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from lakebloom import BloomIndexConfig, errors
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.index.maintain.verify_files import FileCheck
from lakebloom.store.commits import encode_commit, entry_path
from lakebloom.store.tiles import read_tile, write_tile
from lakebloom.store.unit_columns import UnitColumns
from lakebloom.store.unit_table import UnitTable
from tests.index.lake import NAME, Lake, columns_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.store.records import SegmentRecord
    from lakebloom.store.unit_table import Unit


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["file", "row_group", 7])
def test_a_good_index(lake: Lake, granularity: str | int) -> None:
    lake.fill(range(3))
    lake.create(BloomIndexConfig(NAME, ["k", "s", "n"], granularity=granularity, global_filter=True))
    lake.fill([3])
    lake.refresh()
    lake.write("f1", columns_of(range(90, 100)))
    lake.refresh()
    for _ in range(2):
        report = lake.open().verify_index(NAME)
        assert report.ok
        assert (report.files_checked, report.false_negatives) == (4, 0)
        assert report.values_checked == 70 * 2 + 70 * 4 // 5
        assert not any((report.corrupt, report.unreadable, report.stale, report.missing, report.not_indexed))
        assert not report.orphaned
        optimize_index(lake.catalog(), NAME)


def test_small_batches_make_no_difference(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.fill(range(2))
    lake.create(BloomIndexConfig(NAME, ["k", "n"], granularity=7))
    monkeypatch.setattr("lakebloom.tables.parquet.batches.BUILD_BATCH_ROWS", 3)
    report = lake.open().verify_index(NAME)
    assert (report.ok, report.values_checked, report.false_negatives) == (True, 40 + 32, 0)


def test_what_has_happened_to_the_table_and_the_index(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create()
    (lake.table / "f0.parquet").unlink()
    lake.write("f1", columns_of(range(10)))
    lake.fill([7])
    lake.catalog().index(NAME).storage.write("segments/x/units.arrow", b"left over")
    report = lake.open().verify_index(NAME)
    assert report.ok, "stale and missing files are no fault"
    names = [
        tuple(uri.rpartition("/")[2] for uri in uris) for uris in (report.missing, report.stale, report.not_indexed)
    ]
    assert names == [("f0.parquet",), ("f1.parquet",), ("f7.parquet",)]
    assert report.orphaned == ("segments/x/units.arrow",)
    assert report.files_checked == 2


def test_a_sample(lake: Lake) -> None:
    lake.fill(range(10), rows=4)
    lake.create()
    for sample, files in ((0.0, 0), (0.3, 3), (1.0, 10), (None, 10)):
        assert lake.open().verify_index(NAME, sample).files_checked == files
    for sample in (-0.1, 1.5, float("nan")):
        with pytest.raises(errors.InvalidArgumentError, match="fraction between 0 and 1"):
            lake.open().verify_index(NAME, sample)


def rewrite(lake: Lake, change: Callable[[SegmentRecord], SegmentRecord]) -> None:
    """Put another first segment into the newest entry, all checksums right: as a faulty writer would."""
    entry = lake.entry()
    segments = (change(entry.segments[0]), *entry.segments[1:])
    changed = encode_commit(replace(entry, segments=segments))
    lake.catalog().index(NAME).storage.write(entry_path(entry.version), changed)


def test_a_value_that_its_filter_misses(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=1e-4))

    def without_first_blocks(segment: SegmentRecord) -> SegmentRecord:
        storage = lake.catalog().index(NAME).storage
        tile = segment.tiles[1]  # of the second layer
        words = np.array(read_tile(storage, tile))
        words[0] = 0
        stem = tile.parts[0].file.path.removesuffix(f".{tile.number}.{tile.layer}.0.tile")
        damaged = write_tile(storage, stem, words, column=0, number=tile.number, layer=tile.layer)
        return replace(segment, tiles=(segment.tiles[0], damaged, *segment.tiles[2:]))

    rewrite(lake, without_first_blocks)
    report = lake.open().verify_index(NAME)
    assert not report.ok
    assert report.false_negatives > 0
    assert not report.corrupt


@pytest.mark.parametrize(
    ("change", "false_negatives"),
    [
        (lambda unit: replace(unit, columns=(replace(unit.columns[0], null_count=0),)), 4),
        (lambda unit: replace(unit, columns=(replace(unit.columns[0], null_count=20),)), 16),
        (lambda unit: replace(unit, columns=(replace(unit.columns[0], null_count=None),)), 0),
        (lambda unit: replace(unit, row_count=15), 5 + 1),
        (lambda unit: replace(unit, columns=(replace(unit.columns[0], min=1),)), 5),
        (lambda unit: replace(unit, columns=(replace(unit.columns[0], max=0),)), 11),
        (lambda unit: replace(unit, columns=(replace(unit.columns[0], min=None, max=None),)), 0),
    ],
)
def test_counts_that_are_wrong(lake: Lake, change: Callable[[Unit], Unit], false_negatives: int) -> None:
    """A unit that claims to have no NULLs is dropped by IS NULL, one that claims to have nothing else by everything."""
    lake.fill(range(1))
    lake.create(BloomIndexConfig(NAME, ["n"]))

    def changed(segment: SegmentRecord) -> SegmentRecord:
        storage = lake.catalog().index(NAME).storage
        units = [change(unit) for unit in UnitTable(storage, segment).units()]
        made = UnitColumns.of(units, segment.types).write(storage, segment.units.path.rpartition("/")[0], ["n"])
        return replace(segment, table_files=made[0], units=made[1], facts=made[2:])

    rewrite(lake, changed)
    report = lake.open().verify_index(NAME)
    assert (report.false_negatives, report.ok) == (false_negatives, false_negatives == 0)


def test_damage_is_listed_file_by_file(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create(BloomIndexConfig(NAME, ["k", "s"], global_filter=True))
    lake.fill([3])
    lake.refresh()
    storage = lake.catalog().index(NAME).storage
    entry = lake.entry()
    damaged = [
        entry.segments[0].units.path,
        entry.segments[0].tiles[0].parts[0].file.path,
        entry.global_filters[1].file.path,
        entry_path(1),
    ]
    for path in damaged:
        data = bytearray(storage.read(path))
        data[len(data) // 2] ^= 1
        storage.write(path, data)
    report = lake.open().verify_index(NAME)
    assert not report.ok
    assert len(report.corrupt) == len(damaged)
    assert all(any(path in line for line in report.corrupt) for path in damaged)


def test_a_tile_that_belongs_elsewhere(lake: Lake) -> None:
    """Every row of it fits its checksum; the file as a whole does not fit the log."""
    lake.fill(range(2), rows=200)
    lake.create(BloomIndexConfig(NAME, ["k"]))
    storage = lake.catalog().index(NAME).storage
    one, other = (segment.tiles[0].parts[0].file for segment in lake.entry().segments)
    assert one.size_bytes == other.size_bytes
    storage.write(one.path, storage.read(other.path))
    (line,) = lake.open().verify_index(NAME).corrupt
    assert one.path in line
    assert "checksum" in line


def test_files_that_cannot_be_read_any_more_are_named(lake: Lake) -> None:
    """A disk that returns other bytes than it was given: nothing else shows that the file changed."""
    lake.fill(range(2))
    path = lake.table / "f0.parquet"
    lake.create()
    snapshot = lake.snapshot()
    path.write_bytes(bytes(path.stat().st_size))
    check = FileCheck(snapshot, {})
    check.files(list(snapshot.files))
    assert [line.partition(": ")[0] for line in check.unreadable] == [f"file://{path}"]
    assert check.files_checked == 1


@pytest.mark.slow
def test_many_units(lake: Lake) -> None:
    """A unit for every row, thousands of them in one tile."""
    lake.types = {"k": "bigint"}
    for number in range(2):
        lake.write(f"f{number}", {"k": pa.array(range(number * 2000, (number + 1) * 2000), pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["k"], granularity=1))
    optimize_index(lake.catalog(), NAME)
    assert lake.entry().segments[0].num_units == 4000
    report = lake.open().verify_index(NAME)
    assert (report.ok, report.values_checked) == (True, 4000)


def test_a_filter_for_every_unit(lake: Lake) -> None:
    """The j-th unit that names a tile is the j-th unit of that tile, whatever the order of sizes."""
    lake.types = {"k": "bigint"}
    rows = [5, 300, 7, 290, 3000, 6, 310]
    starts = np.cumsum([0, *rows])
    for number, count in enumerate(rows):
        lake.write(f"f{number}", {"k": pa.array(range(starts[number], starts[number] + count), pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.001))
    optimize_index(lake.catalog(), NAME)
    assert len({tile.number for tile in lake.entry().segments[0].tiles}) > 2
    assert lake.open().verify_index(NAME).ok

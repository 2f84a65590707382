"""Candidates: exact sets of units for data and predicate, and what it costs to know them."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col, errors
from lakebloom.index.catalog import Index
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.index.query.reader import CANDIDATES_SCHEMA
from lakebloom.store.unit_table import UnitTable
from tests.index.lake import NAME, Lake, kept
from tests.storage.faults import FaultyStorage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakebloom.predicate.tree import Predicate

D = decimal.Decimal
NAN = float("nan")
DAY = datetime.date(2024, 2, 29)
c, k, s = col("c"), col("k"), col("s")
NOON = datetime.datetime(2024, 2, 29, 12, 0, tzinfo=datetime.timezone.utc)

# Spark type -> Arrow type, the values of two files, and predicates with the files they keep. Each file is one unit, and
# the rate is so low that a filter is never wrong here.
TYPES: dict[str, tuple[pa.DataType, list[Any], list[Any], list[tuple[Predicate, str]]]] = {
    "smallint": (pa.int16(), [1, -2], [3], [(c == -2, "a"), (c == 3, "b"), (c == 4, "")]),
    "int": (pa.int32(), [1, 2], [2, None], [(c == 2, "ab"), (c == 1, "a"), (c.is_null(), "b")]),
    "bigint": (pa.int64(), [2**62, 0], [1], [(c == 2**62, "a"), (c.isin([1, 5]), "b")]),
    "float": (pa.float32(), [0.5, -0.0], [NAN], [(c == 0.0, "a"), (c == 0.5, "a"), (c == 2.5, "")]),
    "double": (
        pa.float64(),
        [0.0, math.inf],
        [NAN, 1.5],
        [(c == -0.0, "a"), (c == NAN, "b"), (c == math.inf, "a"), (c == 1.5, "b")],
    ),
    "date": (pa.date32(), [DAY], [DAY.replace(day=1)], [(c == DAY, "a"), (c == DAY.replace(day=2), "")]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [NOON],
        [NOON.replace(microsecond=1)],
        [(c == NOON, "a"), (c == NOON.replace(microsecond=1), "b"), (c == NOON.replace(hour=1), "")],
    ),
    "decimal(9,2)": (pa.decimal128(9, 2), [D("1.25")], [D("-7.00")], [(c == D("1.25"), "a"), (c == D(-7), "b")]),
    "decimal(38,4)": (
        pa.decimal128(38, 4),
        [D("1e30")],
        [D("0.0001")],
        [(c == D("1e30"), "a"), (c == D("0.0001"), "b")],
    ),
    "string": (pa.string(), ["x", ""], ["é", None], [(c == "x", "a"), (c == "", "a"), (c == "é", "b"), (c == "X", "")]),
    "binary": (pa.binary(), [b"\x00"], [b"\xff"], [(c == b"\x00", "a"), (c.isin([b"\xff", b"\x01"]), "b")]),
}


@pytest.mark.parametrize("kind", TYPES)
def test_every_type(tmp_path: Path, kind: str) -> None:
    arrow, first, second, asked = TYPES[kind]
    lake = Lake(tmp_path, {"c": kind})
    for name, values in (("a", first), ("b", second)):
        lake.write(name, {"c": pa.array(values, arrow)})
    lake.create(BloomIndexConfig(NAME, ["c"], fpp=1e-7))
    for predicate, files in asked:
        assert lake.kept(predicate) == {(file, 0) for file in files}, predicate


TREES: list[tuple[Predicate, set[int]]] = [
    # files 0..4 hold k = 10 f .. 10 f + 9 and s = "s" + k; k = 10 f + 9 is NULL
    (k == 12, {1}),
    (k == 99, set()),
    (k.isin([3, 12, 13]), {0, 1}),
    (k.isin([]), set()),
    (k.isin([None]), set()),
    (k.eq_null_safe(22), {2}),
    (k.eq_null_safe(None), {0, 1, 2, 3, 4}),
    (k == None, set()),  # noqa: E711
    (k.is_null(), {0, 1, 2, 3, 4}),
    (s.is_null(), set()),
    (s.is_not_null(), {0, 1, 2, 3, 4}),
    ((k == 12) & (s == "s12"), {1}),
    ((k == 12) & (s == "s22"), set()),
    ((k == 12) | (s == "s22"), {1, 2}),
    (k > 100, set()),
    (k > 37, {3, 4}),
    (k <= 10, {0, 1}),
    (~(k > 10), {0, 1}),
    (k.between(25, 3000), {2, 3, 4}),
    (s.startswith("s3"), {0, 3}),  # s3 is in the first file
    (s >= "s40", {0, 4}),
    ((k == 12) | (k > 100), {1}),
    ((k == 12) | (k > 37), {1, 3, 4}),
    ((k == 12) & (k > 100), set()),
    ((k == 12) & (col("unindexed") == 1), {1}),
    ((k == 12) | (col("unindexed") == 1), {0, 1, 2, 3, 4}),
    (~(k == 12), {0, 1, 2, 3, 4}),
    (~((k != 12) | (s != "s12")), {1}),
    (~(~(k == 12)), {1}),
    ((k == 12) & (k == 22), set()),
    ((k == 12) & ~s.is_null(), {1}),
]


@pytest.fixture
def trees(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "unindexed": "int"})
    for number in range(3):
        write_tree_file(lake, number)
    lake.create(BloomIndexConfig(NAME, ["k", "s"], fpp=1e-7))
    for number in range(3, 5):
        write_tree_file(lake, number)
    lake.refresh()
    return lake


def write_tree_file(lake: Lake, number: int) -> None:
    keys = list(range(10 * number, 10 * number + 10))
    columns = {"k": [None if key % 10 == 9 else key for key in keys], "s": [f"s{key}" for key in keys]}
    unindexed = pa.array([1] * 10, pa.int32())
    lake.write(f"f{number}", {"k": pa.array(columns["k"], pa.int64()), "s": columns["s"], "unindexed": unindexed})


def test_predicate_trees(trees: Lake) -> None:
    """Over several segments, and over the one they are merged into."""
    for _ in range(2):
        reader = trees.open()
        for predicate, files in TREES:
            assert kept(reader, predicate) == {(f"f{number}", 0) for number in files}, predicate
        optimize_index(trees.catalog(), NAME)


def test_a_value_of_another_kind_keeps_what_it_may_equal(trees: Lake) -> None:
    """Spark casts one side; whatever the index makes of it, the row must be found."""
    assert ("f1", 0) in trees.kept(k == "12")
    assert ("f1", 0) in trees.kept(k == 12.0)
    assert ("f1", 0) in trees.kept(k == D("12.0"))
    assert trees.open().lookup(NAME, k == 12.0).num_rows == 1


def test_the_shape_of_the_answer(trees: Lake) -> None:
    table = trees.open().candidates(NAME, k == 12)
    assert table.schema == CANDIDATES_SCHEMA
    assert table.to_pylist() == [
        {"path": str(trees.table / "f1.parquet"), "row_start": 0, "row_count": 10, "row_groups": [0]}
    ]
    assert trees.open().candidates(NAME, k == 99).schema == CANDIDATES_SCHEMA


@pytest.mark.parametrize("predicate", [True, None, "k =", col("k"), 5])
def test_what_is_not_a_predicate(trees: Lake, predicate: object) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        trees.open().candidates(NAME, predicate)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidArgumentError):
        trees.open().lookup(NAME, predicate)  # type: ignore[arg-type]


def test_very_many_units_are_probed_before_their_bounds(trees: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same units are kept, and facts are read of those that passed only."""
    monkeypatch.setattr("lakebloom.index.query.views.side_by_side.SIDE_BY_SIDE_UNITS", 0)
    predicates = [k == 12, k == 99, k.isin([3, 12, 51]), s == "s12", (k == 12) & (s == "s12"), (k == 12) | (s == "s40")]
    expected = [kept(trees.open(), predicate) for predicate in predicates]
    monkeypatch.setattr("lakebloom.store.segments.WIDE_UNITS", 0)
    assert [kept(trees.open(), predicate) for predicate in predicates] == expected
    read: list[int] = []
    facts, row = UnitTable.facts, UnitTable.row
    monkeypatch.setattr(UnitTable, "facts", lambda self, *given: read.append(len(given[-1])) or facts(self, *given))
    monkeypatch.setattr(UnitTable, "row", lambda self, *given: read.append(given[1]) or row(self, *given))
    monkeypatch.setattr(UnitTable, "bounds", None)
    monkeypatch.setattr(UnitTable, "null_counts", None)
    assert kept(trees.open(), k == 12) == expected[0]
    assert len(set(read)) == 1, "one unit, by its number"
    read.clear()
    monkeypatch.setattr("lakebloom.store.some_units.FEW_UNITS", 0)
    monkeypatch.setattr("lakebloom.store.unit_table.FEW_UNITS", 0)
    monkeypatch.setattr(UnitTable, "row", None)
    assert kept(trees.open(), k == 12) == expected[0]
    assert set(read) == {1}, "how many units, by columns"


# What it costs


@pytest.fixture
def watched(trees: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lakebloom, FaultyStorage]]:
    """A reader that has answered once, and its storage."""
    storages: list[FaultyStorage] = []
    opened = Index.__init__

    def open_watched(self: Index, name: str, storage: Any, options: Any) -> None:
        storages.append(FaultyStorage(storage))
        opened(self, name, storages[-1], options)

    monkeypatch.setattr(Index, "__init__", open_watched)
    reader = trees.open()
    reader.candidates(NAME, k == 12)
    storages[0].log.clear()
    return reader, storages[0]


def tiles_of(lake: Lake, column: int) -> set[str]:
    tiles = [tile for segment in lake.entry().segments for tile in segment.tiles if tile.column == column]
    return {part.file.path for tile in tiles for part in tile.parts}


def unit_tables_of(lake: Lake) -> set[str]:
    """The tables that say what units are, without the facts about their columns."""
    return {table.path for segment in lake.entry().segments for table in (segment.table_files, segment.units)}


def paths(storage: FaultyStorage, *names: str) -> list[str]:
    return [operation.path for operation in storage.log if operation.name in names]


def test_a_warm_question_reads_one_row_of_each_tile(trees: Lake, watched: tuple[Lakebloom, FaultyStorage]) -> None:
    reader, storage = watched
    for value in (12, 28, 3):
        storage.log.clear()
        reader.candidates(NAME, k == value)
        assert {operation.name for operation in storage.log} == {"read", "read_ranges"}
        assert paths(storage, "read") == ["log/00000000000000000003.json"], "is there a newer version?"
        ranges = paths(storage, "read_ranges")
        assert len(ranges) == len(set(ranges)), "nothing is read twice"
        assert set(ranges) <= tiles_of(trees, 0) | unit_tables_of(trees)
        assert value != 99 or set(ranges) <= tiles_of(trees, 0), "what is absent needs no unit table"
        tiles = [operation for operation in storage.log if operation.path in tiles_of(trees, 0)]
        assert sum(operation.size_bytes for operation in tiles) <= 2 * 36 * 5
    storage.log.clear()
    reader.candidates(NAME, k == 3)
    assert set(paths(storage, "read_ranges")) <= tiles_of(trees, 0), "unit tables are read once"


def test_several_values_are_read_together(trees: Lake, watched: tuple[Lakebloom, FaultyStorage]) -> None:
    reader, storage = watched
    reader.candidates(NAME, k.isin([1, 12, 23, 99]))
    ranges = paths(storage, "read_ranges")
    assert len(ranges) == len(set(ranges))


@pytest.mark.slow
@pytest.mark.parametrize(
    "predicate",
    [
        k > 5,
        col("unindexed") == 1,
        (k == 12) | (col("unindexed") < 3),
        (k == 99) | (k < 3),
        k.is_null(),
        s.is_not_null(),
        ~(k == 1),
        k.isin([]),
        k == None,  # noqa: E711
    ],
)
def test_a_predicate_that_needs_no_filter_reads_none(
    trees: Lake, watched: tuple[Lakebloom, FaultyStorage], predicate: Predicate
) -> None:
    reader, storage = watched
    reader.candidates(NAME, predicate)
    assert paths(storage, "read") == ["log/00000000000000000003.json"]
    assert not {operation.path for operation in storage.log} & (tiles_of(trees, 0) | tiles_of(trees, 1))
    assert {operation.name for operation in storage.log} <= {"read", "read_ranges"}


def test_only_the_columns_that_are_asked_for_are_read(trees: Lake, watched: tuple[Lakebloom, FaultyStorage]) -> None:
    reader, storage = watched
    reader.candidates(NAME, (k == 99) & (s == "s12"))
    assert paths(storage, "read_ranges") == [], "no unit encloses 99"
    reader.candidates(NAME, (k == 12) & (s == "s22"))
    read = {path for path in paths(storage, "read_ranges") if path.endswith(".tile")}
    assert read <= tiles_of(trees, 0), "k leaves a unit that cannot hold s22"


def test_a_lookup_lists_nothing_of_the_index(watched: tuple[Lakebloom, FaultyStorage]) -> None:
    reader, storage = watched
    assert reader.lookup(NAME, k == 12).num_rows == 1
    assert storage.count("list", "temporaries", "write", "delete") == 0
    assert paths(storage, "read") == ["log/00000000000000000003.json"]


def test_a_new_version_reads_its_new_unit_tables_only(trees: Lake, watched: tuple[Lakebloom, FaultyStorage]) -> None:
    reader, storage = watched
    write_tree_file(trees, 5)
    trees.refresh()
    assert kept(reader, k == 52) == {("f5", 0)}
    new = trees.entry().segments[-1]
    assert paths(storage, "read") == [f"log/{number:020}.json" for number in (3, 4)]
    tables = {path for path in paths(storage, "read_ranges") if not path.endswith(".tile")}
    assert {new.table_files.path, new.units.path} <= tables <= {table.path for table in new.tables}
    assert storage.count("list") == 0


def test_a_cold_question_lists_nothing(trees: Lake) -> None:
    storages: list[FaultyStorage] = []

    def watch(storage: Any) -> FaultyStorage:
        storages.append(FaultyStorage(storage))
        return storages[-1]

    from lakebloom.index.query.reader import Reader

    assert len(Reader(trees.catalog(watch).index(NAME)).candidates(k == 12)) == 1
    assert storages[0].count("list", "temporaries") == 0
    log = [path for path in paths(storages[0], "read") if path.startswith("log/")]
    assert log == ["log/latest", *(f"log/{number:020}.json" for number in (2, 3))]

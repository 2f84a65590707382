"""What a unit covers: its rows, its row groups, its NULLs, for every granularity."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom import BloomIndexConfig, col
from lakebloom.errors import IndexTooLargeError
from lakebloom.index import units
from lakebloom.index.units import spans_of
from lakebloom.store.records import TableRecord
from lakebloom.tables.parquet.columns import RowGroupShape
from tests.index.lake import NAME, Lake

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.store.records import Granularity

KEYS = [3, None, 5, 7, None, None, 3, 8, 9, 9, 11]


def facts(lake: Lake, columns: int = 1) -> list[tuple[str, int, int, int, int, tuple[int | None, ...]]]:
    """Of each unit: file, first row, rows, first row group, row groups, NULLs of each column."""
    return sorted(
        (
            unit.file.uri.rpartition("/")[2].removesuffix(".parquet"),
            unit.row_start,
            unit.row_count,
            unit.row_group_start,
            unit.row_group_count,
            tuple(facts.null_count for facts in unit.columns),
        )
        for segment in lake.snapshot().segments
        for unit in segment.units.units()
    )


CASES: dict[str, tuple[Granularity, list[tuple[int, int, int, int, int]]]] = {
    # rows of KEYS in row groups of four: 0-3, 4-7, 8-10
    "file": ("file", [(0, 11, 0, 3, 3)]),
    "row groups": ("row_group", [(0, 4, 0, 1, 1), (4, 4, 1, 1, 2), (8, 3, 2, 1, 0)]),
    "zones that cross row groups": (3, [(0, 3, 0, 1, 1), (3, 3, 0, 2, 2), (6, 3, 1, 2, 0), (9, 2, 2, 1, 0)]),
    "zones as large as row groups": (4, [(0, 4, 0, 1, 1), (4, 4, 1, 1, 2), (8, 3, 2, 1, 0)]),
    "zones of a single row": (1, [(i, 1, i // 4, 1, int(key is None)) for i, key in enumerate(KEYS)]),
    "zones larger than two row groups": (10, [(0, 10, 0, 3, 3), (10, 1, 2, 1, 0)]),
    "zones larger than the file": (1000, [(0, 11, 0, 3, 3)]),
}


@pytest.mark.parametrize("name", CASES)
def test_units_of_a_file(lake: Lake, name: str) -> None:
    granularity, expected = CASES[name]
    for file in ("a", "b"):  # zones end with their file
        lake.write(file, {"k": pa.array(KEYS, pa.int64())}, row_group_size=4)
    lake.create(BloomIndexConfig(NAME, ["k"], granularity=granularity, fpp=1e-6))
    assert facts(lake) == [(file, *unit[:4], (unit[4],)) for file in ("a", "b") for unit in expected]
    for key in set(KEYS) | {4}:
        holding = {unit[0] for unit in expected if key in KEYS[unit[0] : unit[0] + unit[1]]}
        predicate = col("k").is_null() if key is None else col("k") == key
        assert lake.kept(predicate) == {(file, start) for file in ("a", "b") for start in holding}, key
    for row in lake.open().candidates(NAME, col("k").is_not_null()).to_pylist():
        unit = next(unit for unit in expected if unit[0] == row["row_start"])
        assert (row["row_count"], row["row_groups"]) == (unit[1], list(range(unit[2], unit[2] + unit[3])))


@given(
    counts=st.lists(st.integers(0, 9), max_size=8),
    granularity=st.one_of(st.sampled_from(["file", "row_group"]), st.integers(1, 20)),
)
def test_spans_cover_every_row_once(counts: list[int], granularity: Granularity) -> None:
    shapes, start = [], 0
    for count in counts:
        shapes.append(RowGroupShape(start, count))
        start += count
    spans = spans_of(shapes, granularity)
    covered = [row for span in spans for row in range(span.row_start, span.row_start + span.row_count)]
    assert covered == list(range(start))
    for span in spans:
        rows = range(span.row_start, span.row_start + span.row_count)
        overlapping = {
            number
            for number, shape in enumerate(shapes)
            if set(rows) & set(range(shape.row_start, shape.row_start + shape.row_count))
        }
        assert overlapping <= set(range(span.row_group_start, span.row_group_start + span.row_group_count))
        if isinstance(granularity, int) and start:
            assert span.row_group_start in overlapping
            assert span.row_group_start + span.row_group_count - 1 in overlapping


@given(
    counts=st.lists(st.integers(0, 60), max_size=5),
    page_rows=st.integers(1, 12),
    granularity=st.sampled_from(["page", "auto"]),
)
def test_units_of_pages(counts: list[int], page_rows: int, granularity: Granularity) -> None:
    """They begin where a page begins, have enough rows if their row group has, and cover every row once."""
    shapes = [RowGroupShape(sum(counts[:number]), count) for number, count in enumerate(counts)]
    least, units.PAGE_UNIT_ROWS = units.PAGE_UNIT_ROWS, 10
    try:
        spans = spans_of(shapes, granularity, lambda group: range(0, counts[group], page_rows))
    finally:
        units.PAGE_UNIT_ROWS = least
    assert sum(span.row_count for span in spans) == sum(counts)
    if len(spans) == 1 and granularity == "auto":
        assert spans[0].row_count == sum(counts)
        return
    for before, span in pairwise(spans):
        assert before.row_start + before.row_count == span.row_start
    for span in spans:
        if not sum(counts):
            continue
        (group,) = range(span.row_group_start, span.row_group_start + span.row_group_count)
        assert (span.row_start - shapes[group].row_start) % page_rows == 0
        assert span.row_count >= min(10, counts[group])
    if granularity == "auto":
        assert sum(counts) >= 10 * len(spans)


def large_file(lake: Lake, name: str, rows: int, **options: object) -> pa.Table:
    keys = np.random.default_rng(rows).integers(0, 2**62, rows)
    columns = {"k": keys, "s": pa.array([f"a text of some length {n}" for n in range(rows)])}
    lake.write(name, columns, use_dictionary=False, **({"max_rows_per_page": 20_000} | options))
    return pa.table(columns)


@pytest.mark.parametrize("page_index", [True, False])
def test_auto_takes_pages_of_large_files_and_whole_small_files(tmp_path: Path, *, page_index: bool) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string"})
    large_file(lake, "small", 30_000, write_page_index=page_index)
    lake.create(BloomIndexConfig(NAME, ["k"]))
    assert lake.entry().config.granularity == "auto"
    assert lake.open().index(NAME).granularity == "file"
    assert [unit[1:5] for unit in facts(lake)] == [(0, 30_000, 0, 1)]
    table = large_file(lake, "large", 150_000, row_group_size=90_000, write_page_index=page_index)
    lake.refresh()
    assert lake.open().index(NAME).granularity == "page"
    # The last page of each row group is too short for a unit.
    expected = [(0, 20_000), (20_000, 20_000), (40_000, 20_000), (60_000, 30_000)]
    expected += [(90_000, 20_000), (110_000, 20_000), (130_000, 20_000)]
    assert [unit[1:3] for unit in facts(lake) if unit[0] == "large"] == expected
    row = 95_007
    found = lake.open().lookup(NAME, col("k") == table["k"][row].as_py())
    assert found.to_pylist() == table.slice(row, 1).to_pylist()
    (candidate,) = lake.open().candidates(NAME, col("k") == table["k"][row].as_py()).to_pylist()
    assert (candidate["row_start"], candidate["row_count"], candidate["row_groups"]) == (90_000, 20_000, [1])


@pytest.fixture
def small_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A file of a hundred units, so that the rate of their filters is lower than that of one for the file."""
    monkeypatch.setattr(units, "PAGE_UNIT_ROWS", 1000)
    lake = Lake(tmp_path, {"k": "bigint", "s": "string"})
    large_file(lake, "large", 200_000, max_rows_per_page=2000, write_batch_size=1000)
    return lake


def test_auto_takes_files_where_pages_would_make_the_index_too_large(small_pages: Lake) -> None:
    lake = small_pages
    by_page = lake.create(BloomIndexConfig(NAME, ["k"]))
    assert by_page.units == 100
    allowed = int(0.9 * by_page.bytes_written)
    by_file = lake.create(BloomIndexConfig(NAME, ["k"]), replace=True, max_index_bytes=allowed)
    assert by_file.units == 1
    with pytest.raises(IndexTooLargeError):
        lake.create(BloomIndexConfig(NAME, ["k"], granularity="page"), replace=True, max_index_bytes=allowed)


def test_what_pages_cost_is_on_the_price_tag(small_pages: Lake) -> None:
    lake = small_pages
    tag = lake.open().price_index(str(lake.table), BloomIndexConfig(NAME, ["k"]))
    assert (tag.granularity, tag.units) == ("page", 100)
    assert 0 < tag.index_bytes_by_file < tag.index_bytes
    assert re.search(r"index size +about .*: 14 bits a key, with one filter a file 11", str(tag))
    by_file = lake.open().price_index(str(lake.table), BloomIndexConfig(NAME, ["k"], granularity="file"))
    assert by_file.index_bytes == by_file.index_bytes_by_file == tag.index_bytes_by_file
    assert "bits a key" not in str(by_file)


@pytest.mark.parametrize("granularity", ["file", "row_group", 7])
def test_all_that_a_unit_needs_lies_in_its_bytes(lake: Lake, granularity: Granularity) -> None:
    """PyArrow reads its row groups from a file in which everything else is gone, but for the footer."""
    columns = {"k": pa.array(range(20), pa.int64()), "s": pa.array([f"text {i % 3}" for i in range(20)])}
    path = lake.write("a", columns, row_group_size=5)
    lake.create(BloomIndexConfig(NAME, ["k"], granularity=granularity))
    whole, table = path.read_bytes(), pq.read_table(path)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    (segment,) = lake.snapshot().segments
    for unit in segment.units.units():
        assert unit.byte_start is not None
        assert unit.byte_count is not None
        stop = unit.byte_start + unit.byte_count
        kept = bytes(unit.byte_start) + whole[unit.byte_start : stop] + bytes(footer - stop) + whole[footer:]
        groups = range(unit.row_group_start, unit.row_group_start + unit.row_group_count)
        found = pq.ParquetFile(pa.BufferReader(kept)).read_row_groups(list(groups))
        assert found.equals(table.slice(5 * groups.start, 5 * len(groups)))
        smaller = bytes(unit.byte_start) + bytes(unit.byte_count) + bytes(footer - stop) + whole[footer:]
        with pytest.raises((OSError, pa.ArrowException)):
            pq.ParquetFile(pa.BufferReader(smaller)).read_row_groups(list(groups))


def test_small_batches_make_no_difference(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones do not end where batches do."""
    monkeypatch.setattr("lakebloom.tables.parquet.batches.BUILD_BATCH_ROWS", 2)
    lake.write("a", {"k": pa.array(KEYS, pa.int64())}, row_group_size=7)
    lake.create(BloomIndexConfig(NAME, ["k"], granularity=3, fpp=1e-6))
    assert [unit[1:3] + unit[5] for unit in facts(lake)] == [(0, 3, 1), (3, 3, 2), (6, 3, 0), (9, 2, 0)]
    assert lake.kept(col("k") == 9) == {("a", 6), ("a", 9)}


def test_files_without_rows(lake: Lake) -> None:
    lake.write("empty", {"k": pa.array([], pa.int64())})
    with pq.ParquetWriter(lake.table / "groupless.parquet", pa.schema([("k", pa.int64())])):
        pass
    assert pq.ParquetFile(lake.table / "groupless.parquet").metadata.num_row_groups == 0
    lake.write("full", {"k": pa.array([1, 2], pa.int64())})
    for granularity in ("file", "row_group", 1):
        lake.types = {"k": "bigint"}
        lake.create(BloomIndexConfig(f"by_{granularity}", ["k"], granularity=granularity))
        reader = lake.open()
        assert reader.index(f"by_{granularity}").files == 3, "they are known, and hold nothing"
        for predicate in (col("k") == 1, col("k").is_null(), col("k").is_not_null()):
            table = reader.candidates(f"by_{granularity}", predicate)
            assert {path.rpartition("/")[2] for path in table["path"].to_pylist()} <= {"full.parquet"}
        assert reader.lookup(f"by_{granularity}", col("k") == 1, unindexed="error").num_rows == 1


def test_two_columns_have_filters_and_null_counts_of_their_own(lake: Lake) -> None:
    lake.write("a", {"k": pa.array([1, None, 3], pa.int64()), "s": ["x", "y", "z"]})
    lake.write("b", {"k": pa.array([4, 5, 6], pa.int64()), "s": [None, None, "x"]})
    lake.create(BloomIndexConfig(NAME, ["s", "k"], fpp=1e-6))
    assert [unit[5] for unit in facts(lake, 2)] == [(0, 1), (2, 0)]
    assert lake.kept((col("k") == 1) & (col("s") == "x")) == {("a", 0)}
    assert lake.kept(col("s") == "x") == {("a", 0), ("b", 0)}
    assert lake.kept((col("s") == "x") & col("k").is_null()) == {("a", 0)}


def test_columns_that_old_files_lack(lake: Lake) -> None:
    lake.write("old", {"k": pa.array([1, 2, 3], pa.int64())})
    lake.write("new", {"k": pa.array([3, 4, 5], pa.int64()), "s": ["x", None, "z"]})
    lake.create(BloomIndexConfig(NAME, ["k", "s"], granularity=2))
    assert [(unit[0], unit[1], unit[5]) for unit in facts(lake, 2)] == [
        ("new", 0, (0, 1)),
        ("new", 2, (0, 0)),
        ("old", 0, (0, 2)),
        ("old", 2, (0, 1)),
    ]
    assert lake.kept(col("s") == "x") == {("new", 0)}
    assert lake.kept(col("s").is_null()) == {("new", 0), ("old", 0), ("old", 2)}
    assert lake.kept(col("s").is_not_null()) == {("new", 0), ("new", 2)}
    assert lake.open().lookup(NAME, col("s").is_null(), ["k"])["k"].to_pylist() == [4, 1, 2, 3]


def test_columns_that_are_entirely_null(lake: Lake) -> None:
    lake.write("typed", {"k": pa.array([None] * 4, pa.int64())})
    lake.write("untyped", {"k": pa.nulls(3)})
    lake.write("mixed", {"k": pa.array([None, 1], pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["k"]))
    assert [(unit[0], unit[5]) for unit in facts(lake)] == [("mixed", (1,)), ("typed", (4,)), ("untyped", (3,))]
    assert lake.kept(col("k") == 1) == {("mixed", 0)}
    assert lake.kept(col("k").is_null()) == {("mixed", 0), ("typed", 0), ("untyped", 0)}
    assert lake.kept(col("k").is_not_null()) == {("mixed", 0)}


def nested_lake(home: Path) -> tuple[Lake, TableRecord]:
    import json

    leaf = {"name": "k", "type": "long", "nullable": True, "metadata": {}}
    deep = {"name": "deep", "type": {"type": "struct", "fields": [leaf]}, "nullable": True, "metadata": {}}
    top = {"name": "t", "type": {"type": "struct", "fields": [deep, leaf]}, "nullable": True, "metadata": {}}
    dotted = {"name": "t.k", "type": "long", "nullable": True, "metadata": {}}
    schema = json.dumps({"type": "struct", "fields": [top, dotted]})
    lake = Lake(home, {"t": "struct", "t.k": "bigint"})
    source = TableRecord(format="parquet", locations=(f"file://{lake.table}",), schema_json=schema)
    paths = [("t",), ("t", "deep"), ("t", "deep", "k"), ("t", "k"), ("t.k",)]
    kinds = ["struct<...>", "struct<...>", "bigint", "bigint", "bigint"]
    assert source.schema.types == dict(zip(paths, kinds, strict=True))
    return lake, source


def test_nested_leaves_and_names_with_dots(tmp_path: Path) -> None:
    """``t.k`` is a leaf and `t.k` a column: two columns, with tiles of their own."""
    from lakebloom.index.build.create import create_index
    from tests.index.local_builder import workshop

    lake, source = nested_lake(tmp_path)
    kind = pa.struct([("deep", pa.struct([("k", pa.int64())])), ("k", pa.int64())])
    rows = [{"deep": {"k": 1}, "k": 10}, {"deep": None, "k": 20}, None, {"deep": {"k": None}, "k": 30}]
    lake.write("a", {"t": pa.array(rows, kind), "t.k": pa.array([100, 200, None, 300], pa.int64())})
    lake.write("b", {"t": pa.array([{"deep": {"k": 2}, "k": 11}], kind), "t.k": pa.array([101], pa.int64())})
    config = BloomIndexConfig(NAME, ["t.deep.k", "t.k", "`t.k`"], fpp=1e-6)
    create_index(workshop(lake.catalog()), source, config)
    assert [unit[5] for unit in facts(lake, 3)] == [(3, 1, 1), (0, 0, 0)]
    assert lake.kept(col("t.deep.k") == 1) == {("a", 0)}
    assert lake.kept(col("t.deep.k") == 2) == {("b", 0)}
    assert lake.kept(col("t.k") == 30) == {("a", 0)}
    assert lake.kept(col("t.k") == 300) == set()
    assert lake.kept(col("`t.k`") == 300) == {("a", 0)}
    assert lake.kept(col("`t.k`") == 30) == set()
    assert lake.kept(col("t.deep.k").is_null()) == {("a", 0)}
    assert lake.open().lookup(NAME, col("`t.k`") == 300).num_rows == 1
    assert lake.open().verify_index(NAME).ok


def test_dictionaries_and_duplicates(lake: Lake) -> None:
    """Few distinct values, stored as a dictionary, hashed once each, in a filter for the distinct ones."""
    values = [f"country-{number % 7}" for number in range(50_000)]
    lake.write("a", {"s": pa.array(values).dictionary_encode()}, use_dictionary=True)
    lake.write("b", {"s": pa.array(["country-7"] * 1000)}, use_dictionary=False)
    lake.create(BloomIndexConfig(NAME, ["s"], fpp=1e-6, granularity="file"))
    assert lake.kept(col("s") == "country-3") == {("a", 0)}
    assert lake.kept(col("s") == "country-7") == {("b", 0)}
    assert lake.kept(col("s") == "country-8") == set()
    blocks = [tile.num_blocks for segment in lake.entry().segments for tile in segment.tiles]
    assert max(blocks) <= 2


def test_names_are_found_in_any_case(lake: Lake) -> None:
    lake.write("a", {"K": pa.array([1, 2], pa.int64())})
    lake.create(BloomIndexConfig(NAME, ["K"]))
    assert lake.entry().config.columns[0].path == ("k",), "as the table calls it"
    assert lake.kept(col("k") == 1) == lake.kept(col("K") == 1) == {("a", 0)}
    assert lake.kept(col("k") == 3) == set()

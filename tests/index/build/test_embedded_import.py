"""Indexes whose filters are those of the files: the same answers, no data page read, and a reason for every column that
had to be read after all.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.parquet import embed, filters
from tests.index.lake import NAME, SMALL, Lake, assert_answers, columns_of, kept, questions
from tests.index.local_builder import source_of, workshop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakebloom.index.build.report import BuildReport

ROW_GROUPS = BloomIndexConfig(NAME, ["k", "s", "n"], granularity="row_group", fpp=1e-4)
UTC = datetime.timezone.utc


def create(lake: Lake, config: BloomIndexConfig = ROW_GROUPS) -> BuildReport:
    shop = workshop(lake.catalog(), tasks=2, **SMALL)
    return create_index(shop, source_of(lake.table, lake.types), config, from_embedded=True)


def filtered(lake: Lake, name: str, columns: dict[str, Any], fpp: float = 1e-5, **options: Any) -> Path:
    """Write a file with filters."""
    given = {column: {"ndv": 100, "fpp": fpp} for column in columns}
    return lake.write(name, columns, bloom_filter_options=given, **options)


def fill(lake: Lake, files: Sequence[int]) -> None:
    for number in files:
        filtered(lake, f"f{number}", columns_of(range(number * 20, number * 20 + 20)), row_group_size=10)


def blank_pages(path: Path) -> None:
    """Overwrite all data and dictionary pages; filters and footer stay."""
    metadata = pq.ParquetFile(path).metadata
    data = bytearray(path.read_bytes())
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
            data[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["row_group", "file"])
def test_the_answers_are_those_of_an_index_that_was_built_by_reading(lake: Lake, granularity: Any) -> None:
    fill(lake, range(3))
    report = create(lake, BloomIndexConfig(NAME, ["k", "s", "n"], granularity=granularity, fpp=1e-4))
    units = 6 if granularity == "row_group" else 3
    assert (report.units, report.filters_imported, report.read_anyway) == (units, 3 * units, ())
    assert_answers(lake, questions([5, 25, 45, 59, 999]))
    asked = [*(col("k") == key for key in range(-5, 65)), col("s") == "s35", col("n") == 2, col("n").is_null()]
    taken = [lake.kept(predicate) for predicate in asked]
    assert taken[40] == {("f1", 0 if granularity == "file" else 10)}
    read = Lake(lake.table.parent, lake.types, f"{lake.location}-read")
    read.create(BloomIndexConfig(NAME, ["k", "s", "n"], granularity=granularity, fpp=1e-4))
    assert taken == [read.kept(predicate) for predicate in asked]
    verified = lake.open().verify_index(NAME)
    assert (verified.ok, verified.values_checked) == (True, 60 + 60 + 48)


def test_no_data_page_is_read(lake: Lake) -> None:
    fill(lake, range(3))
    for path in lake.table.iterdir():
        blank_pages(path)
    report = create(lake)
    assert (report.files, report.units, report.rows, report.skipped) == (3, 6, 60, ())
    assert lake.kept(col("k") == 35) == {("f1", 10)}
    footers = sum(pq.ParquetFile(path).metadata.serialized_size for path in lake.table.iterdir())
    bits = sum(each.length or 0 for path in lake.table.iterdir() for each in filters(path))
    assert report.bytes_read == footers + bits


@pytest.mark.slow
def test_what_has_no_filter_is_read(lake: Lake) -> None:
    fill(lake, [0])
    lake.fill([1])
    columns = columns_of(range(40, 60))
    lake.write("f2", columns, row_group_size=10, bloom_filter_options={"k": {"ndv": 100, "fpp": 1e-5}})
    lake.write("f3", {"k": pa.array(range(60, 80))}, bloom_filter_options={"k": {"ndv": 100, "fpp": 1e-5}})
    report = create(lake)
    assert report.filters_imported == 6 + 2 + 3
    why = "the file has no filter for it, or not in every row group"
    assert {(each.column, each.files, each.reason) for each in report.read_anyway} == {
        ("k", 1, why),
        ("s", 2, why),
        ("n", 2, why),
    }
    assert "s in 2 files: the file has no filter for it" in str(report)
    assert_answers(lake, questions([5, 25, 45, 65, 999]))
    assert lake.open().verify_index(NAME).ok


@pytest.mark.slow
def test_refresh_and_optimize(lake: Lake) -> None:
    fill(lake, [0])
    create(lake)
    fill(lake, [1])
    blank_pages(lake.table / "f1.parquet")
    report = refresh_index(workshop(lake.catalog(), **SMALL), NAME, from_embedded=True)
    assert (report.units, report.filters_imported, report.skipped) == (2, 6, ())
    (lake.table / "f1.parquet").unlink()
    fill(lake, [2])
    assert lake.refresh().filters_imported == 0
    optimize_index(lake.catalog(), NAME)
    assert len(lake.entry().segments) == 1
    assert_answers(lake, questions([5, 45, 999]))
    assert lake.open().verify_index(NAME).ok


def test_filters_are_folded_to_what_the_index_needs(lake: Lake) -> None:
    columns = {"k": pa.array(range(10))}
    lake.write("small", columns, bloom_filter_options=None)
    embed(lake.table / "small.parquet", columns=["k"], fpp=1e-9)
    before = filters(lake.table / "small.parquet")[0].filter
    report = create(lake, BloomIndexConfig(NAME, ["k"], granularity="row_group", fpp=0.01))
    (tile,) = lake.entry().segments[0].tiles
    assert 1 <= tile.num_blocks < before.num_blocks
    assert report.fpp == 0.01


@pytest.mark.slow
def test_the_rate_is_that_of_the_bits(lake: Lake) -> None:
    rng = np.random.default_rng(5)
    for number in range(3):
        values = pa.array(rng.integers(0, 2**60, 3000))
        filtered(lake, f"f{number}", {"k": values}, fpp=0.2)
    report = create(lake, BloomIndexConfig(NAME, ["k"], granularity="row_group", fpp=1e-3))
    shown = [each.filter.fpp for path in lake.table.iterdir() for each in filters(path)]
    assert report.fpp == pytest.approx(max(shown), rel=0.5)
    assert report.fpp > 0.01
    assert lake.open().index(NAME).fpp == report.fpp
    asked = rng.integers(2**50, 2**59, 300).tolist()  # within the bounds of all row groups, and in none of them
    reader = lake.open()
    wrong = sum(len(kept(reader, col("k") == value)) for value in asked) / (3 * len(asked))
    assert wrong == pytest.approx(np.mean(shown), rel=0.4)


def test_filters_of_row_groups_that_are_too_full_for_a_file(lake: Lake) -> None:
    values = pa.array(np.random.default_rng(6).integers(0, 2**60, 20_000))
    lake.write("f0", {"k": values}, row_group_size=1000, bloom_filter_options={"k": {"ndv": 1000, "fpp": 0.05}})
    report = create(lake, BloomIndexConfig(NAME, ["k"], fpp=0.01))
    (why,) = report.read_anyway
    assert "would have a false-positive rate of" in why.reason
    assert (report.filters_imported, report.fpp) == (0, 0.01)
    assert lake.open().verify_index(NAME).ok


def dates(*years: int) -> pa.Array:
    return pa.array([datetime.date(year, 1, 1) for year in years])


def moments(unit: str, zone: str | None) -> pa.Array:
    return pa.array([datetime.datetime(2000 + i, 1, 1, tzinfo=UTC if zone else None) for i in range(5)]).cast(
        pa.timestamp(unit, zone)
    )


def decimals(precision: int, scale: int) -> pa.Array:
    values = [Decimal(number).scaleb(-scale) for number in (-150, 0, 7, 99999)]
    return pa.array(values, pa.decimal128(precision, scale))


TAKEN: list[tuple[str, pa.Array, dict[str, Any]]] = [
    ("smallint", pa.array([-5, 0, 300], pa.int16()), {}),
    ("smallint", pa.array([-5, 0, 100], pa.int8()), {}),
    ("smallint", pa.array([5, 0, 255], pa.uint8()), {}),
    ("int", pa.array([-5, 0, 70_000], pa.int32()), {}),
    ("int", pa.array([-5, 0, 100], pa.int8()), {}),
    ("int", pa.array([5, 65_535], pa.uint16()), {}),
    ("bigint", pa.array([-5, 2**40, None]), {}),
    ("string", pa.array(["", "a", "ä", None]), {}),
    ("string", pa.array(["x", "y"]).dictionary_encode(), {}),
    ("string", pa.array(["", "a"], pa.large_string()), {}),
    ("binary", pa.array([b"", b"\xff"]), {}),
    ("binary", pa.array([b"ab", b"\xff\x00"], pa.binary(2)), {}),
    ("date", dates(1600, 2024), {}),
    ("timestamp", moments("us", "UTC"), {}),
    ("timestamp_ntz", moments("us", None), {}),
    ("decimal(7,2)", decimals(7, 2), {"store_decimal_as_integer": True}),
    ("decimal(9,2)", decimals(7, 2), {"store_decimal_as_integer": True}),
    ("decimal(15,2)", decimals(15, 2), {"store_decimal_as_integer": True}),
    ("decimal(30,2)", decimals(30, 2), {}),
    ("bigint", pa.nulls(3, pa.int64()), {}),
]
READ: list[tuple[str, pa.Array, dict[str, Any], str]] = [
    ("smallint", pa.array([-5, 0, 300], pa.int32()), {}, "hashed differently from INT32"),
    ("bigint", pa.array([1, 2], pa.int32()), {}, "hashed differently from INT32"),
    ("bigint", pa.array([1, 2**31], pa.uint32()), {}, "hashed differently from INT32"),
    ("double", pa.array([-0.0, 1.5]), {}, "-0.0 from 0.0"),
    ("float", pa.array([-0.0, 1.5], pa.float32()), {}, "-0.0 from 0.0"),
    ("timestamp", moments("ms", "UTC"), {}, "hashed differently from INT64 Timestamp"),
    ("timestamp", moments("ns", "UTC"), {}, "hashed differently from INT64 Timestamp"),
    ("timestamp_ntz", moments("ms", None), {}, "hashed differently from INT64 Timestamp"),
    ("timestamp", moments("us", None), {"use_deprecated_int96_timestamps": True}, "hashed differently from INT96"),
    ("date", dates(2024), {"write_statistics": False}, "does not have the number of NULLs"),
    ("bigint", pa.array([1, 2]), {"write_statistics": False}, "does not have the number of NULLs"),
    ("decimal(7,2)", decimals(7, 2), {}, "hashed differently from FIXED_LEN_BYTE_ARRAY"),
    ("decimal(12,2)", decimals(7, 2), {"store_decimal_as_integer": True}, "hashed differently from INT32"),
    ("decimal(9,3)", decimals(7, 2), {"store_decimal_as_integer": True}, "hashed differently from INT32"),
    ("decimal(31,2)", decimals(28, 2), {}, "hashed differently from FIXED_LEN_BYTE_ARRAY"),
]


@pytest.mark.parametrize(("kind", "values", "options"), TAKEN, ids=[f"{kind}-{v.type}" for kind, v, _ in TAKEN])
def test_types_that_are_hashed_alike(tmp_path: Path, kind: str, values: pa.Array, options: dict[str, Any]) -> None:
    lake = Lake(tmp_path, {"v": kind})
    filtered(lake, "f", {"v": values}, **options)
    report = create(lake, BloomIndexConfig(NAME, ["v"], granularity="row_group", fpp=1e-4))
    assert (report.filters_imported, report.read_anyway) == (1, ())
    verified = lake.open().verify_index(NAME)
    assert (verified.ok, verified.values_checked) == (True, len(values) - values.null_count)


@pytest.mark.parametrize(("kind", "values", "options", "why"), READ, ids=[f"{kind}-{v.type}" for kind, v, _, _ in READ])
def test_types_that_are_not(tmp_path: Path, kind: str, values: pa.Array, options: dict[str, Any], why: str) -> None:
    lake = Lake(tmp_path, {"v": kind})
    filtered(lake, "f", {"v": values}, **options)
    report = create(lake, BloomIndexConfig(NAME, ["v"], granularity="row_group", fpp=1e-4))
    assert report.filters_imported == 0
    assert why in report.read_anyway[0].reason
    assert lake.open().verify_index(NAME).ok


def test_old_dates_of_unknown_writers(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"v": "date"})
    filtered(lake, "f0", {"v": dates(1500, 2024)})
    filtered(lake, "f1", {"v": dates(2024)})
    report = create(lake, BloomIndexConfig(NAME, ["v"], granularity="row_group"))
    assert [each.reason for each in report.read_anyway] == ["Spark may read its old dates in another calendar"]
    assert (report.filters_imported, len(report.skipped)) == (1, 1)


def test_columns_that_a_file_does_not_have(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "late": "string"})
    filtered(lake, "f0", {"k": pa.array([1, 2])})
    filtered(lake, "f1", {"k": pa.array([3, 4]), "late": pa.array(["a", None])})
    report = create(lake, BloomIndexConfig(NAME, ["k", "late"], granularity="row_group", fpp=1e-4))
    assert (report.filters_imported, report.read_anyway) == (4, ())
    assert lake.kept(col("late") == "a") == {("f1", 0)}
    assert lake.kept(col("late").is_null()) == {("f0", 0), ("f1", 0)}
    assert lake.kept(col("late").is_not_null()) == {("f1", 0)}


@pytest.mark.slow
def test_filters_that_cannot_be_believed(lake: Lake) -> None:
    fill(lake, range(3))
    for name, damage in {"f0": "bits", "f1": "header"}.items():
        path = lake.table / f"{name}.parquet"
        data = bytearray(path.read_bytes())
        for each in filters(path, "k"):
            size = each.filter.num_bytes
            end = each.offset + (each.length or 0)
            if damage == "bits":
                data[end - size : end] = bytes(size)
            else:
                data[each.offset : end - size] = b"\xff" * (end - size - each.offset)
        path.write_bytes(data)
    report = create(lake)
    reasons = sorted(each.reason for each in report.read_anyway)
    assert len(reasons) == 2
    assert reasons[1] == "the file has a filter with no bit set"
    assert "FILTER" in reasons[0]
    assert report.filters_imported == 3 * 6 - 4
    assert_answers(lake, questions([5, 25, 45, 999]))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"granularity": 100}, "granularity 100.*row_group"),
        ({"global_filter": True}, "global_filter=True"),
        ({"expected_items": 100}, "expected_items=100"),
    ],
)
def test_what_cannot_be_had_from_files(lake: Lake, options: dict[str, Any], found: str) -> None:
    fill(lake, [0])
    with pytest.raises(errors.InvalidArgumentError, match=found):
        create(lake, BloomIndexConfig(NAME, ["k"], **options))
    assert not lake.stored()


@pytest.mark.slow
def test_many_units_share_tiles(lake: Lake) -> None:
    columns = {"k": pa.array(range(500))}
    lake.write("f", columns, row_group_size=5, bloom_filter_options={"k": {"ndv": 5, "fpp": 0.01}})
    report = create(lake, BloomIndexConfig(NAME, ["k"], granularity="row_group", fpp=0.01))
    assert (report.units, report.filters_imported) == (100, 100)
    assert sum(len(segment.tiles) for segment in lake.entry().segments) <= 2
    assert lake.open().verify_index(NAME).ok

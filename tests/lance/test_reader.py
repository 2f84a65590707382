"""Reading and asking indexes that Lance built; what is certain, what is kept, and what is refused."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lakebloom.lance
from lakebloom import Sbbf
from lakebloom.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    CorruptIndexError,
    IndexExistsError,
    IndexFormatError,
    IndexNotFoundError,
    InvalidArgumentError,
    LakebloomError,
    NotFoundError,
    UnsupportedTypeError,
)  # fmt: skip
from lakebloom.lance.building import ZonePlan, build_segment
from lakebloom.lance.committing import commit_segments, require_free, segment_record
from lakebloom.lance.segments import find_column
from lakebloom.lance.zones import LanceIndex, ZoneFilter, require_type
from tests.lance.datasets import (
    COLUMNS,
    ROWS_PER_FRAGMENT,
    index_by_lance,
    literal,
    rows_scanned,
    with_nulls,
    write,
)  # fmt: skip

if TYPE_CHECKING:
    from lance import LanceDataset

lance = pytest.importorskip("lance")


def rows_of(zone: ZoneFilter, column: pa.Array) -> pa.Array:
    return column.slice(zone.fragment_id * ROWS_PER_FRAGMENT + zone.zone_start, zone.zone_length)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_value_is_found_in_its_zone(name: str, tmp_path: Path) -> None:
    column = with_nulls(COLUMNS[name])
    dataset = index_by_lance(write(tmp_path / "d", column))
    index = lakebloom.lance.open_index(dataset, "theirs")
    assert (index.name, index.column, index.type) == ("theirs", "c", column.type)
    assert (index.rows_per_zone, index.fpp, index.unindexed_fragments) == (256, 0.01, ())
    assert [(zone.fragment_id, zone.zone_start, zone.zone_length) for zone in index.zones][:5] == [
        (0, 0, 256), (0, 256, 256), (0, 512, 256), (0, 768, 232), (1, 0, 256),
    ]  # fmt: skip
    answers = index.might_contain(column)
    assert answers.shape == (len(index.zones), len(column))
    for zone, answer in zip(index.zones, answers, strict=True):
        rows = rows_of(zone, column)
        start = zone.fragment_id * ROWS_PER_FRAGMENT + zone.zone_start
        valid = rows.is_valid().to_numpy(zero_copy_only=False)
        assert answer[start : start + zone.zone_length][valid].all()
        assert zone.has_null == (rows.null_count > 0)
        assert (answer[column.is_null().to_numpy(zero_copy_only=False)] == zone.has_null).all()
        elsewhere = column.is_valid().to_numpy(zero_copy_only=False)
        elsewhere[start : start + zone.zone_length] = False
        if column.type not in (pa.int8(), pa.uint8()):  # of which every zone has most
            assert answer[elsewhere].mean() < 0.15  # every ninth string is empty


def test_candidates_are_the_zones_that_lance_reads(tmp_path: Path) -> None:
    """Lance counts the rows that it scanned: those of our candidates, neither more nor fewer."""
    column = with_nulls(COLUMNS["int32"])
    dataset = index_by_lance(write(tmp_path / "d", column))
    for values in ([column[1]], [column[1], column[1100], column[2005]], [pa.scalar(12345, pa.int32())]):
        asked = pa.array([value.as_py() for value in values], pa.int32())
        zones = lakebloom.lance.candidates(dataset, asked, "theirs")
        condition = f"c IN ({', '.join(literal(value) for value in values)})"
        assert rows_scanned(dataset, condition) == str(sum(zone.zone_length for zone in zones))
        held = [zone for zone in lakebloom.lance.filters(dataset, "theirs") if _holds(rows_of(zone, column), asked)]
        assert all(zone in zones for zone in held)
    nulls = lakebloom.lance.candidates(dataset, None, "theirs")
    assert nulls == [zone for zone in lakebloom.lance.filters(dataset, "theirs") if rows_of(zone, column).null_count]
    assert lakebloom.lance.candidates(dataset, [], "theirs") == []


def _holds(rows: pa.Array, asked: pa.Array) -> bool:
    return bool(set(rows.to_pylist()) & set(asked.to_pylist()))


def test_a_file_by_its_path(tmp_path: Path) -> None:
    dataset = index_by_lance(write(tmp_path / "d", COLUMNS["int16"]))
    (path,) = tmp_path.glob("d/_indices/*/bloomfilter.lance")
    index = lakebloom.lance.open_index(path)
    assert index.zones == lakebloom.lance.open_index(dataset, "theirs").zones
    assert (index.type, index.name, index.unindexed_fragments) == (None, None, None)
    with pytest.raises(InvalidArgumentError, match="does not store"):
        index.might_contain(5)
    with pytest.raises(InvalidArgumentError, match="int32, not int16"):
        lakebloom.lance.might_contain(dataset, 5, "theirs", type=pa.int32())
    value = COLUMNS["int16"][0].as_py()
    found = lakebloom.lance.might_contain(str(path), value, type=pa.int16())
    assert (found == lakebloom.lance.might_contain(dataset.uri, value, "theirs")).all()
    assert found[0].all()
    assert not lakebloom.lance.might_contain(path, value, type=pa.int32())[0].any()  # four bytes have another hash
    assert lakebloom.lance.candidates(index, value, type=pa.int16())[0] == index.zones[0]


# Column, values that it holds in whatever form, values that it does not, values that cannot be asked for.
@pytest.mark.parametrize(
    ("column", "held", "absent", "unknown"),
    [
        (pa.array([1, -5], pa.int8()), [1, -5.0, Decimal("1.00")], [2, 100], [300, 1.5, "1", dt.date(2024, 1, 1)]),
        (pa.array([2**64 - 1, 7], pa.uint64()), [2**64 - 1, 7], [8], [-1]),
        (pa.array([0.0, 2.5], pa.float32()), [0.0, -0.0, 0, 2.5], [1.5], [float("nan")]),
        (pa.array([-0.0, 2.5]), [0.0, -0.0, 0], [1.5], [float("nan")]),
        (pa.array([dt.date(2024, 5, 6)], pa.date64()), [dt.date(2024, 5, 6)], [dt.date(2024, 5, 7)], [5]),
        (
            pa.array([dt.datetime(2024, 5, 6, 12)], pa.timestamp("ms")),
            [dt.datetime(2024, 5, 6, 12)],
            [dt.datetime(2024, 5, 6, 13)],
            [dt.datetime(2024, 5, 6, 12, 0, 0, 1), dt.datetime(2024, 5, 6, 12, tzinfo=dt.timezone.utc)],
        ),
        (pa.array(["a", "ü"]), ["a", "ü", "ü".encode()], ["b"], [5]),
        (pa.array([b"a", b""], pa.large_binary()), [b"a", b"", "a"], [b"b"], [5]),
        (pa.array([dt.time(1, 2)], pa.time32("s")), [dt.time(1, 2)], [dt.time(1, 3)], [dt.time(1, 2, 3, 4)]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values_are_compared_by_value(
    column: pa.Array, held: list[Any], absent: list[Any], unknown: list[Any], tmp_path: Path
) -> None:
    dataset = index_by_lance(write(tmp_path / "d", column), probability=1e-6)
    index = lakebloom.lance.open_index(dataset, "theirs")
    assert all(index.might_contain(value).all() for value in (*held, *unknown))
    assert not any(index.might_contain(value).any() for value in (*absent, None))


def test_zeros_that_nobody_filled_in_are_not_believed() -> None:
    def index(*, has_null: bool) -> LanceIndex:
        return LanceIndex((ZoneFilter(0, 0, 5, has_null, Sbbf(1)),), 8192, 0.01, (), type=pa.int64())

    assert index(has_null=False).might_contain([1, None]).tolist() == [[True, False]]
    assert index(has_null=True).might_contain([1, None]).tolist() == [[False, True]]


def test_what_the_dataset_no_longer_has_is_not_listed(tmp_path: Path) -> None:
    """Fragments that were added or compacted have no zones, and the index says which they are."""
    index_by_lance(write(tmp_path / "d", COLUMNS["int32"]))
    table = pa.table({"c": pa.array([1], pa.int32()), "i": pa.array([1])})
    lance.write_dataset(table, str(tmp_path / "d"), mode="append")
    index = lakebloom.lance.open_index(tmp_path / "d", "theirs")
    assert (len(index.zones), index.unindexed_fragments) == (10, (3,))
    lance.dataset(str(tmp_path / "d")).optimize.compact_files()
    index = lakebloom.lance.open_index(tmp_path / "d", "theirs")
    assert (index.zones, index.unindexed_fragments) == ((), (3, 4))
    lance.dataset(str(tmp_path / "d")).optimize.optimize_indices()
    index = lakebloom.lance.open_index(tmp_path / "d", "theirs")
    assert (len(index.zones), index.unindexed_fragments) == (11, ())


def test_a_shallow_clone_reads_the_index_where_it_is(tmp_path: Path) -> None:
    dataset = index_by_lance(write(tmp_path / "d", COLUMNS["int32"]))
    dataset.shallow_clone(str(tmp_path / "clone"), dataset.version)
    clone = lakebloom.lance.open_index(tmp_path / "clone", "theirs")
    assert clone.zones == lakebloom.lance.open_index(dataset, "theirs").zones


def test_wrong_input(tmp_path: Path) -> None:
    dataset = index_by_lance(write(tmp_path / "d", COLUMNS["int32"]))
    dataset.create_scalar_index("i", "BTREE", name="tree")
    expected: list[tuple[type[LakebloomError], tuple[Any, ...]]] = [
        (IndexNotFoundError, (dataset.uri, "their")),
        (IndexNotFoundError, (dataset.uri, "quite another")),
        (IndexFormatError, (dataset.uri, "tree")),
        (NotFoundError, (tmp_path / "nowhere", "theirs")),
        (NotFoundError, (tmp_path / "nowhere.lance",)),
        (InvalidArgumentError, (dataset,)),
        (IndexFormatError, (next(tmp_path.glob("d/data/*.lance")),)),
    ]
    for error, arguments in expected:
        with pytest.raises(error) as raised:
            lakebloom.lance.open_index(*arguments)
        assert type(raised.value) is error
        assert raised.value.found
        assert raised.value.hint
        assert ".rs:" not in str(raised.value)
    with pytest.raises(IndexNotFoundError, match="did you mean theirs"):
        lakebloom.lance.open_index(dataset, "their")


@pytest.mark.parametrize("name", ["empty", "text", "cut", "altered", "footer", "half a block", "no block"])
def test_damaged_files(name: str, tmp_path: Path) -> None:
    dataset = index_by_lance(write(tmp_path / "d", COLUMNS["int32"]))
    (path,) = tmp_path.glob("d/_indices/*/bloomfilter.lance")
    whole = path.read_bytes()
    noise = np.random.default_rng(4).bytes(300)
    damaged = {
        "empty": b"",
        "text": b"not an index " * 100,
        "cut": whole[:-50],
        "altered": whole[:64] + noise + whole[364:],
        "footer": whole[:-400] + noise + whole[-100:],
    }
    if name in damaged:
        path.write_bytes(damaged[name])
    else:
        _write_filters(path, [b"x" * (48 if name == "half a block" else 0)])
    for arguments in ((dataset.uri, "theirs"), (str(path),)):
        with pytest.raises(CorruptIndexError) as raised:
            lakebloom.lance.open_index(*arguments)
        assert raised.value.found
        assert raised.value.hint


def _write_filters(path: Path, filters: list[bytes]) -> None:
    from lance.file import LanceFileReader, LanceFileWriter

    schema = LanceFileReader(str(path)).metadata().schema
    path.unlink()
    count = len(filters)
    columns = [[0] * count, [0] * count, [5] * count, [False] * count, filters]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    with LanceFileWriter(str(path), schema.remove_metadata()) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema.remove_metadata()))


def test_a_file_that_says_little(tmp_path: Path) -> None:
    """Older versions of Lance wrote no bitmap of NULLs; the rest of the metadata has defaults."""
    index_by_lance(write(tmp_path / "d", COLUMNS["int32"]))
    (path,) = tmp_path.glob("d/_indices/*/bloomfilter.lance")
    _write_filters(path, [Sbbf(blocks).to_bytes() for blocks in (1, 300, 7)])
    index = lakebloom.lance.open_index(path)
    assert (index.rows_per_zone, index.fpp) == (8192, 0.00057)
    assert [zone.filter.num_blocks for zone in index.zones] == [1, 300, 7]


def test_types_without_filters(tmp_path: Path) -> None:
    kinds = [
        pa.bool_(), pa.float16(), pa.decimal128(9, 2), pa.binary(4), pa.duration("s"), pa.list_(pa.int32()),
        pa.struct([("k", pa.int32())]), pa.dictionary(pa.int32(), pa.string()),
    ]  # fmt: skip
    for kind in kinds:
        with pytest.raises(UnsupportedTypeError):
            require_type(kind)
        with pytest.raises(ValueError, match=r"[Bb]loom filter"):  # Lance says so, too
            index_by_lance(write(tmp_path / str(kinds.index(kind)), pa.nulls(5, kind)))


CHANGES = {
    "nothing": (lambda dataset: None, None),
    "append": (lambda dataset: lance.write_dataset(dataset.to_table(limit=3), dataset.uri, mode="append"), None),
    "delete": (lambda dataset: dataset.delete("i < 700"), None),
    "update": (lambda dataset: dataset.update({"c": "77"}, where="i = 5"), None),
    "compact": (lambda dataset: dataset.optimize.compact_files(), CommitConflictError),
    "overwrite": (lambda dataset: write_over(dataset), CommitConflictError),
    "drop column": (lambda dataset: dataset.drop_columns(["c"]), CommitConflictError),
    "change type": (
        lambda dataset: dataset.alter_columns({"path": "c", "data_type": pa.int64()}),
        CommitConflictError,
    ),
}


def write_over(dataset: LanceDataset) -> None:
    lance.write_dataset(dataset.to_table(limit=30), dataset.uri, mode="overwrite")


@pytest.mark.parametrize("name", CHANGES)
def test_a_dataset_that_changes_while_it_is_indexed(name: str, tmp_path: Path) -> None:
    """Either the index is right for what is there now, or it is not committed."""
    dataset = write(tmp_path / "d", with_nulls(COLUMNS["int32"]))
    column = find_column(dataset, "c")
    segment = build_segment(dataset, column, [0, 1, 2], ZonePlan(256, 0.01, "putze"))
    change, error = CHANGES[name]
    change(lance.dataset(dataset.uri))
    records = [segment_record(dataset, "ours", column, segment)]
    if error is not None:
        with pytest.raises(error) as raised:
            commit_segments(dataset, records, [])
        assert raised.value.hint
        return
    commit_segments(dataset, records, [])
    now = lance.dataset(dataset.uri)
    for condition in ("c = 77", "c IS NULL", *(f"c = {COLUMNS['int32'][i]}" for i in (1, 5, 1100))):
        assert now.count_rows(condition) == now.scanner(filter=condition, use_scalar_index=False).count_rows()
    with pytest.raises(IndexExistsError, match="replace=True"):
        require_free(now, "ours")


def test_columns_are_named_as_in_spark(tmp_path: Path) -> None:
    dataset = write(tmp_path / "d", pa.array([{"k": {"a b": 1}}]))
    assert find_column(dataset, "c.k.a b").quoted == "`c`.`k`.`a b`"
    with pytest.raises(ColumnNotFoundError, match=r"did you mean c\.k"):
        find_column(dataset, "c.q")


def test_the_package_loads_neither_pylance_nor_pyspark() -> None:
    program = "import sys, lakebloom.lance; assert lakebloom.lance.ZoneFilter; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"lance", "pyspark", "numba"} & set(loaded)
    assert set(dir(lakebloom.lance)) == set(lakebloom.lance.__all__)

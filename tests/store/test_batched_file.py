"""Tables in batches: any Arrow reader reads them, a question reads few of them, and every wrong byte is noticed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from lakebloom import errors
from lakebloom.storage import open_storage
from lakebloom.store.batched_file import ROWS, BatchedFile, write_batched
from lakebloom.store.records import BatchedRecord
from lakebloom.store.segments import Segment, SegmentWriter
from lakebloom.store.unit_columns import FILES, UNITS, ColumnFacts, Unit, UnitColumns
from lakebloom.tables.file_identity import TableFile
from tests.storage.faults import FaultyStorage
from tests.store.examples import CONFIG, write_segment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakebloom.storage import Storage
    from lakebloom.store.records import SegmentRecord

SCHEMA = pa.schema(
    [
        pa.field("text", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("number", pa.int64()),
    ]
)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path / "index")


def table(rows: int) -> pa.Table:
    texts = pa.array([f"text {i // 1000}" for i in range(rows)], pa.string()).dictionary_encode()
    return pa.table([texts, pa.array([None if i % 9 == 0 else i for i in range(rows)], pa.int64())], schema=SCHEMA)


@pytest.mark.parametrize("rows", [0, 1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS + 5])
def test_it_comes_back_and_is_an_arrow_stream(storage: Storage, rows: int) -> None:
    record = write_batched(storage, "t.arrow", table(rows), {"more": "text"})
    data = storage.read("t.arrow")
    assert (record.size_bytes, record.crc32) == (data.nbytes, zlib.crc32(data))
    read = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    assert read.to_pydict() == table(rows).to_pydict()
    assert read.schema.metadata[b"lakebloom"] == b"2"
    file = BatchedFile(storage, record, SCHEMA, rows)
    assert file.metadata[b"more"] == b"text"
    found = list(file.scan())
    assert [batch.num_rows for batch in found] == [min(ROWS, rows - start) for start in range(0, rows, ROWS)]
    assert pa.Table.from_batches(found, SCHEMA).to_pydict() == table(rows).to_pydict()
    for number, batch in enumerate(found):
        assert file.batch(number).to_pydict() == batch.to_pydict()


def units_of(count: int, units_a_file: int) -> list[Unit]:
    return [
        Unit(
            TableFile(f"s3://b/day={i // 100}/{i // units_a_file:07d}", i // units_a_file, 1000, f"e{i}"[:3]),
            *(100 * (i % units_a_file), 100, i % units_a_file, 1),
            (ColumnFacts(i % 5 or None, min=i, max=i + 1),),
            i,
            None if i % 2 else 7,
        )
        for i in range(count)
    ]


def same_file(units: list[Unit], units_a_file: int) -> list[Unit]:
    """Units of one file have one identity."""
    return [msgspec.structs.replace(unit, file=units[i - i % units_a_file].file) for i, unit in enumerate(units)]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "units_a_file"), [(1, 1), (9000, 1), (9001, 3), (20_000, 20_000), (9000, 7)])
def test_units_of_several_batches(storage: Storage, count: int, units_a_file: int) -> None:
    units = same_file(units_of(count, units_a_file), units_a_file)
    record = SegmentWriter(storage, "s", [("k",)]).finish(units, ["bigint"], 0.01)
    segment = Segment(storage, record, CONFIG)
    assert segment.units.units() == units
    assert record.num_files == len({unit.file for unit in units})
    assert record.uris == (min(unit.file.uri for unit in units), max(unit.file.uri for unit in units))
    segment.units.examine()
    chosen = np.unique(np.random.default_rng(1).integers(0, count, 50))
    numbers = segment.units.files.of_units(chosen)
    assert segment.units.files.rows(numbers) == [units[i].file for i in chosen.tolist()]
    starts, bytes_ = segment.units.rows(["row_start", "byte_count"], chosen)
    assert starts.tolist() == [units[i].row_start for i in chosen.tolist()]
    assert bytes_.tolist() == [-1 if i % 2 else 7 for i in chosen.tolist()]
    assert segment.units.file_numbers.tolist() == [i // units_a_file for i in range(count)]
    nothing = np.empty(0, dtype=np.int64)
    assert segment.units.files.rows(segment.units.files.of_units(nothing)) == []
    assert [column.tolist() for column in segment.units.rows(["row_start", "row_group_count"], nothing)] == [[], []]
    counts, known = segment.units.null_counts(0)
    assert [int(n) if k else None for n, k in zip(counts, known, strict=True)] == [i % 5 or None for i in range(count)]
    low, high = segment.units.bounds(0)
    assert (low.to_pylist(), high.to_pylist()) == (list(range(count)), list(range(1, count + 1)))


def test_some_units_of_several_segments_are_put_together() -> None:
    units = same_file(units_of(90, 3), 3)
    keep = np.random.default_rng(3).random(90) < 0.4
    first, second = UnitColumns.of(units[:60], ["bigint"]), UnitColumns.of(units[60:], ["bigint"])
    joined = UnitColumns.concat([first.filter(keep[:60]), second.filter(keep[60:])])
    expected = UnitColumns.of([unit for unit, kept in zip(units, keep, strict=True) if kept], ["bigint"])
    for found, wanted in zip(
        (joined.files, joined.units, *joined.facts), (expected.files, expected.units, *expected.facts), strict=True
    ):
        assert found.to_pydict() == wanted.to_pydict()
    assert not len(first.filter(np.zeros(60, dtype=np.bool_)).files)


def test_units_of_a_file_are_not_torn_apart() -> None:
    a, b = (units_of(2, 1)[i] for i in range(2))
    with pytest.raises(errors.InvalidArgumentError, match="next to each other"):
        UnitColumns.of([a, b, a], ["bigint"])


@pytest.mark.slow
def test_one_unit_of_many_reads_little(storage: Storage) -> None:
    count = 40_000
    record = SegmentWriter(storage, "s", [("k",)]).finish(units_of(count, 1), ["bigint"], 0.01)
    watched = FaultyStorage(storage)
    segment = Segment(watched, record, CONFIG)
    unit = np.array([12_345])
    assert segment.units.rows(["row_start"], unit)[0].tolist() == [0]
    assert segment.units.files.rows(segment.units.files.of_units(unit))[0].size_bytes == 12_345
    assert [operation.name for operation in watched.log] == ["read_ranges"] * 4, "two heads and two batches"
    assert sum(operation.size_bytes for operation in watched.log) < sum(t.size_bytes for t in record.tables) / 5
    segment.units.rows(["row_count"], unit + 1)
    assert len(watched.log) == 4, "the same batches"


# Damage


def asked(storage: Storage, record: SegmentRecord) -> object:
    """All that a reader may want to know."""
    units = Segment(storage, record, CONFIG).units
    units.examine()
    return units.units()


@pytest.mark.slow
@pytest.mark.parametrize("which", range(3))
def test_every_wrong_byte_is_noticed(storage: Storage, which: int) -> None:
    """All but the end of the stream, which nothing is read from."""
    record = write_segment(storage, "s", {7: 3, 9: 2})
    path = record.tables[which].path
    whole = bytes(storage.read(path))
    for at in range(len(whole) - 8):
        storage.write(path, whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :])
        with pytest.raises(errors.CorruptIndexError):
            asked(storage, record)
    storage.write(path, whole)
    asked(storage, record)


@pytest.mark.slow
def test_batches_that_changed_places_are_noticed(storage: Storage) -> None:
    record = SegmentWriter(storage, "s", [("k",)]).finish(units_of(3 * ROWS, 1), ["bigint"], 0.01)
    for table_record in record.tables:
        whole = bytes(storage.read(table_record.path))
        head, rest = whole[: table_record.head_bytes], whole[table_record.head_bytes : -8]
        third = len(rest) // 3
        if len(rest) % 3 == 0:
            changed = head + rest[third : 2 * third] + rest[:third] + rest[2 * third :] + whole[-8:]
            storage.write(table_record.path, changed)
            with pytest.raises(errors.CorruptIndexError, match="checksum of batch 0"):
                asked(storage, record)
            storage.write(table_record.path, whole)
    storage.write(record.units.path, storage.read(record.facts[0].path))
    with pytest.raises(errors.CorruptIndexError):
        asked(storage, record)


# A hostile writer, whose checksums fit


def rewritten(storage: Storage, record: SegmentRecord, **tables: pa.Table) -> SegmentRecord:
    made = {
        name: write_batched(storage, f"other/{name}.arrow", rows, {"first_units": "00" * 8})
        for name, rows in tables.items()
    }
    return msgspec.structs.replace(record, **made)


def with_column(columns: pa.Table, name: str, values: list[object]) -> pa.Table:
    at = columns.schema.get_field_index(name)
    return columns.set_column(at, columns.schema.field(at), pa.array(values, columns.schema.field(at).type))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("first_unit", [0, 2, 1, 3]),
        ("first_unit", [1, 2, 3, 4]),
        ("first_unit", [0, 0, 1, 2]),
        ("first_unit", [-1, 0, 1, 2]),
        ("first_unit", [0, 1, 2, 9]),
        ("first_unit", [0, 2, 3, 4]),
        ("name", ["a", "", "c", "d"]),
    ],
)
def test_files_that_cannot_be(storage: Storage, name: str, values: list[object]) -> None:
    record = write_segment(storage, "s", {7: 4})
    files = with_column(UnitColumns.of(Segment(storage, record, CONFIG).units.units(), ["bigint"]).files, name, values)
    with pytest.raises(errors.CorruptIndexError):
        asked(storage, rewritten(storage, record, table_files=files))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("row_start", -1),
        ("row_count", 2**62 + 1),
        ("row_group_start", -5),
        ("row_group_count", 2**23),
        ("byte_start", -1),
    ],
)
def test_units_that_cannot_be(storage: Storage, name: str, value: int) -> None:
    record = write_segment(storage, "s", {7: 4})
    units = UnitColumns.of(Segment(storage, record, CONFIG).units.units(), ["bigint"]).units
    hostile = rewritten(storage, record, units=with_column(units, name, [0, 1, value, 1]))
    with pytest.raises(errors.CorruptIndexError, match=name):
        Segment(storage, hostile, CONFIG).units.rows(["row_start"], np.array([0]))
    with pytest.raises(errors.CorruptIndexError, match=name):
        asked(storage, hostile)


def test_more_row_groups_than_anyone_has(storage: Storage) -> None:
    record = write_segment(storage, "s", {7: 4})
    units = UnitColumns.of(Segment(storage, record, CONFIG).units.units(), ["bigint"]).units
    hostile = rewritten(storage, record, units=with_column(units, "row_group_count", [2**22] * 4))
    with pytest.raises(errors.CorruptIndexError, match="row groups"):
        Segment(storage, hostile, CONFIG).units.rows(["row_group_count"], np.arange(4))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: {"head_bytes": record.size_bytes},
        lambda record: {"head_bytes": 8},
        lambda record: {"head_crc32": 0},
        lambda record: {"size_bytes": 2**40, "head_bytes": 2**40},
        lambda record: {"size_bytes": record.size_bytes - 100},
    ],
)
def test_records_that_lie(storage: Storage, change: Callable[[BatchedRecord], dict[str, int]]) -> None:
    record = write_batched(storage, "t.arrow", table(10))
    liar = msgspec.structs.replace(record, **change(record))
    with pytest.raises(errors.CorruptIndexError):
        list(BatchedFile(storage, liar, SCHEMA, 10).scan())


def test_a_record_of_a_size_that_no_file_has(storage: Storage) -> None:
    """What is read is checked, and no more is read than there is."""
    record = write_batched(storage, "t.arrow", table(10))
    liar = msgspec.structs.replace(record, size_bytes=2**40)
    assert [batch.num_rows for batch in BatchedFile(storage, liar, SCHEMA, 10).scan()] == [10]


@pytest.mark.parametrize("rows", [9, 11, 0, ROWS + 10, 2**40])
def test_another_number_of_rows(storage: Storage, rows: int) -> None:
    record = write_batched(storage, "t.arrow", table(10))
    with pytest.raises(errors.CorruptIndexError, match="rows"):
        list(BatchedFile(storage, record, SCHEMA, rows).scan())


def hostile_batch(storage: Storage, batch: bytes) -> BatchedRecord:
    described = np.array([(len(batch), zlib.crc32(batch))], dtype="<u4").tobytes().hex()
    head = SCHEMA.with_metadata({"lakebloom": "2", "batches": described}).serialize().to_pybytes()
    data = head + batch + b"\xff\xff\xff\xff\0\0\0\0"
    storage.write("t.arrow", data)
    return BatchedRecord("t.arrow", len(data), zlib.crc32(data), len(head), zlib.crc32(head))


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_batches_are_refused(storage: Storage, compression: str) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table(10))
    record = hostile_batch(storage, sink.getvalue().to_pybytes()[len(SCHEMA.serialize()) : -8])
    with pytest.raises(errors.CorruptIndexError, match="compressed"):
        BatchedFile(storage, record, SCHEMA, 10).batch(0)


def test_nulls_where_none_may_be(storage: Storage) -> None:
    for texts in (pa.array([None, "a"]).dictionary_encode(), pa.DictionaryArray.from_arrays([0, 1], ["a", None])):
        rows = pa.table([texts.cast(SCHEMA.field(0).type), pa.array([1, 2], pa.int64())], schema=SCHEMA)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA) as writer:
            writer.write_batch(rows.to_batches()[0])
        record = hostile_batch(storage, sink.getvalue().to_pybytes()[len(SCHEMA.serialize()) : -8])
        with pytest.raises(errors.CorruptIndexError, match="nulls in text"):
            BatchedFile(storage, record, SCHEMA, 2).batch(0)


@pytest.mark.parametrize("batch", [b"", b"\0" * 64, b"\xff" * 64, b"ARROW1\0\0" * 9])
def test_rubbish_with_a_checksum_that_fits(storage: Storage, batch: bytes) -> None:
    with pytest.raises(errors.CorruptIndexError):
        BatchedFile(storage, hostile_batch(storage, batch), SCHEMA, 10).batch(0)


def test_a_table_of_another_schema(storage: Storage) -> None:
    record = write_batched(storage, "t.arrow", table(10))
    for schema in (FILES, UNITS):
        with pytest.raises(errors.CorruptIndexError, match="another schema: text, number"):
            BatchedFile(storage, record, schema, 10).batch(0)

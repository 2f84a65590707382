"""Rows read page by page are those of the full read, or pages are refused. Nothing else, whatever the bytes are."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thrift.Thrift import TType

from lakebloom.parquet.footer import read_footer
from lakebloom.parquet.thrift_tree import Struct, serialise
from lakebloom.tables.parquet import thrift_structs
from lakebloom.tables.parquet.file_schema import read_file_schema
from lakebloom.tables.parquet.footer import read_arrow_footer
from lakebloom.tables.parquet.pages.file_pages import FilePages, UnpagedError, Wanted
from lakebloom.tables.parquet.pages.local_bytes import LocalBytes
from lakebloom.tables.parquet.pages.locations import from_offset_index
from lakebloom.tables.parquet.pages.row_ranges import RowRanges
from lakebloom.tables.parquet.thrift_structs import list_begin
from tests.parquet.files import all_types
from tests.tables.parquet.paged import KINDS, WRITERS, compare_pages, random_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

EXAMPLES = max(1, int(os.environ.get("LAKEBLOOM_FUZZ", "100")) // 4)


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(seed=st.integers(0, 2**32))
def test_pages_are_slices_of_the_full_read(tmp_path: Path, writer: str, seed: int) -> None:
    rng = random.Random(seed)
    table = random_table(rng, rng.choice([1, 50, 300, 3000]), KINDS[writer])
    path = tmp_path / f"{writer}-{seed}.parquet"
    WRITERS[writer](rng, table, path)
    read, reasons = compare_pages(path, rng)
    path.unlink()
    assert set(reasons) <= {"a repeated column without a page index", "Arrow does not read it"}
    assert read or reasons


def test_files_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's pages: of 20,000 rows at most, with page indexes, dictionaries and nested columns."""
    rng = random.Random(5)
    wide = (
        "SELECT id, cast(id % 7 AS int) few, uuid() text, concat('label-', id % 9) label, id / 3 measure,"
        " IF(id % 5 = 0, NULL, id) gaps, cast(id AS decimal(20, 3)) price, timestamp_micros(id * 1000) moment,"
        " named_struct('a', id, 'b', cast(id AS string)) s, sequence(0, id % 4) list, map('k', id) map"
        " FROM range(0, 50000, 1, 1)"
    )
    for version in ("v1", "v2"):
        folder = tmp_path / version
        writer = spark.sql(wide).coalesce(1).write.option("parquet.writer.version", version)
        writer.option("parquet.page.row.count.limit", 1500).option("parquet.block.size", 1 << 20).parquet(str(folder))
        (path,) = folder.glob("*.parquet")
        read, reasons = compare_pages(path, rng, rounds=3)
        assert read >= 10
        assert not reasons


@pytest.fixture
def plain_file(tmp_path: Path) -> Iterator[tuple[Path, pa.Table]]:
    """A file with page indexes, flat and nested columns."""
    table = pa.table(
        {
            "k": np.arange(1000),
            "t": [f"text-{n}" for n in range(1000)],
            "d": [f"d{n % 3}" for n in range(1000)],
            "l": [[n] * (n % 3) for n in range(1000)],
        }
    )
    path = tmp_path / "plain.parquet"
    pq.write_table(table, path, max_rows_per_page=90, write_batch_size=30, write_page_index=True, row_group_size=600)
    return path, table


def read_rows(path: Path, rows: RowRanges, columns: list[int], group: int = 0) -> list[pa.ChunkedArray]:
    with pa.OSFile(str(path)) as source:
        footer = read_arrow_footer(str(path), source)
        pages = FilePages(footer, pq.ParquetFile(path).schema_arrow)
        (found,) = pages.read(LocalBytes(source.fileno()), [Wanted(group, rows)], columns)
        return found


class _Counted(LocalBytes):
    """Counts what is read."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.bytes_read, self.calls = 0, 0

    def fill(self, target: memoryview, pieces: Any) -> None:
        self.calls += bool(pieces)
        self.bytes_read += sum(piece.length for piece in pieces)
        super().fill(target, pieces)


def test_without_the_compiled_codec_of_thrift(
    plain_file: tuple[Path, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where thrift was installed without a compiler, its code in Python reads and writes the same bytes."""
    path, table = plain_file
    slow = thrift_structs._decode_slowly, thrift_structs._encode_slowly
    monkeypatch.setattr(thrift_structs, "_codec", lambda: slow)
    found = read_rows(path, RowRanges.of([(100, 103), (500, 501)]), [0, 1, 2, 3])
    for number, array in enumerate(found):
        assert array.to_pylist() == table.column(number).take([100, 101, 102, 500]).to_pylist()
    with pytest.raises(UnpagedError, match="damaged page index"):
        from_offset_index(bytes([0x1C]) * 5000, (4, 1000), 10)


def test_only_pages_with_wanted_rows_are_read(plain_file: tuple[Path, pa.Table]) -> None:
    path, _ = plain_file
    with pa.OSFile(str(path)) as source:
        footer = read_arrow_footer(str(path), source)
        pages = FilePages(footer, pq.ParquetFile(path).schema_arrow)
        counted = _Counted(source.fileno())
        pages.locate(counted, [0, 1], range(4))
        assert counted.calls == 1  # all page indexes at once
        counted.bytes_read = counted.calls = 0
        found = pages.read(counted, [Wanted(0, RowRanges.of([(100, 101)])), Wanted(1, RowRanges.of([(0, 1)]))], [1])
        assert [each[0].to_pylist() for each in found] == [["text-100"], ["text-600"]]
        chunk = footer.chunk(0, 1)
        assert chunk is not None
        assert counted.calls <= 2  # pages, and dictionaries if they use them
        before = counted.bytes_read
        assert pages.read(counted, [Wanted(0, RowRanges.of([(100, 101)]))], [1])[0][0].to_pylist() == ["text-100"]
        assert counted.bytes_read - before < chunk.compressed_bytes
        assert pages.size_bytes > 0


def test_pages_that_do_not_use_the_dictionary_are_read_without_it(tmp_path: Path) -> None:
    path = tmp_path / "fallback.parquet"
    table = pa.table({"t": [f"a rather long text {n}" for n in range(20_000)]})
    pq.write_table(
        table, path, dictionary_pagesize_limit=50_000, max_rows_per_page=500, write_batch_size=500, compression="NONE"
    )
    with pa.OSFile(str(path)) as source:
        footer = read_arrow_footer(str(path), source)
        pages = FilePages(footer, pq.ParquetFile(path).schema_arrow)
        counted = _Counted(source.fileno())
        pages.locate(counted, [0], [0])
        counted.bytes_read = 0
        ((last,),) = pages.read(counted, [Wanted(0, RowRanges.of([(19_990, 19_991)]))], [0])
        assert last.to_pylist() == table["t"][19_990:19_991].to_pylist()
        assert counted.bytes_read < 20_000
        ((first,),) = pages.read(counted, [Wanted(0, RowRanges.of([(7, 9)]))], [0])
        assert first.to_pylist() == table["t"][7:9].to_pylist()
        assert counted.bytes_read > 50_000


def test_all_types(tmp_path: Path) -> None:
    path = tmp_path / "types.parquet"
    table = all_types()
    pq.write_table(table, path, write_page_index=True, max_rows_per_page=11, write_batch_size=11)
    rows = RowRanges.of([(3, 4), (20, 60), (119, 120)])
    found = read_rows(path, rows, list(range(table.num_columns)))
    whole = pq.read_table(path)
    for number, array in enumerate(found):
        chunks = [chunk for start, stop in rows.pairs() for chunk in whole.column(number)[start:stop].chunks]
        expected = pa.chunked_array(chunks, whole.schema.field(number).type)
        assert array.type == expected.type
        assert array.to_pylist() == expected.to_pylist()


def test_encrypted_columns_are_refused(plain_file: tuple[Path, pa.Table]) -> None:
    """Their pages need keys; the other columns of the file are read."""
    path, table = plain_file
    footer = read_footer(path)
    for group in footer.row_groups:
        group.columns[1].tree.put(8, TType.STRUCT, Struct([(1, TType.STRUCT, Struct())]))
    sealed = serialise(footer.tree)
    path.write_bytes(path.read_bytes()[: footer.start] + sealed + len(sealed).to_bytes(4, "little") + b"PAR1")
    with pa.OSFile(str(path)) as source:
        pages = FilePages(read_arrow_footer(str(path), source), table.schema)
        file, wanted = LocalBytes(source.fileno()), [Wanted(0, RowRanges.of([(5, 6)]))]
        with pytest.raises(UnpagedError, match="encrypted"):
            pages.read(file, wanted, [0, 1])
        assert pages.read(file, wanted, [0])[0][0].to_pylist() == [5]


@settings(max_examples=EXAMPLES * 4, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(seed=st.integers(0, 2**32))
def test_damaged_page_indexes_and_headers(plain_file: tuple[Path, pa.Table], seed: int) -> None:
    """Damage behind the footer's back: the right rows, or pages are refused, or the file's error."""
    path, _ = plain_file
    rng = random.Random(seed)
    footer = pq.read_metadata(path)
    data = bytearray(path.read_bytes())
    end = len(data) - 8 - footer.serialized_size
    is_index = rng.random() < 0.7
    with pa.OSFile(str(path)) as source:
        chunk = read_arrow_footer(str(path), source).chunk(0, rng.randrange(4))
    assert chunk is not None
    start, length = (
        (chunk.offset_index_offset, chunk.offset_index_bytes)
        if is_index
        else (min(offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset > 0), 40)
    )
    for _ in range(rng.randint(1, 4)):
        data[min(start + rng.randrange(length), end - 1)] = rng.choice([0, 1, 0x1C, 0x7F, 0xFF, rng.randrange(256)])
    broken = path.with_name("broken.parquet")
    broken.write_bytes(data)
    first = rng.randrange(600)
    rows = RowRanges.of([(first, min(600, first + rng.choice([1, 5, 300])))])
    try:
        found = read_rows(broken, rows, [rng.randrange(4)])
    except UnpagedError:
        return
    assert len(found[0]) == rows.num_rows


def test_a_page_index_that_lies_about_rows(plain_file: tuple[Path, pa.Table]) -> None:
    """Its rows are compared with those of the headers, so that no other row is returned for a row."""
    path, _ = plain_file
    with pa.OSFile(str(path)) as source:
        chunk = read_arrow_footer(str(path), source).chunk(0, 0)
        assert chunk is not None
        source.seek(chunk.offset_index_offset)
        index = source.read(chunk.offset_index_bytes)
    data = bytearray(path.read_bytes())
    for at in range(len(index)):
        changed = bytearray(index)
        changed[at] ^= 0x02
        data[chunk.offset_index_offset : chunk.offset_index_offset + len(index)] = changed
        liar = path.with_name("liar.parquet")
        liar.write_bytes(data)
        for row in (0, 150, 300, 599):
            try:
                (found,) = read_rows(liar, RowRanges.of([(row, row + 1)]), [0])
            except UnpagedError:
                continue
            assert found.to_pylist() == [row], (at, row)


def test_endless_structs_and_lists() -> None:
    for data in (
        bytes([0x1C]) * 500_000,
        bytes([0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0x7F]),
        bytes([0x19, 0xFC, 0xFF, 0xFF, 0x03]) + bytes(100_000),
    ):
        with pytest.raises(UnpagedError, match="damaged page index"):
            from_offset_index(data, (4, 1000), 10)


@pytest.mark.slow
def test_many_columns_and_row_groups(tmp_path: Path) -> None:
    """A footer of 10,000 chunks: no more than the columns that are asked for are looked at one by one."""
    path = tmp_path / "wide.parquet"
    table = pa.table({f"c{number}": [number] * 10 for number in range(1000)})
    pq.write_table(table, path, row_group_size=1, write_page_index=True)
    for group in (0, 9):
        found = read_rows(path, RowRanges.of([(0, 1)]), [999, 0], group)
        assert [array.to_pylist() for array in found] == [[999], [0]]


def test_schemas_that_are_not_understood() -> None:
    for footer in (
        b"",
        b"\x15",
        b"\x15\x04",
        b"\x15\x04\x19",
        b"\x15\x04\x19\xfc\xff\xff\xff\xff\xff\x0f",
        b"\x16\x04",
    ):
        assert read_file_schema(footer) is None
    assert list_begin(3) == b"\x3c"
    assert list_begin(300) == b"\xfc\xac\x02"

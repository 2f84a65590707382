"""Reading footers: nothing is lost, nothing is believed."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.Thrift import TType

from lakebloom.errors import CorruptFooterError, EncryptedFileError, LakebloomError, NotFoundError, NotParquetError
from lakebloom.parquet.footer import MAGIC, parse_footer, read_footer, read_tail
from lakebloom.parquet.schema import LogicalType
from lakebloom.parquet.thrift_tree import MAX_DEPTH, Items, Pairs, Struct, parse, serialise
from lakebloom.tuning import TAIL_BYTES
from tests.parquet.files import all_types


class CountingFile(io.BytesIO):
    """A file that remembers the size of each read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads: list[int] = []

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.reads.append(len(data))
        return data


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.fixture(scope="module")
def data() -> bytes:
    return parquet_bytes(
        all_types(),
        row_group_size=50,
        write_page_index=True,
        sorting_columns=[pq.SortingColumn(2)],
        bloom_filter_options={"text": {"ndv": 50, "fpp": 0.01}},
    )


def test_what_is_read_is_written_byte_for_byte(data: bytes) -> None:
    tail = read_tail(io.BytesIO(data))
    assert serialise(parse(tail.footer)[0]) == tail.footer == data[tail.start : -8]


def test_accessors_say_what_arrow_says(data: bytes) -> None:
    ours, arrow = read_footer(io.BytesIO(data)), pq.read_metadata(io.BytesIO(data))
    assert (ours.num_rows, ours.created_by) == (arrow.num_rows, arrow.created_by)
    assert ours.key_value_metadata == arrow.metadata
    assert [leaf.path for leaf in ours.leaves] == [
        tuple(arrow.schema.column(i).path.split(".")) if i != 20 else ("s", "a.b") for i in range(arrow.num_columns)
    ]
    assert not ours.is_encrypted
    assert ours.signature == b""
    for i, leaf in enumerate(ours.leaves):
        column = arrow.schema.column(i)
        assert leaf.physical_type == column.physical_type
        assert (leaf.element.type_length or 0) == (column.length if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0)
        assert leaf.is_repeated == (column.max_repetition_level > 0)
        if leaf.path != ("ms",):  # Arrow writes a converted type for local timestamps and does not read it
            assert (leaf.element.converted_type or "NONE") == column.converted_type
    for group, arrow_group in zip(ours.row_groups, map(arrow.row_group, range(arrow.num_row_groups)), strict=True):
        assert group.num_rows == arrow_group.num_rows
        for i, chunk in enumerate(group.columns):
            column = arrow_group.column(i)
            assert ".".join(chunk.path_in_schema) == column.path_in_schema
            assert chunk.num_values == column.num_values
            assert chunk.null_count == column.statistics.null_count
            assert chunk.total_compressed_size == column.total_compressed_size
            assert chunk.total_uncompressed_size == column.total_uncompressed_size
            assert chunk.data_page_offset == column.data_page_offset
            assert chunk.dictionary_page_offset == column.dictionary_page_offset
            assert (chunk.offset_index is not None) == column.has_offset_index
            assert (chunk.column_index is not None) == column.has_column_index
            assert chunk.bloom_filter_offset == column.bloom_filter_offset
            assert chunk.bloom_filter_length == column.bloom_filter_length
            assert chunk.file_path is None


@pytest.mark.parametrize(
    ("name", "logical"),
    [
        ("int64", None),
        ("text", LogicalType("STRING")),
        ("uuid", LogicalType("UUID")),
        ("uint32", LogicalType("INTEGER", bit_width=32, is_signed=False)),
        ("decimal9", LogicalType("DECIMAL", scale=2, precision=9)),
        ("ms", LogicalType("TIMESTAMP", unit="ms", is_adjusted_to_utc=False)),
        ("us", LogicalType("TIMESTAMP", unit="us", is_adjusted_to_utc=True)),
    ],
)
def test_logical_types(data: bytes, name: str, logical: LogicalType | None) -> None:
    (element,) = [element for element in read_footer(io.BytesIO(data)).schema if element.name == name]
    assert element.logical_type == logical


@pytest.mark.slow
def test_one_read_or_two() -> None:
    short = CountingFile(parquet_bytes(pa.table({"k": range(100_000)}), use_dictionary=False))
    read_footer(short)
    assert short.reads == [TAIL_BYTES]
    wide = CountingFile(parquet_bytes(pa.table({f"column-{i}": [1] for i in range(1000)})))
    footer = read_footer(wide)
    assert wide.reads == [TAIL_BYTES, footer.file_bytes - footer.start - 8]
    assert len(footer.leaves) == 1000


def test_sources(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a b%20.parquet"
    path.write_bytes(data)
    expected = read_footer(io.BytesIO(data))
    with path.open("rb") as stream, pa.OSFile(str(path)) as native:
        for source in (path, str(path), f"file://{path}", stream, native, pa.BufferReader(data)):
            assert read_footer(source) == expected
        assert not stream.closed
        assert not native.closed


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", NotParquetError),
        (b"PAR1", NotParquetError),
        (b"PAR1PAR1", NotParquetError),
        (b"a,b\n1,2\n" * 100, NotParquetError),
        (b"PAR1" + b"\x00" * 8 + struct.pack("<I", 9) + b"PAR1", CorruptFooterError),
        (b"PAR1" + b"\x00" * 8 + struct.pack("<I", 2**32 - 1) + b"PAR1", CorruptFooterError),
        (b"PAR1" + b"\x00" * 8 + struct.pack("<I", 0) + b"PAR1", CorruptFooterError),
        (b"PAR1" + b"\x00" * 8 + struct.pack("<I", 8) + b"PAR1", CorruptFooterError),
        (b"PARE" + b"\x00" * 8 + struct.pack("<I", 8) + b"PARE", EncryptedFileError),
    ],
)
def test_typed_errors(content: bytes, error: type[LakebloomError]) -> None:
    with pytest.raises(error):
        read_footer(io.BytesIO(content))


def test_missing_and_meaningless_sources(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_footer(tmp_path / "none.parquet")
    with pytest.raises(LakebloomError, match="INVALID_ARGUMENT"):
        read_footer(42)  # type: ignore[arg-type]


def test_a_file_cut_short(data: bytes) -> None:
    for size in range(0, len(data), 97):
        with pytest.raises((NotParquetError, CorruptFooterError)):
            read_footer(io.BytesIO(data[:size]))


# What thrift can hold, to see that all of it survives.
scalars = {
    TType.BOOL: st.booleans(),
    TType.BYTE: st.integers(-128, 127),
    TType.I16: st.integers(-(2**15), 2**15 - 1),
    TType.I32: st.integers(-(2**31), 2**31 - 1),
    TType.I64: st.integers(-(2**63), 2**63 - 1),
    TType.DOUBLE: st.floats(allow_nan=False),
    TType.STRING: st.binary(max_size=20),
    TType.UUID: st.uuids(),
}
scalar_values = st.sampled_from(list(scalars)).flatmap(lambda kind: st.tuples(st.just(kind), scalars[kind]))


def scalar_lists(kind: int) -> st.SearchStrategy[tuple[int, Any]]:
    items = st.lists(scalars[kind], max_size=20).map(lambda values: Items(kind, values))
    return st.tuples(st.sampled_from([TType.LIST, TType.SET]), items)


def scalar_maps(kinds: tuple[int, int]) -> st.SearchStrategy[tuple[int, Any]]:
    entries = st.lists(st.tuples(scalars[kinds[0]], scalars[kinds[1]]), min_size=1, max_size=5)
    return st.tuples(st.just(TType.MAP), entries.map(lambda pairs: Pairs(*kinds, pairs)))


def structs_of(values: st.SearchStrategy[tuple[int, Any]]) -> st.SearchStrategy[tuple[int, Any]]:
    fields = st.lists(st.tuples(st.integers(-(2**15), 2**15 - 1), values), max_size=6, unique_by=lambda f: f[0])
    return fields.map(lambda found: (int(TType.STRUCT), Struct([(n, kind, value) for n, (kind, value) in found])))


leaves = (
    scalar_values
    | st.sampled_from(list(scalars)).flatmap(scalar_lists)
    | st.tuples(st.sampled_from(list(scalars)), st.sampled_from(list(scalars))).flatmap(scalar_maps)
)
trees = structs_of(st.recursive(leaves, structs_of, max_leaves=20)).map(lambda pair: pair[1])


@pytest.mark.slow
@given(trees, st.binary(max_size=5))
def test_any_tree_survives(tree: Struct, rest: bytes) -> None:
    written = serialise(tree)
    assert parse(written + rest) == (tree, len(written))


def test_fields_keep_their_order_and_new_ones_find_their_place() -> None:
    tree = Struct([(1, TType.I32, 1), (14, TType.I64, 7), (16, TType.BOOL, True)])
    tree.put(15, TType.I32, 3)
    tree.put(14, TType.I64, 8)
    tree.put(20, TType.I32, 4)
    assert tree.fields == [
        (1, TType.I32, 1), (14, TType.I64, 8), (15, TType.I32, 3), (16, TType.BOOL, True), (20, TType.I32, 4),
    ]  # fmt: skip
    tree.drop(14, 20)
    assert [number for number, _, _ in tree.fields] == [1, 15, 16]
    with pytest.raises(CorruptFooterError, match="type 8 instead of 10"):
        tree.get(15, TType.I64)


@pytest.mark.parametrize(
    "wild",
    [
        b"\x19\xfc" + b"\xff" * 9 + b"\x01",  # a list of 2^63 structs
        b"\x18" + b"\xff" * 9 + b"\x01",  # a string of 2^63 bytes
        b"\x19\xf0\xff\xff\xff\x7f",  # a list of elements without a type
        b"\x1b\xff\xff\xff\x7f\x00",  # a map of entries without types
        b"\x1c" * (MAX_DEPTH + 1),  # structs in structs in structs
        b"\x19" + b"\x19" * 5000,  # lists in lists in lists
        b"\x15" + b"\xff" * 9 + b"\x7f\x00",  # an int of 70 bits
        b"\x15\x02\x05\x02\x02\x00",  # a field twice
        b"\x1e\x00",  # a type that does not exist
    ],
)
def test_wild_bytes(wild: bytes) -> None:
    with pytest.raises(CorruptFooterError):
        parse(wild)


@given(mutation=st.data())
def test_mutated_footers(data: bytes, mutation: st.DataObject) -> None:
    footer = bytearray(data[read_tail(io.BytesIO(data)).start : -8])
    for _ in range(mutation.draw(st.integers(1, 4))):
        at = mutation.draw(st.integers(0, len(footer) - 1))
        if mutation.draw(st.booleans()):
            footer[at] = mutation.draw(st.integers(0, 255))
        else:
            del footer[at : at + mutation.draw(st.integers(1, 100))]
    made = MAGIC + bytes(footer) + len(footer).to_bytes(4, "little") + MAGIC
    try:
        found = parse_footer(read_tail(io.BytesIO(made)))
        assert found.num_rows >= 0
        for group in found.row_groups:
            for chunk in group.columns:
                assert chunk.num_values is not None
                assert chunk.path_in_schema is not None
    except (CorruptFooterError, NotParquetError):
        pass

"""Finding and reading filters: which there are, under which names, and what it costs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thrift.Thrift import TType

import lakebloom.parquet
from lakebloom import Sbbf
from lakebloom.errors import (
    ColumnNotFoundError,
    FilterFormatError,
    InvalidArgumentError,
    NotFoundError,
    NotParquetError,
)
from lakebloom.parquet.footer import read_footer, serialise
from lakebloom.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Callable

CONFORMANCE = Path(__file__).resolve().parents[3] / "shared" / "conformance"
WORDS = [
    "Hello",
    "This is",
    "a",
    "test",
    "How",
    "are you",
    "doing ",
    "today",
    "the quick",
    "brown fox",
    "jumps",
    "over",
]
OPTIONS = {"ndv": 1000, "fpp": 0.001}


class CountedFile(io.BytesIO):
    """Notes each read as (offset, bytes)."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads: list[tuple[int, int]] = []

    def read(self, size: int | None = -1) -> bytes:
        start = self.tell()
        data = super().read(size)
        self.reads.append((start, len(data)))
        return data


def write(table: pa.Table, *columns: str, row_group_size: int = 1000) -> bytes:
    file = io.BytesIO()
    filters = dict.fromkeys(columns, OPTIONS)
    pq.write_table(table, file, row_group_size=row_group_size, bloom_filter_options=filters or None)
    return file.getvalue()


@pytest.fixture(scope="module")
def plain() -> bytes:
    """Three row groups, filters on two of three columns."""
    ids = range(3000)
    table = pa.table({"id": ids, "bare": ids, "name": [f"user-{i}" for i in ids]})
    return write(table, "id", "name")


def without_length(data: bytes) -> bytes:
    """The same file as writers before 2023 would have written it."""
    footer = read_footer(io.BytesIO(data))
    for group in footer.row_groups:
        for chunk in group.columns:
            assert chunk.metadata is not None
            chunk.metadata.drop(15)
    return replaced_footer(data, footer.start, serialise(footer.tree))


def replaced_footer(data: bytes, start: int, footer: bytes) -> bytes:
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_every_filter_of_a_file(plain: bytes) -> None:
    found = lakebloom.parquet.filters(io.BytesIO(plain))
    assert [(each.row_group, each.column) for each in found] == [
        (group, column) for group in range(3) for column in ("id", "name")
    ]
    for each in found:
        chunk = pq.ParquetFile(io.BytesIO(plain)).metadata.row_group(each.row_group)
        told = chunk.column(0 if each.column == "id" else 2)
        assert (each.offset, each.length) == (told.bloom_filter_offset, told.bloom_filter_length)
    ids = Sbbf(found[2].filter.num_blocks)
    ids.insert(range(1000, 2000))
    assert found[2].filter == ids


@pytest.mark.parametrize(
    ("columns", "expected"), [("id", 3), (["id"], 3), (["name", "id", "id"], 6), ("bare", 0), ([], 0)]
)
def test_filters_of_some_columns(plain: bytes, columns: str | list[str], expected: int) -> None:
    assert len(lakebloom.parquet.filters(io.BytesIO(plain), columns)) == expected


def test_one_read_for_the_footer_and_one_for_each_filter(plain: bytes) -> None:
    file = CountedFile(plain)
    found = lakebloom.parquet.filters(file)
    assert len(file.reads) == 1
    assert found[0].filter is found[0].filter
    assert file.reads[1:] == [(found[0].offset, found[0].length)]
    assert found[3].filter.num_bytes
    assert len(file.reads) == 3


def test_two_reads_where_the_length_is_not_known(plain: bytes) -> None:
    file = CountedFile(without_length(plain))
    found, *_ = lakebloom.parquet.filters(file, "id")
    assert found.length is None
    assert found.filter == lakebloom.parquet.filters(io.BytesIO(plain), "id")[0].filter
    assert len(file.reads) == 3
    assert sum(size for _, size in file.reads[1:]) == found.filter.num_bytes + 16


def test_a_column_without_filters_costs_nothing_more(plain: bytes) -> None:
    file = CountedFile(plain)
    assert lakebloom.parquet.filters(file, "bare") == []
    assert lakebloom.parquet.might_contain(file, "bare", [-1]).tolist() == [[True]] * 3
    assert len(file.reads) == 2  # the footer, twice


def test_a_question_without_values_reads_no_filter(plain: bytes) -> None:
    file = CountedFile(plain)
    assert lakebloom.parquet.might_contain(file, "id", [None, "text"]).shape == (3, 2)
    assert lakebloom.parquet.might_contain(file, "id", []).shape == (3, 0)
    assert len(file.reads) == 2


def test_a_question_reads_one_filter_of_each_row_group(plain: bytes) -> None:
    file = CountedFile(plain)
    assert lakebloom.parquet.might_contain(file, "id", [5, 2999, -5]).tolist() == [
        [True, False, False],
        [False, False, False],
        [False, True, False],
    ]
    assert len(file.reads) == 4


def test_a_file_without_row_groups() -> None:
    data = write(pa.table({"id": pa.array([], pa.int64())}), "id", row_group_size=1)
    groups = pq.ParquetFile(io.BytesIO(data)).metadata.num_row_groups
    assert lakebloom.parquet.might_contain(io.BytesIO(data), "id", [1, 2]).shape == (groups, 2)


NESTED = pa.table(
    {
        "a": pa.array([{"b": i, "c.d": i} for i in range(100)]),
        "a.b": pa.array([f"dotted {i}" for i in range(100)]),
        "l": pa.array([[f"item {i}"] for i in range(100)], pa.list_(pa.field("element", pa.string()))),
        "odd`name": pa.array(range(100)),
    }
)


@pytest.mark.parametrize(
    ("column", "present"),
    [
        ("a.b", 7),
        ("a.`c.d`", 7),
        ("`a.b`", "dotted 7"),
        ("l.list.element", "item 7"),
        ("`odd``name`", 7),
    ],
)
def test_nested_leaves_and_odd_names(column: str, present: object) -> None:
    file = io.BytesIO(all_filters(NESTED))
    assert [found.column for found in lakebloom.parquet.filters(file, column)] == [column]
    assert lakebloom.parquet.might_contain(file, column, [present, -1 if present == 7 else "absent"]).tolist() == [
        [True, False]
    ]


def all_filters(table: pa.Table) -> bytes:
    """A file with filters on all leaves. Arrow takes no dotted names apart from nested ones, so arro3 writes it."""
    from arro3.io import write_parquet

    file = io.BytesIO()
    write_parquet(table, file, bloom_filter_enabled=True, bloom_filter_fpp=0.001, bloom_filter_ndv=100)
    return file.getvalue()


def test_names_that_lead_nowhere() -> None:
    file = io.BytesIO(all_filters(NESTED))
    with pytest.raises(ColumnNotFoundError, match=r"did you mean a\.b, a\.`c\.d`\?"):
        lakebloom.parquet.filters(file, "a")
    with pytest.raises(ColumnNotFoundError, match=r"did you mean l\.list\.element\?"):
        lakebloom.parquet.might_contain(file, "l", ["item 7"])
    with pytest.raises(ColumnNotFoundError, match="no column zzz"):
        lakebloom.parquet.filters(file, ["a.b", "zzz"])
    with pytest.raises(InvalidArgumentError):
        lakebloom.parquet.filters(file, "a..b")


SOURCES: dict[str, Callable[[Path], object]] = {
    "path": lambda path: path,
    "text": str,
    "URI": lambda path: path.as_uri(),
    "Python file": lambda path: path.open("rb"),
    "pyarrow file": lambda path: pa.OSFile(str(path)),
    "pyarrow map": lambda path: pa.memory_map(str(path)),
    "pyarrow buffer": lambda path: pa.BufferReader(path.read_bytes()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_where_a_file_may_be(source: str, plain: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(plain)
    given = SOURCES[source](path)
    found = lakebloom.parquet.filters(given)  # type: ignore[arg-type]
    assert 5 in found[0].filter
    assert lakebloom.parquet.might_contain(given, "id", 2999)[:, 0].tolist() == [False, False, True]  # type: ignore[arg-type]
    if hasattr(given, "close"):
        assert not given.closed  # type: ignore[attr-defined]
        given.close()


def test_an_object_store(plain: bytes) -> None:
    open_storage("memory://filters").write("lake/part.parquet", plain)
    found = lakebloom.parquet.filters("memory://filters/lake/part.parquet", "name")
    assert "user-2999" in found[2].filter
    assert "user-2999" not in found[0].filter


def test_a_replaced_file_is_not_mixed_with_the_old_one(plain: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(plain)
    found = lakebloom.parquet.filters(path, "id")
    path.unlink()
    path.write_bytes(b"something else")
    assert 5 in found[0].filter


def test_what_is_no_parquet_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        lakebloom.parquet.filters(tmp_path / "nowhere.parquet")
    (tmp_path / "text.parquet").write_text("no Parquet at all")
    with pytest.raises(NotParquetError):
        lakebloom.parquet.filters(tmp_path / "text.parquet")
    with pytest.raises(InvalidArgumentError):
        lakebloom.parquet.filters(42)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offset", "length"), [(-1, 16), (2**62, 16), (0, 48), (4, 2**31 - 1), (4, -5), (4, 0), (4, None)]
)
def test_a_filter_that_is_elsewhere(offset: int, length: int | None, plain: bytes) -> None:
    footer = read_footer(io.BytesIO(plain))
    metadata = footer.row_groups[1].columns[0].metadata
    assert metadata is not None
    metadata.put(14, TType.I64, offset)
    metadata.drop(15)
    if length is not None:
        metadata.put(15, TType.I32, length)
    file = io.BytesIO(replaced_footer(plain, footer.start, serialise(footer.tree)))
    damaged = lakebloom.parquet.filters(file, "id")[1]
    with pytest.raises(FilterFormatError):
        damaged.filter  # noqa: B018
    assert lakebloom.parquet.might_contain(file, "id", [5, 1005]).tolist() == [
        [True, False],
        [True, True],
        [False, False],
    ]


def conformance(name: str) -> Path:
    path = CONFORMANCE / name
    if not path.exists():
        pytest.skip(f"{name} of parquet-testing is not here")
    return path


def test_a_file_by_parquet_mr_without_length() -> None:
    path = conformance("data_index_bloom_encoding_stats.parquet")
    (found,) = lakebloom.parquet.filters(path)
    assert (found.column, found.offset, found.length, found.filter.num_bytes) == ("String", 192, None, 1024)
    assert lakebloom.parquet.might_contain(path, "String", [*WORDS, "Hello_Not_Exists"]).tolist() == [
        [*[True] * len(WORDS), False]
    ]


def test_a_file_by_parquet_rs_with_length() -> None:
    path = conformance("data_index_bloom_encoding_with_length.parquet")
    (found,) = lakebloom.parquet.filters(path)
    assert (found.offset, found.length, found.filter.num_bytes) == (253, 2064, 2048)
    assert lakebloom.parquet.might_contain(path, "String", WORDS).all()

"""Damaged files: a typed error or "perhaps", never a crash, a hang, a huge allocation, a "no" about what is there."""

from __future__ import annotations

import io
import resource
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from thrift.Thrift import TType

import lakebloom.parquet
from lakebloom.errors import CorruptFilterError, LakebloomError
from lakebloom.parquet.footer import read_footer, serialise
from lakebloom.sbbf.bytes.header import write_header
from tests.examples import most
from tests.parquet.test_filters import replaced_footer, without_length, write

if TYPE_CHECKING:
    from collections.abc import Iterator

IDS = range(500)
COLUMNS = {
    "id": pa.array(IDS, pa.int32()),
    "name": pa.array([f"user-{i}" for i in IDS]),
    "price": pa.array(IDS).cast(pa.decimal128(21, 2)),
    "at": pa.array(IDS).view(pa.timestamp("us", "UTC")),
    "half": pa.array(np.arange(500, dtype=np.float16)),
}
FILE = write(pa.table(COLUMNS), *COLUMNS, row_group_size=250)
OLD_FILE = without_length(FILE)
FOOTER = read_footer(io.BytesIO(FILE)).start
MOST_BYTES = 200 << 20
"""A bitset can announce ten times as much, and a list in the footer more."""


@pytest.fixture(autouse=True)
def _bounded_memory() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_BYTES


def ask_everything(data: bytes) -> list[bool]:
    """Read and ask all there is; the answers for what the file held before it was damaged."""
    answers = []
    for column, values in COLUMNS.items():
        try:
            for found in lakebloom.parquet.filters(io.BytesIO(data), column):
                with suppress(LakebloomError):
                    assert found.filter.num_bytes <= len(data)
            answer = lakebloom.parquet.might_contain(io.BytesIO(data), column, values)
            answers.append(bool(answer.any(axis=0).all()))
        except LakebloomError:
            pass
    return answers


def test_the_undamaged_files() -> None:
    assert ask_everything(FILE) == ask_everything(OLD_FILE) == [True] * len(COLUMNS)


@given(st.integers(0, len(FILE) - 1))
@example(0)
@example(11)
@example(len(FILE) - 8)
def test_truncated(size: int) -> None:
    assert ask_everything(FILE[:size]) == []


@pytest.mark.slow
@settings(max_examples=most(200))
@given(st.integers(FOOTER, len(FILE) - 1), st.integers(1, 255))
def test_a_changed_byte_in_the_footer(at: int, change: int) -> None:
    """Nothing guards a footer against such changes, so the answers may be wrong, but they are answers."""
    data = bytearray(FILE)
    data[at] ^= change
    ask_everything(bytes(data))


@given(st.integers(FOOTER, len(FILE) - 8), st.binary(max_size=200))
def test_other_bytes_in_the_footer(at: int, replacement: bytes) -> None:
    end = min(at + len(replacement), len(FILE) - 8)
    ask_everything(FILE[:at] + replacement[: end - at] + FILE[end:])


def header_of(column: str, row_group: int) -> tuple[int, int]:
    found = lakebloom.parquet.filters(io.BytesIO(FILE), column)[row_group]
    assert found.length is not None
    return found.offset, found.length - found.filter.num_bytes


@pytest.mark.parametrize("file", [FILE, OLD_FILE], ids=["with length", "without"])
@given(st.sampled_from(list(COLUMNS)), st.integers(0, 1), st.data())
def test_a_changed_byte_in_a_header_never_loses_a_value(
    file: bytes, column: str, row_group: int, data: st.DataObject
) -> None:
    offset, size = header_of(column, row_group)
    changed = bytearray(file)
    changed[offset + data.draw(st.integers(0, size - 1))] ^= data.draw(st.integers(1, 255))
    assert lakebloom.parquet.might_contain(io.BytesIO(changed), column, COLUMNS[column]).any(axis=0).all()


wild = st.integers(-(2**63), 2**63 - 1) | st.integers(-10, len(FILE) + 10)


@given(st.sampled_from(range(len(COLUMNS))), wild, st.none() | st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3000))
def test_wild_offsets_and_lengths_never_lose_a_value(number: int, offset: int, length: int | None) -> None:
    column = list(COLUMNS)[number]
    footer = read_footer(io.BytesIO(FILE))
    metadata = footer.row_groups[0].columns[number].metadata
    assert metadata is not None
    others = {chunk.bloom_filter_offset for group in footer.row_groups for chunk in group.columns}
    if offset in others - {metadata.get(14, TType.I64)}:
        return  # the filter of another column, which nothing tells from this one's
    metadata.put(14, TType.I64, offset)
    metadata.drop(15)
    if length is not None:
        metadata.put(15, TType.I32, length)
    file = io.BytesIO(replaced_footer(FILE, footer.start, serialise(footer.tree)))
    assert lakebloom.parquet.might_contain(file, column, COLUMNS[column][:250])[0].all()


@pytest.mark.parametrize("announced", [2**31 - 1, 10**9, len(FILE)])
@pytest.mark.parametrize("file", [FILE, OLD_FILE], ids=["with length", "without"])
def test_a_huge_bitset_is_not_allocated(file: bytes, announced: int) -> None:
    offset, _ = header_of("id", 0)
    header = write_header(announced)
    data = file[:offset] + header + file[offset + len(header) :]
    found = lakebloom.parquet.filters(io.BytesIO(data), "id")[0]
    with pytest.raises(CorruptFilterError):
        found.filter  # noqa: B018
    assert lakebloom.parquet.might_contain(io.BytesIO(data), "id", -1)[0].all()


def test_a_bitset_of_odd_size_is_read_without_its_tail() -> None:
    """parquet-java's max.bytes=3000 gives 93 blocks and 24 bytes that nothing is written to."""
    from lakebloom import Sbbf

    odd = Sbbf(93)
    odd.insert(COLUMNS["id"])
    stored = write_header(3000) + odd.to_bytes() + b"\xff" * 24
    footer = read_footer(io.BytesIO(FILE))
    footer.row_groups[0].columns[0].set_bloom_filter(footer.start, len(stored))
    tree = serialise(footer.tree)
    data = FILE[: footer.start] + stored + tree + len(tree).to_bytes(4, "little") + b"PAR1"
    assert lakebloom.parquet.filters(io.BytesIO(data), "id")[0].filter == odd
    assert lakebloom.parquet.might_contain(io.BytesIO(data), "id", [*IDS, -1])[0].tolist() == [*[True] * 500, False]

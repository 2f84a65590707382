"""The Thrift header: exact bytes, odd but legal input, and everything that must be refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebloom import Sbbf, errors
from lakebloom.sbbf.bytes.header import read_header, write_header
from tests.examples import most

UNIONS = "1c1c0000" * 3


@pytest.mark.parametrize(
    ("num_bytes", "header"),
    [(32, f"1540{UNIONS}00"), (2048, f"158020{UNIONS}00"), (65_536, f"15808008{UNIONS}00")],
)
def test_headers_have_the_bytes_that_other_writers_give_them(num_bytes: int, header: str) -> None:
    assert write_header(num_bytes).hex() == header
    assert read_header(bytes.fromhex(header)) == (num_bytes, len(header) // 2)


def test_what_follows_a_header_does_not_matter() -> None:
    header = write_header(2048)
    for tail in (b"", b"\0" * 84, b"\xff" * 1000):
        assert read_header(header + tail) == (2048, len(header))


def test_unknown_fields_are_skipped() -> None:
    extended = bytes.fromhex(f"1540{UNIONS}" + "15" + "0e" + "18" + "02" + "6869" + "00")
    assert read_header(extended) == (32, len(extended))


def test_a_filter_with_trailing_bytes_or_an_odd_size_is_read() -> None:
    f = Sbbf(93)
    f.insert(range(50))
    assert Sbbf.from_parquet(f.to_parquet() + b"rest of the file") == f
    odd = write_header(3000) + f.to_bytes() + b"\xee" * 24
    assert Sbbf.from_parquet(odd) == f
    assert Sbbf.from_bytes(f.to_bytes() + b"\xee" * 31) == f


@pytest.mark.parametrize(
    ("header", "error"),
    [
        (f"1540{'2c1c0000'}{'1c1c0000'}{'1c1c0000'}00", errors.UnsupportedFilterError),
        ("1540" + "1c2c0000" + "1c1c0000" + "1c1c0000" + "00", errors.UnsupportedFilterError),
        ("1540" + "1c1c0000" + "1c2c0000" + "1c1c0000" + "00", errors.UnsupportedFilterError),
        ("1540" + "1c1c0000" + "1c1c0000" + "1c2c0000" + "00", errors.UnsupportedFilterError),
        ("1540" + "1c00" + "1c1c0000" + "1c1c0000" + "00", errors.UnsupportedFilterError),
        ("1540" + "00", errors.UnsupportedFilterError),
        (f"153f{UNIONS}00", errors.CorruptFilterError),  # -32 bytes
        (f"1500{UNIONS}00", errors.CorruptFilterError),  # 0 bytes
        (f"153e{UNIONS}00", errors.CorruptFilterError),  # 31 bytes
        (f"25{UNIONS}00", errors.LakebloomError),
        (f"1540{UNIONS}", errors.CorruptFilterError),  # no end
        ("", errors.CorruptFilterError),
        ("ff" * 64, errors.CorruptFilterError),
        (f"15feffffff0f{UNIONS}00", errors.CorruptFilterError),  # 2^31 - 1 bytes announced, none there
    ],
)
def test_headers_that_are_refused(header: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Sbbf.from_parquet(bytes.fromhex(header))


@pytest.mark.parametrize(
    "header",
    [
        f"158080808010{UNIONS}00",  # 2^31 bytes
        f"1580808080808080808001{UNIONS}00",  # 2^55 bytes
        "1540" + "1c1c001c0000" + "1c1c0000" * 2 + "00",  # BLOCK, and another
        "1540" + "1c2c001c0000" + "1c1c0000" * 2 + "00",
        "1540" + "1c150200" + "1c1c0000" * 2 + "00",  # BLOCK, a number
        "1540" + "1c1100" + "1c1c0000" * 2 + "00",  # BLOCK, a boolean
        f"1540{UNIONS}" + "05028001" + "00",  # the size twice
        f"1540{UNIONS}" + "0c04" + "1c0000" + "00",  # the algorithm twice
    ],
)
def test_headers_that_contradict_themselves(header: str) -> None:
    with pytest.raises(errors.CorruptFilterError):
        read_header(bytes.fromhex(header) + bytes(64))


def test_a_truncated_bitset_is_refused_with_both_sizes() -> None:
    with pytest.raises(errors.CorruptFilterError, match=r"bitset of 64 bytes; found 63 bytes"):
        Sbbf.from_parquet(Sbbf(2).to_parquet()[:-1])
    with pytest.raises(errors.CorruptFilterError, match="31 bytes"):
        Sbbf.from_bytes(b"\0" * 31)


@settings(max_examples=most(1000))
@given(data=st.binary(max_size=200))
def test_any_bytes_give_a_filter_or_a_typed_error(data: bytes) -> None:
    with contextlib.suppress(errors.FilterFormatError):
        Sbbf.from_parquet(data)


@settings(max_examples=most(1000))
@given(at=st.integers(0, 16), byte=st.integers(0, 255), keep=st.integers(0, 100))
def test_a_damaged_header_gives_a_filter_or_a_typed_error(at: int, byte: int, keep: int) -> None:
    data = bytearray(Sbbf(2).to_parquet())
    data[at] = byte
    with contextlib.suppress(errors.FilterFormatError):
        Sbbf.from_parquet(bytes(data[:keep]))

"""Which bytes each type hashes, in each of the three encodings."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from lakebloom import errors, hash_values
from lakebloom.sbbf.hashing import decimals
from lakebloom.sbbf.hashing.encoding import CANONICAL, LANCE, PARQUET, Encoding, Parquet


def le(size: int) -> Callable[[int], bytes]:
    return lambda value: value.to_bytes(size, "little", signed=True)


def be(size: int) -> Callable[[int], bytes]:
    return lambda value: value.to_bytes(size, "big", signed=True)


def ule(size: int) -> Callable[[int], bytes]:
    return lambda value: value.to_bytes(size, "little", signed=False)


INTS = [0, 1, -1, 5, 127, -128]
UINTS = [0, 1, 5, 200, 255]
DAYS = [0, 1, -1, 19_000, -700_000]
MICROS = [0, 1, -1, 1_700_000_000_123_456, -62_135_596_800_000_000]
TEXT = ["", "a", "alice", "ünï", "x" * 36, "\0"]
AS_TEXT = str.encode
RAW: Callable[[Any], bytes] = bytes

EPOCH_JULIAN_DAY = 2_440_588
LAST_SECOND = 253_402_300_799  # of the year 9999
LAST_MICROS = LAST_SECOND * 1_000_000


def int96(micros: int) -> bytes:
    return int96_nanos(micros * 1000)


def int96_nanos(nanos: int) -> bytes:
    days, rest = divmod(nanos, 86_400_000_000_000)
    return struct.pack("<qi", rest, days + EPOCH_JULIAN_DAY)


def raw_ints(values: list[int], kind: pa.DataType) -> pa.Array:
    """An array whose stored integers are ``values``."""
    width = {32: pa.int32(), 64: pa.int64()}[kind.bit_width]
    return pa.array(values, type=width).view(kind)


# (encoding, Arrow array, the Python values to encode, their bytes)
CASES: dict[str, tuple[Encoding, pa.Array, list[Any], Callable[[Any], bytes]]] = {
    "canonical short": (CANONICAL, pa.array(INTS, pa.int16()), INTS, le(4)),
    "canonical int": (CANONICAL, pa.array(INTS, pa.int32()), INTS, le(4)),
    "canonical bigint": (CANONICAL, pa.array(INTS, pa.int64()), INTS, le(8)),
    "canonical uint16": (CANONICAL, pa.array(UINTS, pa.uint16()), UINTS, le(4)),
    "canonical uint32": (CANONICAL, pa.array([2**32 - 1, 0], pa.uint32()), [2**32 - 1, 0], le(8)),
    "canonical uint64": (CANONICAL, pa.array([2**64 - 1, 0], pa.uint64()), [2**64 - 1, 0], be(9)),
    "canonical date": (CANONICAL, raw_ints(DAYS, pa.date32()), DAYS, le(4)),
    "canonical date64": (CANONICAL, raw_ints([d * 86_400_000 for d in DAYS], pa.date64()), DAYS, le(4)),
    "canonical timestamp": (CANONICAL, raw_ints(MICROS, pa.timestamp("us", "UTC")), MICROS, le(8)),
    "canonical timestamp zone": (CANONICAL, raw_ints(MICROS, pa.timestamp("us", "Asia/Tokyo")), MICROS, le(8)),
    "canonical timestamp_ntz": (CANONICAL, raw_ints(MICROS, pa.timestamp("us")), MICROS, le(8)),
    "canonical millis": (CANONICAL, raw_ints([5, -5], pa.timestamp("ms")), [5000, -5000], le(8)),
    "canonical nanos": (CANONICAL, raw_ints([5000, -5000], pa.timestamp("ns")), [5, -5], le(8)),
    "canonical float": (CANONICAL, pa.array([1.5, -0.0], pa.float32()), [1.5, 0.0], lambda v: struct.pack("<f", v)),
    "canonical double": (CANONICAL, pa.array([1.5, -0.0], pa.float64()), [1.5, 0.0], lambda v: struct.pack("<d", v)),
    "canonical decimal 9": (CANONICAL, pa.array([Decimal("-1.50")], pa.decimal128(9, 2)), [-150], le(4)),
    "canonical decimal 18": (CANONICAL, pa.array([Decimal("-1.50")], pa.decimal128(18, 2)), [-150], le(8)),
    "canonical decimal 20": (CANONICAL, pa.array([Decimal("-1.50")], pa.decimal128(20, 2)), [-150], be(9)),
    "canonical decimal 38": (CANONICAL, pa.array([Decimal("-1.50")], pa.decimal128(38, 2)), [-150], be(16)),
    "canonical decimal256 38": (CANONICAL, pa.array([Decimal("-1.50")], pa.decimal256(38, 2)), [-150], be(16)),
    "canonical decimal32": (CANONICAL, pa.array([Decimal("-1.50")], pa.decimal32(7, 2)), [-150], le(4)),
    "canonical decimal64": (CANONICAL, pa.array([Decimal("-1.50")], pa.decimal64(17, 2)), [-150], le(8)),
    "canonical string": (CANONICAL, pa.array(TEXT), TEXT, AS_TEXT),
    "canonical large_string": (CANONICAL, pa.array(TEXT, pa.large_string()), TEXT, AS_TEXT),
    "canonical string_view": (CANONICAL, pa.array(TEXT, pa.string_view()), TEXT, AS_TEXT),
    "canonical binary": (CANONICAL, pa.array([b"", b"\xff\x00"], pa.binary()), [b"", b"\xff\x00"], RAW),
    "canonical binary_view": (CANONICAL, pa.array([b"", b"\xff" * 40], pa.binary_view()), [b"", b"\xff" * 40], RAW),
    "canonical fixed binary": (CANONICAL, pa.array([b"abc", b"\0\0\0"], pa.binary(3)), [b"abc", b"\0\0\0"], RAW),
    "parquet int8": (PARQUET, pa.array(INTS, pa.int8()), INTS, le(4)),
    "parquet int16": (PARQUET, pa.array(INTS, pa.int16()), INTS, le(4)),
    "parquet uint8": (PARQUET, pa.array(UINTS, pa.uint8()), UINTS, le(4)),
    "parquet uint32": (PARQUET, pa.array([2**32 - 1], pa.uint32()), [2**32 - 1], ule(4)),
    "parquet uint64": (PARQUET, pa.array([2**64 - 1], pa.uint64()), [2**64 - 1], ule(8)),
    "parquet bool": (PARQUET, pa.array([True, False]), [1, 0], le(1)),
    "parquet float16": (PARQUET, pa.array(np.array([0.5], np.float16)), [0.5], lambda v: struct.pack("<e", v)),
    "parquet float keeps -0.0": (PARQUET, pa.array([-0.0], pa.float32()), [-0.0], lambda v: struct.pack("<f", v)),
    "parquet double keeps -0.0": (PARQUET, pa.array([-0.0], pa.float64()), [-0.0], lambda v: struct.pack("<d", v)),
    "parquet date64": (PARQUET, raw_ints([86_400_000], pa.date64()), [1], le(4)),
    "parquet time32": (PARQUET, raw_ints([7], pa.time32("ms")), [7], le(4)),
    "parquet time64": (PARQUET, raw_ints([7], pa.time64("us")), [7], le(8)),
    "parquet seconds": (PARQUET, raw_ints([7], pa.timestamp("s")), [7000], le(8)),
    "parquet nanos": (PARQUET, raw_ints([7], pa.timestamp("ns")), [7], le(8)),
    "parquet decimal 9": (PARQUET, pa.array([Decimal("-1.50")], pa.decimal128(9, 2)), [-150], be(4)),
    "parquet decimal as INT32": (Parquet("INT32"), pa.array([Decimal("-1.50")], pa.decimal128(9, 2)), [-150], le(4)),
    "parquet decimal as INT64": (Parquet("INT64"), pa.array([Decimal("-1.50")], pa.decimal128(9, 2)), [-150], le(8)),
    "parquet decimal wide": (
        Parquet("FIXED_LEN_BYTE_ARRAY", 20), pa.array([Decimal("-1.50")], pa.decimal128(9, 2)), [-150], be(20)
    ),
    "parquet int as INT64": (Parquet("INT64"), pa.array(INTS, pa.int32()), INTS, le(8)),
    "parquet bigint as INT32": (Parquet("INT32"), pa.array(INTS, pa.int64()), INTS, le(4)),
    "parquet int96": (Parquet("INT96"), raw_ints(MICROS, pa.timestamp("us")), MICROS, int96),
    "parquet int96 year 9999": (Parquet("INT96"), raw_ints([LAST_SECOND], pa.timestamp("s")), [LAST_MICROS], int96),
    "parquet int96 nanos": (Parquet("INT96"), raw_ints([1, -1], pa.timestamp("ns", "UTC")), [1, -1], int96_nanos),
    "parquet half": (
        Parquet("FIXED_LEN_BYTE_ARRAY", 2), pa.array(np.array([0.5], np.float16)), [0.5], lambda v: struct.pack("<e", v)
    ),
    "parquet fixed string": (Parquet("FIXED_LEN_BYTE_ARRAY", 3), pa.array(["abc"]), ["abc"], AS_TEXT),
    "parquet fixed view": (
        Parquet("FIXED_LEN_BYTE_ARRAY", 3), pa.array(["abc"], pa.string_view()), ["abc"], AS_TEXT
    ),
    "parquet string": (PARQUET, pa.array(TEXT), TEXT, AS_TEXT),
    "parquet uuid": (PARQUET, pa.array([b"0123456789abcdef"], pa.binary(16)), [b"0123456789abcdef"], RAW),
    "lance int8": (LANCE, pa.array(INTS, pa.int8()), INTS, le(1)),
    "lance int16": (LANCE, pa.array(INTS, pa.int16()), INTS, le(2)),
    "lance uint8": (LANCE, pa.array(UINTS, pa.uint8()), UINTS, ule(1)),
    "lance int32": (LANCE, pa.array(INTS, pa.int32()), INTS, le(4)),
    "lance date64": (LANCE, raw_ints([86_400_000], pa.date64()), [86_400_000], le(8)),
    "lance timestamp": (LANCE, raw_ints([7], pa.timestamp("s")), [7], le(8)),
    "lance double keeps -0.0": (LANCE, pa.array([-0.0], pa.float64()), [-0.0], lambda v: struct.pack("<d", v)),
    "lance string": (LANCE, pa.array(TEXT), TEXT, AS_TEXT),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_type_hashes_its_bytes(name: str) -> None:
    encoding, array, values, as_bytes = CASES[name]
    expected = [xxhash.xxh64_intdigest(as_bytes(value)) for value in values]
    assert hash_values(array, encoding=encoding).tolist() == expected


@pytest.mark.parametrize("name", CASES)
def test_nulls_slices_chunks_and_dictionaries_change_nothing(name: str) -> None:
    encoding, array, values, as_bytes = CASES[name]
    expected = [xxhash.xxh64_intdigest(as_bytes(value)) for value in values]
    null = pa.nulls(1, array.type)
    with_nulls = pa.concat_arrays([null, array, null, array]).slice(1, len(array) + 1)
    assert hash_values(with_nulls, encoding=encoding).tolist() == [*expected, 0]
    chunked = pa.chunked_array([array, null, array.slice(1), array.slice(0, 0)])
    assert hash_values(chunked, encoding=encoding).tolist() == [*expected, 0, *expected[1:]]
    indices = pa.array([None, *range(len(array)), 0], pa.int16())
    encoded = pa.DictionaryArray.from_arrays(indices, array).slice(0, len(array) + 1)
    assert hash_values(encoded, encoding=encoding).tolist() == [0, *expected]
    assert hash_values(array.slice(0, 0), encoding=encoding).tolist() == []


REFUSED = {
    "canonical bool": (CANONICAL, pa.bool_(), "256 values"),
    "canonical byte": (CANONICAL, pa.int8(), "256 values"),
    "canonical uint8": (CANONICAL, pa.uint8(), "256 values"),
    "canonical half": (CANONICAL, pa.float16(), "no hash"),
    "canonical time": (CANONICAL, pa.time64("us"), "no hash"),
    "canonical duration": (CANONICAL, pa.duration("us"), "no hash"),
    "canonical interval": (CANONICAL, pa.month_day_nano_interval(), "no hash"),
    "canonical decimal 39": (CANONICAL, pa.decimal256(39, 0), "no hash"),
    "canonical list": (CANONICAL, pa.list_(pa.int32()), "no hash"),
    "canonical struct": (CANONICAL, pa.struct([("a", pa.int32())]), "no hash"),
    "canonical map": (CANONICAL, pa.map_(pa.string(), pa.int32()), "no hash"),
    "lance bool": (LANCE, pa.bool_(), "Lance"),
    "lance decimal": (LANCE, pa.decimal128(9, 2), "Lance"),
    "lance fixed binary": (LANCE, pa.binary(4), "Lance"),
    "lance half": (LANCE, pa.float16(), "Lance"),
    "parquet list": (PARQUET, pa.list_(pa.int32()), "Parquet"),
    "parquet string as INT32": (Parquet("INT32"), pa.string(), "INT32"),
    "parquet double as INT64": (Parquet("INT64"), pa.float64(), "INT64"),
    "parquet int as DOUBLE": (Parquet("DOUBLE"), pa.int32(), "DOUBLE"),
    "parquet decimal as BYTE_ARRAY": (Parquet("BYTE_ARRAY"), pa.decimal128(9, 2), "BYTE_ARRAY"),
    "parquet half of 4 bytes": (Parquet("FIXED_LEN_BYTE_ARRAY", 4), pa.float16(), "FIXED_LEN_BYTE_ARRAY"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_types_without_a_filter_are_refused_with_the_reason(name: str) -> None:
    encoding, kind, reason = REFUSED[name]
    for nothing in (pa.array([], type=kind), pa.chunked_array([], type=kind)):
        with pytest.raises(errors.UnsupportedTypeError, match=reason):
            hash_values(nothing, encoding=encoding)


@pytest.mark.parametrize(
    ("encoding", "array"),
    [
        (CANONICAL, raw_ints([1], pa.timestamp("ns"))),
        (Parquet("INT32"), pa.array([2**31])),
        (Parquet("INT32"), pa.array([Decimal(2**31)], pa.decimal128(10, 0))),
        (Parquet("FIXED_LEN_BYTE_ARRAY", 1), pa.array([Decimal(128)], pa.decimal128(10, 0))),
        (Parquet("FIXED_LEN_BYTE_ARRAY", 4), pa.array([b"abc"])),
    ],
)
def test_values_that_the_target_cannot_hold_are_refused(encoding: Encoding, array: pa.Array) -> None:
    with pytest.raises(errors.ValueConversionError):
        hash_values(array, encoding=encoding)


PYTHON_SCALARS = [
    (5, le(8)(5)),
    (-1, le(8)(-1)),
    (1.5, struct.pack("<d", 1.5)),
    (-0.0, struct.pack("<d", 0.0)),
    ("alice", b"alice"),
    ("", b""),
    (b"\xff\x00", b"\xff\x00"),
    (bytearray(b"ab"), b"ab"),
    (dt.date(1970, 1, 2), le(4)(1)),
    (dt.datetime(1970, 1, 1, 0, 0, 1), le(8)(1_000_000)),
    (dt.datetime(1970, 1, 1, 9, tzinfo=dt.timezone(dt.timedelta(hours=9))), le(8)(0)),
    (Decimal("1.50"), le(4)(150)),
    (Decimal("1234567890.5"), le(8)(12345678905)),
    (np.int16(5), le(4)(5)),
    (np.int32(5), le(4)(5)),
    (np.int64(5), le(8)(5)),
    (np.float32(1.5), struct.pack("<f", 1.5)),
    (np.datetime64("1970-01-02"), le(4)(1)),
    (np.str_("é"), "é".encode()),
    (pa.scalar(5, pa.int32()), le(4)(5)),
    (pa.scalar(5, pa.timestamp("ms")), le(8)(5000)),
]


@pytest.mark.parametrize(("value", "data"), PYTHON_SCALARS, ids=repr)
def test_scalars(value: object, data: bytes) -> None:
    h = hash_values(value)
    assert isinstance(h, np.uint64)
    assert h == xxhash.xxh64_intdigest(data)


def test_the_type_argument_says_how_to_read_python_values() -> None:
    assert hash_values(5, type=pa.int32()) == xxhash.xxh64_intdigest(le(4)(5))
    assert hash_values([Decimal("1.5")], type=pa.decimal128(9, 3)).tolist() == [xxhash.xxh64_intdigest(le(4)(1500))]
    with pytest.raises(errors.ValueConversionError):
        hash_values(2**40, type=pa.int32())
    with pytest.raises(errors.ValueConversionError):
        hash_values("x", type=pa.int32())


BAD = [[1, "a"], [10**38], [True, 5], np.zeros((2, 2)), 1j, object()]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_values_that_are_no_values(bad: object) -> None:
    with pytest.raises(errors.LakebloomError):
        hash_values(bad)


@pytest.mark.parametrize(
    ("physical_type", "type_length"),
    [
        ("INT128", None),
        ("int32", None),
        ("", None),
        ("INT32", 4),
        (None, 4),
        ("FIXED_LEN_BYTE_ARRAY", 0),
        ("FIXED_LEN_BYTE_ARRAY", -1),
        ("FIXED_LEN_BYTE_ARRAY", 1.5),
    ],
)
def test_parquet_targets_that_do_not_exist(physical_type: Any, type_length: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        Parquet(physical_type, type_length)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError):
        hash_values([1], encoding="parquet")  # type: ignore[arg-type]


def test_sequences_numpy_and_streams_are_alike() -> None:
    expected = hash_values(pa.array([1, 2, 3]))
    table = pa.table({"a": [1, 2, 3]})
    for values in ([1, 2, 3], (1, 2, 3), range(1, 4), iter([1, 2, 3]), np.arange(1, 4), table["a"]):
        assert hash_values(values).tolist() == expected.tolist()
    assert hash_values(np.arange(1, 4, dtype=">i8")).tolist() == expected.tolist()
    assert hash_values(np.arange(0, 7)[1:4]).tolist() == expected.tolist()
    assert hash_values(np.arange(0, 8)[2:8:2]).tolist() == hash_values([2, 4, 6]).tolist()
    assert hash_values([]).tolist() == []
    assert hash_values([None, None]).tolist() == [0, 0]


def test_runs_and_odd_dictionaries() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array(["a", None]))
    a = xxhash.xxh64_intdigest(b"a")
    assert hash_values(runs).tolist() == [a, a, 0, 0, 0]
    null_inside = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), pa.array(["a", None]))
    assert hash_values(null_inside).tolist() == [a, 0, 0, a]
    nothing = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], pa.string()))
    assert hash_values(nothing).tolist() == [0, 0]


@pytest.mark.parametrize("precision", range(1, 77))
def test_min_bytes_is_the_least_that_holds_the_precision(precision: int) -> None:
    size, largest = decimals.min_bytes(precision), 10**precision - 1
    (-largest).to_bytes(size, "big", signed=True)
    with pytest.raises(OverflowError):
        largest.to_bytes(size - 1, "big", signed=True)

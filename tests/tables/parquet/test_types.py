"""Every type a Parquet file may have, read as every type a table may have: Spark's values, or a refusal."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom import hash_values
from lakebloom.errors import UnsupportedTypeError
from tests.spark.needs import needs_widening
from tests.tables.reading import read, spark_hashes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = timezone.utc
NAN = float("nan")


def stamps(unit: str, tz: str | None) -> pa.Array:
    factor = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return pa.array([0, None, 1_700_000_000 * factor + 1000, -1000 * factor], pa.int64()).view(pa.timestamp(unit, tz))


def decimals(precision: int, scale: int) -> pa.Array:
    largest = "9" * (precision - scale) + "." + "9" * scale
    values = [Decimal(largest), Decimal(f"-{largest}"), None, Decimal("0." + "1".rjust(scale, "0"))]
    return pa.array(values, pa.decimal128(precision, scale))


FILE_COLUMNS = {
    "int8": pa.array([1, None, -128, 127], pa.int8()),
    "int16": pa.array([1, None, -(2**15), 2**15 - 1], pa.int16()),
    "int32": pa.array([1, None, -(2**31), 2**31 - 1], pa.int32()),
    "small_int32": pa.array([1, None, -(2**15), 2**15 - 1], pa.int32()),
    "int64": pa.array([1, None, -(2**63), 2**63 - 1], pa.int64()),
    "uint8": pa.array([1, None, 128, 255], pa.uint8()),
    "uint16": pa.array([1, None, 2**15, 2**16 - 1], pa.uint16()),
    "uint32": pa.array([1, None, 2**31, 2**32 - 1], pa.uint32()),
    "uint64": pa.array([1, None, 2**63, 2**64 - 1], pa.uint64()),
    "float": pa.array([1.5, None, -0.0, NAN], pa.float32()),
    "double": pa.array([0.1, None, -0.0, NAN], pa.float64()),
    "half": pa.array(np.array([1.5, 2, 3, 4], np.float16)),
    "date": pa.array([0, None, 20_000, -7_000], pa.int32()).view(pa.date32()),
    "time": pa.array([0, None, 1, 2], pa.time64("us")),
    "ms": stamps("ms", "UTC"),
    "us": stamps("us", "UTC"),
    "ns": stamps("ns", "UTC"),
    "ms_ntz": stamps("ms", None),
    "us_ntz": stamps("us", None),
    "decimal_9_2": decimals(9, 2),
    "decimal_18_2": decimals(18, 2),
    "decimal_38_10": decimals(38, 10),
    "string": pa.array(["", None, "é", "long" * 99]),
    "json": pa.array(["{}", None, '{"a":1}', "[]"], pa.json_()),
    "binary": pa.array([b"", None, b"\xff\x00", b"long" * 99]),
    "fixed": pa.array([b"ab", None, b"\xff\x00", b"zz"], pa.binary(2)),
    "uuid": pa.array([b"a" * 16, None, bytes(16), b"\xff" * 16], pa.binary(16)).cast(pa.uuid()),
    "boolean": pa.array([True, None, False, True]),
    "list": pa.array([[1], None, [], [2]]),
    "struct": pa.array([{"a": 1}, None, {"a": 2}, {"a": 3}]),
}
# Table type: the file columns that are read as it.
READABLE = {
    "smallint": ["int8", "int16", "small_int32", "uint8"],
    "int": ["int8", "int16", "int32", "small_int32", "uint8", "uint16"],
    "bigint": ["int8", "int16", "int32", "small_int32", "int64", "uint8", "uint16", "uint32"],
    "float": ["float"],
    "double": ["float", "double", "int8", "int16", "int32", "small_int32"],
    "date": ["date"],
    "timestamp": ["ms", "us"],
    "timestamp_ntz": ["ms_ntz", "us_ntz"],
    "string": ["string", "binary", "json"],
    "binary": ["string", "binary", "json", "fixed", "uuid"],
    "decimal(9,2)": ["decimal_9_2"],
    "decimal(12,2)": ["decimal_9_2", "int8", "int16", "int32", "small_int32"],
    "decimal(20,4)": ["decimal_9_2", "decimal_18_2", "int8", "int16", "int32", "small_int32"],
    "decimal(20,0)": ["int8", "int16", "int32", "small_int32", "int64", "uint64"],
    "decimal(38,10)": [
        "decimal_9_2",
        "decimal_18_2",
        "decimal_38_10",
        "int8",
        "int16",
        "int32",
        "small_int32",
        "int64",
    ],
}
# Nanoseconds are accepted where nothing is lost; Spark does not read them at all.
ONLY_OURS = {"timestamp": ["ns"]}
WRITERS: dict[str, dict[str, Any]] = {
    "as Arrow does": {},
    "decimals as integers": {"store_decimal_as_integer": True, "store_schema": False},
    "second version": {"data_page_version": "2.0", "use_dictionary": False, "compression": "zstd"},
}


@pytest.fixture(scope="module", params=WRITERS)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("types") / "a.parquet"
    pq.write_table(pa.table(FILE_COLUMNS), path, **WRITERS[request.param])
    return path


@needs_widening
@pytest.mark.spark
def test_spark_reads_the_same_values(file: Path, spark: SparkSession) -> None:
    for kind, names in READABLE.items():
        frame = spark.read.schema(", ".join(f"{name} {kind}" for name in names)).parquet(str(file))
        ours = read(file, **dict.fromkeys(names, kind))
        if kind.startswith("decimal"):  # Spark hashes decimals in a way of its own
            theirs = [list(column) for column in zip(*frame.collect(), strict=True)]
            assert dict(zip(names, [array.to_pylist() for array in ours], strict=True)) == dict(
                zip(names, theirs, strict=True)
            ), kind
        else:
            hashes = [hash_values(array).tolist() for array in ours]
            assert dict(zip(names, hashes, strict=True)) == dict(
                zip(names, spark_hashes(frame, *names), strict=True)
            ), kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", READABLE)
def test_everything_else_is_refused(kind: str, file: Path) -> None:
    for name in FILE_COLUMNS:
        if name in READABLE[kind] + ONLY_OURS.get(kind, []):
            assert len(read(file, **{name: kind})[0]) == 4
        else:
            with pytest.raises(UnsupportedTypeError, match=name):
                read(file, **{name: kind})


def test_nanoseconds(tmp_path: Path) -> None:
    """Read where they are whole microseconds."""
    for nanos, exact in ((1_700_000_000_123_456_000, True), (1_700_000_000_123_456_001, False)):
        path = tmp_path / f"{nanos}.parquet"
        pq.write_table(pa.table({"t": pa.array([nanos], pa.int64()).view(pa.timestamp("ns", "UTC"))}), path)
        if exact:
            assert read(path, t="timestamp")[0].to_pylist() == [datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)]
        else:
            with pytest.raises(UnsupportedTypeError, match="column t"):
                read(path, t="timestamp")


def test_milliseconds_beyond_the_range_of_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": pa.array([2**60], pa.int64()).view(pa.timestamp("ms"))}), path)
    with pytest.raises(UnsupportedTypeError, match="column t"):
        read(path, t="timestamp_ntz")


def test_a_column_of_nothing_but_null_has_every_type(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": pa.nulls(3)}), path)
    for kind in READABLE:
        assert read(path, n=kind)[0].to_pylist() == [None] * 3


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.array(["a", None, "é"], pa.large_string()), "string"),
        (pa.array(["a", None, "é"], pa.string_view()), "string"),
        (pa.array([b"a", None, b"\xff"], pa.large_binary()), "string"),
        (pa.array([b"a", None, b"\xff"], pa.binary_view()), "string"),
        (pa.array(["a", None, "é"]).dictionary_encode(), "string"),
        (pa.array(["a", None, "é"]).dictionary_encode(), "binary"),
        (pa.array([5, None, 7], pa.duration("us")), "bigint"),
        (pa.array([0, None, 86_400_000], pa.date64()), "date"),
        (pa.array([0, None, 7], pa.timestamp("us", "Europe/Berlin")), "timestamp"),
        (pa.array([0, None, 7], pa.timestamp("s")), "timestamp_ntz"),
        (pa.array([Decimal("1.5"), None, Decimal("-2.5")], pa.decimal256(20, 1)), "decimal(20,1)"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else value,
)
def test_types_that_only_arrow_has(stored: pa.Array, kind: str, tmp_path: Path) -> None:
    """Arrow restores them from its own schema in the footer; what the file holds is plain Parquet."""
    path, plain = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"c": stored}), path)
    pq.write_table(pa.table({"c": stored}), plain, store_schema=False)
    assert read(path, c=kind)[0].equals(read(plain, c=kind)[0])


def test_strings_are_never_decoded(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    raw = [b"\xff\xfe", b"ok", b"\xed\xa0\x80"]
    text = pa.Array.from_buffers(pa.string(), 3, pa.array(raw).buffers())
    pq.write_table(pa.table({"s": text, "b": pa.array(raw)}), path)
    for array in read(path, s="string", b="string"):
        assert array.view(pa.binary()).to_pylist() == raw
        assert hash_values(array).tolist() == hash_values(raw).tolist()

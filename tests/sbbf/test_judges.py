"""Filters that others wrote, and bits that others would have written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom import Sbbf, errors
from lakebloom.sbbf.hashing.encoding import PARQUET

CONFORMANCE = Path(__file__).resolve().parents[3] / "shared" / "conformance"
needs_conformance = pytest.mark.skipif(not CONFORMANCE.is_dir(), reason="the parquet-testing files are not here")

SPARK_BITSET_OF_A0_TO_A9 = bytes.fromhex("c80150144044086d062504439050602008842b21000563410200e02c404e6004")


def embedded_filter(path: Path, column: int = 0) -> bytes:
    chunk = pq.read_metadata(path).row_group(0).column(column)
    return path.read_bytes()[chunk.bloom_filter_offset :]


def test_a_bitset_that_spark_wrote() -> None:
    f = Sbbf.from_bytes(SPARK_BITSET_OF_A0_TO_A9)
    ours = Sbbf(1)
    ours.insert([f"a{i}" for i in range(10)])
    assert f == ours


@needs_conformance
def test_the_parquet_testing_filter() -> None:
    f = Sbbf.from_parquet((CONFORMANCE / "bloom_filter.xxhash.bin").read_bytes())
    words = ["hello", "parquet", "bloom", "filter"]
    assert f.might_contain(words).all()
    assert not f.might_contain(["nope", "", "Hello"]).any()
    ours = Sbbf(f.num_blocks)
    ours.insert(words)
    assert ours == f


@needs_conformance
def test_the_old_murmur_filter_is_refused() -> None:
    with pytest.raises(errors.FilterFormatError, match="Murmur3"):
        Sbbf.from_parquet((CONFORMANCE / "bloom_filter.bin").read_bytes())


@needs_conformance
def test_the_filter_in_a_parquet_testing_file() -> None:
    data = (CONFORMANCE / "data_index_bloom_encoding_stats.parquet").read_bytes()
    f = Sbbf.from_parquet(memoryview(data)[192:])
    values = ["Hello", "This is", "a", "test", "How", "are you", "doing ", "today", "the quick", "brown fox", "jumps",
              "over", "the lazy", "dog"]  # fmt: skip
    ours = Sbbf(f.num_blocks)
    ours.insert(values)
    assert f == ours
    assert "Hello_Not_Exists" not in f


RNG = np.random.default_rng(11)
COLUMNS = {
    "int8": pa.array(RNG.integers(-128, 127, 1000), pa.int8()),
    "int16": pa.array(RNG.integers(-(2**15), 2**15, 1000), pa.int16()),
    "int32": pa.array(RNG.integers(-(2**31), 2**31, 1000), pa.int32()),
    "int64": pa.array(RNG.integers(-(2**62), 2**62, 1000), pa.int64()),
    "uint8": pa.array(RNG.integers(0, 255, 1000), pa.uint8()),
    "uint32": pa.array(RNG.integers(0, 2**32, 1000), pa.uint32()),
    "uint64": pa.array(RNG.integers(0, 2**62, 1000), pa.uint64()),
    "float": pa.array([*RNG.normal(size=998), -0.0, float("nan")], pa.float32()),
    "double": pa.array([*RNG.normal(size=998), -0.0, float("nan")], pa.float64()),
    "date": pa.array(RNG.integers(0, 20_000, 1000).astype(np.int32)).view(pa.date32()),
    "micros": pa.array(RNG.integers(0, 2**50, 1000)).view(pa.timestamp("us", "UTC")),
    "millis": pa.array(RNG.integers(0, 2**40, 1000)).view(pa.timestamp("ms")),
    "string": pa.array([f"key-{i}" * (i % 9) for i in range(1000)]),
    "nullable": pa.array([None if i % 3 else f"key-{i}" for i in range(1000)]),
    "binary": pa.array([RNG.bytes(i % 50) for i in range(1000)], pa.binary()),
    "fixed": pa.array([RNG.bytes(16) for _ in range(1000)], pa.binary(16)),
    "decimal 9": pa.array(RNG.integers(-(10**9), 10**9, 1000)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
    "decimal 7": pa.array(RNG.integers(-(10**6), 10**6, 1000)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(7, 0)),
    "dictionary": pa.array([f"k{i % 100}" for i in range(1000)]).dictionary_encode(),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_arrow_writes_the_same_bits(name: str, tmp_path: Path) -> None:
    column = COLUMNS[name]
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"c": column}), path, bloom_filter_options={"c": {"ndv": 1000, "fpp": 0.01}})
    theirs = Sbbf.from_parquet(embedded_filter(path))
    ours = Sbbf(theirs.num_blocks)
    ours.insert(column, encoding=PARQUET)
    assert ours == theirs


def test_arrow_reads_back_what_we_serialise(tmp_path: Path) -> None:
    """Arrow's own serialisation of the same filter is ours, byte for byte, header included."""
    path = tmp_path / "file.parquet"
    values = pa.array(range(5000), pa.int64())
    pq.write_table(pa.table({"c": values}), path, bloom_filter_options={"c": {"ndv": 5000, "fpp": 0.01}})
    chunk = pq.read_metadata(path).row_group(0).column(0)
    stored = embedded_filter(path)[: chunk.bloom_filter_length]
    ours = Sbbf(Sbbf.from_parquet(stored).num_blocks)
    ours.insert(values)
    assert ours.to_parquet() == stored

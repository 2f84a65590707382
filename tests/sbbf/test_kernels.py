"""Both forms of the kernels, and the one-value hash, against the xxhash package and the reference filter."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from lakebloom import hash_values
from lakebloom.sbbf.kernels import choose, compiled, portable
from lakebloom.sbbf.xxh64 import xxh64

from .reference import ReferenceFilter


@pytest.mark.parametrize("width", [*range(70), 100, 127, 128, 255, 256, 1000])
def test_rows_of_every_width_hash_as_the_xxhash_package_says(kernels: ModuleType, width: int) -> None:
    rows = np.random.default_rng(width).integers(0, 256, (130, width), dtype=np.uint8)
    out = np.empty(len(rows), dtype=np.uint64)
    kernels.hash_fixed(rows, out)
    assert out.tolist() == [xxhash.xxh64_intdigest(row.tobytes()) for row in rows]


@given(st.binary(max_size=300))
def test_the_plain_hash_agrees_with_the_xxhash_package(data: bytes) -> None:
    assert xxh64(data) == xxhash.xxh64_intdigest(data)


@pytest.mark.parametrize("large", [False, True])
def test_values_of_all_lengths_up_to_1000_in_one_array(kernels: ModuleType, large: bool) -> None:
    rng = np.random.default_rng(7)
    values = [rng.bytes(length) for length in rng.permutation(1001)]
    array = pa.array(values, type=pa.large_binary() if large else pa.binary())
    assert hash_values(array).tolist() == [xxhash.xxh64_intdigest(value) for value in values]


def test_string_views_short_and_long_in_several_buffers(kernels: ModuleType) -> None:
    values = ["", "a", "twelve bytes", "thirteen byte", "x" * 100, "é" * 40, "short"] * 50
    halves = [pa.array(values, type=pa.string_view()), pa.array(values[::-1], type=pa.string_view())]
    array = pa.concat_arrays(halves)
    assert array.buffers()[2:], "the long values must lie in separate buffers"
    expected = [xxhash.xxh64_intdigest(value.encode()) for value in values + values[::-1]]
    assert hash_values(array).tolist() == expected
    assert hash_values(array.slice(3, 200)).tolist() == expected[3:203]


@pytest.mark.parametrize("width", [4, 8])
def test_floats_have_one_zero_and_one_nan(kernels: ModuleType, width: int) -> None:
    bits = f"<u{width}"
    top, quiet = 1 << (8 * width - 1), {4: 0x7FC00000, 8: 0x7FF8000000000000}[width]
    infinity = {4: 0x7F800000, 8: 0x7FF0000000000000}[width]
    rows = np.array([0, top, quiet, quiet | 1, infinity | 1, quiet | top, infinity, infinity | top, 1], dtype=bits)
    out = np.empty(len(rows), dtype=np.uint64)
    kernels.hash_floats(rows.view(np.uint8).reshape(-1, width), out)
    canonical = np.array([0, 0, quiet, quiet, quiet, quiet, infinity, infinity | top, 1], dtype=bits)
    assert out.tolist() == [xxhash.xxh64_intdigest(value.tobytes()) for value in canonical]


@pytest.mark.parametrize("num_blocks", [1, 2, 3, 31, 256, 1000])
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 700])
def test_insert_and_check_equal_the_reference(kernels: ModuleType, num_blocks: int, count: int) -> None:
    inside = [i.to_bytes(8, "little") for i in range(count)]
    outside = [i.to_bytes(8, "little") for i in range(10_000, 10_200)]
    reference = ReferenceFilter.of(num_blocks, inside)
    hashes = np.array([xxhash.xxh64_intdigest(value) for value in inside + outside], dtype=np.uint64)
    words = np.zeros((num_blocks, 8), dtype=np.uint32)
    kernels.insert(words, hashes[:count])
    assert words.tobytes() == reference.to_bytes()
    out = np.empty(len(hashes), dtype=np.bool_)
    kernels.check(words, hashes, out)
    assert out.tolist() == [reference.contains(value) for value in inside + outside]


def test_the_extreme_hashes_stay_inside_the_filter(kernels: ModuleType) -> None:
    hashes = np.array([0, 2**64 - 1, 2**32 - 1, 2**63], dtype=np.uint64)
    guarded = np.zeros((9, 8), dtype=np.uint32)
    kernels.insert(guarded[1:8], hashes)
    assert not guarded[0].any()
    assert not guarded[8].any()
    assert guarded[1].any()
    assert guarded[7].any()


def test_bulk_work_gets_compiled_kernels() -> None:
    assert choose(10_000_000) is compiled
    assert portable is not compiled

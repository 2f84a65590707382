"""Both forms of the kernels against the xxhash package and the reference filter."""

from __future__ import annotations

import sys
import tracemalloc
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from lakebloom import hash_values
from lakebloom.sbbf.hashing.encoding import CANONICAL
from lakebloom.sbbf.hashing.hash_values import prepare
from lakebloom.sbbf.kernels import choose as choosing
from lakebloom.sbbf.kernels import compiled, portable
from lakebloom.sbbf.kernels.choose import choose, choose_to_probe
from tests.sbbf.reference import ReferenceFilter


@pytest.mark.parametrize("width", [*range(70), 100, 127, 128, 255, 256, 1000])
def test_rows_of_every_width_hash_as_the_xxhash_package_says(kernels: ModuleType, width: int) -> None:
    rows = np.random.default_rng(width).integers(0, 256, (130, width), dtype=np.uint8)
    out = np.empty(len(rows), dtype=np.uint64)
    kernels.hash_fixed(rows, out)
    assert out.tolist() == [xxhash.xxh64_intdigest(row.tobytes()) for row in rows]


@pytest.mark.slow
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


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary_view()], ids=str)
def test_many_long_values_are_gathered_in_groups(
    kernels: ModuleType, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portable, "GATHERED_BYTES", 1000)
    rng = np.random.default_rng(5)
    values = [rng.bytes(size) for size in [0, 7, 300, 300, 999, 1000, 1001, 5000, 300, 0] * 4]
    assert hash_values(pa.array(values, kind)).tolist() == [xxhash.xxh64_intdigest(value) for value in values]


def test_portable_kernels_take_little_memory_beyond_the_values() -> None:
    array = pa.array(["x" * 1000] * 8000)
    data = np.frombuffer(array.buffers()[2], np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    out = np.empty(8000, np.uint64)
    tracemalloc.start()
    portable.hash_offsets(offsets, data, out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20
    assert set(out.tolist()) == {xxhash.xxh64_intdigest(b"x" * 1000)}


def test_read_only_hashes_are_inserted_and_checked(kernels: ModuleType) -> None:
    hashes = hash_values(np.arange(1000))
    hashes.flags.writeable = False
    words = np.zeros((64, 8), dtype=np.uint32)
    kernels.insert(words, hashes)
    out = np.zeros(len(hashes), dtype=np.bool_)
    kernels.check(words, hashes, out)
    assert out.all()


@pytest.fixture
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget that the compiled kernels are loaded, and what was hashed so far."""
    monkeypatch.delitem(sys.modules, compiled.__name__)
    monkeypatch.setattr(choosing, "_values_so_far", 0)
    monkeypatch.setattr(choosing, "_probed_so_far", 0)


@pytest.mark.usefixtures("fresh_process")
@pytest.mark.parametrize(
    ("count", "size_bytes", "bulk"),
    [(1, 0, False), (99_999, 0, False), (100_000, 0, True), (10, 2 << 20, False), (1, (2 << 20) + 1, True)],
)
def test_the_amount_of_work_decides(count: int, size_bytes: int, bulk: bool) -> None:
    assert (choose(count, size_bytes).__name__ == compiled.__name__) == bulk


@pytest.mark.usefixtures("fresh_process")
def test_small_calls_add_up() -> None:
    names = [choose(50_000).__name__ for _ in range(25)]
    assert names[:19] == [portable.__name__] * 19
    assert names[20:] == [compiled.__name__] * 5


@pytest.mark.usefixtures("fresh_process")
def test_a_second_long_list_is_probed_by_compiled_code() -> None:
    list_of_10_000 = [940_000] * 4  # in four tiles of 1,000 units
    names = [choose_to_probe(work).__name__ for work in list_of_10_000 * 2]
    assert names == [portable.__name__] * 4 + [compiled.__name__] * 4


@pytest.mark.usefixtures("fresh_process")
def test_a_very_long_list_is_probed_by_compiled_code() -> None:
    assert choose_to_probe(4_000_000).__name__ == compiled.__name__


@pytest.mark.parametrize(
    ("array", "size_bytes"),
    [
        (pa.array(["x" * 100] * 30).slice(10), 2000),
        (pa.array([b"x" * 100] * 30, pa.large_binary()), 3000),
        (pa.array(["x" * 100, "y", None] * 10, pa.string_view()), 1010),
        (pa.array([b"x" * 100] * 30, pa.binary(100)), 3000),
        (pa.array(range(1000)), 0),
        (pa.array([1.5] * 1000), 0),
        (pa.array(["x" * 100] * 30).dictionary_encode(), 0),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_long_values_are_weighed_and_numbers_counted(array: pa.Array, size_bytes: int) -> None:
    assert prepare(array, CANONICAL).layout.long_bytes == size_bytes

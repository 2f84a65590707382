"""Bit planes: blocks come back from them, and a value is found in them as in blocks, by every kind of kernel."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.sbbf.kernels import compiled, planes_portable, portable, single

if TYPE_CHECKING:
    from types import ModuleType

SLACK = 16
UNITS = [1, 2, 7, 8, 9, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 335, 1000, 2048, 2100]


@pytest.fixture(params=[portable, compiled], ids=["portable", "compiled"])
def kernels(request: pytest.FixtureRequest) -> ModuleType:
    found: ModuleType = request.param
    return found


def row_shapes(units: int) -> list[tuple[int, int]]:
    """Planes one behind the other with some bytes behind the row; padded planes, each with some bytes behind it."""
    padded = 8 * -(-units // 64) + 4
    return [(32 * units + 4, units), (256 * padded, 8 * padded)]


def blocks_of(rows: int, units: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng([seed, units]).integers(0, 2**32, (rows, units, 8), dtype=np.uint32)


def by_definition(blocks: np.ndarray, row_bytes: int, plane_bits: int) -> bytes:
    """Bit by bit, as the format says."""
    bits = np.zeros((len(blocks), 8 * row_bytes), dtype=np.uint8)
    units = blocks.shape[1]
    for plane in range(256):
        bits[:, plane * plane_bits : plane * plane_bits + units] = (blocks[:, :, plane // 32] >> (plane % 32)) & 1
    return np.packbits(bits, bitorder="little").tobytes()


@pytest.mark.parametrize("units", UNITS)
def test_planes_are_what_the_format_says_and_give_the_blocks_back(kernels: ModuleType, units: int) -> None:
    blocks = blocks_of(3, units)
    for row_bytes, plane_bits in row_shapes(units):
        rows = np.zeros(3 * row_bytes + SLACK, dtype=np.uint8)
        kernels.to_planes(blocks, rows, row_bytes, plane_bits)
        assert rows[: 3 * row_bytes].tobytes() == by_definition(blocks, row_bytes, plane_bits)
        rows.reshape(-1)[3 * row_bytes :] = 255  # what lies behind the rows says nothing
        again = np.zeros_like(blocks)
        kernels.from_planes(rows, row_bytes, plane_bits, again)
        assert (again == blocks).all()


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("units", UNITS)
def test_values_are_found_in_planes_as_in_blocks(kernels: ModuleType, units: int, is_first: bool) -> None:
    rng = np.random.default_rng(units)
    blocks = blocks_of(5, units, 2) | blocks_of(5, units, 3)
    hashes = rng.integers(0, 2**64, 60, dtype=np.uint64)
    at = rng.integers(0, 5, 60)
    wanted = portable.masks(hashes)[:, None, :]
    expected = ((blocks[at] & wanted) == wanted).all(axis=2)
    words = -(-units // 64)
    for shape, (row_bytes, plane_bits) in enumerate(row_shapes(units)):
        rows = np.zeros(5 * row_bytes + SLACK, dtype=np.uint8)
        portable.to_planes(blocks, rows, row_bytes, plane_bits)

        def places(at: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, int, int]:
            if shape == 0:  # noqa: B023
                return at[order, None], 8 * row_bytes, plane_bits  # noqa: B023
            return 256 * at[order, None] + portable.plane_numbers(hashes[order]), plane_bits, 0  # noqa: B023

        asked = rng.random((60, 64 * words)) < 0.7
        asked[:, units:] = False
        passed = np.packbits(asked, axis=1, bitorder="little").view(np.uint64)
        order = rng.permutation(60)[:50]
        before = passed.copy()
        kernels.and_planes(rows, *places(at, order), hashes[order], order, passed, is_first=is_first)
        found = np.unpackbits(passed.view(np.uint8), axis=1, bitorder="little")[:, :units].astype(bool)
        assert (found[order] == (asked[:, :units] & expected)[order]).all()
        others = np.setdiff1d(np.arange(60), order)
        assert (passed[others] == before[others]).all()


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("units", [1, 7, 64, 100, 335, 1000, 2100])
def test_units_that_hold_one_of_many_values(kernels: ModuleType, units: int, layers: int) -> None:
    """As if each value were looked for in the blocks of each layer, one after the other."""
    rng = np.random.default_rng([units, layers])
    blocks = [blocks_of(5, units, 2 * layer) | blocks_of(5, units, 2 * layer + 1) for layer in range(layers)]
    hashes = rng.integers(0, 2**64, (layers, 45), dtype=np.uint64)
    at = rng.integers(0, 5, (layers, 45))
    wanted = portable.masks(hashes.reshape(-1)).reshape(layers, 45, 1, 8)
    passed = np.ones((45, units), dtype=bool)
    for layer in range(layers):
        passed &= ((blocks[layer][at[layer]] & wanted[layer]) == wanted[layer]).all(axis=2)
    asked, before = rng.random(64 * -(-units // 64)) < 0.7, rng.random(64 * -(-units // 64)) < 0.1
    asked[units:] = before[units:] = False
    for shape, (row_bytes, plane_bits) in enumerate(row_shapes(units)):
        rows = [np.zeros(5 * row_bytes + SLACK, dtype=np.uint8) for _ in range(layers)]
        for each, memory in zip(blocks, rows, strict=True):
            portable.to_planes(each, memory, row_bytes, plane_bits)
        numbers = np.stack([portable.plane_numbers(of_layer) for of_layer in hashes])
        places, *bits = (at[..., None], 8 * row_bytes, plane_bits) if shape == 0 else (
            256 * at[..., None] + numbers, plane_bits, 0)  # fmt: skip
        of_units, hit = (np.packbits(truths, bitorder="little").view(np.uint64) for truths in (asked, before))
        kernels.or_hits(rows, np.ascontiguousarray(places), *bits, hashes, of_units, hit)
        found = np.unpackbits(hit.view(np.uint8), bitorder="little")[:units].astype(bool)
        assert found.tolist() == (before[:units] | (asked[:units] & passed.any(axis=0))).tolist()


@pytest.mark.parametrize("units", UNITS)
def test_one_value_is_found_as_many_are(units: int) -> None:
    rng = np.random.default_rng(units)
    blocks = blocks_of(1, units, 2) | blocks_of(1, units, 3)
    narrow, wide = (np.zeros(row_bytes + SLACK, dtype=np.uint8) for row_bytes, _ in row_shapes(units))
    for rows, (row_bytes, plane_bits) in zip((narrow, wide), row_shapes(units), strict=True):
        portable.to_planes(blocks, rows, row_bytes, plane_bits)
    row = narrow[: 32 * units].tobytes()
    padded = 8 * -(-units // 64) + 4
    for h in rng.integers(0, 2**64, 30, dtype=np.uint64).tolist():
        mask = portable.masks(np.array([h], dtype=np.uint64))
        expected = np.flatnonzero(((blocks[0] & mask) == mask).all(axis=1)).tolist()
        planes = single.planes_of(h)
        assert list(planes) == portable.plane_numbers(np.array([h], dtype=np.uint64))[0].tolist()
        bits = single.and_row(row, planes, units, (1 << units) - 1)
        assert [unit for unit in range(units) if bits >> unit & 1] == expected
        found = single.and_wide([wide[p * padded : (p + 1) * padded - 4].view(np.uint64) for p in planes])
        assert single.units_of(found).tolist() == expected


@given(st.sets(st.integers(0, 999), max_size=40))
def test_bits_become_numbers(units: set[int]) -> None:
    bits = np.zeros(1024, dtype=np.uint8)
    bits[list(units)] = 1
    assert single.units_of(np.packbits(bits, bitorder="little").view(np.uint64)).tolist() == sorted(units)


def test_portable_planes_are_made_some_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planes_portable, "GATHERED_BYTES", 1000)
    blocks = blocks_of(9, 20)
    rows = np.zeros(9 * 644 + SLACK, dtype=np.uint8)
    portable.to_planes(blocks, rows, 644, 20)
    assert rows[: 9 * 644].tobytes() == by_definition(blocks, 644, 20)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31, 504, 3200])
def test_checksums_are_those_of_zlib(kernels: ModuleType, size: int) -> None:
    rng = np.random.default_rng(size)
    pieces = rng.integers(0, 256, (20, size + 4), dtype=np.uint8)
    numbers = rng.integers(0, 2**40, 20)
    seed = zlib.crc32(b"which tile")
    found = np.empty(20, dtype=np.uint32)
    kernels.crc32_of_pieces(pieces, size, numbers, seed, found)
    covered = [
        b"which tile" + int(n).to_bytes(8, "little") + row[:size].tobytes()
        for n, row in zip(numbers, pieces, strict=True)
    ]
    assert found.tolist() == [zlib.crc32(text) for text in covered]

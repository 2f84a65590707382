"""Sizes against the published tables: arrow-rs, the Parquet specification, Lance."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom import errors, sizing
from lakebloom.sbbf.sizing import rate

ARROW_RS_BLOCKS = {
    10_000: {0.1: 256, 0.01: 512, 0.001: 1024, 0.0001: 1024, 0.00001: 2048, 0.000001: 2048},
    100_000: {0.1: 4096, 0.01: 4096, 0.001: 8192, 0.0001: 16_384, 0.00001: 16_384, 0.000001: 16_384},
    1_000_000: {0.1: 32_768, 0.01: 65_536, 0.001: 65_536, 0.0001: 131_072, 0.00001: 131_072, 0.000001: 262_144},
}


@pytest.mark.parametrize(
    ("ndv", "fpp", "blocks"), [(n, p, b) for n, row in ARROW_RS_BLOCKS.items() for p, b in row.items()]
)
def test_the_parquet_rule_is_that_of_arrow_rs(ndv: int, fpp: float, blocks: int) -> None:
    assert sizing.num_blocks(ndv, fpp, rule="parquet") == blocks


@pytest.mark.parametrize(("ndv", "size"), [(0, 32), (1, 32), (10**12, 128 * 1024 * 1024)])
def test_the_parquet_rule_stays_within_its_bounds(ndv: int, size: int) -> None:
    assert sizing.num_blocks(ndv, 0.01, rule="parquet") * 32 == size


@pytest.mark.parametrize(
    ("bits_per_value", "fpp"), [(6.0, 0.1), (10.5, 0.01), (16.9, 0.001), (26.4, 0.0001), (41, 0.00001)]
)
def test_bits_a_value_are_those_of_the_specification(bits_per_value: float, fpp: float) -> None:
    assert rate(256 / bits_per_value) == pytest.approx(fpp, rel=0.02)
    needed = sizing.num_blocks(1_000_000, fpp) * 256 / 1_000_000
    assert needed == pytest.approx(bits_per_value, abs=0.1)


@pytest.mark.parametrize(("ndv", "percent"), [(26_214, 1.26), (52_428, 18), (13_107, 0.04)])
def test_rates_of_1024_blocks_are_those_of_the_specification(ndv: int, percent: float) -> None:
    assert sizing.fpp(1024, ndv) * 100 == pytest.approx(percent, rel=0.05)


@pytest.mark.parametrize(
    ("ndv", "fpp", "size"),
    [
        (8192, 0.00057, 32_768),
        (8192, 0.01, 16_384),
        (8192, 0.0014, 16_384),
        (1000, 0.01, 2048),
        (1000, 0.001, 4096),
        (100, 0.01, 256),
        (65_536, 0.001, 262_144),
        (10, 0.9, 32),
        (0, 0.01, 32),
    ],
)
def test_the_lance_rule_gives_the_sizes_that_lance_writes(ndv: int, fpp: float, size: int) -> None:
    assert sizing.num_blocks(ndv, fpp, rule="lance") * 32 == size


@given(ndv=st.integers(0, 10**7), fpp=st.floats(1e-9, 0.9))
def test_the_exact_rule_takes_the_fewest_blocks_that_keep_the_rate(ndv: int, fpp: float) -> None:
    blocks = sizing.num_blocks(ndv, fpp)
    assert sizing.fpp(blocks, ndv) <= fpp
    assert blocks == 1 or sizing.fpp(blocks - 1, ndv) > fpp


def test_rates_at_the_edges() -> None:
    assert sizing.fpp(10, 0) == 0.0
    assert sizing.fpp(1, 10**9) == 1.0
    assert sizing.fpp(1, 4000) == pytest.approx(1.0)
    assert sizing.num_blocks(0, 0.01) == 1
    assert 0 < sizing.fpp(2**31 - 1, 1) < 1e-20


@pytest.mark.parametrize(
    ("ndv", "fpp", "rule"),
    [
        (-1, 0.01, "putze"),
        (1.5, 0.01, "putze"),
        ("9", 0.01, "putze"),
        (10, 0.0, "putze"),
        (10, 1.0, "putze"),
        (10, -0.5, "parquet"),
        (10, 1.5, "lance"),
        (10, math.nan, "putze"),
        (10, True, "putze"),
        (10, "0.1", "putze"),
        (10, 0.01, "murmur"),
        (10**12, 0.01, "putze"),
        (10**18, 1e-300, "putze"),
    ],
)
def test_impossible_arguments(ndv: int, fpp: float, rule: sizing.SizingRule) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        sizing.num_blocks(ndv, fpp, rule)


@pytest.mark.parametrize(("blocks", "ndv"), [(0, 1), (-1, 1), (2**31, 1), (1, -1), (1, math.nan), (1.5, 1)])
def test_impossible_filters_have_no_rate(blocks: int, ndv: int) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        sizing.fpp(blocks, ndv)


def test_the_automatic_rate_follows_the_number_of_units() -> None:
    assert [sizing.auto_fpp(units) for units in (0, 1, 25, 250, 4000, 10**9)] == [
        0.01, 0.01, 0.01, 0.001, 0.0000625, 1e-7,
    ]  # fmt: skip


def test_low_rates_take_two_layers() -> None:
    assert sizing.layer_fpps(0.001) == (0.001,)
    first, second = sizing.layer_fpps(1e-5)
    assert first == second == pytest.approx(math.sqrt(1e-5))
    bits = sum(sizing.num_blocks(10**6, fpp) * 256 / 10**6 for fpp in (first, second))
    assert bits < 27.1

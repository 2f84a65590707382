"""Sizes against the published tables: arrow-rs, the Parquet specification, Lance."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom import Sbbf, errors, sizing
from lakebloom.sbbf.layers import in_layer
from lakebloom.sbbf.sizing import rate

RULES: tuple[sizing.SizingRule, ...] = ("putze", "parquet", "lance")
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
        (1, 5e-324, "putze"),
        *((ndv, 0.01, rule) for ndv in (2**63, 10**5000) for rule in RULES),
    ],
    ids=lambda value: f"{value.bit_length()} bits" if isinstance(value, int) and value > 10**20 else None,
)
def test_impossible_arguments(ndv: int, fpp: float, rule: sizing.SizingRule) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        sizing.num_blocks(ndv, fpp, rule)


EXTREMES = [5e-324, 1e-310, 1e-300, 1e-100, 1e-17, 1e-9, 0.5, 0.999, 1 - 1e-9, 1 - 1e-13, math.nextafter(1, 0)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fpp", EXTREMES)
@pytest.mark.parametrize("ndv", [0, 1, 1000, 10**9, 2**63 - 1])
def test_extreme_rates_have_a_size_or_are_too_large(ndv: int, fpp: float, rule: sizing.SizingRule) -> None:
    if rule == "putze" and sizing.fpp(2**31 - 1, ndv) > fpp:
        with pytest.raises(errors.InvalidArgumentError, match=r"at most 2\^31 - 1"):
            sizing.num_blocks(ndv, fpp, rule)
        return
    blocks = sizing.num_blocks(ndv, fpp, rule)
    assert 1 <= blocks < 2**31
    if rule == "putze" and fpp <= 0.999:
        assert sizing.fpp(blocks, ndv) <= fpp


def test_the_parquet_rule_at_the_ends() -> None:
    assert sizing.num_blocks(10**6, 5e-324, rule="parquet") * 32 == 128 << 20
    assert sizing.num_blocks(10**6, math.nextafter(1, 0), rule="parquet") * 32 < 1 << 20


@pytest.mark.parametrize("real", [np.float64(0.01), np.float32(0.01), np.float16(0.01), Fraction(1, 100)], ids=repr)
def test_real_numbers_of_any_class_are_rates(real: float) -> None:
    assert sizing.num_blocks(1000, real) == sizing.num_blocks(1000, float(real))
    assert Sbbf.for_items(1000, real).fold_to(real).num_blocks == 1
    assert sizing.layer_fpps(real) == (float(real),)


def test_counts_of_any_class() -> None:
    assert sizing.num_blocks(np.int32(1000), 0.01) == sizing.num_blocks(1000, 0.01)
    assert sizing.fpp(np.int64(10), np.float32(5)) == sizing.fpp(10, 5)
    assert sizing.fpp(1, 10**5000) == sizing.fpp(1, math.inf) == 1.0
    assert sizing.auto_fpp(10**400) == sizing.auto_fpp(np.int64(10**15)) == 1e-7


@pytest.mark.parametrize("units", [-1, -0.5, math.nan, "9", None, True])
def test_impossible_numbers_of_units(units: int) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        sizing.auto_fpp(units)


@pytest.mark.parametrize(
    ("blocks", "ndv"), [(0, 1), (-1, 1), (2**31, 1), (1, -1), (1, -math.inf), (1, math.nan), (1.5, 1), (1, "9")]
)
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


def test_a_third_layer_saves_a_tenth_where_it_comes() -> None:
    def bits(fpp: float, layers: int) -> float:
        return layers * sizing.num_blocks(10**6, fpp ** (1 / layers)) * 256 / 10**6

    for fpp, layers in ((1e-2, 1), (1e-4, 2), (1e-6, 2), (2.5e-7, 2), (1.9e-7, 3), (1e-7, 3), (1e-9, 3)):
        assert len(sizing.layer_fpps(fpp)) == layers
        assert math.prod(sizing.layer_fpps(fpp)) == pytest.approx(fpp)
        assert (bits(fpp, 3) < 0.9 * bits(fpp, 2)) == (layers == 3)
    assert bits(1e-7, 3) < 37.2


@pytest.mark.parametrize("fpp", [0.01, 1e-5, 1e-7])
def test_the_layers_together_have_the_rate_that_was_asked_for(fpp: float) -> None:
    """By their bits, and by values that are nowhere: independent layers let through the product."""
    rng = np.random.default_rng(5)
    inside, outside = (rng.integers(0, 2**64, count, dtype=np.uint64) for count in (50_000, 400_000))
    filters = [Sbbf.for_items(len(inside), each) for each in sizing.layer_fpps(fpp)]
    for layer, f in enumerate(filters):
        f.insert_hashes(in_layer(inside, layer))
        assert f.might_contain_hashes(in_layer(inside, layer)).all()
    assert math.prod(f.fpp for f in filters) == pytest.approx(fpp, rel=0.1)
    passed = [f.might_contain_hashes(in_layer(outside, layer)) for layer, f in enumerate(filters)]
    for first in range(len(passed)):
        for second in range(first):
            expected = len(outside) * filters[first].fpp * filters[second].fpp
            assert abs(np.count_nonzero(passed[first] & passed[second]) - expected) < 6 * math.sqrt(expected) + 6

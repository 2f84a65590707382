"""Folding to a rate finds the smallest size there is, and sizes can be chosen to fold well."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebloom import Sbbf, errors, sizing
from lakebloom.sbbf.folding import divisors
from tests.examples import most


def smallest_by_trying_all(f: Sbbf, fpp: float) -> int:
    return next((size for size in divisors(f.num_blocks) if f.fold(size).fpp <= fpp), f.num_blocks)


def filled(num_blocks: int, ndv: int, seed: int) -> Sbbf:
    f = Sbbf(num_blocks)
    f.insert(np.random.default_rng(seed).integers(0, 2**62, ndv))
    return f


@pytest.mark.slow
@pytest.mark.parametrize("fpp", [0.1, 0.01, 3e-4, 1e-5, 1e-8])
@pytest.mark.parametrize("num_blocks", [1, 97, 720, 4096, 5040])
@settings(max_examples=most(15))
@given(ndv=st.integers(0, 3000), seed=st.integers(0, 2**32))
def test_fold_to_equals_trying_all_sizes(num_blocks: int, fpp: float, ndv: int, seed: int) -> None:
    f = filled(num_blocks, ndv, seed)
    folded = f.fold_to(fpp)
    assert folded.num_blocks == smallest_by_trying_all(f, fpp)
    assert folded == f.fold(folded.num_blocks)


@pytest.mark.parametrize("fpp", [3e-4, 1e-5])
def test_fold_to_of_a_large_filter(fpp: float) -> None:
    f = filled(55_440, 40_000, 1)
    assert f.fold_to(fpp).num_blocks == smallest_by_trying_all(f, fpp)


def test_folding_never_lowers_the_rate() -> None:
    f = filled(720, 2000, 2)
    rates = {size: f.fold(size).fpp for size in divisors(720)}
    for size, rate in rates.items():
        assert all(rates[smaller] >= rate for smaller in divisors(size))


@given(st.integers(1, 31 * 2**26))
def test_foldable_sizes_are_a_little_larger_and_halve_often(num_blocks: int) -> None:
    foldable = sizing.foldable_blocks(num_blocks)
    assert num_blocks <= foldable <= num_blocks * 17 / 16
    m = foldable
    while m >= 32:
        assert m % 2 == 0
        m //= 2
    assert foldable < 32 or m >= 16


def test_foldable_sizes() -> None:
    assert [sizing.foldable_blocks(n) for n in (1, 13, 31, 32, 33, 1023, 1025)] == [1, 13, 31, 32, 34, 1024, 1088]
    for bad in (0, -1, 1.5, 2**31 - 1, 2**31):
        with pytest.raises(errors.InvalidArgumentError):
            sizing.foldable_blocks(bad)  # type: ignore[arg-type]


def test_a_prime_size_folds_badly_and_its_foldable_neighbour_well() -> None:
    prime = 4099
    assert len(divisors(prime)) == 2
    values = np.arange(500)
    exact, foldable = Sbbf(prime), Sbbf(sizing.foldable_blocks(prime))
    exact.insert(values)
    foldable.insert(values)
    assert exact.fold_to(0.01).num_blocks == prime
    assert foldable.fold_to(0.01).num_blocks <= 2 * sizing.num_blocks(500, 0.01)

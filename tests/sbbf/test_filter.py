"""The filter's laws, on random values, against the reference filter."""

from __future__ import annotations

import math
import struct
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom import Sbbf, errors, hash_values, sizing
from lakebloom.sbbf.folding import divisors
from lakebloom.sbbf.layers import mix

from .reference import ReferenceFilter

on_both_kernels = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
texts = st.lists(st.one_of(st.none(), st.text(max_size=50)), max_size=60)
block_counts = st.integers(1, 300)


def encoded(values: list[str | None]) -> list[bytes]:
    return [value.encode() for value in values if value is not None]


def filled(num_blocks: int, values: object) -> Sbbf:
    f = Sbbf(num_blocks)
    f.insert(values)
    return f


@on_both_kernels
@given(values=texts, others=texts, num_blocks=block_counts)
def test_bits_and_answers_equal_the_reference(
    kernels: ModuleType, values: list[str | None], others: list[str | None], num_blocks: int
) -> None:
    f = filled(num_blocks, values)
    reference = ReferenceFilter.of(num_blocks, encoded(values))
    assert f.to_bytes() == reference.to_bytes()
    probes = values + others
    expected = [value is not None and reference.contains(value.encode()) for value in probes]
    assert list(f.might_contain(probes)) == expected
    assert all(value in f for value in values if value is not None), "no false negative"


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1)), num_blocks=block_counts)
def test_every_way_to_insert_gives_the_same_bits(values: list[int], num_blocks: int) -> None:
    expected = ReferenceFilter.of(num_blocks, [struct.pack("<q", value) for value in values]).to_bytes()
    one_by_one = Sbbf(num_blocks)
    for value in values:
        one_by_one.insert(value)
    by_hash = Sbbf(num_blocks)
    by_hash.insert_hashes(hash_values(np.array(values, dtype=np.int64)))
    chunked = pa.chunked_array([pa.array(values[:5], pa.int64()), pa.array(values[5:], pa.int64())])
    for f in (one_by_one, by_hash, filled(num_blocks, np.array(values, dtype=np.int64)), filled(num_blocks, chunked)):
        assert f.to_bytes() == expected


@given(first=texts, second=texts, num_blocks=block_counts)
def test_merge_is_the_filter_of_both(first: list[str | None], second: list[str | None], num_blocks: int) -> None:
    f, g = filled(num_blocks, first), filled(num_blocks, second)
    both = filled(num_blocks, first + second)
    assert f | g == both
    before = f.to_bytes()
    f |= g
    assert f == both
    assert (f.to_bytes() != before) == (g | filled(num_blocks, first) != filled(num_blocks, first))


@given(values=texts, quotient=st.integers(1, 40), divisor=st.integers(1, 12))
def test_folding_equals_building_at_the_smaller_size(values: list[str | None], quotient: int, divisor: int) -> None:
    assert filled(quotient * divisor, values).fold(quotient) == filled(quotient, values)


@given(values=texts, num_blocks=block_counts)
def test_bytes_round_trip(values: list[str | None], num_blocks: int) -> None:
    f = filled(num_blocks, values)
    assert Sbbf.from_bytes(f.to_bytes()) == f
    assert Sbbf.from_parquet(f.to_parquet()) == f


@pytest.mark.parametrize("fpp", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("ndv", [1000, 30_000])
def test_the_measured_rate_is_the_promised_one(ndv: int, fpp: float) -> None:
    f = Sbbf.for_items(ndv, fpp)
    f.insert(np.arange(ndv))
    probes = 2_000_000
    measured = int(f.might_contain(np.arange(10**9, 10**9 + probes)).sum()) / probes
    # Two sources of chance: which bits this set of values sets (shared by all probes), and the probes themselves.
    promised = sizing.fpp(f.num_blocks, ndv)
    slack = 5 * (math.sqrt(promised / probes) + promised / math.sqrt(ndv))
    assert abs(measured - promised) < slack
    assert promised <= fpp
    assert abs(f.fpp - measured) < 5 * math.sqrt(f.fpp / probes)
    assert f.ndv == pytest.approx(ndv, rel=0.03)


def test_two_layers_multiply_their_rates() -> None:
    ndv, probes = 20_000, 4_000_000
    first, second = (Sbbf.for_items(ndv, fpp) for fpp in sizing.layer_fpps(1e-4))
    inside, outside = hash_values(np.arange(ndv)), hash_values(np.arange(10**9, 10**9 + probes))
    first.insert_hashes(inside)
    second.insert_hashes(mix(inside))
    assert (first.might_contain_hashes(inside) & second.might_contain_hashes(mix(inside))).all()
    hits = int((first.might_contain_hashes(outside) & second.might_contain_hashes(mix(outside))).sum())
    expected = first.fpp * second.fpp * probes
    assert abs(hits - expected) < 5 * math.sqrt(expected)


@pytest.mark.parametrize("ndv", [0, 1, 10, 300, 5000])
@pytest.mark.parametrize("fpp", [0.1, 0.01])
def test_fold_to_finds_the_smallest_size_that_keeps_the_rate(ndv: int, fpp: float) -> None:
    f = filled(720, np.arange(ndv))
    folded = f.fold_to(fpp)
    if f.fpp > fpp:
        assert folded == f
        return
    assert folded == filled(folded.num_blocks, np.arange(ndv))
    assert folded.fpp <= fpp
    smaller = [z for z in divisors(720) if z < folded.num_blocks]
    assert all(f.fold(z).fpp > fpp for z in smaller)


def test_an_empty_filter_folds_to_one_block_and_holds_nothing() -> None:
    f = Sbbf(1024)
    assert f.fold_to(0.01).num_blocks == 1
    assert (f.fpp, f.ndv, f.num_bytes) == (0.0, 0.0, 32_768)
    assert 1 not in f


def test_a_full_filter_says_so() -> None:
    f = Sbbf.from_bytes(b"\xff" * 64)
    assert f.fpp == 1.0
    assert f.ndv == math.inf
    assert "anything" in f


def test_scalars_answer_with_a_bool_and_arrays_with_an_array() -> None:
    f = filled(8, ["a", None])
    assert f.might_contain("a") is True
    assert f.might_contain(None) is False
    assert None not in f
    answer = f.might_contain(["a", None, "b"])
    assert isinstance(answer, np.ndarray)
    assert answer.dtype == np.bool_
    assert answer.tolist() == [True, False, False]
    assert f.might_contain(pa.array([], pa.string())).tolist() == []
    with pytest.raises(errors.InvalidArgumentError):
        ["a"] in f  # noqa: B015


@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)])
def test_numbers_are_found_whatever_their_width(kind: pa.DataType) -> None:
    f = filled(64, pa.array([1, 2, 3], pa.int64()).cast(pa.int16()).cast(kind))
    assert 2 in f
    assert 2.0 in f
    assert f.might_contain(np.array([1, 2, 2**40])).tolist() == [True, True, False]
    assert f.might_contain(np.array([3], np.int32)).tolist() == [True]
    assert 2**40 not in f


def test_decimals_are_found_whatever_their_scale() -> None:
    from decimal import Decimal

    f = filled(64, [Decimal("1.5"), Decimal("10.25")])
    assert Decimal("1.5") in f
    assert Decimal("1.50") in f
    assert Decimal("1.51") not in f


def test_filters_of_several_types_find_all_of_them() -> None:
    f = filled(64, pa.array([7], pa.int32()))
    f.insert("seven")
    f |= filled(64, [7.5])
    assert 7 in f
    assert "seven" in f
    assert 7.5 in f


def test_refused_values_insert_nothing() -> None:
    f = Sbbf(4)
    mixed = [pa.array(["a"]), pa.array([True])]
    for bad in (*mixed[1:], [1, "a"], [True], object()):
        with pytest.raises(errors.LakebloomError):
            f.insert(bad)
    assert f == Sbbf(4)


@pytest.mark.parametrize("bad", [0, -1, 2**31, 1.5, "8", None])
def test_impossible_block_counts(bad: object) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        Sbbf(bad)  # type: ignore[arg-type]


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(errors.FilterMismatchError, match="fold both to 2"):
        Sbbf(4) | Sbbf(6)
    with pytest.raises(errors.FilterMismatchError, match="divisor of 12"):
        Sbbf(12).fold(5)
    with pytest.raises(errors.InvalidArgumentError):
        Sbbf(12).fold(0)
    for fpp in (0, 1, -0.1, 2, float("nan"), "0.1"):
        with pytest.raises(errors.InvalidArgumentError):
            Sbbf(12).fold_to(fpp)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Sbbf(1) | b""  # type: ignore[operator]


@pytest.mark.parametrize("bad", [np.array([1]), np.array([[1]], np.uint64), [1], 1])
def test_hashes_must_be_uint64(bad: object) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        Sbbf(1).insert_hashes(bad)  # type: ignore[arg-type]


def test_foreign_memory_is_copied_before_it_is_written() -> None:
    data = bytes(64)
    f = Sbbf.from_bytes(data)
    f.insert("a")
    assert data == bytes(64)
    own = bytearray(64)
    g = Sbbf.from_bytes(own)
    own[0] = 0xFF
    assert g == Sbbf(2)
    with pytest.raises(ValueError, match="read-only"):
        f.words[0, 0] = 1
    unaligned = Sbbf.from_bytes(memoryview(b"x" + f.to_bytes())[1:])
    assert unaligned == f
    assert "a" in unaligned


def test_equality_and_printing() -> None:
    f = filled(4, ["a"])
    assert f == filled(4, ["a"])
    assert f != Sbbf(4)
    assert Sbbf(4) != Sbbf(5)
    assert f != "a"
    assert repr(f) == "Sbbf(num_blocks=4, ndv~1, fpp~2.3e-13)"
    with pytest.raises(TypeError):
        hash(f)

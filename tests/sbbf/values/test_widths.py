"""Numbers are found whatever their width, in filters that know their types and in filters that do not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakebloom import Sbbf, hash_values
from lakebloom.sbbf.hashing.encoding import CANONICAL, LANCE, PARQUET, Encoding, Parquet
from tests.sbbf.wrapped import Wrapped

KINDS = [
    pa.int16(), pa.int32(), pa.int64(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64()
]  # fmt: skip
NARROW = [pa.int8(), pa.uint8()]
BIG = 1 << 12


def filled(values: object, **options: Any) -> Sbbf:
    f = Sbbf(BIG)  # large enough for no accident
    f.insert(values, **options)
    return f


def of_hashes(f: Sbbf) -> Sbbf:
    made = Sbbf(BIG)
    made.insert_hashes(hash_values(pa.array([], pa.int32())))
    made |= Sbbf.from_bytes(f.to_bytes())
    return made


FORGETFUL = {
    "bytes": lambda f: Sbbf.from_bytes(f.to_bytes()),
    "parquet": lambda f: Sbbf.from_parquet(f.to_parquet()),
    "words": lambda f: Sbbf.from_words(f.words),
    "merge": lambda f: filled(["text"]) | Sbbf.from_bytes(f.to_bytes()),
    "merge in place": of_hashes,
    "fold": lambda f: Sbbf.from_bytes(f.to_bytes()).fold(BIG // 2),
}


@pytest.mark.parametrize("how", FORGETFUL)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_python_number_is_found_in_a_filter_of_unknown_types(kind: pa.DataType, how: str) -> None:
    f = FORGETFUL[how](filled(pa.array([5, 300, None], kind)))
    assert 5 in f
    assert 5.0 in f
    assert f.might_contain([5, 6, 300, None]).tolist() == [True, False, True, False]
    assert f.might_contain(iter([5.0, 5.5])).tolist() == [True, False]
    assert f.might_contain(5, type=kind) is True
    assert 6 not in f


def test_hashes_have_unknown_types() -> None:
    f = Sbbf(BIG)
    f.insert(["a"])
    f.insert_hashes(hash_values(pa.array([5], pa.int32())))
    assert 5 in f
    assert f.might_contain(np.array([5])).tolist() == [False], "numpy says int64"


def test_values_with_a_type_are_asked_as_they_are_of_a_filter_of_unknown_types() -> None:
    f = Sbbf.from_bytes(filled(pa.array([5], pa.int32())).to_bytes())
    assert f.might_contain(np.array([5])).tolist() == [False]
    assert f.might_contain(pa.array([5])).tolist() == [False]
    assert f.might_contain(5, type=pa.int64()) is False
    assert np.int32(5) in f
    decimals = Sbbf.from_bytes(filled(pa.array([Decimal("1.50")], pa.decimal128(9, 2))).to_bytes())
    assert Decimal("1.50") not in Sbbf(1)
    assert decimals.might_contain(Decimal("1.5"), type=pa.decimal128(9, 2)) is True


@pytest.mark.parametrize("encoding", [PARQUET, LANCE], ids=repr)
@pytest.mark.parametrize("kind", [*NARROW, *KINDS], ids=str)
def test_other_encodings_are_of_unknown_types(encoding: Encoding, kind: pa.DataType) -> None:
    top = 100 if kind.bit_width == 8 else 50_000 if kind == pa.uint16() else 100
    f = filled(pa.array([5, top], kind), encoding=encoding)
    assert f.might_contain([5, top], encoding=encoding).tolist() == [True, True]
    assert f.might_contain(6, encoding=encoding) is False


def test_a_physical_type_fixes_the_width() -> None:
    f = filled(pa.array([5], pa.int32()), encoding=Parquet("INT32"))
    assert f.might_contain([5, 6], encoding=Parquet("INT32")).tolist() == [True, False]
    assert f.might_contain(5, encoding=Parquet("INT64")) is False


def test_only_canonical_types_are_remembered() -> None:
    f = filled(pa.array([5], pa.int8()), encoding=LANCE)
    assert f.might_contain(np.array([5])).tolist() == [False]
    assert 5 not in f  # its one byte is no canonical form of 5


def test_large_integers_are_found_among_floats_they_equal() -> None:
    f = filled([float(2**60), float(2**63), 1e22])
    assert 2**60 in f
    assert 2**63 in f
    assert 10**22 in f
    assert 2**60 + 1 not in f
    single = filled(pa.array([2.0**40], pa.float32()))
    assert 2**40 in single
    assert 2**40 + 1 not in single


@pytest.mark.parametrize("probe", [1200, 1200.0, Decimal(1200), Decimal("1.2E+3"), np.int32(1200)], ids=repr)
def test_decimals_of_a_negative_scale(probe: object) -> None:
    f = filled(pa.array([Decimal(1200)], pa.decimal128(5, -2)))
    assert probe in f
    assert 1250 not in f


def test_remembered_types_are_those_of_the_values() -> None:
    narrow = pa.array([5, None], pa.int32())
    wrapped = pa.ExtensionArray.from_storage(Wrapped(pa.int32()), narrow)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), narrow)
    for values in (wrapped, narrow.dictionary_encode(), runs):
        f = filled(values)
        assert 5 in f
        assert f.might_contain(np.array([5, 6])).tolist() == [True, False]
        assert filled(pa.array([5, 7])).might_contain(values)[0]
        merged = f | filled(["text"])
        assert 5 in merged
        assert 5 in merged.fold(BIG // 4)


def test_a_refused_value_leaves_no_type_behind() -> None:
    f = filled(["a"])
    with pytest.raises(TypeError):
        f.insert(pa.chunked_array([pa.array([], pa.int8())]))
    assert f.might_contain(5, encoding=CANONICAL) is False

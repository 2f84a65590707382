"""PyArrow's functions without ``pyarrow.compute``: the same results as with it."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute
import pytest

import lakebloom.arrow_compute as pc

NUMBERS = pa.array([3, None, 1, 2], pa.int64())
TRUTHS = pa.array([True, None, False, True])
TEXTS = pa.array(["ab", None, "b", ""])
FLOATS = pa.chunked_array([[1.5, float("nan")], [None, -0.0]])

CALLS = [
    *((name, (NUMBERS, pa.scalar(2))) for name in ("equal", "greater", "greater_equal", "less", "less_equal", "add")),
    *((name, (TRUTHS, pa.array([None, None, True, False]))) for name in ("and_", "and_kleene", "or_", "or_kleene")),
    *((name, (TRUTHS,)) for name in ("all", "any", "indices_nonzero", "invert", "is_null", "is_valid")),
    *((name, (NUMBERS,)) for name in ("max", "min", "min_max")),
    ("is_nan", (FLOATS,)),
    ("if_else", (TRUTHS, NUMBERS, pa.scalar(None, pa.int64()))),
    ("binary_join_element_wise", (TEXTS, TEXTS, pa.scalar("-"))),
    ("cast", (NUMBERS, pa.int16())),
    ("cast", (FLOATS, pa.float32(), False)),
    ("fill_null", (NUMBERS, 7)),
    ("fill_null", (pa.chunked_array([TRUTHS]), False)),
    ("index_in", (TEXTS, pa.array(["b", "ab"]))),
    ("is_in", (NUMBERS, pa.array([1, 3]))),
    ("starts_with", (TEXTS, "a")),
    ("starts_with", (TEXTS.cast(pa.binary()), b"a")),
    ("take", (pa.table({"n": NUMBERS, "t": TEXTS}), pa.array([3, 0]))),
    ("floor_temporal", (pa.array([1_234_567], pa.timestamp("us")),)),  # not one of ours
]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_functions_are_those_of_pyarrow(name: str, arguments: tuple[object, ...]) -> None:
    expected = getattr(pyarrow.compute, name)(*arguments)
    found = getattr(pc, name)(*arguments)
    assert found.type == expected.type if hasattr(expected, "type") else found.schema == expected.schema
    assert str(found) == str(expected)  # NaN equals itself as text


def test_all_functions_without_options_are_tested() -> None:
    assert {name for name, _ in CALLS} >= pc._WITHOUT_OPTIONS


def test_an_unsafe_cast_is_refused_unless_it_is_asked_for() -> None:
    with pytest.raises(pa.ArrowInvalid):
        pc.cast(pa.array([1.5]), pa.int64())
    assert pc.cast(pa.array([1.5]), pa.int64(), safe=False).to_pylist() == [1]


def test_unknown_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="no_such_function"):
        pc.no_such_function  # noqa: B018


def test_pyarrow_compute_is_loaded_for_other_functions_only() -> None:
    script = """
import sys, pyarrow as pa, lakebloom.arrow_compute as pc
from lakebloom.sbbf.values.plain_arrays import plain_array
one, zero = plain_array([1], pa.int64()), plain_array([0], pa.int64())  # pa.array would load it with pandas
pc.equal(one, zero[0]), pc.cast(one, pa.int8()), pc.take(one, zero)
print("pyarrow.compute" in sys.modules, pc.sum(one).as_py(), "pyarrow.compute" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1", "True"]

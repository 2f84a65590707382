"""Verdicts on columns, case by case. tests/spark/test_column_sampling.py holds predictions to real builds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lakebloom.index.build.column_advice import ColumnSample, FileSample, TableShape, Verdict, worth

LARGE = TableShape(files=1000, size_bytes=10**9)


def column(*files: Sequence[object], type: str = "bigint", rows: int = 1000) -> ColumnSample:
    """A column whose files hold these values, all of them sampled."""
    samples = [FileSample(rows, 0, len(set(keys)), min(keys), max(keys), frozenset(keys)) for keys in files]  # type: ignore[type-var]
    return ColumnSample("k", type, tuple(samples))


def scattered(number: int, count: int = 20) -> list[int]:
    """Values of one file alone, that reach over the whole range."""
    return [0 * count + number, *(i * 1000 + number for i in range(1, count))]


def test_keys_of_one_file_that_lie_anywhere_are_worth_it() -> None:
    found = worth(column(*map(scattered, range(10))), LARGE)
    assert found.verdict is Verdict.YES
    assert found.files_with_a_key == 1
    assert found.predicted_skip == pytest.approx(0.99875, abs=1e-4)  # its own file, and a quarter of one in vain
    assert found.minmax_skip < 0.1
    assert found.fpp == pytest.approx(0.00025)


def test_values_of_every_file_are_not() -> None:
    found = worth(column(*[["de", "fr", "us"]] * 10, type="string"), LARGE)
    assert (found.verdict, found.files_with_a_key, found.predicted_skip) == (Verdict.NO, 1000, 0)


def test_sorted_keys_are_not() -> None:
    found = worth(column(*[range(n * 100, n * 100 + 50) for n in range(10)]), LARGE)
    assert (found.verdict, found.minmax_skip) == (Verdict.NO, 0.999)
    assert found.why == "clustered: minimum and maximum skip 100% without it"


def test_half_is_perhaps() -> None:
    halves = [[*range(number % 2, 100, 2)] for number in range(10)]
    found = worth(column(*halves), LARGE)
    assert found.verdict is Verdict.MAYBE
    assert found.predicted_skip == pytest.approx(5 / 9, abs=0.01)


def test_a_large_index_is_perhaps() -> None:
    found = worth(column(*map(scattered, range(10))), TableShape(files=1000, size_bytes=100_000))
    assert found.verdict is Verdict.MAYBE
    assert "of the data" in found.why


def test_floating_point_is_perhaps() -> None:
    assert worth(column(*map(scattered, range(10)), type="double"), LARGE).verdict is Verdict.MAYBE


def test_one_file_of_one_row_group_has_nothing_to_skip() -> None:
    assert worth(column(scattered(1)), TableShape(1, 10**6)).verdict is Verdict.NO
    by_group = worth(column(scattered(1), rows=20), TableShape(1, 10**6, row_groups=10))
    assert (by_group.granularity, by_group.verdict) == ("row_group", Verdict.YES)


def test_nothing_but_null() -> None:
    empty = ColumnSample("k", "bigint", (FileSample(10, 10, 0, None, None, frozenset()),))
    assert worth(empty, LARGE).verdict is Verdict.NO

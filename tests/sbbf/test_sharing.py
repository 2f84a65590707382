"""One filter in several threads, and copies that go their own way."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from lakebloom import Sbbf, hash_values

THREADS = 8
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def _eager_switches() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], object]) -> None:
    """Run ``work(0)``, ``work(1)``, ... side by side, from one starting signal."""
    start = threading.Barrier(THREADS)

    def run(number: int) -> None:
        start.wait(PATIENCE_S)
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        for finished in [pool.submit(run, number) for number in range(THREADS)]:
            finished.result(PATIENCE_S)


def part(number: int) -> np.ndarray:
    return np.arange(number * 20_000, (number + 1) * 20_000)


def whole(num_blocks: int) -> Sbbf:
    f = Sbbf(num_blocks)
    f.insert(np.arange(THREADS * 20_000))
    return f


@pytest.mark.parametrize("num_blocks", [1, 4000])
def test_no_insert_is_lost(kernels: ModuleType, num_blocks: int) -> None:
    expected = whole(num_blocks)
    for _ in range(5):
        f = Sbbf(num_blocks)
        in_threads(lambda number, f=f: f.insert(part(number)))  # type: ignore[misc]
        assert f == expected


def test_no_hash_is_lost() -> None:
    hashes = hash_values(np.arange(1_000_000))
    expected = Sbbf(20_000)
    expected.insert_hashes(hashes)
    for _ in range(5):
        f = Sbbf(20_000)
        in_threads(lambda number, f=f: f.insert_hashes(hashes[number::THREADS]))  # type: ignore[misc]
        assert f == expected


def test_no_hash_is_lost_when_foreign_memory_is_copied() -> None:
    for _ in range(5):
        f = Sbbf.from_bytes(bytes(32 * 100_000))
        in_threads(lambda number, f=f: f.insert_hashes(hash_values(part(number)[:500])))  # type: ignore[misc]
        assert all(f.might_contain_hashes(hash_values(part(number)[:500])).all() for number in range(THREADS))


def test_no_merge_is_lost() -> None:
    others = []
    for number in range(THREADS):
        others.append(Sbbf(1000))
        others[-1].insert(part(number))
    f = Sbbf.from_bytes(bytes(32 * 1000))

    def merge(number: int) -> None:
        nonlocal f
        f |= others[number]

    in_threads(merge)
    assert f == whole(1000)


@pytest.mark.slow
def test_no_type_is_forgotten() -> None:
    kinds = [pa.int16(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(), pa.uint16()]
    for _ in range(10):
        f = Sbbf(1000)
        in_threads(lambda number, f=f: f.insert(pa.array([number], kinds[number])))  # type: ignore[misc]
        assert all(number in f for number in range(THREADS))


def test_merging_back_and_forth_does_not_stand_still() -> None:
    f, g = whole(64), Sbbf(64)

    def merge(number: int) -> None:
        for _ in range(2000):
            if number % 2:
                f.__ior__(g)
            else:
                g.__ior__(f)

    in_threads(merge)
    assert f == g == whole(64)
    f |= f
    assert f == g


COPIES: dict[str, Callable[[Sbbf], Sbbf]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda f, protocol=protocol: pickle.loads(pickle.dumps(f, protocol))  # type: ignore[misc]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("how", COPIES)
def test_copies_are_equal_independent_and_know_their_types(how: str) -> None:
    f = Sbbf(64)
    f.insert(pa.array([5], pa.int32()))
    f.insert(pa.array([7], pa.decimal128(9, 2)))
    made = COPIES[how](f)
    assert made == f
    assert 5 in made
    assert 7 in made
    made.insert("only here")
    assert "only here" not in f
    f.insert("only there")
    assert "only there" not in made
    unknown = COPIES[how](Sbbf.from_bytes(f.to_bytes()))
    assert 5 in unknown
    assert 7 not in unknown

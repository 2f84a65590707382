"""Words and bytes that are filters, that can be made so, and that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lakebloom import Sbbf, errors


def some_words(num_blocks: int = 6) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 2**32, (num_blocks, 8), dtype=np.uint32)


def test_good_words_are_wrapped() -> None:
    words = some_words()
    f = Sbbf.from_words(words)
    assert np.shares_memory(f.words, words)
    f.insert("a")
    assert Sbbf.from_words(words) == f
    frozen = some_words()
    frozen.flags.writeable = False
    g = Sbbf.from_words(frozen)
    g.insert("a")
    assert (frozen == some_words()).all()


def unaligned(words: np.ndarray) -> np.ndarray:
    memory = np.zeros(words.nbytes + 1, dtype=np.uint8)[1:]
    memory[:] = words.reshape(-1).view(np.uint8)
    return memory.view(np.uint32).reshape(words.shape)


@pytest.mark.parametrize(
    "odd",
    [
        some_words(12)[::2],
        np.asfortranarray(some_words()),
        some_words().astype(">u4"),
        unaligned(some_words()),
        np.hstack([some_words(), some_words()])[:, 8:],
    ],
    ids=["every second block", "columns first", "big-endian", "unaligned", "part of rows"],
)
def test_odd_words_are_copied(odd: np.ndarray) -> None:
    f = Sbbf.from_words(odd)
    assert f.words.tolist() == odd.tolist()
    before = odd.tolist()
    f.insert(np.arange(1000))
    assert odd.tolist() == before
    assert f.might_contain(np.arange(1000)).all()


@pytest.mark.parametrize(
    "bad",
    [
        some_words().astype(np.int32),
        some_words().astype(np.uint64),
        some_words().astype(np.float32),
        some_words().reshape(-1),
        some_words().reshape(3, 16),
        some_words()[:0],
        np.broadcast_to(np.zeros(8, np.uint32), (2**31, 8)),
        "words",
        None,
    ],
    ids=lambda bad: f"{bad.dtype} {bad.shape}" if isinstance(bad, np.ndarray) else repr(bad),
)
def test_bad_words_are_refused(bad: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        Sbbf.from_words(bad)


@pytest.mark.parametrize(
    "bad",
    ["0" * 32, 32, None, [0] * 32, memoryview(bytes(128))[::2], np.zeros((8, 8), np.uint32).T[:4]],
    ids=lambda bad: type(bad).__name__,
)
def test_what_is_not_bytes_is_refused(bad: Any) -> None:
    for read in (Sbbf.from_bytes, Sbbf.from_parquet):
        with pytest.raises(errors.InvalidArgumentError):
            read(bad)


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint64)])
def test_every_buffer_of_bytes_is_read(wrap: Any) -> None:
    f = Sbbf.from_words(some_words())
    assert Sbbf.from_bytes(wrap(f.to_bytes())) == f
    for read in (Sbbf.from_bytes, Sbbf.from_parquet):
        with pytest.raises(errors.CorruptFilterError):
            read(wrap(b""))

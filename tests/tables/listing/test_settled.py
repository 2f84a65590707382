"""A file is read for an index only when every later change will show in its identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.tables.file_identity import TableFile, is_same
from lakebloom.tables.listing import settled
from lakebloom.tables.listing.settled import is_settled, unsettled

if TYPE_CHECKING:
    from collections.abc import Iterator

S, MS = 10**9, 10**6
NOW = 1_700_000_000 * S + 123_456_789


class Clock:
    """Time that passes only while someone sleeps."""

    def __init__(self, now_ns: int = NOW) -> None:
        self.now_ns = now_ns
        self.slept_ns = 0

    def time_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.slept_ns += round(seconds * S)
        self.now_ns += round(seconds * S)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(settled, "time", made)
    return made


def local(changed_ns: int, mtime_ns: int = 0) -> TableFile:
    return TableFile("file:///t/a", 10, mtime_ns // MS, f"7f.{changed_ns:x}.{mtime_ns % MS:x}")


def s3(changed_ns: int, etag: str = "") -> TableFile:
    return TableFile("s3://b/a", 10, changed_ns // MS, etag)


def hadoop(changed_ns: int) -> TableFile:
    return TableFile("hdfs://n/a", 10, changed_ns // MS)


@pytest.mark.parametrize(
    ("file", "waits_ns"),
    [
        (local(NOW - S), 0),
        (local(NOW - 20 * MS), 0),
        (local(NOW), 20 * MS),
        (local(NOW - 5 * MS), 15 * MS),
        (local(NOW, mtime_ns=NOW + 10**6 * S), 20 * MS),  # anyone can set that; the inode's time tells
        (local((NOW - S) // S * S), 2 * S - (NOW - (NOW - S) // S * S)),  # a file system of whole seconds
        (local(NOW + S), S + 20 * MS),
        (s3(NOW, "9b2c"), 0),
        (s3(NOW + 10**6 * S, "9b2c"), 0),
        (s3(NOW), 2 * S - NOW % S),
        (s3(NOW - 3 * S), 0),
        (hadoop(NOW - S + 1), 0),
        (hadoop(NOW), 20 * MS - NOW % MS),
        (hadoop(NOW // S * S), 2 * S - NOW % S),
    ],
)
def test_how_long_it_takes(file: TableFile, waits_ns: int, clock: Clock) -> None:
    assert is_settled(file) == (waits_ns == 0)
    assert list(unsettled([file])) == []
    assert abs(clock.slept_ns - waits_ns) <= 1000
    assert is_settled(file)


@pytest.mark.parametrize("file", [local(NOW + 60 * S), s3(NOW + 60 * S), hadoop(NOW + 60 * S)])
def test_what_takes_too_long_is_left_out(file: TableFile, clock: Clock) -> None:
    old, new = local(NOW - 60 * S), local(NOW)
    assert list(unsettled([old, file, new])) == [file]
    assert clock.slept_ns == 20 * MS


def test_without_etags_an_object_must_be_older_than_its_second(clock: Clock) -> None:
    file = s3(NOW, "9b2c")
    assert not is_settled(file, etag_known=False)
    assert list(unsettled([file], etag_known=False)) == []
    assert clock.now_ns >= (NOW // S + 1) * S


def test_a_clock_that_does_not_get_on_ends_the_waiting(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "sleep", lambda seconds: None)
    file = local(NOW)
    assert list(unsettled([file])) == [file]


@given(
    tick_ns=st.sampled_from([1, MS, 4 * MS, 10 * MS, S]),
    written_ns=st.integers(0, 10 * S),
    seen_after_ns=st.integers(0, 3 * S),
    changed_after_ns=st.integers(0, 3 * S),
)
def test_a_change_after_the_reading_always_shows(
    tick_ns: int, written_ns: int, seen_after_ns: int, changed_after_ns: int
) -> None:
    """Whatever the steps of the file system's clock: the tag after a later change, in place, is another one."""

    def stamped(at_ns: int) -> TableFile:
        return local((NOW + at_ns) // tick_ns * tick_ns)

    clock = Clock(NOW + written_ns + seen_after_ns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settled, "time", clock)
        indexed = stamped(written_ns)
        if list(unsettled([indexed])) == []:
            read_at_ns = clock.now_ns - NOW
            assert not is_same(indexed, stamped(read_at_ns + changed_after_ns))

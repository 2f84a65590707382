"""The crashing storage does what its users count on."""

from __future__ import annotations

import uuid

import pytest

from lakebloom.errors import NotFoundError
from lakebloom.storage import Storage, open_storage

from .faults import Crash, FaultyStorage, Operation, SimulatedCrash


@pytest.fixture
def inner() -> Storage:
    return open_storage(f"memory://{uuid.uuid4().hex}")


def test_it_is_a_storage_and_logs_what_was_done(inner: Storage) -> None:
    storage = FaultyStorage(inner)
    assert isinstance(storage, Storage)
    storage.write("a", [b"12", b"3"])
    storage.put_if_absent("b", b"1")
    assert bytes(storage.read("a")) == b"123"
    storage.read_ranges("a", [(0, 1), (1, 1)])
    assert [file.path for file in storage.list("")] == ["a", "b"]
    assert list(storage.temporaries("")) == []
    storage.delete("a")
    assert storage.log == [
        Operation("write", "a", 3),
        Operation("put_if_absent", "b", 1),
        Operation("read", "a", 3),
        Operation("read_ranges", "a", 2),
        Operation("list", ""),
        Operation("temporaries", ""),
        Operation("delete", "a"),
    ]
    assert (storage.operations, storage.count("read", "read_ranges"), storage.count("list")) == (7, 2, 1)


def test_a_crash_before_an_operation_has_no_effect(inner: Storage) -> None:
    storage = FaultyStorage(inner, crash_at=2, mode=Crash.BEFORE)
    storage.write("a", b"1")
    with pytest.raises(SimulatedCrash, match="before write b, operation 2"):
        storage.write("b", b"2")
    assert [file.path for file in inner.list("")] == ["a"]


def test_a_crash_after_an_operation_keeps_its_effect(inner: Storage) -> None:
    storage = FaultyStorage(inner, crash_at=2, mode=Crash.AFTER)
    storage.write("a", b"1")
    with pytest.raises(SimulatedCrash, match="after write b, operation 2"):
        storage.write("b", b"2")
    assert [file.path for file in inner.list("")] == ["a", "b"]


def test_the_dead_do_nothing(inner: Storage) -> None:
    storage = FaultyStorage(inner, crash_at=1, mode=Crash.AFTER)
    with pytest.raises(SimulatedCrash):
        storage.write("a", b"1")
    with pytest.raises(SimulatedCrash):
        storage.delete("a")
    assert bytes(inner.read("a")) == b"1"
    assert storage.operations == 1


def test_an_operation_that_fails_is_counted(inner: Storage) -> None:
    storage = FaultyStorage(inner)
    with pytest.raises(NotFoundError):
        storage.read("missing")
    assert storage.log == [Operation("read", "missing")]


def test_no_except_exception_stops_a_crash() -> None:
    assert not issubclass(SimulatedCrash, Exception)

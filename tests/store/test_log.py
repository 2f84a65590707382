"""The log: commits are numbered, never lost, never overwritten, and found without listing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import errors
from lakebloom.storage import open_storage
from lakebloom.store.commits import decode_commit, encode_commit, entry_path
from lakebloom.store.log import Log
from tests.index.meddling import Passing
from tests.storage.faults import FaultyStorage
from tests.store.examples import bumped, entry

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Buffer, Storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path / "index")


def test_entries_survive_the_round_trip() -> None:
    first = entry(with_segment=True)
    assert decode_commit(encode_commit(first), "x") == first


def test_commits_follow_each_other(storage: Storage) -> None:
    log = Log(storage, "i")
    log.create(entry())
    for count in range(1, 6):
        committed = log.commit(bumped)
        assert committed is not None
        assert committed.version == count + 1
        assert committed.summary == {"count": count}
    assert Log(storage, "i").newest() == log.newest()
    assert log.versions() == [1, 2, 3, 4, 5, 6]
    assert log.newest().timestamp_ms > log.read(1).timestamp_ms


def test_a_change_that_gives_nothing_commits_nothing(storage: Storage) -> None:
    log = Log(storage, "i")
    log.create(entry())
    assert log.commit(lambda base: None) is None
    assert log.versions() == [1]


def test_a_second_first_entry_is_refused(storage: Storage) -> None:
    Log(storage, "i").create(entry())
    with pytest.raises(errors.AlreadyExistsError):
        Log(storage, "i").create(entry())


def test_a_writer_that_comes_second_starts_from_the_winner(storage: Storage) -> None:
    first, second = Log(storage, "i"), Log(storage, "i")
    first.create(entry())
    second.newest()
    first.commit(bumped)
    committed = second.commit(bumped)
    assert committed is not None
    assert (committed.version, committed.summary) == (3, {"count": 2})


def test_finding_the_newest_entry_lists_nothing(storage: Storage) -> None:
    log = Log(storage, "i")
    log.create(entry())
    for _ in range(3):
        log.commit(bumped)
    watched = FaultyStorage(storage)
    assert Log(watched, "i").newest().version == 4
    assert watched.count("list") == 0


@pytest.mark.parametrize("hint", [b"", b"rubbish", b"1", b"99"])
def test_a_wrong_hint_does_no_harm(storage: Storage, hint: bytes) -> None:
    log = Log(storage, "i")
    log.create(entry())
    for _ in range(3):
        log.commit(bumped)
    storage.write("log/latest", hint)
    assert Log(storage, "i").newest().version == 4
    storage.delete("log/latest")
    assert Log(storage, "i").newest().version == 4


def test_an_index_that_is_not_there(storage: Storage) -> None:
    with pytest.raises(errors.IndexNotFoundError, match="no index named 'i'"):
        Log(storage, "i").newest()


def damaged(data: bytes) -> list[bytes]:
    middle = len(data) // 2
    return [
        b"",
        data[:middle],
        data[:-10],
        data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        data.replace(b'"active"', b'"asleep"'),
        b"{}\n{}\n",
    ]


@pytest.mark.parametrize("case", range(6))
def test_damaged_entries_are_typed_errors(storage: Storage, case: int) -> None:
    log = Log(storage, "i")
    log.create(entry())
    storage.write(entry_path(1), damaged(bytes(storage.read(entry_path(1))))[case])
    with pytest.raises(errors.CorruptIndexError):
        Log(storage, "i").newest()


def test_an_entry_of_a_later_format_is_refused(storage: Storage) -> None:
    data = encode_commit(entry()).replace(b'{"lakebloom":2', b'{"lakebloom":3', 1)
    storage.write(entry_path(1), data)
    with pytest.raises(errors.UnknownFormatError, match="found format 3"):
        Log(storage, "i").newest()


@pytest.mark.parametrize("others", [1, 31, 32, 33, 100])
def test_a_writer_that_is_overtaken_knows_that_its_commit_stands(storage: Storage, others: int) -> None:
    """Between a put and the look at the log, others may commit more versions than an entry names as its ancestors."""
    Log(storage, "i").create(entry())

    class Overtaken(Passing):
        def put_if_absent(self, path: str, data: Buffer) -> None:
            super().put_if_absent(path, data)
            for _ in range(others):
                Log(storage, "i").commit(bumped)

    committed = Log(Overtaken(storage), "i").commit(bumped)
    assert committed is not None
    assert committed.version == 2
    assert Log(storage, "i").newest().summary == {"count": 1 + others}

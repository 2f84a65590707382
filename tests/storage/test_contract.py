"""What every backend does alike. The fixture `storage` opens each of them in turn."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, StorageError
from lakebloom.storage import Storage, normalise
from lakebloom.storage.local.temporary import temporary_name
from lakebloom.storage.metered import Metered
from lakebloom.storage.several import read_each

from .race import assert_single_winner, race_threads

if TYPE_CHECKING:
    from collections.abc import Callable

STRANGE_NAMES = [
    "a b",
    "a%20b",
    "100%",
    "a+b",
    "a#b",
    "a?b=c&d",
    "[x]{y}",
    "day=2024-01-01",
    "grün-日本",
    "a:b",
    "~'(x)!*@$,;^|",
    ".hidden",
    "x" * 200,
]
BAD_PATHS = ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", "a/./b", "a\x00b", "a\nb"]


def paths_of(storage: Storage, prefix: str = "") -> list[str]:
    return sorted(file.path for file in storage.list(prefix))


@pytest.mark.slow
def test_it_is_a_storage_with_a_canonical_uri(storage: Storage) -> None:
    assert isinstance(storage, Storage)
    assert storage.uri == normalise(storage.uri)
    assert storage.uri.endswith("/base")


def test_read_returns_what_was_written(storage: Storage) -> None:
    storage.write("log/7.json", b"seven")
    view = storage.read("log/7.json")
    assert bytes(view) == b"seven"
    assert (view.format, view.ndim, view.readonly) == ("B", 1, True)


def test_two_opens_see_the_same_files(reopen: Callable[[], Storage]) -> None:
    reopen().write("a", b"1")
    assert bytes(reopen().read("a")) == b"1"


@pytest.mark.parametrize(
    "data",
    [
        b"abc",
        bytearray(b"abc"),
        memoryview(b"xabcx")[1:4],
        pa.py_buffer(b"abc"),
        [b"a", pa.py_buffer(b"b"), b"", memoryview(b"c")],
        (bytearray(b"ab"), b"c"),
    ],
    ids=["bytes", "bytearray", "memoryview", "arrow", "list", "tuple"],
)
def test_every_kind_of_buffer_can_be_written(storage: Storage, data: object) -> None:
    storage.write("a", data)
    assert bytes(storage.read("a")) == b"abc"


@pytest.mark.parametrize("data", [b"", [], [b"", b""], pa.py_buffer(b"")], ids=["bytes", "none", "several", "arrow"])
def test_an_empty_file_is_a_file(storage: Storage, data: object) -> None:
    storage.write("empty", data)
    assert bytes(storage.read("empty")) == b""
    assert [(file.path, file.size_bytes) for file in storage.list("")] == [("empty", 0)]


@pytest.mark.parametrize("data", ["text", 7, [1, 2], memoryview(b"abcd")[::2]], ids=["str", "int", "ints", "strided"])
def test_what_is_no_flat_buffer_is_refused(storage: Storage, data: object) -> None:
    with pytest.raises(InvalidArgumentError):
        storage.write("a", data)
    assert paths_of(storage) == []


@pytest.mark.slow
def test_a_file_larger_than_any_block_survives(storage: Storage) -> None:
    parts = [bytes([number]) * 3_000_001 for number in range(7)]  # 21 MB: parts, blocks and single puts all end inside
    storage.write("large", parts)
    assert storage.read("large") == b"".join(parts)
    assert storage.read_ranges("large", [(3_000_000, 2), (20_999_990, 17)]) == [b"\x00\x01", b"\x06" * 17]


def test_write_replaces(storage: Storage) -> None:
    storage.write("a", b"a long first version")
    before = storage.read("a")
    storage.write("a", b"second")
    assert bytes(storage.read("a")) == b"second"
    assert bytes(before) == b"a long first version"


def test_what_was_read_outlives_the_file(storage: Storage) -> None:
    storage.write("a", b"still here")
    whole, (part,) = storage.read("a"), storage.read_ranges("a", [(6, 4)])
    storage.delete("a")
    assert (bytes(whole), bytes(part)) == (b"still here", b"here")


def test_ranges_come_in_the_order_asked_for(storage: Storage) -> None:
    storage.write("a", bytes(range(100)))
    ranges = [(90, 10), (0, 3), (2, 3), (50, 0), (0, 3), (100, 0)]
    views = storage.read_ranges("a", ranges)
    assert [bytes(view) for view in views] == [bytes(range(100))[at : at + size] for at, size in ranges]
    assert all(view.readonly for view in views)
    assert storage.read_ranges("a", []) == []


def test_one_range_of_each_of_several_files(storage: Storage) -> None:
    storage.write("a", bytes(range(100)))
    storage.write("folder/below/b", b"0123456789")
    asked = [("folder/below/b", 3, 2), ("a", 90, 10), ("a", 0, 0), ("folder/below/b", 0, 10)]
    for asking in (storage, Metered(storage)):
        views = read_each(asking, asked)
        assert [bytes(view) for view in views] == [b"34", bytes(range(90, 100)), b"", b"0123456789"]
        assert all(view.readonly for view in views)
        assert read_each(asking, []) == []
        for wrong in (("missing", 0, 1), ("folder", 0, 1), ("a", 99, 2), ("a", 1 << 40, 8)):
            with pytest.raises(StorageError):
                read_each(asking, [asked[0], wrong])
        with pytest.raises(InvalidArgumentError):
            read_each(asking, [("../a", 0, 1)])


@pytest.mark.parametrize(
    "ranges", [[(0, 11)], [(9, 2)], [(11, 1)], [(0, 1), (50, 1)], [(0, 1), (9, 9)], [(1 << 40, 8)]], ids=str
)
def test_a_range_beyond_the_end_is_an_error(storage: Storage, ranges: list[tuple[int, int]]) -> None:
    storage.write("a", b"0123456789")
    with pytest.raises(StorageError, match="verify the index"):
        storage.read_ranges("a", ranges)


@pytest.mark.parametrize("ranges", [[(-1, 1)], [(0, -1)]], ids=str)
def test_a_negative_range_is_refused(storage: Storage, ranges: list[tuple[int, int]]) -> None:
    storage.write("a", b"0123456789")
    with pytest.raises(InvalidArgumentError):
        storage.read_ranges("a", ranges)


def test_a_missing_file_is_not_found(storage: Storage) -> None:
    storage.write("log/7.json", b"seven")
    for path in ["8.json", "log/8.json", "log", "log/7.json/x"]:
        with pytest.raises(NotFoundError, match="could not read"):
            storage.read(path)
        with pytest.raises(NotFoundError):
            storage.read_ranges(path, [(0, 1)])
        with pytest.raises(NotFoundError):
            storage.read_ranges(path, [(0, 0)])


def test_put_if_absent_creates_once(storage: Storage) -> None:
    storage.put_if_absent("log/1", b"first")
    with pytest.raises(AlreadyExistsError, match="another writer"):
        storage.put_if_absent("log/1", b"second")
    assert bytes(storage.read("log/1")) == b"first"
    assert paths_of(storage) == ["log/1"]
    assert list(storage.temporaries("")) == []


def test_put_if_absent_does_not_mistake_equal_bytes_for_its_own(storage: Storage) -> None:
    storage.put_if_absent("log/1", b"same")
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("log/1", b"same")


def test_put_if_absent_respects_written_files_and_forgets_deleted_ones(storage: Storage) -> None:
    storage.write("a", b"written")
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("a", b"put")
    storage.delete("a")
    storage.put_if_absent("a", b"put")
    assert bytes(storage.read("a")) == b"put"


@pytest.mark.slow
def test_put_if_absent_lets_one_thread_through(reopen: Callable[[], Storage]) -> None:
    names = [f"log/{number:020}" for number in range(8)]
    won = race_threads(reopen, writers=4, names=names)
    assert_single_winner(reopen(), won, names)


def test_list_is_recursive_and_knows_whole_segments(storage: Storage) -> None:
    for path in ["log/1", "log/deep/er/2", "logs/3", "log.txt", "4"]:
        storage.write(path, path.encode())
    assert paths_of(storage, "log") == ["log/1", "log/deep/er/2"]
    assert paths_of(storage, "log/deep") == ["log/deep/er/2"]
    assert paths_of(storage) == ["4", "log.txt", "log/1", "log/deep/er/2", "logs/3"]
    assert {file.path: file.size_bytes for file in storage.list("log")} == {"log/1": 5, "log/deep/er/2": 13}


def test_list_of_nothing_is_empty(storage: Storage) -> None:
    assert paths_of(storage) == []
    storage.write("a/b", b"")
    assert paths_of(storage, "missing") == []
    assert paths_of(storage, "a/b") == []  # a file is not below itself


def test_mtime_is_the_time_of_writing_in_milliseconds(storage: Storage) -> None:
    before_ms = time.time_ns() // 1_000_000
    storage.write("a", b"")
    after_ms = time.time_ns() // 1_000_000
    (file,) = storage.list("")
    # S3 counts whole seconds, and file systems may read a clock that is a tick behind.
    assert before_ms - 1_100 <= file.mtime_ms <= after_ms + 1_100


def test_delete_is_idempotent(storage: Storage) -> None:
    storage.write("a/b/c", b"1")
    storage.write("a/d", b"2")
    for path in ["a/b/c", "a/b/c", "a/b", "a", "never/was", "a/d/x"]:
        storage.delete(path)
    assert paths_of(storage) == ["a/d"]
    storage.write("a/b/c", b"3")
    assert paths_of(storage) == ["a/b/c", "a/d"]


@pytest.mark.parametrize("name", STRANGE_NAMES)
def test_strange_names_stay_as_they_are(storage: Storage, name: str) -> None:
    path = f"{name}/{name}"
    storage.put_if_absent(path, b"found")
    assert paths_of(storage) == [path]
    assert paths_of(storage, name) == [path]
    assert bytes(storage.read(path)) == b"found"
    storage.delete(path)
    assert paths_of(storage) == []


def test_encoded_and_literal_names_are_different_files(storage: Storage) -> None:
    names = ["a b", "a%20b", "a%2520b", "a+b"]
    for name in names:
        storage.write(name, name.encode())
    assert paths_of(storage) == sorted(names)
    assert [bytes(storage.read(name)).decode() for name in names] == names


@pytest.mark.slow
@pytest.mark.parametrize("path", BAD_PATHS, ids=repr)
def test_paths_that_are_not_below_the_base_are_refused(storage: Storage, path: str) -> None:
    for operation in (
        lambda: storage.read(path),
        lambda: storage.read_ranges(path, [(0, 1)]),
        lambda: storage.write(path, b""),
        lambda: storage.put_if_absent(path, b""),
        lambda: storage.delete(path),
    ):
        with pytest.raises(InvalidArgumentError):
            operation()
    if path:
        for listing in (storage.list, storage.temporaries):
            with pytest.raises(InvalidArgumentError):
                listing(path)  # at once, not on the first step


def test_names_of_unfinished_files_are_refused(storage: Storage) -> None:
    for operation in (storage.write, storage.put_if_absent):
        with pytest.raises(InvalidArgumentError, match="unfinished"):
            operation(f"log/{temporary_name()}", b"")

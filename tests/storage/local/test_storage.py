"""What only local disk has: directories, links, descriptors and modes."""

from __future__ import annotations

import errno
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.errors import AccessDeniedError, AlreadyExistsError, NotFoundError, StorageError
from lakebloom.storage import open_storage, require_single_winner
from lakebloom.storage.local import durable
from lakebloom.storage.local.storage import LocalStorage
from lakebloom.storage.local.temporary import is_temporary
from lakebloom.storage.several import read_each

if TYPE_CHECKING:
    from lakebloom.storage import Storage

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds out what is synced through /proc")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path / "base")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "base"


def test_it_pickles(storage: Storage) -> None:
    assert pickle.loads(pickle.dumps(storage)) == storage
    assert repr(storage) == f"LocalStorage(uri='{storage.uri}')"


def test_the_root_is_a_base_too() -> None:
    assert LocalStorage("file:///")._locate("a/b") == Path("/a/b")


@pytest.mark.parametrize("fate", ["cut short", "written over", "removed"])
def test_what_was_read_stays_whatever_happens_to_the_file(storage: Storage, base: Path, fate: str) -> None:
    storage.write("a", b"x" * 100_000)
    whole, (part,) = storage.read("a"), storage.read_ranges("a", [(90_000, 5)])
    if fate == "cut short":
        os.truncate(base / "a", 0)
    elif fate == "written over":
        (base / "a").write_bytes(b"y" * 100_000)
    else:
        (base / "a").unlink()
    assert bytes(whole) == b"x" * 100_000
    assert bytes(part) == b"xxxxx"


@needs_proc
def test_reads_leave_no_descriptor_open(storage: Storage) -> None:
    storage.write("a", b"x")
    before = set(Path("/proc/self/fd").iterdir())
    kept = [storage.read("a"), *storage.read_ranges("a", [(0, 1)])]
    assert set(Path("/proc/self/fd").iterdir()) == before
    assert len(kept) == 2


def test_a_pipe_among_the_files_is_not_waited_for(storage: Storage, base: Path) -> None:
    base.mkdir()
    os.mkfifo(base / "pipe")
    for read in (storage.read, lambda path: storage.read_ranges(path, [(0, 1)])):
        with pytest.raises(NotFoundError, match="a pipe or a device"):
            read("pipe")


def test_a_range_beyond_all_memory_is_an_error_and_not_allocated(storage: Storage) -> None:
    storage.write("a", b"x")
    with pytest.raises(StorageError, match="cut short"):
        storage.read_ranges("a", [(0, 1 << 60)])
    with pytest.raises(StorageError, match="cut short"):
        storage.read_ranges("a", [(1 << 60, 1)])


def test_files_get_the_users_mode(storage: Storage, base: Path) -> None:
    umask = os.umask(0o027)
    try:
        storage.write("a", b"")
        storage.put_if_absent("b", b"")
    finally:
        os.umask(umask)
    assert [(base / name).stat().st_mode & 0o777 for name in "ab"] == [0o640, 0o640]
    assert (base / "b").stat().st_nlink == 1


def test_a_crashed_writer_leaves_a_temporary_file_that_a_vacuum_finds(storage: Storage, base: Path) -> None:
    storage.write("log/1", b"done")
    left = durable.write_temporary(base / "log", [memoryview(b"unfinished")])
    assert [file.path for file in storage.list("")] == ["log/1"]
    (found,) = storage.temporaries("")
    assert (found.path, found.size_bytes) == (f"log/{left.name}", 10)
    assert is_temporary(found.path)
    assert list(storage.temporaries("segments")) == []
    storage.delete(found.path)
    assert list(storage.temporaries("")) == []


@pytest.mark.parametrize("operation", ["write", "put_if_absent"])
def test_a_failed_write_leaves_nothing(
    storage: Storage, base: Path, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    base.mkdir()
    with pytest.raises(StorageError, match="No space left on device"):
        getattr(storage, operation)("a", b"data")
    assert list(base.iterdir()) == []


@needs_proc
def test_the_bytes_are_synced_before_the_name_and_the_directory_after_it(
    storage: Storage, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, bool]] = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        synced = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(("directory" if synced.is_dir() else "bytes", (base / "log/1").exists()))
        fsync(descriptor)

    (base / "log").mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", watch)
    storage.put_if_absent("log/1", b"1")
    assert seen == [("bytes", False), ("directory", True)]


@needs_proc
def test_new_directories_are_synced_into_their_parents(
    storage: Storage, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    base.mkdir()

    def watch(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(base)))

    monkeypatch.setattr(os, "fsync", watch)
    storage.write("a/b/c", b"1")
    assert (synced[0], synced[1], synced[-1]) == (".", "a", "a/b")


@pytest.mark.parametrize("refusal", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_hard_links_is_refused(
    storage: Storage, base: Path, refusal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with pytest.raises(StorageError, match="refuses hard links"):
        storage.put_if_absent("log/1", b"1")
    assert list((base / "log").iterdir()) == []


def test_a_file_system_without_hard_links_is_refused_before_a_build(
    storage: Storage, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_single_winner(storage)
    assert list(base.iterdir()) == []
    monkeypatch.setattr(Path, "hardlink_to", refused)
    with pytest.raises(StorageError, match="refuses hard links"):
        require_single_winner(storage)
    monkeypatch.setattr(Path, "hardlink_to", lambda self, target: self.write_bytes(target.read_bytes()))
    with pytest.raises(StorageError, match="let two writers create the same file"):
        require_single_winner(storage)
    assert list(base.iterdir()) == []


def refused(*_: Any) -> None:
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


def test_a_link_whose_answer_was_lost_is_recognised(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    link = Path.hardlink_to

    def link_and_lose_the_answer(self: Path, target: Path) -> None:
        link(self, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(Path, "hardlink_to", link_and_lose_the_answer)
    storage.put_if_absent("log/1", b"ours")
    assert bytes(storage.read("log/1")) == b"ours"
    monkeypatch.undo()
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("log/1", b"theirs")


def test_delete_drops_directories_that_became_empty_but_not_the_base(storage: Storage, base: Path) -> None:
    storage.write("a/b/c/d", b"1")
    storage.write("a/x", b"2")
    storage.delete("a/b/c/d")
    assert sorted(path.name for path in base.rglob("*")) == ["a", "x"]
    storage.delete("a/x")
    assert list(base.iterdir()) == []


def test_a_writer_survives_a_delete_that_takes_its_empty_directory(
    storage: Storage, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = durable._make_directories
    thefts = iter([True, True, False])

    def make_and_lose(directory: Path, *permissions: Any) -> None:
        make(directory, *permissions)
        if directory == base / "log" and next(thefts):
            storage.delete("log/gone")  # empty at this moment, so the directory goes
            assert not directory.exists()

    monkeypatch.setattr(durable, "_make_directories", make_and_lose)
    storage.put_if_absent("log/1", b"1")
    assert bytes(storage.read("log/1")) == b"1"


def test_a_writer_survives_a_delete_of_what_it_has_just_written(
    storage: Storage, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def replace_and_lose(self: Path, target: Path) -> None:
        replace(self, target)
        storage.delete("log/1")
        assert not (base / "log").exists()

    monkeypatch.setattr(Path, "replace", replace_and_lose)
    storage.write("log/1", b"1")
    assert list(storage.list("")) == []


def test_writers_and_deleters_do_not_disturb_each_other(storage: Storage) -> None:
    def write_and_delete(writer: int) -> None:
        for number in range(60):
            path = f"segments/{number}/{writer}"
            storage.write(path, b"1")
            storage.put_if_absent(f"{path}.new", b"2")
            storage.delete(path)
            storage.delete(f"{path}.new")

    def delete_and_list() -> None:
        for number in range(60):
            for writer in range(3):
                storage.delete(f"segments/{number}/{writer}")
            list(storage.list(""))

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(write_and_delete, writer) for writer in range(3)] + [pool.submit(delete_and_list)]
    for future in running:
        future.result()
    assert list(storage.list("")) == list(storage.temporaries("")) == []


def test_a_file_where_a_directory_is_needed_is_an_error(storage: Storage) -> None:
    storage.write("a", b"1")
    with pytest.raises(StorageError, match=r"could not create .*Not a directory") as caught:
        storage.put_if_absent("a/b", b"2")
    assert not isinstance(caught.value, AlreadyExistsError)


def test_no_link_is_followed(storage: Storage, base: Path, tmp_path: Path) -> None:
    """Whatever lies behind a link stays unseen and untouched, and so does the link."""
    elsewhere = open_storage(tmp_path / "elsewhere")
    elsewhere.write("part/1", b"1")
    storage.write("0", b"")
    storage.write("folder/0", b"")
    links = {"linked": "elsewhere", "folder/linked": "elsewhere/part", "file": "elsewhere/part/1", "broken": "nowhere"}
    for link, target in links.items():
        (base / link).symlink_to(tmp_path / target)
    assert sorted(file.path for file in storage.list("")) == ["0", "folder/0"]
    for prefix in ("linked", "linked/part", "folder/linked", "broken"):
        assert list(storage.list(prefix)) == list(storage.temporaries(prefix)) == []
    for path in ("linked/part/1", "folder/linked/1", "file", "broken", "broken/1"):
        with pytest.raises(NotFoundError):
            storage.read(path)
        with pytest.raises(NotFoundError):
            storage.read_ranges(path, [(0, 1)])
        with pytest.raises(NotFoundError):
            read_each(storage, [("folder/0", 0, 0), (path, 0, 1)], {"folder"})
    for path in ("linked/part/1", "linked/new", "folder/linked/2", "broken/1"):
        with pytest.raises(StorageError, match="symbolic link"):
            storage.write(path, b"2")
        with pytest.raises(StorageError, match="symbolic link"):
            storage.put_if_absent(path, b"2")
        storage.delete(path)
    with pytest.raises(AlreadyExistsError):
        storage.put_if_absent("file", b"2")
    assert [(file.path, bytes(elsewhere.read(file.path))) for file in elsewhere.list("")] == [("part/1", b"1")]
    assert all((base / link).is_symlink() for link in links)
    storage.write("file", b"2")
    assert bytes(elsewhere.read("part/1")) == b"1", "a file takes the place of the link, not of what it led to"


def test_links_in_circles_end(storage: Storage, base: Path) -> None:
    """Thirty directories with two links each to the next one are two to the thirtieth paths."""
    for number in range(30):
        storage.write(f"d{number}/0", b"")
        for link in ("a", "b", "up"):
            (base / f"d{number}" / link).symlink_to("../" if link == "up" else f"../d{number + 1}")
    assert len(list(storage.list(""))) == 30


def test_the_base_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "there")
    storage = open_storage(tmp_path / "here" / "deeper")
    storage.put_if_absent("a/b", b"1")
    assert [file.path for file in storage.list("")] == ["a/b"]
    assert bytes(open_storage(tmp_path / "there" / "deeper").read("a/b")) == b"1"
    storage.delete("a/b")
    assert list((tmp_path / "there").rglob("b")) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_refusal_is_told_from_a_missing_file(storage: Storage, base: Path) -> None:
    storage.write("a", b"1")
    (base / "a").chmod(0)
    with pytest.raises(AccessDeniedError, match="check the owner and mode"):
        storage.read("a")


def test_a_refusal_of_the_system_is_access_denied(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    storage.write("a", b"1")
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(AccessDeniedError, match=r"could not delete .*Permission denied"):
        storage.delete("a")

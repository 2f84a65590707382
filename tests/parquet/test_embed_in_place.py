"""Embedding in place keeps who may read a file, gives way to other writers, and leaves nothing behind."""

from __future__ import annotations

import io
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.errors import AccessDeniedError, LakebloomError, StorageError
from lakebloom.parquet import embed, filters
from lakebloom.parquet import rewriting as rewriting_module
from lakebloom.storage.local import exchange
from lakebloom.storage.local.temporary import is_temporary

NOBODY = 0xFFFFFFFF
USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 1, 2, 4, 0x10, 0x20
ACL = "system.posix_acl_access"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def access_list(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def write(path: Path, value: int = 0) -> Path:
    path.write_bytes(content(value))
    return path


def content(value: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([value] * 10, pa.int64())}), sink)
    return sink.getvalue()


def value_of(path: Path) -> int:
    found: int = pq.read_table(path)["id"][0].as_py()
    return found


def access(path: Path) -> tuple[object, ...]:
    status = path.stat()
    attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, attributes


def as_user(uid: int, gid: int, groups: list[int], action: Callable[[], object]) -> str:
    """Run something as another user and return the code of its error, or nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
            action()
            os._exit(0)
        except LakebloomError as error:
            os.write(writing, error.code.encode())
        finally:
            os._exit(1)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return said.read()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that other users reach."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o604, 0o777, 0o2755])
def test_the_mode_stays(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path / "a.parquet")
    path.chmod(mode)
    before = access(path)
    embed(path, columns=["id"])
    assert access(path) == before
    assert len(filters(path)) == 1


@needs_root
def test_owner_group_lists_and_attributes_stay(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    os.chown(path, 1234, 4242)
    os.setxattr(path, "user.classification", b"secret")
    entries = ((USER_OBJ, 6, NOBODY), (USER, 6, 1001), (GROUP_OBJ, 0, NOBODY), (MASK, 6, NOBODY), (OTHER, 0, NOBODY))
    try:
        os.setxattr(path, ACL, access_list(*entries))
    except OSError:
        pytest.skip("a file system without access lists")
    before = access(path)
    assert ACL in before[3]  # type: ignore[operator]
    embed(path, columns=["id"])
    assert access(path) == before
    assert len(filters(path)) == 1


@needs_root
def test_a_list_that_the_directory_gives_to_new_files_is_not_taken(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    path.chmod(0o600)
    before = access(path)
    entries = ((USER_OBJ, 7, NOBODY), (USER, 7, 1001), (GROUP_OBJ, 5, NOBODY), (MASK, 7, NOBODY), (OTHER, 0, NOBODY))
    try:
        os.setxattr(tmp_path, "system.posix_acl_default", access_list(*entries))
    except OSError:
        pytest.skip("a file system without access lists")
    embed(path, columns=["id"])
    assert access(path) == before


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize(("uid", "groups"), [(2001, [4242]), (2001, []), (2000, [])])
def test_what_cannot_be_kept_is_refused_and_nothing_changes(shared: Path, uid: int, groups: list[int]) -> None:
    """Another user than the owner, or an owner who has left the group: the file would change hands."""
    path = write(shared / "a.parquet")
    os.chown(path, 2000, 4242)
    path.chmod(0o644)
    before, data = access(path), path.read_bytes()
    assert as_user(uid, 3000, groups, lambda: embed(path, columns=["id"])) == AccessDeniedError.code
    assert (access(path), path.read_bytes()) == (before, data)
    assert list(shared.iterdir()) == [path]


@pytest.mark.slow
@needs_root
def test_an_owner_keeps_the_group(shared: Path) -> None:
    path = write(shared / "a.parquet")
    os.chown(path, 2000, 4242)
    path.chmod(0o640)
    before = access(path)
    assert as_user(2000, 3000, [4242], lambda: embed(path, columns=["id"])) == ""
    assert access(path) == before
    assert len(filters(path)) == 1


@pytest.mark.slow
@needs_root
def test_a_copy_by_another_user_is_open_to_nobody_else(shared: Path) -> None:
    path, target = write(shared / "a.parquet"), shared / "b.parquet"
    os.chown(path, 2000, 4242)
    path.chmod(0o640)
    assert as_user(2001, 3000, [4242], lambda: embed(path, target, columns=["id"])) == ""
    assert access(target)[:3] == (0o600, 2001, 3000)


# Other writers


class Meddling:
    """Publishes a new version by renaming, just before each of the given calls to exchange."""

    def __init__(self, path: Path, before: set[int]) -> None:
        self.path, self.before = path, before
        self.calls = self.version = 0
        self._exchanged = exchange._exchanged

    def __call__(self, one: Path, other: Path) -> bool:
        self.calls += 1
        if self.calls in self.before:
            self.version += 1
            write(self.path.with_name("new"), self.version).replace(self.path)
        return self._exchanged(one, other)


@pytest.mark.parametrize("before", [{1}, {1, 2}, {1, 2, 3}, {1, 3}, set()])
def test_a_version_that_another_writer_published_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: set[int]
) -> None:
    path = write(tmp_path / "a.parquet")
    meddling = Meddling(path, before)
    monkeypatch.setattr(exchange, "_exchanged", meddling)
    if before:
        with pytest.raises(StorageError, match="was changed"):
            embed(path, columns=["id"])
        assert not filters(path)
    else:
        embed(path, columns=["id"])
        assert len(filters(path)) == 1
    assert value_of(path) == meddling.version
    assert list(tmp_path.iterdir()) == [path]


def test_without_exchange_the_file_is_looked_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet")
    monkeypatch.setattr(exchange, "_renameat2", lambda: None)
    embed(path, columns=["id"])
    assert len(filters(path)) == 1
    take = rewriting_module.Rewriting._take_name

    def late(self: rewriting_module.Rewriting) -> None:
        write(tmp_path / "new", 7).replace(path)
        take(self)

    monkeypatch.setattr(rewriting_module.Rewriting, "_take_name", late)
    with pytest.raises(StorageError, match="was changed"):
        embed(path, columns=["id"])
    assert value_of(path) == 7


def test_a_file_that_was_removed_does_not_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet")
    take = rewriting_module.Rewriting._take_name

    def late(self: rewriting_module.Rewriting) -> None:
        path.unlink()
        take(self)

    monkeypatch.setattr(rewriting_module.Rewriting, "_take_name", late)
    with pytest.raises(StorageError):
        embed(path, columns=["id"])
    assert list(tmp_path.iterdir()) == []


# Killed processes

KILLED = """
import os, signal, sys
from lakebloom.parquet import embed, rewriting
rewriting.Rewriting.publish = lambda self: os.kill(os.getpid(), signal.SIGKILL)
embed(sys.argv[1], columns=["id"])
"""


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    other = write(tmp_path / "b.parquet")
    for victim in (path, path, other):
        assert subprocess.run([sys.executable, "-c", KILLED, str(victim)], check=False).returncode == -9
    left = sorted(file.name for file in tmp_path.iterdir() if file not in (path, other))
    assert len(left) == 2, "the second embedding of the same file has removed what the first one left"
    assert all(map(is_temporary, left))
    embed(path, columns=["id"])
    assert len([file for file in tmp_path.iterdir() if is_temporary(file.name)]) == 1, "that of the other file"
    embed(other, columns=["id"])
    assert sorted(tmp_path.iterdir()) == [path, other]


def test_the_copy_of_a_living_process_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet")
    publish = rewriting_module.Rewriting.publish
    inner: list[int] = []

    def nested(self: rewriting_module.Rewriting) -> int:
        monkeypatch.setattr(rewriting_module.Rewriting, "publish", publish)
        inner.append(embed(path, columns=["id"]).filters)  # while this one's copy is there
        assert self._temporary.exists()
        return publish(self)

    monkeypatch.setattr(rewriting_module.Rewriting, "publish", nested)
    with pytest.raises(StorageError, match="was changed"):
        embed(path, columns=["id"])
    assert inner == [1]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", [".lakebloom-0123.tmp", ".lakebloom-" + "a" * 32 + ".tmp", "notes.txt"])
def test_other_peoples_files_stay(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a.parquet")
    (tmp_path / name).write_text("mine")
    embed(path, columns=["id"])
    assert (tmp_path / name).read_text() == "mine"

"""Files on local disk, or on anything mounted there that has hard links.

Reads are copies (``reads.py``): later changes of a file do not change what was read.

The base may be a symbolic link, or be below one. Below the base no link is followed: its target is not part of the
index, and is not listed, read, written or deleted. The link itself stays.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lakebloom.errors import LakebloomError, NotFoundError, StorageError
from lakebloom.storage.buffers import as_views
from lakebloom.storage.checks import check_new_path, check_path, check_prefix, check_ranges
from lakebloom.storage.local.durable import prove_single_winner, publish_new, publish_over, write_temporary
from lakebloom.storage.local.errors import NO_FILE, translated
from lakebloom.storage.local.reads import read_one_part_each, read_parts, read_whole
from lakebloom.storage.local.temporary import is_temporary
from lakebloom.storage.permissions import Permissions
from lakebloom.storage.protocol import StoredFile
from lakebloom.storage.uri import to_local_path
from lakebloom.storage.writable import leaving_no_directories, unwritable_path
from lakebloom.tuning import CACHED_ANSWERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.storage.buffers import Buffer, Buffers, Views

__all__ = ["LocalStorage"]

# Why a directory cannot be removed: not empty, no permission, a link, or a mount point.
_DIRECTORY_STAYS = frozenset(
    {errno.ENOTEMPTY, errno.EEXIST, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EBUSY, errno.EROFS}
)

_LINKS = "lakebloom follows no links below an index; move the files there, or make the index's own directory a link"


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """The files below a canonical ``file:`` URI.

    With `like_base` new files and directories get the permissions of the base, if it exists (`permissions`).
    """

    uri: str
    like_base: bool = field(default=False, repr=False)

    def read(self, path: str) -> memoryview:
        """See Storage.read."""
        return read_whole(self._unlinked(check_path(path)))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        """See Storage.read_ranges."""
        file = self._unlinked(check_path(path))
        check_ranges(ranges)
        return read_parts(file, ranges) if ranges else []

    def read_each(self, requests: Sequence[tuple[str, int, int]], seen: set[str] | None = None) -> Views:
        """See ``several.read_each``. Each directory is looked at once for all files in it."""
        seen = set() if seen is None else seen
        parts = []
        for path, offset, length in requests:
            file, folders = _resolved(self.uri, path)
            for folder in folders:
                if folder not in seen:
                    if os.path.islink(folder):  # noqa: PTH114 (most reads come by here)
                        self._unlinked(path)  # raises
                    seen.add(folder)
            parts.append((file, offset, length))
        return read_one_part_each(parts)

    def file(self, path: str) -> str:
        """Return the file's path in the operating system."""
        return self._file(check_path(path))

    def write(self, path: str, data: Buffers) -> None:
        """See Storage.write."""
        file = self._place(check_new_path(path))
        views = as_views(data)
        with translated(f"could not write {file}"):
            publish_over(write_temporary(file.parent, views, self._permissions()), file)

    def put_if_absent(self, path: str, data: Buffer) -> None:
        """See Storage.put_if_absent."""
        file = self._place(check_new_path(path))
        views = as_views(data)
        with translated(f"could not create {file}"):
            publish_new(write_temporary(file.parent, views, self._permissions()), file)

    def prove_single_winner(self) -> None:
        """Raise StorageError if the file system has no hard links, or lets two writers create the same file."""
        base = self._locate("")
        with translated(f"could not create a file in {base}"):
            prove_single_winner(base)

    def prove_writable(self) -> None:
        """Raise LocationNotWritableError if no file can be put; StorageError as ``prove_single_winner``."""
        base = self._locate("")
        try:
            with leaving_no_directories(base):
                prove_single_winner(base)
                for folder in filter(Path.is_dir, base.iterdir()):
                    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
                        raise PermissionError(errno.EACCES, f"{os.strerror(errno.EACCES)}: {folder}")
        except LakebloomError:
            raise
        except OSError as error:
            raise unwritable_path(base, error) from error

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """See Storage.list."""
        return (file for file in self._below(check_prefix(prefix)) if not is_temporary(file.path))

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        """See Storage.temporaries."""
        return (file for file in self._below(check_prefix(prefix)) if is_temporary(file.path))

    def delete(self, path: str) -> None:
        """See Storage.delete. Nothing is synced: a file that comes back after a crash can be deleted again."""
        file = self._locate(check_path(path))
        if self._link_above(path):
            return  # the target of a link is not part of the storage
        with translated(f"could not delete {file}"):
            with suppress(*NO_FILE):
                file.unlink()
            self._drop_empty_directories(file.parent)

    def _permissions(self) -> Permissions | None:
        return Permissions.of(to_local_path(self.uri)) if self.like_base else None

    def _locate(self, path: str) -> Path:
        return Path(to_local_path(self.uri), path)

    def _file(self, path: str) -> str:
        # A string, because making a Path takes longer than reading a small file.
        return f"{_base(self.uri)}/{path}"

    def _link_above(self, path: str) -> str:
        """Return the first symbolic link among the directories of a path below the base, or ''."""
        at = path.find("/")
        while at >= 0:
            directory = self._file(path[:at])
            if os.path.islink(directory):  # noqa: PTH114 (most reads come by here)
                return directory
            at = path.find("/", at + 1)
        return ""

    def _unlinked(self, path: str) -> str:
        """Return the file of a path. Raises NotFoundError for a path through a link."""
        if link := self._link_above(path):
            raise NotFoundError(f"could not read {self._file(path)}", found=f"{link} is a symbolic link", hint=_LINKS)
        return self._file(path)

    def _place(self, path: str) -> Path:
        """Return the file to write to. Raises StorageError for a path through a link."""
        if link := self._link_above(path):
            raise StorageError(f"could not write {self._file(path)}", found=f"{link} is a symbolic link", hint=_LINKS)
        return self._locate(path)

    def folders(self) -> Iterator[str]:
        """Return the names of the directories directly below the base, links included."""
        missing = suppress(FileNotFoundError, NotADirectoryError)
        with translated(f"could not list {self.uri}"), missing, os.scandir(self._locate("")) as found:
            yield from sorted(entry.name for entry in found if entry.is_dir())

    def _below(self, prefix: str) -> Iterator[StoredFile]:
        if prefix and self._link_above(f"{prefix}/"):
            return
        with translated(f"could not list {self.uri}/{prefix}"):
            yield from _walk(self._locate(prefix), f"{prefix}/" if prefix else "")

    def _drop_empty_directories(self, directory: Path) -> None:
        base = self._locate("")
        while directory != base:
            try:
                # rmdir is atomic: it cannot remove a directory in which another writer has just put a file.
                directory.rmdir()
            except FileNotFoundError:
                pass  # another process removed it; the parent may be empty now
            except OSError as error:
                if error.errno in _DIRECTORY_STAYS:
                    return
                raise
            directory = directory.parent


@lru_cache(maxsize=CACHED_ANSWERS)
def _resolved(uri: str, path: str) -> tuple[str, tuple[str, ...]]:
    """Return the file of a path, and the directories between the base and it."""
    file = f"{_base(uri)}/{check_path(path)}"
    parts = path.split("/")[:-1]
    return file, tuple([f"{_base(uri)}/{'/'.join(parts[: end + 1])}" for end in range(len(parts))])


@lru_cache(maxsize=CACHED_ANSWERS)
def _base(uri: str) -> str:
    return to_local_path(uri).rstrip("/")


def _walk(directory: Path, prefix: str) -> Iterator[StoredFile]:
    try:
        with os.scandir(directory) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return  # missing, or removed since its parent was read
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{prefix}{entry.name}/")
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # deleted since its directory was read
        if stat.S_ISREG(status.st_mode):
            # Rounded down, as Java's File.lastModified does: both must see the same identity.
            yield StoredFile(prefix + entry.name, status.st_size, status.st_mtime_ns // 1_000_000)

"""Table files on local disk: one directory scan and one stat for each file, symbolic links followed."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lakebloom.errors import AccessDeniedError, LakebloomError, NotFoundError, StorageError
from lakebloom.storage.uri import from_decoded, to_local_path
from lakebloom.tables.file_identity import NS_PER_MS, local_file, local_tag
from lakebloom.tables.formats.recognise import MARKER_DIRECTORIES, MARKER_FILES
from lakebloom.tables.listing import glob
from lakebloom.tables.listing.membership import Found, is_hidden_directory, is_hidden_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.formats.recognise import Owners
    from lakebloom.tables.listing.inotify import Watch

__all__ = ["expand", "find_below", "stat_file", "translated"]

# A component of the path vanished, or became a file.
_GONE = (FileNotFoundError, NotADirectoryError)


def find_below(uri: str, watch: Watch | None = None, owners: Owners | None = None) -> list[Found]:
    """Every file that Spark would see at or below a canonical URI. Raises NotFoundError if nothing is there.

    `owners` take notice of what is hidden from Spark, too.
    """
    path = to_local_path(uri)
    with translated(f"could not list {uri}"):
        status = os.stat(path)  # noqa: PTH116 - Path costs more than the call
        if not stat.S_ISDIR(status.st_mode):
            if watch is not None:
                watch.give_up()
            return [_found("", status)]
        found: list[Found] = []
        _walk(path, "", watch, owners, found)
        return found


def expand(pattern: str) -> list[str]:
    """The paths that match a pattern of Hadoop's, in no particular order."""
    with translated(f"could not list {pattern}"):
        matches: dict[str, None] = {}
        for simple in glob.expand_braces(pattern):
            components = [part for part in simple.split("/") if part]
            matches.update(dict.fromkeys(_matches("/", components)))
        return list(matches)


def stat_file(uri: str) -> TableFile | None:
    """The file at a canonical URI as it is now, or None if there is none."""
    with translated(f"could not look at {uri}"):
        try:
            status = os.stat(to_local_path(uri))  # noqa: PTH116
        except _GONE:
            return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return local_file(uri, status)


def _walk(directory: str, prefix: str, watch: Watch | None, owners: Owners | None, found: list[Found]) -> None:
    """Add the files below a directory. A table may have very many: each step here takes as long as some stats."""
    try:
        if watch is not None:
            watch.enter(directory, is_root=not prefix)
        with os.scandir(directory) as listed:
            entries = list(listed)
    except _GONE:
        return  # removed since its parent was read
    for entry in entries:
        name = entry.name
        if entry.is_dir():
            if owners is not None and name in MARKER_DIRECTORIES:
                owners.note(f"{from_decoded(entry.path)}/")
            if not is_hidden_directory(name) and not _leads_back(entry, directory):
                if watch is not None and entry.is_symlink():
                    watch.give_up()
                _walk(entry.path, f"{prefix}{name}/", watch, owners, found)
            continue
        if owners is not None and name.endswith(MARKER_FILES):
            owners.note(from_decoded(entry.path))
        if is_hidden_file(name):
            continue
        try:
            status = entry.stat()
        except _GONE:
            continue  # deleted since its directory was read, or a link to nowhere
        if stat.S_ISREG(status.st_mode):
            if watch is not None and (status.st_nlink > 1 or entry.is_symlink()):
                watch.give_up()  # it can be changed under its other name
            found.append(_found(prefix + name, status))


def _leads_back(entry: os.DirEntry[str], directory: str) -> bool:
    """Whether a link points to a directory above itself, so that following it would never end."""
    if not entry.is_symlink():
        return False
    target, here = Path(entry.path).resolve(), Path(directory).resolve()
    return target == here or target in here.parents


def _matches(directory: str, components: list[str]) -> Iterator[str]:
    if not components:
        if Path(directory).exists():
            yield directory
        return
    first, rest = components[0], components[1:]
    prefix = directory if directory.endswith("/") else f"{directory}/"
    literal = glob.unescape(first)
    if literal is not None:
        yield from _matches(prefix + literal, rest)
        return
    wanted = glob.compile_component(first)
    try:
        names = os.listdir(directory)  # noqa: PTH208
    except _GONE:
        return
    for name in names:
        if wanted.fullmatch(name):
            yield from _matches(prefix + name, rest)


def _found(path: str, status: os.stat_result) -> Found:
    return Found(path, status.st_size, status.st_mtime_ns // NS_PER_MS, local_tag(status))


@contextmanager
def translated(attempt: str) -> Iterator[None]:
    """Raise what the operating system raises in this block as the errors of lakebloom."""
    try:
        yield
    except LakebloomError:
        raise  # NotFoundError is a FileNotFoundError as well
    except _GONE as error:
        raise NotFoundError(attempt, found=error.strerror or str(error), hint="check the path of the table") from error
    except PermissionError as error:
        raise AccessDeniedError(
            attempt, found=error.strerror or str(error), hint="check the owner and mode of the file and its directories"
        ) from error
    except OSError as error:
        raise StorageError(attempt, found=error.strerror or str(error), hint="check the disk and try again") from error

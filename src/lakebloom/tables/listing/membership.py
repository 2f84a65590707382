"""Which files below a directory belong to the table: Spark's rules, on names alone.

Hidden names are left out at every level below the directory that was asked for. Of the rest, a table with partition
directories (``k=v``) consists of the files in these, at any depth. A table without any consists of the files directly
in its directory; Spark ignores plain subdirectories, and so do its scans of a directory that has both.

Empty files are listed by Spark and never opened; here they are no part of a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakebloom.tables.file_identity import TableFile

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Found", "is_hidden_directory", "is_hidden_file", "members"]

_SUMMARIES = ("_metadata", "_common_metadata")
_UNFINISHED = "._COPYING_"


class Found(NamedTuple):
    """A file below the location that was asked for; `path` is relative to it, and empty for the location itself."""

    path: str
    size_bytes: int
    mtime_ms: int
    tag: str = ""


def is_hidden_directory(name: str) -> bool:
    """Whether Spark does not look into a directory of this name.

    >>> is_hidden_directory("_delta_log"), is_hidden_directory("_day=1")
    (True, False)
    """
    return is_hidden_file(name) and not name.startswith(_SUMMARIES)


def is_hidden_file(name: str) -> bool:
    """Whether Spark does not take a file of this name for data.

    >>> is_hidden_file("_SUCCESS"), is_hidden_file("part-0.parquet"), is_hidden_file("_metadata")
    (True, False, True)
    """
    if name.startswith((".", "_")):
        return name[0] == "." or "=" not in name or name.endswith(_UNFINISHED)
    return name.endswith(_UNFINISHED)


def members(root_uri: str, found: Iterable[Found]) -> list[TableFile]:
    """The files of the table at `root_uri`, out of all files below it."""
    visible = [file for file in found if not _is_hidden(root_uri, file[0])]
    partitioned = [file for file in visible if "=" in file[0] and "=" in file.path.rpartition("/")[0]]
    chosen = partitioned or [file for file in visible if "/" not in file[0]]
    prefix = root_uri if root_uri.endswith("/") else f"{root_uri}/"
    files = [(prefix + path if path else root_uri, size, time, tag) for path, size, time, tag in chosen if size]
    return TableFile.listed(root_uri, files)


def _is_hidden(root_uri: str, path: str) -> bool:
    if path and "/" not in path and path[0] not in "._":  # as in most tables
        return path.endswith(_UNFINISHED)
    directories, _, name = path.rpartition("/")
    if is_hidden_file(name or root_uri.rpartition("/")[2]):
        return True
    return bool(directories) and any(map(is_hidden_directory, directories.split("/")))

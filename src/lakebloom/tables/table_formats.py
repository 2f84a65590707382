"""Whose files they are: directories that belong to Delta Lake, Iceberg or Hudi.

Such a table keeps the size of each of its files in its own log. A file that changes behind its back cannot be read any
more, so only plain directories of files may be changed in place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakebloom.errors import UnsupportedSourceError
from lakebloom.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakebloom.tables.files import TableFile

__all__ = ["require_plain_files"]

_MARKS = {
    "Delta Lake": ("_delta_log", re.compile(r"(?P<table>.*/)?_delta_log/[^/]+")),
    "Iceberg": ("metadata", re.compile(r"(?P<table>.*/)?metadata/[^/]+\.metadata\.json")),
    "Hudi": (".hoodie", re.compile(r"(?P<table>.*/)?\.hoodie/.+")),
}


def require_plain_files(files: Sequence[TableFile], options: Mapping[str, str]) -> None:
    """Raise UnsupportedSourceError if any of these files is below the directory of a table with a log of its own."""
    folders = {file.uri.rpartition("/")[0] + "/" for file in files}
    base = _common_folder(folders)
    for owner, table in (*_above(base, options), *_below(base, options)):
        owned = next((file.uri for file in files if file.uri.startswith(table)), None)
        if owned is not None:
            raise UnsupportedSourceError(
                f"the files below {table} belong to a table of {owner}, whose log knows the size of each",
                found=owned,
                hint="let the table's own writer make the filters, with parquet.bloom.filter.enabled#column",
            )


def _common_folder(folders: set[str]) -> str:
    """Return the deepest folder that is above all others, with a slash at its end."""
    first, last = min(folders), max(folders)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rindex("/", 0, same) + 1]


def _above(base: str, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the tables whose folder is the base or above it."""
    scheme, _, path = base.partition("://")
    parts = path.rstrip("/").split("/")
    for depth in range(1, len(parts) + 1):
        folder = f"{scheme}://{'/'.join(parts[:depth])}/"
        storage = open_storage(folder, options or None)
        for owner, (mark, pattern) in _MARKS.items():
            if any(pattern.fullmatch(file.path) for file in storage.list(mark)):
                yield owner, folder


def _below(base: str, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the tables whose folder is below the base."""
    for file in open_storage(base, options or None).list(""):
        for owner, (_, pattern) in _MARKS.items():
            match = pattern.fullmatch(file.path)
            if match is not None:
                yield owner, base + (match["table"] or "")

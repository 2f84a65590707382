"""Whose files they are: directories that belong to Delta Lake, Iceberg or Hudi, or to a sink of Spark's streams.

Such a table has a log of its own, which decides which of its files count: the others hold rows that were deleted, or
older versions of a row. So its files are never taken for plain files. A table is known by its marker, a directory
beside the data:

    Delta Lake          <table>/_delta_log/
    Iceberg             <table>/metadata/*.metadata.json
    Hudi                <table>/.hoodie/
    Spark's streams     <table>/_spark_metadata/       claims only what is read from this directory, as Spark has it

A marker claims everything below its table's directory. So it is looked for below a location, where listing comes across
it anyway, and in every directory above. A directory ``metadata`` without ``*.metadata.json`` means nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from lakebloom.errors import UnsupportedSourceError
from lakebloom.storage.uri import from_decoded, to_local_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.listing.inotify import Watch

__all__ = [
    "MARKER_DIRECTORIES",
    "MARKER_FILES",
    "METADATA",
    "TABLE_FORMATS",
    "Owners",
    "folders_above",
    "is_marker",
    "local_markers",
    "note_above",
    "note_markers",
    "owned_by",
]

_DIRECTORIES = {"_delta_log": "Delta Lake", ".hoodie": "Hudi", "_spark_metadata": "Spark's streaming sink"}
TABLE_FORMATS = {"delta": "Delta Lake", "iceberg": "Iceberg", "hudi": "Hudi"}
"""What Spark calls them, and what people do."""
METADATA = "metadata"
_SINK = "_spark_metadata"
MARKER_DIRECTORIES = frozenset(_DIRECTORIES)
MARKER_FILES = (".metadata.json", ".metadata.json.gz")
"""How the files in Iceberg's directory ``metadata`` end."""


class _Marker(NamedTuple):
    format: str
    uri: str
    is_sink: bool


class Owners:
    """The tables with a log of their own that a listing came across."""

    def __init__(self) -> None:
        self._markers: dict[str, _Marker] = {}

    def note(self, uri: str) -> None:
        """Take notice of a file, or of a directory with a slash at its end. Most are no markers."""
        if not is_marker(uri):
            return
        parts = uri.split("/")
        for number, name in enumerate(parts[:-1]):
            if name in _DIRECTORIES:
                marker = _Marker(_DIRECTORIES[name], "/".join(parts[: number + 1]), name == _SINK)
            elif name == METADATA and number == len(parts) - 2 and parts[-1].endswith(MARKER_FILES):
                marker = _Marker("Iceberg", uri, False)
            else:
                continue
            self._markers.setdefault("/".join(parts[:number]), marker)
            return

    def claim(self, folder: str, others: Owners) -> None:
        """Say that a directory belongs to the first of other tables, if there is one."""
        for marker in others._markers.values():
            self._markers.setdefault(folder, marker)

    def require_plain(self, files: Collection[TableFile], roots: Iterable[str]) -> None:
        """Raise UnsupportedSourceError if one of these files, all that is read from some roots, belongs to a table.

        Where there are no files, the tables below the roots are what was meant.
        """
        if not self._markers:
            return
        found = set(roots)
        for uri in (file.uri for file in files):
            for folder in (uri, *folders_above(uri)):
                self._refuse(folder, found)
        if not files:
            for folder in self._markers:
                self._refuse(folder, found)

    def require_none(self) -> None:
        """Raise UnsupportedSourceError if there is any such table."""
        for folder in self._markers:
            self._refuse(folder, ())

    def _refuse(self, folder: str, roots: Collection[str]) -> None:
        marker = self._markers.get(folder)
        if marker is not None and (not marker.is_sink or folder in roots):
            raise owned_by(marker.format, folder, marker.uri)


def owned_by(table_format: str, table: str, marker: str) -> UnsupportedSourceError:
    """Return the error for files that are no plain files."""
    hint = (
        "lakebloom cannot index, look up in or change such tables yet: query the table itself, or write the rows "
        "to a directory of plain files"
    )
    if table_format == TABLE_FORMATS["delta"]:
        hint = "create an index of the whole Delta table by its path, /path/of/table or delta.`/path/of/table`"
    if table_format == TABLE_FORMATS["iceberg"]:
        hint = (
            "create an index of the whole Iceberg table by its path, /path/of/table or iceberg.`/path/of/table`, or by "
            "its name in a catalog, catalog.namespace.table"
        )
    return UnsupportedSourceError(
        f"{table} is a table of {table_format}, whose log decides which files count", found=marker, hint=hint
    )


def is_marker(uri: str) -> bool:
    """Tell quickly whether a path may be a marker, or lie in one."""
    # Written out: this is asked of every object that is listed.
    return "/_delta_log/" in uri or "/.hoodie/" in uri or "/_spark_metadata/" in uri or uri.endswith(MARKER_FILES)


def folders_above(uri: str) -> Iterator[str]:
    """Yield the directories above a canonical URI, the innermost first, without a slash at their end.

    >>> list(folders_above("s3://lake/t/k=1/a.parquet"))
    ['s3://lake/t/k=1', 's3://lake/t', 's3://lake']
    """
    end = uri.find("/", uri.find("://") + 3)
    place = uri.rfind("/")
    while end >= 0 and place >= end:
        yield uri[:place]
        place = uri.rfind("/", 0, place)


def note_above(owners: Owners, root: str, options: Mapping[str, str], watch: Watch | None = None) -> None:
    """Look for markers in all directories above a canonical URI. What may not be looked at does not count."""
    folders = list(folders_above(root))
    if root.startswith("file:"):
        _note_local(owners, folders, watch)
        real = from_decoded(os.path.realpath(to_local_path(root)))
        if real != root:
            behind = Owners()
            _note_local(behind, folders_above(real), watch)
            owners.claim(root, behind)
        return
    _note_remote(owners, folders, options)


def note_markers(owners: Owners, root: str, options: Mapping[str, str]) -> None:
    """Look for markers in the directory at a canonical URI, and on local disk above it as well."""
    if root.startswith("file:"):
        note_above(owners, f"{root}/*", options)
    else:
        _note_remote(owners, [root], options)


def _note_remote(owners: Owners, folders: Iterable[str], options: Mapping[str, str]) -> None:
    # Here and not above: local tables work without loading obstore.
    from lakebloom.tables.listing.objects import first_below

    names = ("_delta_log", ".hoodie", METADATA)
    for uri in first_below([f"{folder}/{name}" for folder in folders for name in names], options, is_marker):
        owners.note(uri)


def _note_local(owners: Owners, folders: Iterable[str], watch: Watch | None) -> None:
    for folder in folders:
        path = to_local_path(folder) or "/"
        if watch is not None:
            watch.look_above(path)
        for marker in local_markers(path):
            owners.note(marker)


def local_markers(directory: str) -> Iterator[str]:
    """Yield the URIs of the markers in a local directory, but for that of a stream."""
    prefix = directory.rstrip("/")
    for name in ("_delta_log", ".hoodie"):
        if os.path.isdir(f"{prefix}/{name}"):  # noqa: PTH112 - Path costs more than the call
            yield f"{from_decoded(f'{prefix}/{name}')}/"
    try:
        names = os.listdir(f"{prefix}/{METADATA}")  # noqa: PTH208
    except OSError:
        return  # most often there is none
    marker = next((name for name in names if name.endswith(MARKER_FILES)), None)
    if marker is not None:
        yield from_decoded(f"{prefix}/{METADATA}/{marker}")

"""Which files a table has now, without Spark.

A location is a directory, a file, or a glob pattern of Hadoop's, and means what it means to ``spark.read``: the same
names are hidden, the same subdirectories belong to the table (see ``membership``), and ``[``, ``{``, ``*`` and ``?``
are wildcards unless they are escaped (see ``glob``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.errors import InvalidArgumentError, NotFoundError
from lakebloom.storage.uri import from_decoded, normalise, split, to_local_path
from lakebloom.tables import glob, local_files
from lakebloom.tables.files import OBJECT_SCHEMES, TableFile
from lakebloom.tables.membership import members

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakebloom.tables.membership import Found
    from lakebloom.tables.watch import Watch

__all__ = ["is_remote", "list_files", "stat_file"]


def list_files(
    locations: Sequence[str], options: Mapping[str, str] | None = None, watch: Watch | None = None
) -> list[TableFile]:
    """The files of the table at these locations, each once, sorted by URI.

    `options` configure object stores (see ``lakebloom.storage.object_stores``); local disk needs none. A `watch` can
    tell afterwards whether the files are still the same. Raises
    NotFoundError for a location where nothing is and for a pattern that matches nothing, and InvalidArgumentError for a
    scheme that only Spark reaches.

    >>> import tempfile
    >>> list_files([tempfile.mkdtemp()])
    []
    """
    files: dict[str, TableFile] = {}
    for location in locations:
        for root, found in _resolve(normalise(location), options or {}, watch):
            files.update((file.uri, file) for file in members(root, found))
    return sorted(files.values())  # by URI, which comes first and is there once


def stat_file(uri: str, options: Mapping[str, str] | None = None) -> TableFile | None:
    """The file at a canonical URI as it is now, or None if it is gone.

    >>> stat_file("file:///no/such/file") is None
    True
    """
    if is_remote(uri):
        from lakebloom.tables import object_files

        return object_files.stat_file(uri, options or {})
    return local_files.stat_file(uri)


def is_remote(uri: str) -> bool:
    """Tell an object store from local disk. Raises InvalidArgumentError for what is neither."""
    scheme = uri.partition(":")[0]
    if scheme == "file":
        return False
    if scheme in OBJECT_SCHEMES:
        return True
    raise InvalidArgumentError(
        f"{uri} can only be reached through Spark",
        found=f"the scheme {scheme!r}",
        hint="use the Spark reader, or a local path, s3://, gs://, az:// or abfs://",
    )


def _resolve(uri: str, options: Mapping[str, str], watch: Watch | None) -> Iterator[tuple[str, list[Found]]]:
    """Yield each directory or file that a location names, with every file at or below it."""
    if watch is not None and (is_remote(uri) or glob.is_glob(to_local_path(uri))):
        watch.give_up()
    if is_remote(uri):
        # Here and not above: local tables work without loading obstore.
        from lakebloom.tables import object_files

        if not glob.is_glob(split(uri)[2]):
            yield uri, object_files.find_below(uri, options)
            return
        matches = object_files.expand(uri, options)
        _require_match(uri, len(matches))
        yield from matches.items()
        return
    if not glob.is_glob(to_local_path(uri)):
        yield uri, local_files.find_below(uri, watch)
        return
    paths = local_files.expand(to_local_path(uri))
    _require_match(uri, len(paths))
    for path in paths:
        root = from_decoded(path)
        yield root, local_files.find_below(root)


def _require_match(pattern: str, matches: int) -> None:
    if not matches:
        raise NotFoundError(
            f"no file matches {pattern}",
            hint="check the pattern; a bracket, brace or backslash that is part of a name is escaped by a backslash",
        )

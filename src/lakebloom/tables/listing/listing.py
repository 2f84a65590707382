"""Which files a table has now, without Spark.

A location is a directory, a file, or a glob pattern of Hadoop's, and means what it means to ``spark.read``: the same
names are hidden, the same subdirectories belong to the table (see ``membership``), and ``[``, ``{``, ``*`` and ``?``
are wildcards unless they are escaped (see ``glob``).
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from lakebloom.errors import InvalidArgumentError, NotFoundError
from lakebloom.storage.uri import from_decoded, normalise, split, to_local_path
from lakebloom.tables.file_identity import OBJECT_SCHEMES, TableFile, is_logged, is_reachable
from lakebloom.tables.formats.recognise import Owners, is_marker, note_above, note_markers
from lakebloom.tables.listing import glob, local
from lakebloom.tables.listing.membership import members

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lakebloom.tables.listing.inotify import Watch
    from lakebloom.tables.listing.membership import Found

__all__ = ["is_remote", "list_files", "look_again", "require_plain_locations", "stat_file"]

_URI = itemgetter(0)


def list_files(
    locations: Sequence[str],
    options: Mapping[str, str] | None = None,
    watch: Watch | None = None,
    *,
    look_above: bool = True,
) -> list[TableFile]:
    """The files of the table at these locations, each once, sorted by URI.

    `options` configure object stores (see ``lakebloom.storage.objects.clients``); local disk needs none. A `watch` can
    tell afterwards whether the files are still the same. `look_above` asks object stores for markers of table formats
    above the locations; those below are listed anyway, and local disk is always looked at. Raises
    NotFoundError for a location where nothing is and for a pattern that matches nothing, InvalidArgumentError for a
    scheme that only Spark reaches, and UnsupportedSourceError for files of a table of Delta Lake, Iceberg or Hudi.

    >>> import tempfile
    >>> list_files([tempfile.mkdtemp()])
    []
    """
    files: dict[str, TableFile] = {}
    roots: list[str] = []
    owners = Owners()
    for location in locations:
        uri = normalise(location)
        remote = is_remote(uri)
        if look_above or not remote:
            note_above(owners, glob.fixed_part(uri), options or {}, watch)
        for root, found in _resolve(uri, options or {}, watch, owners):
            of_root = members(root, found)
            files.update(zip(map(_URI, of_root), of_root, strict=True))
            roots.append(root)
    owners.require_plain(files.values(), roots)
    return [files[uri] for uri in sorted(files)]


def stat_file(uri: str, options: Mapping[str, str] | None = None) -> TableFile | None:
    """The file at a canonical URI as it is now, or None if it is gone.

    >>> stat_file("file:///no/such/file") is None
    True
    """
    if is_remote(uri):
        from lakebloom.tables.listing import objects

        return objects.stat_file(uri, options or {})
    return local.stat_file(uri)


def look_again(file: TableFile, options: Mapping[str, str] | None = None) -> TableFile | None:
    """A file that was listed as it is now, or None if it is gone. One that a log lists is what the log says."""
    return file if is_logged(file) else stat_file(file.uri, options)


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


def require_plain_locations(locations: Sequence[str], options: Mapping[str, str] | None = None) -> None:
    """Raise UnsupportedSourceError where a location is a table of Delta Lake, Iceberg or Hudi. Lists only markers.

    On local disk the directories above are looked at as well, and on object stores only the location itself.
    """
    owners = Owners()
    for location in locations:
        root = glob.fixed_part(normalise(location))
        if is_reachable(root):
            note_markers(owners, root, options or {})
    owners.require_none()


def _resolve(
    uri: str, options: Mapping[str, str], watch: Watch | None, owners: Owners
) -> Iterator[tuple[str, list[Found]]]:
    """Yield each directory or file that a location names, with every file at or below it."""
    if watch is not None and (is_remote(uri) or glob.is_glob(to_local_path(uri))):
        watch.give_up()
    if is_remote(uri):
        # Here and not above: local tables work without loading obstore.
        from lakebloom.tables.listing import objects

        if not glob.is_glob(split(uri)[2]):
            found = objects.find_below(uri, options)
            for file in found:
                if is_marker(f"/{file.path}"):
                    owners.note(f"{uri}/{file.path}")
            yield uri, found
            return
        matches = objects.expand(uri, options, owners)
        _require_match(uri, len(matches))
        yield from matches.items()
        return
    if not glob.is_glob(to_local_path(uri)):
        yield uri, local.find_below(uri, watch, owners)
        return
    paths = local.expand(to_local_path(uri))
    _require_match(uri, len(paths))
    for folder in {path.rpartition("/")[0] for path in paths}:
        note_above(owners, from_decoded(f"{folder}/*"), options)
    for path in paths:
        root = from_decoded(path)
        yield root, local.find_below(root, owners=owners)


def _require_match(pattern: str, matches: int) -> None:
    if not matches:
        raise NotFoundError(
            f"no file matches {pattern}",
            hint="check the pattern; a bracket, brace or backslash that is part of a name is escaped by a backslash",
        )

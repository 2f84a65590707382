"""Where the newest metadata of an Iceberg table is, if the table is given by its directory.

    metadata/version-hint.text          the number N of a table that Hadoop's catalog or HadoopTables wrote; newer
                                        versions may be there already, so those after N are looked for
    metadata/vN.metadata.json           such a version; also vN.gz.metadata.json and vN.metadata.json.gz
    metadata/NNNNN-<uuid>.metadata.json a version of a table in another catalog, which alone knows the newest one:
                                        without it, that is the highest number

Two files of the highest number may be two attempts at one commit: then only the catalog knows which one won, and the
table is refused.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, TypeAlias

from lakebloom.errors import DataFileError, NotFoundError, UnsupportedSourceError
from lakebloom.storage import open_storage
from lakebloom.storage.uri import to_local_path
from lakebloom.tables.formats.recognise import MARKER_FILES, METADATA
from lakebloom.tables.listing.listing import stat_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakebloom.storage import Storage

__all__ = ["FolderState", "folder_state", "is_metadata_file", "newest_metadata", "next_versions", "table_of"]

_HINT_FILE = "version-hint.text"
_MOST_HINT_BYTES = 1 << 10
_HADOOP = re.compile(r"v(?P<number>\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_OTHER = re.compile(r"(?P<number>\d+)-[^/]*?(?:\.gz)?\.metadata\.json(?:\.gz)?")
FolderState: TypeAlias = tuple[int, int, int]
_SETTLED_NS = 2_000_000_000
_FORMS = ("v{}.metadata.json", "v{}.gz.metadata.json", "v{}.metadata.json.gz")


def is_metadata_file(uri: str) -> bool:
    """Tell by its name whether a file is the metadata of an Iceberg table."""
    return uri.endswith(MARKER_FILES)


def table_of(metadata_uri: str) -> str:
    """Return the directory of the table that a metadata file is usually of.

    >>> table_of("s3://lake/t/metadata/v3.metadata.json")
    's3://lake/t'
    """
    folder = metadata_uri.rpartition("/")[0]
    return folder.removesuffix(f"/{METADATA}")


def folder_state(folder_uri: str) -> FolderState | None:
    """Return what changes when a file comes or goes in a local directory; None where a change may not show yet.

    Writers put every version of the metadata into a new file. A clock may tick as slowly as once in two seconds.
    """
    try:
        status = os.stat(to_local_path(folder_uri))  # noqa: PTH116 - Path costs more than the call
    except OSError:
        return None
    changed_ns = max(status.st_mtime_ns, status.st_ctime_ns)
    if time.time_ns() - changed_ns < _SETTLED_NS:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def newest_metadata(table_uri: str, options: Mapping[str, str]) -> str:
    """Return the URI of the newest metadata of the table in a directory.

    Raises NotFoundError where there is none, and UnsupportedSourceError where only a catalog knows which it is.
    """
    storage = open_storage(f"{table_uri}/{METADATA}", {} if table_uri.startswith("file:") else options)
    hinted = _hinted(storage, options)
    if hinted is not None:
        return hinted
    numbered: dict[int, list[str]] = {}
    for file in storage.list(""):
        found = _HADOOP.fullmatch(file.path) or _OTHER.fullmatch(file.path)
        if found is not None and len(found["number"]) <= 18:
            numbered.setdefault(int(found["number"]), []).append(file.path)
    if not numbered:
        raise NotFoundError(
            f"there is no Iceberg table at {table_uri}",
            found=f"no file {METADATA}/*.metadata.json",
            hint="check the path; tables in a catalog are named as catalog.namespace.table",
        )
    newest = max(numbered)
    if len(numbered[newest]) > 1:
        raise UnsupportedSourceError(
            f"only its catalog knows the newest version of the Iceberg table at {table_uri}",
            found=f"{len(numbered[newest])} metadata files of number {newest}: {', '.join(sorted(numbered[newest]))}",
            hint="name the table as catalog.namespace.table, or name its metadata file",
        )
    return f"{storage.uri}/{numbered[newest][0]}"


def next_versions(metadata_uri: str) -> Iterator[str]:
    """Yield where the version after one would be, the likeliest first; nothing where names do not tell."""
    folder, _, name = metadata_uri.rpartition("/")
    found = _HADOOP.fullmatch(name)
    if found is not None and len(found["number"]) <= 18:
        number = int(found["number"])
        forms = sorted(_FORMS, key=lambda form: form.format(number) != name)
        yield from (f"{folder}/{form.format(number + 1)}" for form in forms)


def _hinted(storage: Storage, options: Mapping[str, str]) -> str | None:
    try:
        data = storage.read(_HINT_FILE)
    except NotFoundError:
        return None
    text = bytes(data[:_MOST_HINT_BYTES]).decode("ascii", "replace").strip()
    if not text:
        return None  # it is being written
    if text.isdigit() and len(text) <= 18:
        names = [form.format(int(text)) for form in _FORMS]
    elif "/" not in text and text.isprintable():  # pyiceberg takes names, too
        names = [text if text.endswith(MARKER_FILES) else f"{text}.metadata.json"]
    else:
        raise DataFileError(
            f"could not read {storage.uri}/{_HINT_FILE}",
            found=repr(text[:40]),
            hint="name the table's metadata file instead",
        )
    found = next((uri for name in names if stat_file(uri := f"{storage.uri}/{name}", options) is not None), None)
    if found is None:
        return None  # the hint is one only, and may be behind what was cleaned up
    newer: str | None = found
    while newer is not None:
        found = newer
        newer = next((uri for uri in next_versions(found) if stat_file(uri, options) is not None), None)
    return found

"""What lies below a table and is no data file of a retained version: leftovers, and Iceberg's files of deletes.

Leftovers are of writes that failed, of versions whose log is gone and of change data feeds; below a directory all that
Spark does not take for its rows. Their names tell nothing: Hive's have no suffix, and those of unfinished writes are
hidden. So the first bytes of every file decide, unless its name says that it is something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakebloom.errors import LakebloomError, NotFoundError
from lakebloom.index.current_table import iceberg_log, places_of
from lakebloom.index.threads import CORES, pool
from lakebloom.storage import open_storage
from lakebloom.tables.file_identity import LOGGED, TableFile
from lakebloom.tables.formats.iceberg.history import iceberg_delete_files
from lakebloom.tables.formats.table_snapshot import DataFile
from lakebloom.tables.listing.glob import unescape
from lakebloom.tables.listing.listing import is_remote
from lakebloom.tuning import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.storage import Storage
    from lakebloom.storage.protocol import StoredFile

__all__ = ["Leftovers", "leftovers_of"]

_SUFFIX = ".parquet"
_OTHERS = (".avro", ".bin", ".crc", ".json", ".puffin")
"""Files of the formats themselves: nothing of them is a Parquet file."""
_OWN = {"delta": "_delta_log/", "iceberg": "metadata/"}
"""Where a format keeps its own files. Some are Parquet files too, with columns of their own."""
_MAGIC = (b"PAR1", b"PARE")
_SMALLEST = 12
_MOST_LOOKS = 100_000


class Leftovers(NamedTuple):
    """Files to look at besides those of the retained versions."""

    files: list[DataFile]
    states: dict[str, str]
    """Which of them are files of deletes of retained versions, by URI; see ``KeyFile.state``."""
    problems: list[str]


def leftovers_of(table: CurrentTable, known: Collection[str], options: Mapping[str, str]) -> Leftovers:
    """Return the Parquet files below a table that are no data files of its versions. ``known`` are these.

    The files of the log are left out: its checkpoints, and Iceberg's statistics of partitions, whose columns have ids
    of their own. So is all that lies beside a table whose location is a pattern: it may be of other tables. Raises the
    errors of listing the table.
    """
    record = table.record
    found = Leftovers([], {}, [])
    roots = places_of(record) if record.snapshot is not None or not _has_pattern(record.locations) else []
    listed: dict[str, TableFile] = {}
    own = None if record.snapshot is None else _OWN[record.snapshot.format]
    for root in dict.fromkeys(roots):
        if root not in known:
            listed.update(_parquet_files(root, own, known, options, found))
    if record.snapshot is not None and record.snapshot.format == "iceberg":
        for each in iceberg_delete_files(iceberg_log(table, options), dict(options)):
            found.states[each.uri] = "deletes" if each.is_current else "old"
            if each.format != "puffin":  # which has numbers of rows only
                listed.pop(each.uri, None)
                file = TableFile(each.uri, each.size_bytes, each.snapshot_id, LOGGED)
                found.files.append(DataFile(file, constants=(), format=each.format))
    found.files.extend(DataFile(file, constants=()) for file in listed.values())
    found.files.sort(key=lambda each: each.file)
    return found


def _has_pattern(locations: Collection[str]) -> bool:
    return any(unescape(location) is None for location in locations)


def _parquet_files(
    root: str, own: str | None, known: Collection[str], options: Mapping[str, str], found: Leftovers
) -> dict[str, TableFile]:
    storage = open_storage(root, {} if root.startswith("file:") else options)
    certain: list[StoredFile] = []
    unsure: list[StoredFile] = []
    for each in storage.list(""):
        is_own = own is not None and each.path.startswith(own)
        if is_own or f"{root}/{each.path}" in known or each.path.endswith(_OTHERS):
            continue
        if each.path.endswith(_SUFFIX):
            certain.append(each)
        elif each.size_bytes >= _SMALLEST:
            unsure.append(each)
    if len(unsure) > _MOST_LOOKS:
        found.problems.append(
            f"{len(unsure) - _MOST_LOOKS:,} files below {root} were not looked at: their names do not say what they are"
        )
        del unsure[_MOST_LOOKS:]
    threads = pool(REQUESTS if is_remote(root) else CORES)
    for each, answer in zip(unsure, threads.map(lambda one: _is_parquet(storage, one), unsure), strict=True):
        if answer is True:
            certain.append(each)
        elif answer is not False:
            found.problems.append(f"{root}/{each.path}: {answer}")
    files = (TableFile(f"{root}/{each.path}", each.size_bytes, each.mtime_ms) for each in certain)
    return {file.uri: file for file in files}


def _is_parquet(storage: Storage, file: StoredFile) -> bool | str:
    """Tell by its first bytes; or return what went wrong."""
    try:
        (start,) = storage.read_ranges(file.path, [(0, 4)])
    except NotFoundError:
        return False
    except LakebloomError as error:
        return str(error)
    return bytes(start) in _MAGIC

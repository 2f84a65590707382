"""An Iceberg table: its newest version, and those before it.

A table is given by its directory, by a metadata file, which then is the only one that counts, by its name in a catalog
of pyiceberg, as catalog.namespace.table, or by its name in a catalog of Spark's session. The newest metadata is asked
for each time: from a catalog by its own request; in a directory of Hadoop's by looking for the next number, and in any
other by listing the metadata. Only the caller can ask a session, and then says where the newest metadata is. A file
that was read is not read again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from lakebloom.errors import DataFileError, InvalidArgumentError, NotFoundError, UnsupportedSourceError
from lakebloom.locks import new_lock
from lakebloom.storage.uri import from_decoded
from lakebloom.tables.file_identity import is_object, is_reachable, is_same
from lakebloom.tables.formats.iceberg.catalogs import metadata_of, metadata_without_session
from lakebloom.tables.formats.iceberg.described_files import DescribedFiles
from lakebloom.tables.formats.iceberg.locate import folder_state, newest_metadata, next_versions
from lakebloom.tables.formats.iceberg.manifests import read_entries, read_manifest_list
from lakebloom.tables.formats.iceberg.metadata import read_metadata
from lakebloom.tables.formats.iceberg.snapshot import EMPTY, IcebergSnapshot
from lakebloom.tables.formats.iceberg.times import shown_time, snapshot_at
from lakebloom.tables.formats.recognise import METADATA
from lakebloom.tables.listing.listing import stat_file
from lakebloom.tuning import KEPT_MANIFESTS, KEPT_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.formats.iceberg.locate import FolderState
    from lakebloom.tables.formats.iceberg.manifests import ListedFile
    from lakebloom.tables.formats.iceberg.metadata import SnapshotInfo, TableMetadata

__all__ = ["IcebergTable", "Source"]

_FOUND_AGAIN_S = 60.0
"""After so long it is not enough that the next version of an object store's table is not there."""
_MOST_SHOWN = 5
_ATTEMPTS = 5
"""How many versions are tried if files of each are removed: what is lost is missing in all that a writer adds."""


class Source(NamedTuple):
    """How a table is given: one of these."""

    directory: str = ""
    metadata: str = ""
    catalog: str = ""
    session: tuple[str, ...] = ()
    """The name of a table in a catalog of Spark's session, the catalog first."""

    def __str__(self) -> str:
        return self.directory or self.metadata or self.catalog or ".".join(self.session)


class IcebergTable:
    """A table at canonical URIs, or in a catalog. Threads may share it."""

    def __init__(
        self, source: Source, options: Mapping[str, str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        for uri in (source.directory, source.metadata):
            if uri and not is_reachable(uri):
                raise InvalidArgumentError(
                    f"{uri} can only be reached through Spark",
                    hint="use a local path, s3://, gs://, az:// or abfs://",
                )
        self.source = source
        self._options = dict(options or {})
        self._clock = clock
        self._lock = new_lock()
        self._kept: _Kept | None = None
        self._entries: dict[str, tuple[ListedFile, ...]] = {}
        self._described_files = DescribedFiles()
        self._older: dict[int, IcebergSnapshot] = {}
        """Snapshots that were asked for last by their ids. They keep the files that their manifests list."""

    def newest(self, told: str = "") -> IcebergSnapshot:
        """Return the current snapshot with the current schema; the same object as long as nothing is newer.

        ``told`` is where the newest metadata of a table of Spark's session is, as the session just said.

        Its manifests are read: a writer who expires snapshots may remove them at any time. Raises NotFoundError where
        there is no table, UnsupportedSourceError for one that cannot be read, and DataFileError for damaged metadata.
        """
        return self._newest(lambda snapshot: len(snapshot.data_files), told)

    def at(self, version: int, told: str = "") -> IcebergSnapshot:
        """Return a snapshot by its id, with the schema that it had. Raises NotFoundError."""
        return self._at(self._newest(told=told), version)

    def at_timestamp(self, timestamp_ms: int, told: str = "") -> IcebergSnapshot:
        """Return the snapshot that was the current one at a time. Raises NotFoundError where there was none yet."""
        newest = self._newest(told=told)
        return self._at(newest, snapshot_at(newest.metadata, timestamp_ms))

    def pinned(self, metadata_uri: str, version: int) -> IcebergSnapshot:
        """Return a snapshot as a metadata file describes it, whatever is newer. The schema is the current one of it."""
        kept = self._kept
        if kept is not None and kept.snapshot.metadata_uri == metadata_uri and kept.snapshot.version == version:
            return kept.snapshot
        metadata = read_metadata(metadata_uri, self._options)
        return self._snapshot(metadata_uri, metadata, self._require(metadata, version), None)

    def _at(self, newest: IcebergSnapshot, version: int) -> IcebergSnapshot:
        metadata = newest.metadata
        with self._lock:
            known = self._older.pop(version, None)
        if known is None or known.metadata is not metadata:
            info = self._require(metadata, version)
            known = self._snapshot(newest.metadata_uri, metadata, info, None if info is None else info.schema_id)
        with self._lock:
            self._older[version] = known
            for other in list(self._older)[:-KEPT_VERSIONS]:
                del self._older[other]
        return known

    def _require(self, metadata: TableMetadata, version: int) -> SnapshotInfo | None:
        if version == EMPTY and metadata.current_snapshot is None:
            return None
        info = metadata.snapshot(version)
        if info is not None:
            return info
        known = sorted(metadata.snapshots, key=lambda each: each.timestamp_ms)[-_MOST_SHOWN:]
        raise NotFoundError(
            f"the Iceberg table {self.source} has no snapshot {version}",
            found=", ".join(f"{each.snapshot_id} of {shown_time(each.timestamp_ms)}" for each in known) or "none",
            hint="a version of an Iceberg table is the id of a snapshot that was not expired",
        )

    def _newest(
        self, use: Callable[[IcebergSnapshot], object] = lambda snapshot: None, told: str = ""
    ) -> IcebergSnapshot:
        """Return the current snapshot after it was used; that of the next version if files are removed meanwhile."""
        before, failed = "", 0
        while True:
            with self._lock:
                kept = self._kept
            found = _Found(told) if told else self._find(None if before else kept)
            try:
                snapshot = self._described(kept, found).snapshot
                use(snapshot)
            except NotFoundError:
                failed += 1
                if found.uri == before or failed == _ATTEMPTS:  # nobody commits anything newer, or a file is lost
                    raise
                before = found.uri
            else:
                return snapshot

    def _described(self, kept: _Kept | None, found: _Found) -> _Kept:
        uri, file = found.uri, found.file
        if kept is not None and uri == kept.snapshot.metadata_uri and (file is None or is_same(kept.found.file, file)):
            return kept if found == kept.found else self._keep(kept, kept._replace(found=found))
        metadata = read_metadata(uri, self._options)
        current = metadata.current_snapshot
        if current is None and metadata.current_snapshot_id not in (None, -1):
            raise DataFileError(f"{uri} does not describe its current snapshot", found=metadata.current_snapshot_id)
        if kept is not None and kept.snapshot.table_id != metadata.table_id:
            self._entries = {}
        return self._keep(kept, _Kept(self._snapshot(uri, metadata, current, None), found))

    def _find(self, kept: _Kept | None) -> _Found:
        """Return where the newest metadata is."""
        if self.source.session:
            return _Found(metadata_without_session(self.source.session))
        if self.source.catalog:
            return _Found(metadata_of(self.source.catalog))
        if self.source.metadata:
            return _Found(self.source.metadata, _stat(self.source.metadata))
        if is_object(self.source.directory):
            return self._find_object(kept)
        # Looked at before what is in it, so that a change meanwhile shows the next time.
        folder = folder_state(f"{self.source.directory}/{METADATA}")
        if kept is not None and folder is not None and kept.found.folder == folder:
            return kept.found._replace(file=_stat(kept.found.uri))
        uri = newest_metadata(self.source.directory, self._options)
        return _Found(uri, _stat(uri), folder)

    def _find_object(self, kept: _Kept | None) -> _Found:
        now = self._clock()
        if kept is not None and now - kept.found.found_at <= _FOUND_AGAIN_S:
            # Each look is a request: one of them is enough, unless names do not tell what is next.
            following = next(next_versions(kept.found.uri), None)
            if following is not None and stat_file(following, self._options) is None:
                return kept.found
        return _Found(newest_metadata(self.source.directory, self._options), found_at=now)

    def _keep(self, before: _Kept | None, found: _Kept) -> _Kept:
        with self._lock:
            if self._kept is before or self._kept is None:
                self._kept = found  # otherwise another thread was quicker
        return found

    def _snapshot(
        self, uri: str, metadata: TableMetadata, info: SnapshotInfo | None, schema_id: int | None
    ) -> IcebergSnapshot:
        try:
            schema = metadata.schema_of(schema_id)
        except KeyError:
            raise DataFileError(f"{uri} does not describe schema {schema_id}", hint="check the metadata") from None
        return IcebergSnapshot(uri, metadata, info, schema, self._read, self._described_files)

    def _read(self, info: SnapshotInfo) -> Sequence[tuple[str, Sequence[ListedFile]]]:
        """Return the entries of all manifests of a snapshot, with their URIs.

        Manifests that the last snapshot had, too, are not read again.
        """
        if info.manifest_list is None:
            raise UnsupportedSourceError(
                f"snapshot {info.snapshot_id} of the Iceberg table {self.source} has no list of manifests",
                found="a snapshot as writers made it before 2019",
                hint="rewrite the table's manifests with its own engine",
            )
        manifests = read_manifest_list(from_decoded(info.manifest_list), self._options)
        entries = read_entries(manifests, self._options, self._entries)
        with self._lock:
            self._entries = entries if len(self._entries) > KEPT_MANIFESTS else {**self._entries, **entries}
        return [(manifest.uri, entries[manifest.uri]) for manifest in manifests]


def _stat(uri: str) -> TableFile | None:
    return None if is_object(uri) else stat_file(uri)


class _Found(NamedTuple):
    """Where the newest metadata is, and what was seen when that was found out."""

    uri: str
    file: TableFile | None = None
    """The metadata file, where looking at it costs nothing."""
    folder: FolderState | None = None
    """The directory of metadata, where a change of it would show."""
    found_at: float = 0.0


class _Kept(NamedTuple):
    """The newest version as far as it is known."""

    snapshot: IcebergSnapshot
    found: _Found

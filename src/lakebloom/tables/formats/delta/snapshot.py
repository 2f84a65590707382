"""One version of a Delta table."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lakebloom.errors import NotFoundError, UnsupportedSourceError
from lakebloom.storage import open_storage
from lakebloom.tables.file_list import FileList
from lakebloom.tables.formats.delta.features import mapping_of
from lakebloom.tables.formats.delta.log_files import LOG, commit_name
from lakebloom.tables.formats.delta.times import stated_ms
from lakebloom.tables.listing.listing import stat_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.column_mapping import ColumnMapping
    from lakebloom.tables.formats.delta.state import State
    from lakebloom.tables.formats.table_snapshot import DataFile

__all__ = ["DeltaSnapshot"]

_IN_COMMIT = "delta.enableInCommitTimestamps"


class DeltaSnapshot:
    """See ``TableSnapshot``."""

    def __init__(
        self, table_uri: str, options: Mapping[str, str], state: State, before: DeltaSnapshot | None = None
    ) -> None:
        """``before`` is the version from whose state this one was made, if any."""
        self.uri = table_uri
        self._options, self.state = options, state
        self._files_before: FileList | None = None if before is None else before.__dict__.get("files")

    def __repr__(self) -> str:
        return f"DeltaSnapshot({self.uri!r}, version {self.version})"

    @property
    def table_id(self) -> str:
        """See TableSnapshot.table_id."""
        return self.state.metadata.id

    @property
    def version(self) -> int:
        """See TableSnapshot.version."""
        return self.state.version

    @cached_property
    def timestamp_ms(self) -> int | None:
        """See TableSnapshot.timestamp_ms. The time of the commit's file, unless commits state their time."""
        if self.has_in_commit_times:
            if self.state.in_commit_ms is not None:
                return self.state.in_commit_ms
            try:  # a checkpoint does not say it
                return stated_ms(open_storage(f"{self.uri}/{LOG}", self._options), self.version)
            except NotFoundError:
                return None
        found = stat_file(f"{self.uri}/{LOG}/{commit_name(self.version)}", self._options)
        return None if found is None else found.mtime_ms

    @property
    def has_in_commit_times(self) -> bool:
        """Whether commits state when they were made."""
        return (self.configuration.get(_IN_COMMIT) or "").lower() == "true"

    @property
    def configuration(self) -> Mapping[str, str | None]:
        """The table's properties."""
        return self.state.metadata.configuration

    @property
    def schema_json(self) -> str:
        """See TableSnapshot.schema_json."""
        return self.state.metadata.schema_string

    @cached_property
    def mapping(self) -> ColumnMapping:
        """See TableSnapshot.mapping."""
        return mapping_of(self.uri, self.state.metadata)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """See TableSnapshot.partition_columns."""
        return self.state.metadata.partition_columns

    @cached_property
    def files(self) -> FileList:
        """See TableSnapshot.files. Made from those of the version before, if these were asked for."""
        current = self.data_files  # raises an error, whatever is known of the version before
        before, self._files_before = self._files_before, None  # so that versions do not keep each other
        if before is None or self.state.changes is None:
            return FileList.of(entry.file for entry in current.values())
        return before.changed(self.state.changes.added, self.state.changes.removed)

    @cached_property
    def data_files(self) -> dict[str, DataFile]:
        """See TableSnapshot.data_files. Raises UnsupportedSourceError where a file is there with several vectors."""
        entries = self.state.entries
        if not self.state.num_deletes:
            return entries
        found = {entry.file.uri: entry for entry in entries.values()}
        if len(found) < len(entries):
            raise UnsupportedSourceError(
                f"version {self.version} of the Delta table {self.uri} has a file with several deletion vectors",
                found=f"{len(entries)} entries for {len(found)} files",
                hint="query the table with Delta to see whether it can read it",
            )
        return found

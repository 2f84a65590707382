"""The table that lookups read: its files as they are now, and what is known of them between lookups."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lakebloom.errors import UnsupportedSourceError
from lakebloom.index.query.single_keys import SingleKeys
from lakebloom.index.threads import pool
from lakebloom.tables.file_identity import is_same
from lakebloom.tables.listing.inventory import Inventory
from lakebloom.tables.listing.listing import is_remote
from lakebloom.tables.parquet.rows import TableRows
from lakebloom.tuning import LISTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.store.records import TableRecord
    from lakebloom.tables.file_identity import TableFile

__all__ = ["ListedAhead", "LookupTable"]


class LookupTable:
    """The table of an index, and facts about its files."""

    def __init__(self, current: CurrentTable, options: Mapping[str, str], earlier: LookupTable | None = None) -> None:
        """``earlier`` is the table before: a version with the same columns shares what is known of files."""
        record = current.record
        if record.format != "parquet":
            raise UnsupportedSourceError(
                "lookup reads Parquet files only",
                found=f"a {record.format} table",
                hint="query the table with Spark; lake.candidates() names the files that can match",
            )
        self.current = current
        self.logged = None if current.snapshot is None else record
        """The version of a table with a log."""
        self._keys: tuple[Snapshot, SingleKeys | None] | None = None
        self._inventory = Inventory(record.locations, options, current.list_files)
        self.rows = self._shared_rows(earlier) or TableRows(
            record.locations,
            record.schema,
            record.partition_columns,
            options,
            partition_values=current.values,
            logged=current.logged,
        )

    def _shared_rows(self, earlier: LookupTable | None) -> TableRows | None:
        logged = self.current.logged
        if logged is None or earlier is None or not _same_columns(self.current.record, earlier.current.record):
            return None
        return earlier.rows.with_logged(logged)

    def files(self) -> Sequence[TableFile]:
        """Return the table's files: a log knows them, directories are watched or listed."""
        return self._inventory.files() if self.current.snapshot is None else self.current.snapshot.files

    @cached_property
    def lists_objects(self) -> bool:
        """Whether the files are known only from a request to an object store."""
        return self.current.snapshot is None and any(map(is_remote, self.current.locations))

    def may_hold(self, file: TableFile) -> bool:
        """Tell whether an indexed file can be one of the table's, without listing it."""
        logged = self.current.logged
        if logged is None:
            return self.current.may_hold(file.uri)
        return file.uri in logged and is_same(file, logged[file.uri].file)

    def keys(self, snapshot: Snapshot) -> SingleKeys | None:
        """Return what looks for single keys in a version of the index; None if the index does not fit the table."""
        known = self._keys  # other threads may change it
        if known is None or known[0] is not snapshot:
            fits = self._has_columns_of(snapshot)
            self._keys = known = snapshot, SingleKeys(snapshot, self.logged) if fits else None
        return known[1]

    def _has_columns_of(self, snapshot: Snapshot) -> bool:
        """Tell whether the indexed columns still have the same types: the table may have been replaced.

        Columns of a table with a log are known by what files call them (``pruning.resolver``).
        """
        if self.current.snapshot is not None:
            return True
        return all(self.rows.types.get(column.path) == column.type for column in snapshot.commit.config.columns)


class ListedAhead:
    """The files of a table, which another thread lists meanwhile. Once: whoever needs them again lists again."""

    def __init__(self, table: LookupTable) -> None:
        self.table = table
        self._listing: Future[Sequence[TableFile]] | None = pool(LISTINGS).submit(table.files)

    def files(self) -> Sequence[TableFile]:
        """Return the files. Raises the errors of listing them."""
        listing, self._listing = self._listing, None
        if listing is None or listing.cancel():  # not begun: all threads wait for other tables
            return self.table.files()
        return listing.result()


def _same_columns(one: TableRecord, other: TableRecord) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("schema_json", "partition_columns", "mapping"))

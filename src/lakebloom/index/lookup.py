"""Looking rows up: candidates from the index, rows from the files, checked against the predicate.

The answer is that of a full scan. Files are listed; one that the index does not know as it is now is read in full, and
a candidate counts only for the file it was built from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pyarrow as pa

from lakebloom.errors import DataFileError, InvalidArgumentError, UnsupportedSourceError
from lakebloom.index.ask import require_predicate
from lakebloom.index.reads import Unindexed, reads_of
from lakebloom.predicate.rows import row_mask
from lakebloom.predicate.tree import columns as columns_of
from lakebloom.tables.columns import format_name, parse_name
from lakebloom.tables.listing import stat_file
from lakebloom.tables.rows import TableRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebloom.index.ask import Reader
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.tree import Predicate
    from lakebloom.tables.files import TableFile


def lookup(
    reader: Reader,
    predicate: Predicate,
    columns: Sequence[str] | None,
    limit: int | None,
    unindexed: Unindexed,
    options: Mapping[str, str],
) -> pa.Table:
    """Return the rows for which the predicate is TRUE."""
    require_predicate(predicate)
    if unindexed not in get_args(Unindexed):
        raise InvalidArgumentError('unindexed must be "scan", "skip" or "error"', found=unindexed)
    if limit is not None and limit < 0:
        raise InvalidArgumentError("limit must not be negative", found=limit)
    return reader.with_newest(lambda snapshot: _lookup(snapshot, predicate, columns, limit, unindexed, options))


def _lookup(
    snapshot: Snapshot,
    predicate: Predicate,
    columns: Sequence[str] | None,
    limit: int | None,
    unindexed: Unindexed,
    options: Mapping[str, str],
) -> pa.Table:
    source = snapshot.entry.source
    if source.format != "parquet":
        raise UnsupportedSourceError(
            "lookup reads Parquet files only",
            found=f"a {source.format} table",
            hint="query the table with Spark; lake.candidates() names the files that can match",
        )
    rows = TableRows(
        source.locations,
        source.schema_json or "",
        source.partition_columns,
        options,
        case_sensitive=source.case_sensitive,
    )
    wanted = rows.top_level_names if columns is None else [_top_level(name) for name in columns]
    output = rows.schema_of(wanted)
    read = rows.schema_of(dict.fromkeys([*wanted, *(path[0] for path in columns_of(predicate))]))
    parts: list[pa.Table] = []
    found = 0
    for part in reads_of(snapshot, predicate, rows.files(), unindexed):
        if limit is not None and found >= limit:
            break
        table = _read_unchanged(rows, part.file, part.row_groups, read, options)
        matching = table.filter(row_mask(predicate, table, rows.types)).select(output.names)
        found += matching.num_rows
        parts.append(matching)
    whole = pa.concat_tables([output.empty_table(), *parts])
    return whole if limit is None else whole.slice(0, limit)


def _read_unchanged(
    rows: TableRows, file: TableFile, row_groups: Sequence[int] | None, schema: pa.Schema, options: Mapping[str, str]
) -> pa.Table:
    """Read row groups of a file; all of it, if it was replaced since it was listed and the index speaks of another."""
    if row_groups is not None:
        try:
            table = rows.read(file, row_groups, schema)
        except (DataFileError, IndexError):  # it may have no such row groups any more
            if stat_file(file.uri, options) == file:
                raise
        else:
            if stat_file(file.uri, options) == file:
                return table
    return rows.read(file, None, schema)


def _top_level(name: str) -> str:
    path = parse_name(name)
    if len(path) > 1:
        raise InvalidArgumentError(
            "lookup returns whole columns", found=format_name(path), hint=f"ask for {format_name(path[:1])}"
        )
    return path[0]

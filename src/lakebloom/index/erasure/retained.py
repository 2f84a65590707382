"""What is kept of the table of an index: its history, and under which name and type each version has a column.

A directory has the present only. A table with a log has every version that its log can still read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lakebloom.index.current_table import CurrentTable, iceberg_log
from lakebloom.tables.formats.delta.history import delta_history
from lakebloom.tables.formats.iceberg.history import iceberg_history
from lakebloom.tables.formats.iceberg.schema import physical_name
from lakebloom.tables.formats.table_history import RetainedFile, RetainedVersion, TableHistory
from lakebloom.tables.formats.table_snapshot import DataFile
from lakebloom.tables.listing.glob import fixed_part
from lakebloom.tables.spark_schema import Metadata, parse_struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.store.records import ColumnRecord, TableRecord
    from lakebloom.tables.columns import ColumnPath

__all__ = ["ColumnReading", "readings_of", "retained_history"]

_ROW_ID = 2147483544
"""The id of the copies of rows in Iceberg's files of position deletes."""
_DEFAULTS = frozenset({"EXISTS_DEFAULT", "CURRENT_DEFAULT", "iceberg.initial-default"})


def retained_history(table: CurrentTable, options: Mapping[str, str]) -> TableHistory:
    """Return the history of a table as it is now. Raises the errors of listing it, or of reading its log."""
    record = table.record
    if record.snapshot is not None and record.snapshot.format == "iceberg":
        return iceberg_history(iceberg_log(table, options))
    if record.snapshot is not None:
        return delta_history(fixed_part(record.locations[0]), options)
    table.require_plain(options)
    present = RetainedVersion("", 0, None, record.schema_json or "", record.mapping, record.partition_columns)
    files = tuple(RetainedFile(DataFile(file), 0, 0, None) for file in table.list_files(options))
    return TableHistory((present,), files, None, None, False)


class ColumnReading(NamedTuple):
    """A column as some versions have it."""

    table: CurrentTable
    """The last of these versions; to read files, and to prune by the index."""
    path: ColumnPath
    kind: str
    place: int
    """The place of this version in the history."""

    def in_files(self) -> ColumnReading:
        """Return how to find only what files hold themselves: no default, and no value that a log has for a file.

        It reads files of which no version says what the column means in them.
        """
        record = self.table.record
        columns = record.partition_columns
        if record.snapshot is not None and record.snapshot.format == "delta":
            # Iceberg says for each file which values are not in it.
            columns = tuple(name for name in columns if name != self.path[0])
        schema_json = None if record.schema_json is None else _without_defaults(record.schema_json)
        plain = msgspec.structs.replace(record, schema_json=schema_json, partition_columns=columns)
        return self._replace(table=CurrentTable(plain, self.table.partitions))

    def in_copies(self) -> ColumnReading:
        """Return how to find the column in the copies of rows that Iceberg's position deletes may have.

        Each is a struct with the columns of the table.
        """
        record = self.in_files().table.record
        assert record.schema_json is not None
        fields = json.loads(record.schema_json)["fields"]
        row = {"type": "struct", "fields": [field for field in fields if field["name"] == self.path[0]]}
        known = msgspec.to_builtins(Metadata(column_id=_ROW_ID, physical_name=physical_name(_ROW_ID, {})))
        struct = {"type": "struct", "fields": [{"name": "row", "type": row, "nullable": True, "metadata": known}]}
        copies = msgspec.structs.replace(record, schema_json=json.dumps(struct), partition_columns=())
        return self._replace(table=CurrentTable(copies), path=("row", *self.path))


def readings_of(
    table: CurrentTable, history: TableHistory, column: ColumnRecord
) -> tuple[list[ColumnReading | None], list[ColumnReading]]:
    """Return for each version how it has an indexed column, None where it does not; and the distinct ways.

    A column is known by what files call it: it may have had other names, and a column that now has its name may be
    another one.
    """
    if table.record.snapshot is None:
        if column.path not in table.record.schema.types:
            return [None], []
        only = ColumnReading(table, column.path, table.record.schema.types[column.path], 0)
        return [only], [only]
    keys: list[object] = []
    last: dict[object, int] = {}
    for place, version in enumerate(history.versions):
        key = _key(_record(table.record, version), column)
        keys.append(key)
        if key is not None:
            last[key] = place
    made = {key: _reading(table, history, column, place) for key, place in last.items()}
    return [None if key is None else made[key] for key in keys], list(made.values())


def _key(record: TableRecord, column: ColumnRecord) -> object:
    """Return what decides how the column is read; None where the version does not have it."""
    path = _path(record, column)
    if path is None:
        return None
    return path, record.mapping, repr(record.schema.fields[path[0]])


def _path(record: TableRecord, column: ColumnRecord) -> ColumnPath | None:
    physical = record.schema.physical
    return next((path for path, found in physical.items() if found.path == column.physical_path), None)


def _reading(table: CurrentTable, history: TableHistory, column: ColumnRecord, place: int) -> ColumnReading:
    record = _record(table.record, history.versions[place])
    path = _path(record, column)
    assert path is not None
    return ColumnReading(CurrentTable(record), path, record.schema.types[path], place)


def _record(table: TableRecord, version: RetainedVersion) -> TableRecord:
    assert table.snapshot is not None
    return msgspec.structs.replace(
        table,
        schema_json=parse_struct(version.schema_json).to_json(),
        partition_columns=version.partition_columns,
        snapshot=msgspec.structs.replace(
            table.snapshot, table_id=version.table_id, version=version.version, mapping=version.mapping
        ),
    )


def _without_defaults(schema_json: str) -> str:
    """Return a schema in JSON whose fields have no defaults: what a file does not hold is then NULL."""
    return json.dumps(_stripped(json.loads(schema_json)))


def _stripped(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _stripped(value) for name, value in part.items() if name not in _DEFAULTS}
    return [_stripped(value) for value in part] if isinstance(part, list) else part

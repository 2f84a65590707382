"""What to run to erase keys: the statements of each table format, in their order.

Few keys are written into the statement. More are read from a Parquet file, and so are keys that SQL dialects quote in
different ways. Delta refuses subqueries in DELETE outside Databricks, so it gets a MERGE.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from lakebloom.index.erasure.records import ErasureStep, moment
from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.storage import to_local_path

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebloom.store.records import TableRecord
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.formats.table_history import TableRef

__all__ = ["KEYS_PATH", "Situation", "steps_of", "table_name"]

KEYS_PATH = "/path/to/keys.parquet"
_FEW_KEYS = 100
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""
_SECOND_MS, _DAY_MS = 1000, 24 * 3600 * 1000
_PLAIN_TEXT = re.compile(r"[ !#-&(-\[\]-~]*")
"""Printable ASCII without quotes and backslashes: all dialects read it in the same way."""


class Situation(NamedTuple):
    """What decides about the steps."""

    format: str
    """"delta", "iceberg" or the format of a directory's files."""
    target: str
    """The table as SQL names it."""
    column: ColumnPath
    """As the newest version calls it; empty if it no longer has it."""
    kind: str
    values: pa.Array
    keys_path: str
    has_rows: bool
    """Whether the newest version shows rows with keys."""
    has_hidden: bool
    """Whether its files hold such rows that it does not show."""
    has_old: bool
    """Whether older versions, or files of none, hold rows with keys."""
    hides_rows: bool
    """Whether a delete may leave rows in files."""
    removable_ms: int | None
    """When the last old file may be removed; None if that is not known."""
    has_deletes: bool = False
    """Whether files of deletes of the newest version hold keys."""
    has_versions: bool = True
    """Whether it is older versions that hold rows with keys, and not only files of none."""
    orphans_ms: int | None = None
    """When the youngest file of no version that holds keys was written; None if there is none."""
    refs: tuple[TableRef, ...] = ()
    """The branches and tags that keep a version that holds keys."""
    now_ms: int = 0
    has_catalog: bool = True
    """Whether the table is known by its name in a catalog."""


def steps_of(situation: Situation) -> tuple[ErasureStep, ...]:
    """Return what to do; nothing where no row is left."""
    if not (situation.has_rows or situation.has_hidden or situation.has_old or situation.has_deletes):
        return ()
    if situation.format == "delta":
        return tuple(_delta(situation))
    if situation.format == "iceberg":
        return tuple(_iceberg(situation))
    return tuple(_directory(situation))


def _directory(now: Situation) -> list[ErasureStep]:
    steps = []
    if now.has_rows or now.has_hidden:
        why = (
            "A directory has no DELETE. The plan's `matches` has the number of every row in its file. Replace each "
            "file in one step (write beside it, then rename), then refresh the index and check again."
        )
        steps.append(ErasureStep("Write these files again without the rows", why, ""))
    if now.has_old:
        why = (
            "Files that are called unreferenced are below the directory and not part of the table: Spark does not read "
            "them. Failed writes leave such files. Remove them, unless something else needs them."
        )
        steps.append(ErasureStep("Remove files that are not part of the table", why, ""))
    return steps


def _delta(now: Situation) -> list[ErasureStep]:
    steps = []
    if now.has_rows:
        steps.append(ErasureStep("Delete the rows", "The newest version then no longer shows them.", _delete(now)))
    if now.has_hidden or (now.has_rows and now.hides_rows):
        why = "Deleted rows are only marked, and stay in their files. This writes such files again without them."
        steps.append(ErasureStep("Purge rows that are only marked as deleted", why, f"{_purge(now.target)};"))
    later = (
        f" Of those removed so far, the last is free from {moment(now.removable_ms)} on." if now.removable_ms else ""
    )
    why = (
        "Older versions keep their files until delta.deletedFileRetentionDuration (by default 7 days) has passed "
        f"since each was removed.{later} Run it after that; a shorter retention breaks readers of older versions."
    )
    steps.append(ErasureStep("Remove old files", why, f"VACUUM {now.target};", now.removable_ms))
    return steps


def _purge(target: str) -> str:
    return f"REORG TABLE {target} APPLY (PURGE)"


def _iceberg(now: Situation) -> list[ErasureStep]:
    steps = []
    catalog, _, name = now.target.partition(".")
    table = f"table => {_text(name)}"
    if now.has_rows:
        steps.append(ErasureStep("Delete the rows", "The newest snapshot then no longer shows them.", _delete(now)))
    changes = now.has_rows or now.has_hidden or now.has_deletes
    if changes:
        why = "Delete files only mark rows. This writes the data files again without them."
        options = "'rewrite-all', 'true'"
        if now.has_deletes:
            why += (
                " Files of deletes hold keys themselves, and rewrite_position_delete_files leaves equality deletes as "
                "they are. The option remove-dangling-deletes (Iceberg 1.7 and later) removes those that delete "
                "nothing any more."
            )
            options += ", 'remove-dangling-deletes', 'true'"
        call = f"CALL {catalog}.system.rewrite_data_files({table}, options => map({options}));"
        steps.append(ErasureStep("Purge rows that are only marked as deleted", why, call))
    if changes or now.has_versions:
        steps += _dropped_refs(now)
        why = "Older snapshots keep their files until they are expired. Branches and tags keep their snapshots."
        if now.removable_ms is not None:
            why += f" By the table's own settings, the last of them expires from {moment(now.removable_ms)} on."
        if changes:
            why += " The steps before this make snapshots that hold the rows, too: write a time after them."
        call = f"CALL {catalog}.system.expire_snapshots({table}, older_than => {_time(now.now_ms)}, retain_last => 1);"
        steps.append(ErasureStep("Expire old snapshots", why, call))
    if now.orphans_ms is not None:
        why = (
            "Files that are called unreferenced belong to no snapshot, so that expiring snapshots does not remove "
            "them. Iceberg removes such files 24 hours after they were written at the earliest."
        )
        until = now.orphans_ms + _SECOND_MS
        call = f"CALL {catalog}.system.remove_orphan_files({table}, older_than => {_time(until)});"
        steps.append(ErasureStep("Remove files of no snapshot", why, call, until + _DAY_MS))
    if not now.has_catalog:
        note = (
            " The index has this table by its path, and Spark runs this only in a catalog of Iceberg: write the name "
            f"of yours in the place of `{catalog}`, and the table's name in it if it does not find tables by path."
        )
        steps = [replace(step, why=step.why + note) for step in steps]
    return steps


def _dropped_refs(now: Situation) -> list[ErasureStep]:
    if not now.refs:
        return []
    why = (
        f"They keep snapshots that hold the rows: {', '.join(map(str, now.refs))}. Expiring leaves these alone. From a "
        "branch that is still needed, delete the rows instead: SQL calls it branch_ and its name, below the table."
    )
    drops = [f"ALTER TABLE {now.target} DROP {ref.kind.upper()} {_quoted(ref.name)};" for ref in now.refs]
    return [ErasureStep("Drop branches and tags", why, "\n".join(drops))]


def _time(time_ms: int) -> str:
    """Return a time as a literal: a CALL takes no expressions.

    >>> _time(1)
    "TIMESTAMP '1970-01-01 00:00:00.001Z'"
    """
    time_ms = min(max(time_ms, 0), _LAST_MS)  # a disk may say anything
    shown = datetime.fromtimestamp(time_ms // 1000, timezone.utc)
    return f"TIMESTAMP '{shown:%Y-%m-%d %H:%M:%S}.{time_ms % 1000:03}Z'"


def _delete(now: Situation) -> str:
    if not now.column:
        return ""
    column = ".".join(_quoted(part) for part in now.column)
    literals = _literals(now.values, now.kind) if now.keys_path == KEYS_PATH else None
    if literals is not None:
        return f"DELETE FROM {now.target} WHERE {column} IN ({', '.join(literals)});"
    view = f"CREATE OR REPLACE TEMPORARY VIEW erased_keys AS SELECT key FROM parquet.{_quoted(now.keys_path)};"
    if now.format == "iceberg":
        return f"{view}\nDELETE FROM {now.target} WHERE {column} IN (SELECT key FROM erased_keys);"
    condition = f"ON t.{column} = k.key WHEN MATCHED THEN DELETE"
    return f"{view}\nMERGE INTO {now.target} AS t USING erased_keys AS k {condition};"


def _literals(values: pa.Array, kind: str) -> list[str] | None:
    """Return keys as SQL; None if they are many, or if not every dialect reads them in the same way."""
    if len(values) > _FEW_KEYS:
        return None
    found = [_literal(value, spark_type(kind).kind) for value in values.to_pylist()]
    written = [text for text in found if text is not None]
    return written if len(written) == len(found) else None


def _literal(value: Any, kind: Kind) -> str | None:
    match kind:
        case Kind.INTEGER:
            return str(value)
        case Kind.DATE:
            return f"DATE'{value.isoformat()}'" if value.year >= 1000 else None
        case Kind.BINARY:
            return f"X'{value.hex().upper()}'"
        case Kind.STRING:
            return f"'{value}'" if _PLAIN_TEXT.fullmatch(value) else None
        case _:
            return None


def table_name(table: TableRecord) -> str:
    """Return a table as SQL names it: by its catalog name, or by its format and path."""
    if table.catalog is not None:
        return ".".join(map(_quoted, table.catalog.name))
    place = table.locations[0] if len(table.locations) == 1 else ", ".join(table.locations)
    if table.snapshot is None:
        return place
    if table.snapshot.catalog is not None:
        return ".".join(map(_quoted, table.snapshot.catalog.split(".")))
    from lakebloom.tables.listing.glob import fixed_part

    uri = fixed_part(table.locations[0])
    return f"{table.snapshot.format}.{_quoted(to_local_path(uri) if uri.startswith('file:') else uri)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(name: str) -> str:
    return f"'{name}'" if _PLAIN_TEXT.fullmatch(name) else "'<the table>'"

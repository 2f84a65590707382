"""What deltalake says about a Delta table: the judge of what lakebloom reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa

from lakebloom.tables.formats.delta.paths import file_uri

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.tables.formats.delta.snapshot import DeltaSnapshot


def judged_files(root: Path, version: int | None = None) -> dict[str, tuple[int, int, tuple[Any, ...]]]:
    """Return size, time and partition values of each file by its URI."""
    table = deltalake.DeltaTable(str(root), version=version)
    columns = table.metadata().partition_columns
    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return {
        file_uri(row["path"], f"file://{root}"): (
            row["size_bytes"],
            row["modification_time"],
            tuple(None if row[f"partition.{name}"] is None else str(row[f"partition.{name}"]) for name in columns),
        )
        for row in rows
    }


def listed_files(snapshot: DeltaSnapshot) -> dict[str, tuple[int, int, tuple[Any, ...]]]:
    """Return the same as lakebloom reads it."""
    return {
        uri: (
            entry.file.size_bytes,
            entry.file.mtime_ms,
            tuple(dict(entry.partition)[name] for name in snapshot.partition_columns),
        )
        for uri, entry in snapshot.data_files.items()
    }


def judged_rows(root: Path, sql: str = "select * from t", version: int | None = None) -> list[dict[str, Any]]:
    """Return what a query of the table gives, with deletion vectors and mapping applied by deltalake's own engine."""
    table = deltalake.DeltaTable(str(root), version=version)
    found = deltalake.QueryBuilder().register("t", table).execute(sql)
    rows: list[dict[str, Any]] = pa.table(found.read_all()).to_pylist()
    return rows

"""Which snapshot of an Iceberg table was the current one at a time."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from lakebloom.errors import NotFoundError

if TYPE_CHECKING:
    from lakebloom.tables.formats.iceberg.metadata import TableMetadata

__all__ = ["shown_time", "snapshot_at"]


def snapshot_at(metadata: TableMetadata, timestamp_ms: int) -> int:
    """Return the id of the snapshot that was the current one at a time, as the table's history has it.

    Raises NotFoundError where there was none yet.
    """
    found = None
    for entry in metadata.snapshot_log:
        if entry.timestamp_ms <= timestamp_ms:
            found = entry.snapshot_id
    current = metadata.current_snapshot
    if found is None and not metadata.snapshot_log and current is not None and current.timestamp_ms <= timestamp_ms:
        found = current.snapshot_id  # some writers of version 1 keep no history
    if found is None:
        first = min((entry.timestamp_ms for entry in metadata.snapshot_log), default=None)
        raise NotFoundError(
            f"the Iceberg table {metadata.location} has no snapshot of {shown_time(timestamp_ms)} or before",
            found="" if first is None else f"the first is of {shown_time(first)}",
            hint="snapshots that were expired cannot be read; choose a later time",
        )
    return found


def shown_time(time_ms: int) -> str:
    """Return a time for people."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"

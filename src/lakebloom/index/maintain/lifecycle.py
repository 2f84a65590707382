"""Marks an index as deleted, and restores it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakebloom.errors import IndexStateError
from lakebloom.index.catalog import require_active
from lakebloom.index.reports import OperationReport

if TYPE_CHECKING:
    from lakebloom.index.catalog import Catalog
    from lakebloom.store.records import Commit


def delete_index(catalog: Catalog, name: str) -> OperationReport:
    """Mark an index as deleted: queries stop using it; vacuum removes its files later."""

    def change(base: Commit) -> Commit:
        return msgspec.structs.replace(require_active(base), operation="delete", state="deleted", summary={})

    return _commit(catalog, name, change)


def restore_index(catalog: Catalog, name: str) -> OperationReport:
    """Restore a deleted index unchanged."""

    def change(base: Commit) -> Commit:
        if base.state == "active":
            raise IndexStateError(
                f"cannot restore index {name!r}",
                found=f"it is active, at version {base.version}",
                hint="only a deleted index can be restored",
            )
        return msgspec.structs.replace(base, operation="restore", state="active", summary={})

    return _commit(catalog, name, change)


def _commit(catalog: Catalog, name: str, change: object) -> OperationReport:
    committed = catalog.index(name).log.commit(change)  # type: ignore[arg-type]
    assert committed is not None
    return OperationReport.of(committed, committed=True)

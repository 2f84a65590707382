"""A builder that runs its tasks in this process: everything but Spark is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebloom.display.progress import Progress
from lakebloom.errors import NotFoundError
from lakebloom.index.build.in_process import build_here
from lakebloom.index.build.plan import BuildPlan, BuildResult, Shard
from lakebloom.index.build.run import Workshop
from lakebloom.index.catalog import Catalog
from lakebloom.index.current_table import CurrentTable, logged_table
from lakebloom.index.settings import Settings
from lakebloom.store.records import TableRecord

if TYPE_CHECKING:
    from lakebloom.storage import Storage
    from lakebloom.tables.file_identity import TableFile

_JSON_NAMES = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}


class LocalBuilder:
    """Builds segments one after the other, writing through the catalog's own storage."""

    def __init__(self, catalog: Catalog, tasks: int = 2, options: Mapping[str, str] | None = None) -> None:
        """``options`` are those of the table's object store."""
        self._catalog = catalog
        self._tasks = tasks
        self._options = options or {}

    def table(self, source: TableRecord) -> CurrentTable:
        return logged_table(source, self._options)

    def list_files(self, table: CurrentTable) -> Sequence[TableFile]:
        try:
            return table.list_files(self._options)
        except NotFoundError:
            return []

    def parallelism(self) -> int:
        return self._tasks

    def build(
        self,
        plan: BuildPlan,
        source: TableRecord,
        groups: Sequence[Shard],
        progress: Callable[[Progress], None] | None,
    ) -> BuildResult:
        storage: Storage = self._catalog.index(plan.index_uri.rpartition("/")[2]).storage
        return build_here(plan, groups, storage)


def workshop(catalog: Catalog, *, tasks: int = 2, **settings: int) -> Workshop:
    """Everything that create and refresh need."""
    return Workshop(catalog, LocalBuilder(catalog, tasks), Settings(**settings))


def source_of(table: Path, types: dict[str, str]) -> TableRecord:
    """The record of a Parquet directory with these flat columns (Spark type names)."""
    import json

    fields = [
        {"name": name, "type": _JSON_NAMES.get(kind, kind), "nullable": True, "metadata": {}}
        for name, kind in types.items()
    ]
    schema_json = json.dumps({"type": "struct", "fields": fields})
    return TableRecord(format="parquet", locations=(f"file://{table}",), schema_json=schema_json)


def write_parquet(path: Path, columns: dict[str, pa.Array | list], **options: object) -> None:
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")  # as Spark does: a reader beside it meets the whole file or none
    pq.write_table(pa.table(columns), hidden, **options)
    hidden.rename(path)

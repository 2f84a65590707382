"""deltalake and pyiceberg replace all rows of a table again and again, and clean up, while others look up and refresh.

Every version has each key in two files with the number of the version, so that a mixture of versions shows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.transforms import IdentityTransform

from lakebloom import Lakebloom, col
from lakebloom.tables.formats.iceberg.table import Source
from tests.index.delta_lake import DeltaIndexes
from tests.index.iceberg_lake import IcebergIndexes
from tests.index.logged_lake import NAME
from tests.tables.formats.iceberg.sql_catalog import CATALOG, local_catalog, named_catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table

    from tests.index.logged_lake import LoggedIndexes

pytestmark = pytest.mark.slow
KEYS, VERSIONS, CLEANED_AFTER = 10, 30, 3


def rows(number: int) -> pa.Table:
    """All rows of a version."""
    return pa.table(
        {
            "k": pa.array([key for key in range(KEYS) for _ in range(2)], pa.int64()),
            "p": pa.array([0, 1] * KEYS, pa.int64()),
            "v": pa.array([number] * 2 * KEYS, pa.int64()),
        }
    )


def write_delta(root: Path) -> None:
    for number in range(1, VERSIONS):
        write_deltalake(root, rows(number), mode="overwrite", partition_by=["p"])
        if number % CLEANED_AFTER == 0:
            DeltaTable(root).vacuum(0, dry_run=False, enforce_retention_duration=False)


def write_iceberg(home: Path) -> None:
    table = local_catalog(home).load_table("db.t")  # a connection belongs to one thread
    for number in range(1, VERSIONS):
        table.overwrite(rows(number))
        if number % CLEANED_AFTER == 0:
            clean(table)


def clean(table: Table) -> None:
    """Expire all snapshots but the newest one, and remove the data files of the others."""
    current = table.metadata.current_snapshot_id
    for snapshot in table.metadata.snapshots:
        if snapshot.snapshot_id != current:
            table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    kept = {task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()}
    for path in Path(table.location().removeprefix("file://"), "data").rglob("*.parquet"):
        if str(path) not in kept:
            path.unlink()


def version_of(lake: Lakebloom, key: int) -> int:
    """Return the version that a lookup answers for."""
    found = lake.lookup(NAME, col("k") == key).to_pylist()
    number: int = found[0]["v"]
    assert sorted(found, key=lambda row: row["p"]) == [{"k": key, "p": p, "v": number} for p in (0, 1)]
    return number


def read_beside(indexes: LoggedIndexes, write: Callable[[], None]) -> None:
    """Look up and refresh until the writer is done. Numbers never go back."""
    indexes.create("k")
    last = count = 0
    with indexes.open() as lake, ThreadPoolExecutor(1) as threads:
        writer = threads.submit(write)
        while not writer.done():
            number = version_of(lake, count % KEYS)
            assert number >= last
            last, count = number, count + 1
            if count % 4 == 0:
                indexes.refresh()
        writer.result()
        assert version_of(lake, 0) == VERSIONS - 1
    indexes.refresh()
    with indexes.open() as lake:
        assert lake.lookup(NAME, col("k") == 3, unindexed="error")["v"].to_pylist() == [VERSIONS - 1] * 2
        assert lake.verify_index(NAME).ok


def test_beside_deltalake(tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_deltalake(root, rows(0), partition_by=["p"])
    read_beside(DeltaIndexes(tmp_path, root), lambda: write_delta(root))


def test_beside_pyiceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is named by its catalog: only that knows which metadata file is complete and current."""
    table = named_catalog(monkeypatch, tmp_path).create_table("db.t", rows(0).schema)
    with table.update_spec() as update:
        update.add_field("p", IdentityTransform())
    table.append(rows(0))
    indexes = IcebergIndexes(tmp_path, tmp_path / "none", Source(catalog=f"{CATALOG}.db.t"))
    read_beside(indexes, lambda: write_iceberg(tmp_path))

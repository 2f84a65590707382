"""A small lake: a table on local disk, indexes beside it, and a judge that reads everything.

The judge knows nothing of filters or predicates: a question is a predicate together with the same condition in Python,
and the right answer is what the condition says about every row of every file.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import RefreshMode, refresh_index
from lakebloom.index.catalog import Catalog
from lakebloom.index.maintain.vacuum import vacuum_index
from lakebloom.index.snapshot import Snapshot
from lakebloom.tables.listing.listing import list_files
from tests.index.local_builder import source_of, workshop, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from lakebloom.index.build.report import BuildReport
    from lakebloom.index.maintain.vacuum import VacuumReport
    from lakebloom.predicate.tree import Predicate
    from lakebloom.storage import Storage
    from lakebloom.store.records import Commit

NAME = "i"
DAY_MS = 24 * 60 * 60 * 1000
SMALL = {"global_max_bytes": 1 << 16}
"""Global filters as small as the tables here."""


@dataclass(frozen=True)
class Question:
    """A predicate, and the condition that it stands for."""

    predicate: Predicate
    holds: Callable[[dict[str, Any]], bool]


class Lake:
    """A table with columns of these Spark types, and its indexes."""

    def __init__(self, home: Path, types: dict[str, str], location: str | None = None) -> None:
        self.table = home / "table"
        self.location = location or str(home / "indexes")
        self.types = types

    # The table

    def write(self, name: str, columns: dict[str, Any], **options: object) -> Path:
        path = self.table / f"{name}.parquet"
        write_parquet(path, columns, **options)
        return path

    def fill(self, files: Iterable[int], rows: int = 20) -> None:
        """Write files that differ in every value: k counts through them all, every fifth n is NULL."""
        for number in files:
            keys = range(number * rows, (number + 1) * rows)
            self.write(f"f{number}", columns_of(keys), row_group_size=max(1, rows // 2))

    def uris(self) -> set[str]:
        return {file.uri for file in list_files([f"file://{self.table}"])} if self.table.exists() else set()

    def rows(self) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Every row of the table: its file, its number in the file, its values."""
        for uri in sorted(self.uris()):
            table = pq.ParquetFile(uri.removeprefix("file://")).read()
            for number, row in enumerate(table.to_pylist()):
                yield uri, number, {name: row.get(name) for name in self.types}

    # The index

    def catalog(self, wrap: Callable[[Storage], Storage] = lambda storage: storage) -> Catalog:
        return Catalog(self.location, wrap=wrap)

    def create(
        self,
        config: BloomIndexConfig | None = None,
        *,
        catalog: Catalog | None = None,
        tasks: int = 2,
        replace: bool = False,
        **settings: int,
    ) -> BuildReport:
        chosen = config or BloomIndexConfig(NAME, ["k", "s", "n"], fpp=1e-4)
        shop = workshop(catalog or self.catalog(), tasks=tasks, **(SMALL | settings))
        return create_index(shop, source_of(self.table, self.types), chosen, replace=replace)

    def refresh(
        self,
        mode: RefreshMode = "quick",
        *,
        catalog: Catalog | None = None,
        tasks: int = 2,
        allow_shrink: bool = False,
        **settings: int,
    ) -> BuildReport:
        shop = workshop(catalog or self.catalog(), tasks=tasks, **(SMALL | settings))
        return refresh_index(shop, NAME, mode, allow_shrink=allow_shrink)

    def vacuum(self, retention_ms: int = 0, grace_ms: int = 0, *, catalog: Catalog | None = None) -> VacuumReport:
        return vacuum_index(catalog or self.catalog(), NAME, retention_ms, grace_ms)

    def open(self) -> Lakebloom:
        """A user's view, as a new process has it."""
        return Lakebloom(location=self.location)

    def entry(self) -> Commit:
        return self.catalog().index(NAME).log.newest()

    def versions(self) -> list[int]:
        return self.catalog().index(NAME).log.versions()

    def path(self, file: str) -> Path:
        """Where a file of the index is on disk."""
        return self.table.parent / "indexes" / NAME / file

    def age(self, days: float) -> None:
        """Let everything that is stored be so much older: time passes in the store, and there alone."""
        for path in self.path("").rglob("*"):
            status = path.stat()
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - int(days * DAY_MS * 1_000_000)))

    def snapshot(self) -> Snapshot:
        return Snapshot(self.catalog().index(NAME).storage, self.entry())

    def indexed(self) -> set[str]:
        """The files of the table that the index knows as they are now."""
        known = {file.uri: file for file in self.snapshot().files}
        return {file.uri for file in list_files([f"file://{self.table}"]) if known.get(file.uri) == file}

    def stored(self) -> set[str]:
        """All files of the index but its log."""
        storage = self.catalog().index(NAME).storage
        return {file.path for file in storage.list("") if not file.path.startswith("log/")}

    def orphans(self) -> set[str]:
        """Files that the newest version does not name."""
        return self.stored() - self.entry().paths

    def kept(self, predicate: Predicate) -> set[tuple[str, int]]:
        """The candidates: name of the file without its ending, first row."""
        return kept(self.open(), predicate)


def kept(reader: Lakebloom, predicate: Predicate) -> set[tuple[str, int]]:
    rows = reader.candidates(NAME, predicate).to_pylist()
    return {(row["path"].rpartition("/")[2].removesuffix(".parquet"), row["row_start"]) for row in rows}


def columns_of(keys: Iterable[int]) -> dict[str, Any]:
    import pyarrow as pa

    keys = list(keys)
    return {
        "k": pa.array(keys, pa.int64()),
        "s": pa.array([f"s{key}" for key in keys]),
        "n": pa.array([None if key % 5 == 0 else key % 3 for key in keys], pa.int32()),
    }


def questions(keys: Iterable[int]) -> list[Question]:
    """Several kinds of question about these keys."""
    keys = list(keys)
    asked = [Question(col("k") == key, lambda row, key=key: row["k"] == key) for key in keys]
    chosen = {f"s{key}" for key in keys[:3]}
    first = keys[0]
    return [
        *asked,
        Question(col("s").isin(sorted(chosen)), lambda row: row["s"] in chosen),
        Question(col("n").is_null() & (col("k") < 30), lambda row: row["n"] is None and row["k"] < 30),
        Question((col("k") == first) | (col("s") == "s1"), lambda row: row["k"] == first or row["s"] == "s1"),
        Question(col("n") == 77, lambda row: row["n"] == 77),
        Question(col("n") == 2, lambda row: row["n"] == 2),
        Question(
            (col("k") > first) & (col("s") < "s5"),
            lambda row: row["k"] is not None and row["k"] > first and "" < (row["s"] or "") < "s5",
        ),
        Question(col("s").startswith("s4"), lambda row: (row["s"] or "").startswith("s4")),
    ]


def assert_answers(lake: Lake, asked: Iterable[Question], reader: Lakebloom | None = None) -> None:
    """Lookups return what a full scan returns, and candidates leave out no row of a file that the index knows."""
    reader = reader or lake.open()
    everything = list(lake.rows())
    indexed = lake.indexed()
    for question in asked:
        matching = [(uri, number, row) for uri, number, row in everything if question.holds(row)]
        found = reader.lookup(NAME, question.predicate).to_pylist()
        assert _bag(found) == _bag(row for _, _, row in matching), question.predicate
        spans: dict[str, list[range]] = {}
        for row in reader.candidates(NAME, question.predicate).to_pylist():
            rows = range(row["row_start"], row["row_start"] + row["row_count"])
            spans.setdefault(f"file://{row['path']}", []).append(rows)
        for uri, number, _ in matching:
            if uri in indexed:
                assert any(number in rows for rows in spans.get(uri, [])), f"{question.predicate} lost {uri} {number}"


def _bag(rows: Iterable[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.items()) for row in rows)

"""Quick refresh of a table with a log: what it costs follows the new files, however many files the table has.

The log says what is new, so that nothing is listed; the whole of a refresh is compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import Schema

from bench.build.refresh import Growing, TableLog
from bench.parameters import Build, Tables
from bench.results import Result
from bench.session import session
from bench.tables.source import FOLDER


class DeltaLog:
    """A Delta table whose commits are written here: of many names of one file, nothing else has to be read."""

    def __init__(self, folder: Path) -> None:
        self.location = folder
        self._versions = count()

    def add(self, files: list[Path]) -> None:
        """Commit files, the first time with the table's schema."""
        version = next(self._versions)
        actions = [{"add": _added(path)} for path in files]
        if version == 0:
            self.location.joinpath("_delta_log").mkdir()
            actions = [*_beginning(files[0]), *actions]
        lines = "".join(json.dumps(action) + "\n" for action in actions)
        (self.location / "_delta_log" / f"{version:020d}.json").write_text(lines)


def _beginning(file: Path) -> list[dict[str, object]]:
    schema = Schema.from_arrow(pq.read_schema(file)).to_json()
    described = {"id": file.parent.parent.name, "schemaString": schema, "partitionColumns": [], "configuration": {}}
    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {**described, "format": {"provider": "parquet", "options": {}}}},
    ]


def _added(path: Path) -> dict[str, object]:
    state = path.stat()
    times = {"modificationTime": state.st_mtime_ns // 1_000_000, "dataChange": True}
    return {"path": path.name, "size": state.st_size, "partitionValues": {}, **times}


class IcebergLog:
    """An Iceberg table whose commits pyiceberg writes; files stay where they are."""

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        self.location = folder.with_name("iceberg")
        self._catalog = SqlCatalog("bench", uri="sqlite:///:memory:", warehouse=f"file://{self.location}")
        self._catalog.create_namespace("bench")

    def add(self, files: list[Path]) -> None:
        """Commit files, the first time with the table's schema."""
        name = ("bench", "events")
        if not self._catalog.table_exists(name):
            self._catalog.create_table(name, pq.read_schema(files[0]), location=f"file://{self.location}")
        added = [f"file://{file}" for file in files]
        self._catalog.load_table(name).add_files(added, check_duplicate_files=False)


LOGS: dict[str, Callable[[Path], TableLog]] = {"Delta": DeltaLog, "Iceberg": IcebergLog}


def refreshed(title: str, log_of: Callable[[Path], TableLog]) -> list[Result]:
    """Return what a refresh of a large table takes beside that of a small one."""
    spark = session("tables")
    few, many = (
        Growing.create(spark, FOLDER / "growing" / f"{title.lower()}-{files}", files, log_of)
        for files in (Tables.refresh_few, Tables.refresh_many)
    )
    for _ in range(Tables.refresh_rounds):
        for growing in (few, many):
            growing.refresh()
    spark.stop()
    name = f"{title}, refresh, {Build.new_files} new of {many.files:,} files"
    peer = f"the same of {few.files:,} files"
    return [
        Result(name, 1e3 * min(many.whole_s), "ms", peer, 1e3 * min(few.whole_s), Tables.refresh_bar),
        Result(f"{name}: read the log and compare", 1e3 * min(many.list_s), "ms", peer, 1e3 * min(few.list_s)),
    ]

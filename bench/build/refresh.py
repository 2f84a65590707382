"""Quick refresh after ten new files: but for listing, it must not matter how many files the table has.

Most files of the tables are names of one and the same tiny file; what is new has keys of its own.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.build.source import uuids
from bench.parameters import Build
from lakebloom import BloomIndexConfig, Lakebloom, col

INDEX = "by_uuid"
ROWS = 100


class TableLog(Protocol):
    """What decides which files a table has."""

    location: Path
    """The table that is indexed."""

    def add(self, files: list[Path]) -> None:
        """Make files of its folder part of the table."""


class Directory:
    """A table of all files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.location = folder

    def add(self, files: list[Path]) -> None:
        """Do nothing: they are part of it."""


@dataclass(slots=True)
class Growing:
    """An indexed table to which files are added."""

    folder: Path
    files: int
    log: TableLog
    lake: Lakebloom
    list_s: list[float] = field(default_factory=list)
    rest_s: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)

    @classmethod
    def create(
        cls, spark: SparkSession, work: Path, files: int, log_of: Callable[[Path], TableLog] = Directory
    ) -> Growing:
        """Write a table and its index."""
        shutil.rmtree(work, ignore_errors=True)
        folder = work / "table"
        folder.mkdir(parents=True)
        written = [_write(folder / "part-00000.parquet", np.random.default_rng(Build.seed))]
        for number in range(1, files):
            written.append(folder / f"part-{number:05d}.parquet")
            written[-1].hardlink_to(written[0])
        log = log_of(folder)
        log.add(written)
        lake = Lakebloom(spark, work / "indexes")
        lake.create_index(str(log.location), BloomIndexConfig(INDEX, ["uuid"]))
        return cls(folder, files, log, lake)

    def refresh(self) -> None:
        """Add files and refresh once."""
        seed = [Build.seed, len(self.list_s)]
        rng = np.random.default_rng(seed)
        added = [self.folder / f"new-{len(self.list_s)}-{number}.parquet" for number in range(Build.new_files)]
        for path in added:
            _write(path, rng)
        self.log.add(added)
        started = time.perf_counter()
        report = self.lake.refresh_index(INDEX)
        elapsed = time.perf_counter() - started
        assert report.files == Build.new_files
        key = pq.read_table(added[-1])["uuid"][ROWS // 2].as_py()
        paths = self.lake.candidates(INDEX, col("uuid") == key)["path"].to_pylist()
        assert added[-1].name in {Path(path).name for path in paths}
        self.list_s.append(report.seconds["list"])
        self.rest_s.append(elapsed - report.seconds["list"])
        self.whole_s.append(elapsed)


def _write(path: Path, rng: np.random.Generator) -> Path:
    pq.write_table(pa.table({"uuid": uuids(rng, ROWS)}), path)
    return path

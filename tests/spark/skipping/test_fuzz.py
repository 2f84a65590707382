"""The law itself: whatever the table, the index, what happened to both, and the condition, no row is lost or gained.

A case is a condition asked of a table in some state. ``make fuzz N=10000`` asks more of them, with ``VERSION=3.5.9`` on
another Spark. A failure prints the smallest case that was found, the seed, and a line that replays it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.spark.sources.resolve import resolve
from tests.index.local_builder import workshop
from tests.spark.skipping.random_tables import Action, Case, RandomFile, cases
from tests.spark.skipping.support import file_counts, skipping, union_all

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
CASES = int(os.environ.get("LAKEBLOOM_FUZZ", "300"))
SEED = os.environ.get("LAKEBLOOM_SEED")
CONDITIONS = 12
"""How many of them are asked of one table, in one query."""


class Table:
    """A table in a directory of its own, with indexes that are built without a Spark job."""

    def __init__(self, spark: SparkSession, home: Path, case: Case) -> None:
        self._spark = spark
        self._path = home / "t"
        self._schema = case.schema
        self._path.mkdir(parents=True)
        self._ids = self._files = 0
        self.lake = Lakebloom(spark, home / "indexes")
        for file in case.files:
            self._append(file)
        record = resolve(spark, self.frame())
        self._names = [f"i{number}" for number in range(len(case.indexes))]
        for name, index in zip(self._names, case.indexes, strict=True):
            config = BloomIndexConfig(name, index.columns, fpp=index.fpp, granularity=index.granularity)
            create_index(workshop(self.lake.catalog), record, config)
        for action, file in case.actions:
            self._do(action, file)

    def frame(self) -> DataFrame:
        return self._spark.read.schema(self._schema).parquet(str(self._path))

    def _append(self, file: RandomFile) -> None:
        self._write(self._path / f"{self._files}.parquet", file)
        self._files += 1

    def _write(self, path: Path, file: RandomFile) -> None:
        pq.write_table(file.table(self._ids), path, row_group_size=file.row_group_size)
        self._ids += len(file.rows)
        # Later than all before: within one millisecond nobody could tell.
        time_ns = (1_700_000_000_000 + self._ids * 100 + self._files) * 1_000_000
        os.utime(path, ns=(time_ns, time_ns))

    def _do(self, action: Action, file: RandomFile) -> None:
        oldest = min(self._path.glob("*.parquet"), default=None, key=lambda path: path.stat().st_mtime_ns)
        match action:
            case "append":
                self._append(file)
            case "replace" if oldest is not None:
                self._ids += 1
                self._write(oldest, file)
            case "delete" if oldest is not None and self._files > 1:
                oldest.unlink()
                self._append(file)
            case "touch" if oldest is not None:
                os.utime(oldest, ns=(1, 1))
            case "refresh" | "refresh fully":
                for name in self._names:
                    mode = "quick" if action == "refresh" else "full"
                    refresh_index(workshop(self.lake.catalog), name, mode)  # type: ignore[arg-type]
            case "optimize":
                for name in self._names:
                    self.lake.optimize_index(name)


def answers(frame: DataFrame, conditions: list[str]) -> tuple[list[tuple[int, int]], int]:
    """The ids that each condition finds, and how many files were read for all of them."""
    asked = [frame.where(text).select(lit(number).alias("asked"), "id") for number, text in enumerate(conditions)]
    together = union_all(asked)
    return sorted(map(tuple, together.collect())), sum(file_counts(together))  # type: ignore[arg-type]


def test_no_case_changes_an_answer(spark: SparkSession, tmp_path: Path) -> None:
    read = {"with": 0, "without": 0}
    tables = iter(range(1 << 30))

    @settings(
        max_examples=max(1, CASES // CONDITIONS),
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(CONDITIONS))
    def law(case: Case) -> None:
        note(f"LAKEBLOOM_SEED={SEED}")
        table = Table(spark, tmp_path / str(next(tables)), case)
        expected, files = answers(table.frame(), case.conditions)
        read["without"] += files
        with skipping(table.lake):
            found, files = answers(table.frame(), case.conditions)
        read["with"] += files
        assert found == expected

    (law if SEED is None else seed(int(SEED))(law))()
    assert read["with"] < read["without"], "skipping happens; how much of it, test_predicates tells exactly"

"""The table, the index and the queries that the cases of reasons start from."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.predicate.reasons import Reason
from tests.spark.skipping.support import configured
from tests.spark.support import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

FILES, ROWS = 6, 20
SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.lakebloom.join.minBytes": "0"}


class World:
    """A table of six files, each with keys of its own, an index over its keys, and a session that uses it."""

    def __init__(self, spark: SparkSession, lake: Lakebloom, home: Path, reason: Reason) -> None:
        self.spark, self.lake, self.home, self.reason = spark, lake, home, reason
        self.table = home / "t"
        self.met_times = 0
        for file in range(FILES):
            self.add(file)
        self.index("by_k", ["k"])

    def add(self, file: int, where: str = "") -> None:
        keys = range(file * ROWS, (file + 1) * ROWS)
        columns = {"k": pa.array(keys, pa.int64()), "i": pa.array(keys, pa.int32()), "v": pa.array(keys, pa.int64())}
        write(self.table / where / f"{file}.parquet", {**columns, "s": pa.array([f"s{key}" for key in keys])})

    def index(self, name: str, columns: list[str], source: object = None, **options: object) -> None:
        config = BloomIndexConfig(name, columns, **{"fpp": 1e-6, **options})  # type: ignore[arg-type]
        self.lake.create_index(source or self.table, config)

    def frame(self, condition: str = "", path: Path | None = None) -> DataFrame:
        frame = self.spark.read.parquet(str(path or self.table))
        return frame.where(condition) if condition else frame

    def reasons(self, frame: DataFrame) -> set[Reason]:
        report = self.lake.explain(frame)
        found = {join.reason for join in report.joins}
        for scan in report.scans:
            found |= {join.reason for join in scan.joins}
            found |= {*scan.reasons, *(part.reason for part in scan.parts), *(index.reason for index in scan.indexes)}
        return {reason for reason in found if reason is not None}

    def meets(self, frame: DataFrame) -> None:
        """The query has the reason, and the remedy is printed with it."""
        assert self.reason in self.reasons(frame), self.lake.explain(frame)
        shown = str(self.lake.explain(frame))
        assert self.reason.value in shown or self.reason.remedy.startswith("none"), shown
        self.met_times += 1

    def is_out(self, frame: DataFrame) -> None:
        assert self.reason not in self.reasons(frame), self.lake.explain(frame)

    def needs_none(self, make: Callable[[], DataFrame]) -> None:
        """The rows are those without an index."""
        assert self.reason.remedy.startswith("none")
        frame = make()
        self.meets(frame)
        found = sorted(map(repr, frame.collect()))
        self.lake.disable()
        assert found == sorted(map(repr, make().collect()))
        self.lake.enable()

    @contextmanager
    def join(self) -> Iterator[tuple[DataFrame, DataFrame]]:
        """Two tables to be joined with a shuffle; the first has a global filter."""
        self.index("joined", ["k"], global_filter=True)
        write(self.home / "orders/0.parquet", {"k": pa.array([*range(300)], pa.int64()), "w": pa.array([*range(300)])})
        with configured(self.spark, SHUFFLED):
            yield self.frame(), self.frame(path=self.home / "orders")

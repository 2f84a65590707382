"""Contract tests of Spark's queries on Delta tables, against classes of Delta's names and shapes (``delta_classes``).

They are no tests with Delta: ``test_delta_jar.py`` has those, and runs where there is a jar.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import UnsupportedSourceError
from lakebloom.predicate.reasons import Reason
from lakebloom.spark.jvm import java_class
from lakebloom.spark.versions import frame_of
from tests.index.delta_lake import DeltaIndexes, keys, plain_table
from tests.spark.delta_classes import delta_classes
from tests.spark.skipping.support import configured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.tables.formats.delta.hand_table import HandTable

SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.lakebloom.join.minBytes": "0"}


class Reads:
    """Reads of a Delta table that was written by hand, as Delta would plan them."""

    def __init__(self, spark: SparkSession, home: Path, load: Any) -> None:
        self.spark: Any = spark
        self.home, self.load = home, load
        self.java: Any = spark.sparkContext._gateway.jvm
        self.table: HandTable = plain_table(home / "t")
        self.table.commit(*(self.table.add(f"f {n}.parquet", keys(*range(n * 10, n * 10 + 10))) for n in range(4)))
        self.indexes = DeltaIndexes(home, home / "t")
        self.indexes.create("k")

    def new(self, name: str, *arguments: Any) -> Any:
        given = self.java.java.util.ArrayList()
        for argument in arguments:
            given.add(argument)
        return self.load(name).getConstructors()[0].newInstance(given.toArray())

    def location(self, schema: str | None = None, mapping: str | None = None, without: str = "") -> Any:
        """The list of files that Delta would prepare for a read of the newest version, perhaps without one of them."""
        files, all_files = self.java.java.util.ArrayList(), self.java.java.util.ArrayList()
        for entry in self.table.active.values():
            path, size, time = entry["path"], entry["size"], entry["modificationTime"]
            all_files.add(self.new("actions.AddFile", path, self.long(size), self.long(time)))
            if path != without:
                files.add(all_files.get(all_files.size() - 1))
        configuration = self._map(mapping)
        text = schema or self.table.meta["metaData"]["schemaString"]
        snapshot = self.new("Snapshot", self.new("actions.Metadata", text, configuration))
        place = self.java.org.apache.hadoop.fs.Path(f"file://{self.home}/t")
        scan = self.new("stats.DeltaScan", files, all_files, snapshot)
        return self.new("stats.PreparedDeltaFileIndex", self.spark._jsparkSession, self.new("DeltaLog"), place, scan)

    def analysed(self, *filters: Any, travels: bool = False) -> Any:
        """The list of files that Delta has for a table before the query is optimized."""
        given = self.java.java.util.ArrayList()
        for each in filters:
            given.add(each)
        return self.new("files.TahoeLogFileIndex", self.location(), travels, given)

    def long(self, number: int) -> Any:
        return self.java.java.lang.Long.valueOf(str(number))

    def _map(self, mapping: str | None) -> Any:
        empty = getattr(getattr(self.java.scala.collection.immutable, "Map$"), "MODULE$").empty()
        return empty if mapping is None else empty.updated("delta.columnMapping.mode", mapping)

    def frame(self, location: Any, schema: str = "k bigint, s string") -> DataFrame:
        """A query that reads the files of a list."""
        plain = self.spark.read.schema(schema).parquet(str(self.home / "t"))
        relation = plain._jdf.queryExecution().analyzed()
        copies = java_class(self.spark, "Copies")
        (method,) = [each for each in copies.getDeclaredMethods() if each.getName() == "withLocation"]
        method.setAccessible(True)
        arguments = self.java.java.util.ArrayList()
        arguments.add(relation)
        arguments.add(location)
        return frame_of(plain, method.invoke(None, arguments.toArray()))

    def planned(self, frame: DataFrame) -> Any:
        """The list of files of the optimized plan."""
        found: Any = frame
        leaves = found._jdf.queryExecution().optimizedPlan().collectLeaves()
        return leaves.apply(0).relation().location()


@pytest.fixture(scope="module")
def load(spark: SparkSession) -> Any:
    return delta_classes(spark)


@pytest.fixture
def reads(spark: SparkSession, tmp_path: Path, load: Any) -> Reads:
    return Reads(spark, tmp_path, load)


@pytest.fixture
def lake(reads: Reads) -> Iterator[Lakebloom]:
    with Lakebloom(reads.spark, reads.indexes.location) as opened:
        opened.enable()
        yield opened


def kept(location: Any) -> list[str]:
    nothing = location.rootPaths().take(0)
    files = location.listFiles(nothing, nothing).apply(0).files()
    return sorted(files.apply(i).getPath().getName() for i in range(files.size()))


def name_of(location: Any) -> str:
    return str(location.getClass().getSimpleName())


def test_a_read_skips_files_and_stays_one_of_deltas_own_lists(reads: Reads, lake: Lakebloom) -> None:
    query = reads.frame(reads.location()).where("k = 25")
    assert [row.k for row in query.collect()] == [25]
    last = lake.last_query()
    assert last is not None
    assert [(scan.files, scan.files_kept, scan.files_read) for scan in last.scans] == [(4, 1, 1)]
    location = reads.planned(query)
    assert name_of(location) == "LakebloomDeltaFileIndex"
    assert reads.load("files.TahoeFileIndex").isInstance(location)
    assert kept(location) == ["f 2.parquet"]
    assert location.sizeInBytes() == (reads.home / "t" / "f 2.parquet").stat().st_size
    assert location.version() == 7
    report = lake.explain(query)
    assert (report.scans[0].files, report.scans[0].files_kept) == (4, 1)
    assert [row.k for row in reads.frame(reads.location()).where("k in (1, 39, 77)").orderBy("k").collect()] == [1, 39]


def test_files_that_are_not_indexed_are_read(reads: Reads, lake: Lakebloom) -> None:
    reads.table.commit(reads.table.add("new.parquet", keys(25, 99)))
    query = reads.frame(reads.location()).where("k = 25")
    assert [row.k for row in query.collect()] == [25, 25]
    assert kept(reads.planned(query)) == ["f 2.parquet", "new.parquet"]


def test_a_file_with_another_time_or_size_in_the_log_is_read(reads: Reads, lake: Lakebloom) -> None:
    changed = next(entry for entry in reads.table.active.values() if entry["path"] == "f%200.parquet")
    changed["modificationTime"] += 1
    assert kept(reads.planned(reads.frame(reads.location()).where("k = 25"))) == ["f 0.parquet", "f 2.parquet"]


def test_the_rule_is_idempotent(reads: Reads, lake: Lakebloom) -> None:
    query: Any = reads.frame(reads.location()).where("k = 25")
    once = query._jdf.queryExecution().optimizedPlan()
    again = frame_of(query, once)
    assert reads.planned(again).equals(reads.planned(query))
    assert name_of(reads.planned(again)) == "LakebloomDeltaFileIndex"
    assert [row.k for row in again.collect()] == [25]


@pytest.mark.parametrize("kind", ["files.TahoeBatchFileIndex", "stats.OtherPreparedFileIndex"])
def test_other_lists_of_delta_are_left_alone(reads: Reads, lake: Lakebloom, kind: str) -> None:
    """DELETE, UPDATE, MERGE and OPTIMIZE read through such lists, and must see every file."""
    query = reads.frame(reads.new(kind, reads.location())).where("k = 25")
    assert [row.k for row in query.collect()] == [25]
    assert name_of(reads.planned(query)) == kind.rpartition(".")[2]
    scan = lake.explain(query).scans[0]
    assert scan.files_kept == scan.files == 4
    assert scan.reasons


def mapped(name: str, physical: str) -> str:
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical}
    field = {"name": name, "type": "long", "nullable": True, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


def test_columns_are_known_by_what_files_call_them(reads: Reads, lake: Lakebloom) -> None:
    """A column that was renamed keeps its index; one that was dropped and added again has none."""
    renamed = reads.frame(reads.location(mapped("user", "k"), "name"), "user bigint").where("user = 25")
    assert kept(reads.planned(renamed)) == ["f 2.parquet"]
    added_again = reads.frame(reads.location(mapped("k", "col-1"), "name")).where("k = 25")
    assert name_of(reads.planned(added_again)) == "PreparedDeltaFileIndex"


def test_a_plain_index_is_not_used_for_a_delta_table_and_the_other_way_round(reads: Reads, lake: Lakebloom) -> None:
    plain = reads.spark.read.parquet(str(reads.home / "t")).where("k = 25")
    assert name_of(reads.planned(plain)) == "InMemoryFileIndex"


def test_joins_skip_files_that_hold_no_key_of_the_other_side(reads: Reads, lake: Lakebloom) -> None:
    small = reads.spark.createDataFrame([(25,)], "k bigint")
    joined = reads.frame(reads.location()).join(small, "k")
    assert [row.k for row in joined.collect()] == [25]
    assert name_of(reads.planned(joined)) == "LakebloomDeltaFileIndex"
    assert kept(reads.planned(joined)) == ["f 2.parquet"]
    reads.table.commit(reads.table.add("new.parquet", keys(25, 99)))
    again = reads.frame(reads.location()).join(small, "k")
    assert [row.k for row in again.collect()] == [25, 25]
    assert kept(reads.planned(again)) == ["f 2.parquet", "new.parquet"]
    renamed = reads.frame(reads.location(mapped("user", "k"), "name"), "user bigint")
    assert kept(reads.planned(renamed.join(small, renamed.user == small.k))) == ["f 2.parquet", "new.parquet"]
    both = reads.frame(reads.location()).where("k IN (5, 25)").join(small, "k")
    assert [row.k for row in both.collect()] == [25, 25]
    last = lake.last_query()
    assert last is not None
    assert [(scan.files, scan.files_kept, scan.files_read) for scan in last.scans] == [(5, 2, 2)]
    assert kept(reads.planned(both)) == ["f 2.parquet", "new.parquet"]
    assert lake.explain(both).scans[0].files_kept == 2
    left = small.join(reads.frame(reads.new("files.TahoeBatchFileIndex", reads.location())), "k")
    assert left.count() == 2  # no read of a query: all files
    assert "Lakebloom" not in left._jdf.queryExecution().optimizedPlan().toString()


def test_a_join_filter_knows_every_file_that_is_read(reads: Reads, lake: Lakebloom) -> None:
    reads.indexes.create("k", replace=True, global_filter=True)
    lake.enable()
    other = reads.spark.range(0, 1000, 1, 2).selectExpr("id AS k")
    with configured(reads.spark, SHUFFLED):
        query = other.join(reads.frame(reads.location()), "k")
        assert query.count() == 40
        (join,) = lake.explain(query).joins
        assert (join.side, join.reason) == ("left", None)
        last = lake.last_query()
        assert last is not None
        assert [figures.rows_passed < 100 for figures in last.joins] == [True]
        reads.table.commit(reads.table.add("new.parquet", keys(900)))
        query = other.join(reads.frame(reads.location()), "k")
        assert query.count() == 41
        assert [join.reason for join in lake.explain(query).joins] == [Reason.STALE_FILTER]
        not_read = reads.frame(reads.location(without="new.parquet")).where("k < 100")
        query = other.join(not_read, "k")
        assert query.count() == 40
        assert [join.reason for join in lake.explain(query).joins] == [None]
        added_again = other.join(reads.frame(reads.location(mapped("k", "col-1"), "name")), "k")
        assert [join.reason for join in lake.explain(added_again).joins] == [Reason.READ_DIFFERS]


def test_a_delta_of_another_shape_reads_everything(reads: Reads, lake: Lakebloom) -> None:
    broken = reads.frame(reads.location("no schema")).where("k = 25")
    assert [row.k for row in broken.collect()] == [25]
    assert name_of(reads.planned(broken)) == "PreparedDeltaFileIndex"


def test_a_dataframe_of_a_whole_table_is_a_source(reads: Reads, lake: Lakebloom) -> None:
    frame = reads.frame(reads.analysed())
    for number, source in enumerate((frame, frame.alias("x").select("*"))):
        lake.create_index(source, BloomIndexConfig(f"by_frame{number}", ["k"]))
        table = lake.catalog.index(f"by_frame{number}").log.newest().table
        assert table == reads.indexes.record()
    reads.table.commit(reads.table.add("new.parquet", keys(25, 99)))
    assert lake.lookup("by_frame0", col("k") == 25).num_rows == 2
    assert lake.refresh_index("by_frame0").files == 1


def test_a_dataframe_of_part_of_a_table_is_no_source(reads: Reads, lake: Lakebloom) -> None:
    refused = {
        "the version that was asked for": reads.frame(reads.analysed(travels=True)),
        "a condition on partitions": reads.frame(reads.analysed("p = 1")),
        "Filter in its plan": reads.frame(reads.analysed()).where("k = 1"),
        "Project in its plan": reads.frame(reads.analysed()).select("k"),
        "TahoeBatchFileIndex": reads.frame(reads.new("files.TahoeBatchFileIndex", reads.location())),
    }
    for words, frame in refused.items():
        with pytest.raises(UnsupportedSourceError, match=words):
            lake.create_index(frame, BloomIndexConfig("never", ["k"]))


def test_prune_join_leaves_the_list_to_delta(reads: Reads, lake: Lakebloom) -> None:
    """Delta prepares its own list in the analysed plan, and no other: the keys become a condition on top of it."""
    small = reads.spark.createDataFrame([(25,), (77,)], "k bigint")
    pruned: Any = lake.prune_join(reads.frame(reads.analysed()), small, "k")
    plan = pruned._jdf.queryExecution().analyzed()
    assert name_of(plan) == "Filter"
    assert name_of(plan.collectLeaves().apply(0).relation().location()) == "TahoeLogFileIndex"
    assert [row.k for row in pruned.collect()] == [25]
    assert name_of(reads.planned(pruned)) == "TahoeLogFileIndex"

"""explain says what a query leaves out before it runs, last_query what its scans counted: the two agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import InvalidArgumentError, UnsupportedSessionError
from lakebloom.index.query.scan_reports import Use
from lakebloom.predicate.reasons import Reason
from tests.spark.needs import needs_data_source
from tests.spark.support import write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.index.query.scan_reports import ScanReport

FILES, ROWS = 20, 50


@pytest.fixture
def table(tmp_path: Path, lake: Lakebloom) -> Iterator[Path]:
    """Twenty files with the keys 0-49, 50-99, … and an index over them; queries are enabled."""
    for file in range(FILES):
        keys = list(range(file * ROWS, (file + 1) * ROWS))
        columns = {"k": pa.array(keys), "s": pa.array([str(key) for key in keys]), "v": pa.array(keys)}
        write(tmp_path / f"t/{file:02d}.parquet", columns)
    lake.create_index(tmp_path / "t", BloomIndexConfig("by_k", ["k"], fpp=1e-6))
    lake.enable()
    yield tmp_path / "t"
    lake.disable()


@pytest.fixture
def frame(spark: SparkSession, table: Path) -> DataFrame:
    return spark.read.parquet(str(table))


ENCLOSED = ", ".join(f"'{number}x'" for number in range(FILES * ROWS))
"""Values within the bounds of every file, none of which any file holds."""


def only(lake: Lakebloom, frame: DataFrame) -> ScanReport:
    (scan,) = lake.explain(frame).scans
    return scan


PREDICATES = {
    "k = 77": 1,
    "k IN (3, 77, 78, 999)": 3,
    "k = 5000": 0,
    "k = 77 OR k = 400": 2,
    "k = 77 AND v > 3": 1,
    "k > 500": FILES // 2,
    "k BETWEEN 100 AND 1000000": FILES - 2,
    "NOT (k < 999)": 1,
    "k = 77 OR k >= 940": 3,
    "k > 5000": 0,
    "k <> 77": FILES,
    "v = 77": FILES,
    "k IS NULL": 0,
    "k = 77 OR v = 1": FILES,
}


@pytest.mark.parametrize("predicate", PREDICATES)
def test_the_claim_is_what_the_scan_counts(lake: Lakebloom, frame: DataFrame, predicate: str) -> None:
    query = frame.where(predicate)
    claim = only(lake, query)
    query.collect()
    fact = lake.last_query()
    assert fact is not None
    (scan,) = fact.scans
    assert claim.files_kept == scan.files_read == scan.files_kept == PREDICATES[predicate]
    assert claim.bytes_kept == scan.bytes_read
    assert scan.files_skipped == (0 if claim.use is Use.UNUSED else FILES - claim.files_kept)
    assert len(query.inputFiles()) == claim.files_kept


class TestReasons:
    @pytest.mark.parametrize(
        ("predicate", "use", "reasons", "parts"),
        [
            ("k = 77", Use.FULL, set(), set()),
            ("k = 77 AND upper(s) = 'X'", Use.PARTIAL, set(), {Reason.NOT_SUPPORTED}),
            ("k <> 77", Use.UNUSED, {Reason.NO_USABLE_PREDICATE}, {Reason.NEGATED}),
            ("v = 77", Use.UNUSED, {Reason.NO_USABLE_PREDICATE}, {Reason.NO_INDEX}),
            ("k + 1 = 77", Use.UNUSED, {Reason.NO_USABLE_PREDICATE}, {Reason.NOT_SUPPORTED}),
        ],
    )
    def test_of_a_predicate(
        self, lake: Lakebloom, frame: DataFrame, predicate: str, use: Use, reasons: set[Reason], parts: set[Reason]
    ) -> None:
        scan = only(lake, frame.where(predicate))
        assert (scan.use, set(scan.reasons)) == (use, reasons)
        assert {part.reason for part in scan.parts if part.reason is not None} == parts

    def test_without_a_filter(self, lake: Lakebloom, frame: DataFrame) -> None:
        assert only(lake, frame).reasons == (Reason.NO_USABLE_PREDICATE,)

    def test_of_a_long_list(self, lake: Lakebloom, frame: DataFrame, table: Path) -> None:
        lake.create_index(table, BloomIndexConfig("coarse", ["s"], fpp=0.1))
        scan = only(lake, frame.where(f"s IN ({ENCLOSED})"))
        assert (scan.use, scan.reasons) == (Use.UNUSED, (Reason.NOT_SELECTIVE,))

    def test_of_full_filters(self, lake: Lakebloom, frame: DataFrame, table: Path) -> None:
        lake.create_index(table, BloomIndexConfig("full", ["s"], expected_items=1))
        scan = only(lake, frame.where(f"s IN ({ENCLOSED})"))
        assert (scan.use, scan.reasons) == (Use.UNUSED, (Reason.NOT_SELECTIVE,))

    def test_of_a_table_without_an_index(
        self, lake: Lakebloom, spark: SparkSession, frame: DataFrame, tmp_path: Path
    ) -> None:
        write(tmp_path / "other/0.parquet", {"k": pa.array([1])})
        both = frame.where("k = 3").union(frame.where("k = 4")).select("k")
        both = both.union(spark.read.parquet(str(tmp_path / "other")).where("k = 1"))
        scans = lake.explain(both).scans
        assert [scan.use for scan in scans] == [Use.FULL, Use.FULL, Use.UNUSED]
        assert scans[2].reasons == (Reason.NO_MATCHING_INDEX,)

    def test_of_new_and_changed_files(
        self, lake: Lakebloom, spark: SparkSession, frame: DataFrame, table: Path
    ) -> None:
        write(table / "new.parquet", {"k": pa.array([1]), "s": pa.array(["1"]), "v": pa.array([1])})
        write(table / "05.parquet", {"k": pa.array([1, 2]), "s": pa.array(["1", "2"]), "v": pa.array([1, 2])})
        scan = only(lake, spark.read.parquet(str(table)).where("k = 77"))
        assert (scan.use, scan.reasons) == (Use.PARTIAL, (Reason.STALE_FILES,))
        assert (scan.files, scan.files_kept, scan.files_not_covered, scan.files_stale) == (21, 3, 2, 1)
        assert sorted("".join(scan.skip_map)) == sorted("." * 18 + "#" + "??")

    def test_of_a_deleted_index(self, lake: Lakebloom, frame: DataFrame) -> None:
        lake.delete_index("by_k")
        assert only(lake, frame.where("k = 77")).reasons == (Reason.DELETED,)
        lake.restore_index("by_k")
        assert only(lake, frame.where("k = 77")).use is Use.FULL

    def test_a_deleted_index_beside_another_is_not_told(self, lake: Lakebloom, frame: DataFrame, table: Path) -> None:
        lake.create_index(table, BloomIndexConfig("gone", ["v"], fpp=1e-6))
        lake.delete_index("gone")
        for predicate in ("k = 77", "v = 77", "true"):
            scan = only(lake, frame.where(predicate))
            assert [index.name for index in scan.indexes] == ["by_k"]
            assert "gone" not in str(lake.explain(frame.where(predicate)))

    def test_of_a_damaged_index(self, lake: Lakebloom, frame: DataFrame, tmp_path: Path) -> None:
        for path in (tmp_path / "indexes").rglob("files.arrow"):
            path.write_bytes(b"damage")
        scan = only(lake, frame.where("k = 77"))
        assert (scan.use, scan.reasons) == (Use.UNUSED, (Reason.INDEX_UNREADABLE,))
        assert "CORRUPT_INDEX" in scan.indexes[0].message

    def test_of_another_reading(self, lake: Lakebloom, spark: SparkSession, frame: DataFrame) -> None:
        spark.conf.set("spark.sql.caseSensitive", "true")
        try:
            assert only(lake, frame.where("k = 77")).reasons == (Reason.READ_DIFFERS,)
        finally:
            spark.conf.unset("spark.sql.caseSensitive")

    def test_of_a_disabled_session(self, lake: Lakebloom, frame: DataFrame) -> None:
        lake.disable()
        scan = only(lake, frame.where("k = 77"))
        assert (scan.use, scan.reasons, scan.files_kept) == (Use.UNUSED, (Reason.DISABLED,), 1)

    def test_of_a_query_planned_before(self, lake: Lakebloom, frame: DataFrame) -> None:
        lake.disable()
        query = frame.where("k = 77")
        query.collect()
        lake.enable()
        assert only(lake, query).reasons == (Reason.DISABLED,)

    def test_of_cached_rows(self, lake: Lakebloom, frame: DataFrame) -> None:
        cached = frame.cache()
        try:
            scan = only(lake, cached.where("k = 77"))
            assert (scan.use, scan.reasons) == (Use.UNUSED, (Reason.CACHED,))
        finally:
            cached.unpersist()

    def test_of_no_files(self, lake: Lakebloom, spark: SparkSession) -> None:
        assert str(lake.explain(spark.range(3))) == "this query reads no files"


def test_what_each_part_did(lake: Lakebloom, frame: DataFrame) -> None:
    scan = only(lake, frame.where("k IN (77, 78, 999)"))
    (part,) = scan.parts
    assert (part.index, part.column, part.units_asked, part.units_dropped) == ("by_k", "k", FILES, FILES - 2)
    assert 0 < part.false_positives < FILES * 3e-6
    (index,) = scan.indexes
    assert (index.name, index.version, index.files_known) == ("by_k", 1, FILES)
    assert index.segments > 0
    assert index.bytes_read > 0
    assert scan.table.endswith("/t")
    assert scan.predicate == "k IN (77, 78, 999)"


def test_two_indexes_are_asked_together(lake: Lakebloom, frame: DataFrame, table: Path) -> None:
    lake.create_index(table, BloomIndexConfig("by_s", ["s"], fpp=1e-6, granularity=7))
    query = frame.where("k = 77 OR s = '400'")
    scan = only(lake, query)
    assert (scan.use, scan.files_kept) == (Use.FULL, 2)
    assert [index.name for index in scan.indexes] == ["by_k", "by_s", "by_k + by_s"]
    assert sorted(row.k for row in query.collect()) == [77, 400]
    assert only(lake, frame.where("k = 77 AND s = '77'")).files_kept == 1
    assert only(lake, frame.where("NOT (k <> 77 AND s <> '400')")).files_kept == 2


DAYS, PARTS = 5, 4
PARTITIONED = {
    # condition: files of its partitions, files read, reasons of its parts
    "k = 7": (20, 1, set()),
    "k = 7 AND day = 0": (4, 1, {"PARTITIONS"}),
    "k = 7 AND day = 1": (4, 0, {"PARTITIONS"}),
    "day = 1": (4, 4, {"PARTITIONS"}),
    "day > 1 AND day + 1 < 4": (4, 4, {"PARTITIONS"}),
    "k = 7 AND day IN (0, 1) AND v > 3": (8, 1, {"PARTITIONS", "NO_INDEX"}),
    "day = 0 AND (k = 7 OR v > 3)": (4, 4, {"PARTITIONS", "OR_NOT_ANSWERED", "NO_INDEX"}),
    "day = 0 AND (k = 7 OR k > 25)": (4, 3, {"PARTITIONS"}),
    "k = 7 OR day = 1": (20, 20, {"PARTITION_IN_OR", "OR_NOT_ANSWERED"}),
    "NOT (k <> 7 AND day <> 1)": (20, 20, {"PARTITION_IN_OR", "OR_NOT_ANSWERED"}),
    "(k = 7 AND day = 0) OR (k = 9 AND day = 1)": (8, 1, {"PARTITIONS"}),
    "(k = 7 AND day = 0) OR day = 1": (8, 8, {"PARTITIONS", "OR_NOT_ANSWERED"}),
    "k = 7 AND day IS NOT NULL": (20, 1, {"PARTITIONS"}),
}


def test_partitions_answer_for_themselves(lake: Lakebloom, spark: SparkSession, tmp_path: Path) -> None:
    for file in range(DAYS * PARTS):
        keys = list(range(file * 10, file * 10 + 10))
        write(tmp_path / f"p/day={file // PARTS}/{file:02d}.parquet", {"k": pa.array(keys), "v": pa.array(keys)})
    lake.create_index(tmp_path / "p", BloomIndexConfig("by_k", ["k"], fpp=1e-6))
    lake.enable()
    frame = spark.read.parquet(str(tmp_path / "p"))
    for predicate, (files, read, reasons) in PARTITIONED.items():
        query = frame.where(predicate)
        report = lake.explain(query)
        (scan,) = report.scans
        query.collect()
        fact = lake.last_query()
        assert fact is not None
        (ran,) = fact.scans
        assert (scan.files, scan.files_kept, ran.files_read) == (files, read, read), predicate
        found = {part.reason.value for part in scan.parts if part.reason is not None}
        assert found == reasons, predicate
        text = str(report)
        assert scan.files_of_table == DAYS * PARTS
        assert ("partitions answer" in text) == (files < DAYS * PARTS or "IS NOT NULL" in predicate), predicate
        assert f"{files - read:,} of {files:,} files skipped" in text
        asked = [part for part in scan.parts if part.units_asked]
        assert all(part.units_asked <= files for part in asked), predicate
    lake.disable()


def test_sql_text_is_explained_and_never_run(
    lake: Lakebloom, spark: SparkSession, frame: DataFrame, table: Path, database: str
) -> None:
    frame.createOrReplaceTempView("explained")
    spark.sql(f"CREATE TABLE {database}.copy (k BIGINT, s STRING, v BIGINT) USING parquet")
    condition = "k IN (77, 400) AND v > 3"
    for text in (
        f"SELECT * FROM explained WHERE {condition}",
        f"WITH e AS (SELECT * FROM explained) SELECT count(*) FROM e WHERE {condition}",
        f"SELECT k FROM parquet.`{table}` WHERE {condition} ORDER BY k LIMIT 1",
        f"INSERT INTO {database}.copy SELECT * FROM explained WHERE {condition}",
    ):
        (scan,) = lake.explain(text).scans
        assert (scan.files, scan.files_kept, scan.use) == (FILES, 2, Use.PARTIAL), text
    assert str(lake.explain(f"DROP TABLE {database}.copy")) == "this query reads no files"
    assert spark.table(f"{database}.copy").count() == 0  # neither filled nor dropped
    spark.catalog.dropTempView("explained")


def test_what_is_no_query(lake: Lakebloom, frame: DataFrame) -> None:
    for arguments, words in (
        (("nonsense",), "PARSE_SYNTAX_ERROR"),
        (("SELECT * FROM nowhere",), "TABLE_OR_VIEW_NOT_FOUND"),
        (("SELECT nope FROM range(3)",), "UNRESOLVED_COLUMN"),
        (("by_k",), "by_k is an index"),
        ((42,), "found 42"),
        ((frame, "k = 1"), "explain with a condition needs the name of an index"),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            lake.explain(*arguments)
        told = str(caught.value)
        assert words in told
        assert 'lake.explain("' in told or "lake.explain('" in told
        assert "\n" not in told
        assert "org.apache" not in told
    (scan,) = lake.explain("by_k", "k = 77").scans
    assert (scan.files, scan.files_kept, scan.use) == (FILES, 1, Use.FULL)


@needs_data_source
def test_the_data_source_is_explained_and_counted(lake: Lakebloom, spark: SparkSession, tmp_path: Path) -> None:
    for file in range(4):
        keys = list(range(file * 100, file * 100 + 100))
        write(tmp_path / f"r/{file}.parquet", {"k": pa.array(keys), "v": pa.array(keys)}, row_group_size=10)
    lake.create_index(tmp_path / "r", BloomIndexConfig("by_k", ["k"], fpp=1e-6, granularity="row_group"))
    lake.enable()
    for condition, files, groups in (
        ("k = 77", 1, 1),
        ("k IN (3, 177, 178)", 2, 2),
        ("k = 5000", 0, 0),
        ("v = 7", 4, 40),
    ):
        frame = lake.read("by_k", condition)
        (scan,) = lake.explain(frame).scans
        assert (scan.files, scan.files_kept, scan.units, scan.units_kept) == (4, files, 40, groups)
        assert f"{40 - groups} of 40 row groups skipped" in str(lake.explain(frame.where("v > 1")))
        for _ in range(2):
            rows = len(frame.collect())
            fact = lake.last_query()
            assert fact is not None
            (ran,) = fact.scans
            assert (ran.files, ran.files_read, ran.files_skipped, ran.rows_read) == (4, files, 4 - files, rows)
    options = "index 'by_k', where 'k = 77', timeoutMs '600000'"  # no test depends on time
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW by_source USING lakebloom OPTIONS ({options})")
    (scan,) = lake.explain("SELECT * FROM by_source JOIN (SELECT id AS k FROM range(3)) USING (k)").scans
    assert scan.files_kept == 1
    for path in (tmp_path / "indexes").rglob("files.arrow"):
        path.write_bytes(b"damage")
    (scan,) = lake.explain(frame).scans
    assert (scan.files_kept, scan.reasons) == (4, (Reason.INDEX_UNREADABLE,))
    spark.catalog.dropTempView("by_source")
    lake.disable()


def test_no_query_yet(lake: Lakebloom) -> None:
    assert lake.last_query() is None


def test_without_a_session(tmp_path: Path) -> None:
    lake = Lakebloom(location=tmp_path)
    for call in (lake.enable, lake.last_query):
        with pytest.raises(UnsupportedSessionError, match=r"no session.*Hint"):
            call()
    lake.disable()
    assert not lake.enabled

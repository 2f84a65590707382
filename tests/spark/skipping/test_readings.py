"""A query that reads the files in another way than the index did: with another schema, other options, other settings.

What such a query finds in a file may be something that no filter has seen, so these tests only compare rows, and say of
each reading whether the index may help.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.needs import HAS_COLLATIONS, needs_collations, needs_widening
from tests.spark.skipping.support import EXACT, ask, configured, each
from tests.spark.support import fresh_name, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def by(*columns: str) -> BloomIndexConfig:
    return BloomIndexConfig("x", list(columns), fpp=EXACT)


class TestTypes:
    @pytest.mark.parametrize(
        ("stored", "read", "kept"),
        [
            (pa.array([7, 8], pa.int16()), "int", 1),
            pytest.param(pa.array([7, 8], pa.int32()), "bigint", 1, marks=needs_widening),
            pytest.param(pa.array([7, 8], pa.int32()), "decimal(12,2)", 1, marks=needs_widening),
            # Spark compares doubles, which the filter does not know.
            pytest.param(pa.array([7, 8], pa.int32()), "double", 2, marks=needs_widening),
            pytest.param(pa.array([7, 8], pa.float32()), "double", 1, marks=needs_widening),
            pytest.param(
                pa.array([Decimal("7.00"), Decimal("8.00")], pa.decimal128(5, 2)),
                "decimal(12,4)",
                1,
                marks=needs_widening,
            ),
            (pa.array([7, 65543], pa.int32()), "smallint", 2),  # 65543 wraps around to 7
            (pa.array([b"7", b"8"], pa.binary()), "string", 2),
        ],
        ids=lambda value: str(getattr(value, "type", value)),
    )
    def test_parquet(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, stored: pa.Array, read: str, kept: int
    ) -> None:
        table = tmp_path / "t"
        for number in range(2):
            write(table / f"{number}.parquet", {"k": stored.slice(number, 1)})
        lake.create_index(table, by("k"))
        # Spark's own filters make a difference where the schema lies.
        with configured(spark, {"spark.sql.parquet.filterPushdown": "false"}):
            less = f"k < CAST(8 AS {read})"
            for predicate in (f"k = CAST(7 AS {read})", "k IS NULL", less, f"NOT ({less})", f"k > CAST(7 AS {read})"):
                files = ask(lake, lambda: spark.read.schema(f"k {read}").parquet(str(table)).where(predicate))  # noqa: B023
                assert len(files) == (kept if "NULL" not in predicate else (0 if kept == 1 else len(files)))

    def test_orc_that_is_read_as_narrower_types(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        table = str(tmp_path / "t")
        for key, number in ((2**32 + 5, "1.2345"), (7, "9.2345")):
            row = spark.sql(f"SELECT {key}L AS k, CAST({number} AS DECIMAL(10,4)) AS d")
            row.coalesce(1).write.mode("append").orc(table)
        lake.create_index(spark.read.orc(table), by("k", "d"))
        wanted = ["k = 5", "k IS NULL", "k = 7", "d = 1.23", "d IS NULL", "k < 6", "k > 6", "d < 1.234", "d >= 9.24"]
        narrow = spark.read.schema("k INT, d DECIMAL(5,2)").orc(table)
        assert len(ask(lake, lambda: each(narrow, wanted))) == 2 * len(wanted)
        assert len(ask(lake, lambda: spark.read.orc(table).where("k = 7"))) == 1

    @needs_widening
    def test_a_widened_table(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        table = tmp_path / "t"
        write(table / "0.parquet", {"k": pa.array([1, 2], pa.int32())})
        lake.create_index(table, by("k"))
        write(table / "1.parquet", {"k": pa.array([2, 2**40], pa.int64())})

        def wide(predicate: str) -> list[str]:
            return ask(lake, lambda: spark.read.schema("k BIGINT").parquet(str(table)).where(predicate))

        assert wide("k = 1") == ["0.parquet", "1.parquet"]
        assert wide(f"k = {2**40}") == ["0.parquet", "1.parquet"]  # no int, so the old filter is not asked
        assert wide("k = 5") == ["1.parquet"]
        assert wide("k > 2") == wide(f"k >= {2**40}") == ["1.parquet"]
        assert wide("k < 2") == ["0.parquet", "1.parquet"]
        lake.refresh_index("x")
        assert wide("k = 1")[0] == "0.parquet"
        assert "1.parquet" in wide("k = 2")
        assert "1.parquet" in wide(f"k = {2**40}")
        assert "1.parquet" in wide("k > 2")
        assert "0.parquet" in wide("k < 2")


class TestColumns:
    def test_missing_in_old_files(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        table = tmp_path / "t"
        write(table / "0.parquet", {"k": [1]})
        write(table / "1.parquet", {"k": [2], "c": [5], "s": [{"x": 1, "y": 2}]})
        write(table / "2.parquet", {"k": [3], "c": [6], "s": [{"x": 1}]})
        schema = "k BIGINT, c BIGINT, s STRUCT<x: BIGINT, y: BIGINT>"
        lake.create_index(spark.read.schema(schema).parquet(str(table)), by("k", "c", "s.y"))
        for predicate, files in {
            "c = 5": ["1.parquet"],
            "c IS NULL": ["0.parquet"],
            "c IS NOT NULL": ["1.parquet", "2.parquet"],
            "c < 6": ["1.parquet"],
            "c > 4": ["1.parquet", "2.parquet"],
            "c > 6": [],
            "s.y = 2": ["1.parquet"],
            "s.y IS NULL": ["0.parquet", "2.parquet"],
        }.items():
            assert ask(lake, lambda: spark.read.schema(schema).parquet(str(table)).where(predicate)) == files  # noqa: B023

    @pytest.fixture(params=["parquet", "orc", "json"])
    def defaulted(self, request: pytest.FixtureRequest, spark: SparkSession, database: str) -> str:
        """A table with a column that is 5 where files do not have it: Spark does not say NULL then."""
        name = f"{database}.t"
        spark.sql(f"CREATE TABLE {name} (id INT) USING {request.param}")
        spark.sql(f"INSERT INTO {name} VALUES (1)")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN c INT DEFAULT 5")
        spark.sql(f"INSERT INTO {name} VALUES (2, 6)")
        spark.sql(f"INSERT INTO {name} VALUES (3, NULL)")
        return name

    def test_with_a_default(self, spark: SparkSession, lake: Lakebloom, defaulted: str) -> None:
        predicates = ["c = 5", "c IS NULL", "c = 6", "c IS NOT NULL", "c IN (5, 7)", "c <=> NULL"]
        predicates += ["c < 6", "c > 5", "c BETWEEN 4 AND 5", "c >= 7", "NOT (c < 6)"]
        (path,) = {file.rpartition("/")[0] for file in spark.table(defaulted).inputFiles()}
        file_format = spark.sql(f"DESCRIBE EXTENDED {defaulted}").where("col_name = 'Provider'").collect()[0][1]
        by_path = lambda: spark.read.schema("id INT, c INT").format(file_format).load(path)  # noqa: E731
        for source in (defaulted, by_path()):
            name = fresh_name()
            lake.create_index(source, BloomIndexConfig(name, ["c"], fpp=EXACT))
            ask(lake, lambda: each(spark.table(defaulted), predicates))
            ask(lake, lambda: each(by_path(), predicates))
            lake.delete_index(name)

    def test_a_default_costs_only_files_without_values(
        self, spark: SparkSession, lake: Lakebloom, database: str
    ) -> None:
        spark.sql(f"CREATE TABLE {database}.d (c INT DEFAULT 5) USING parquet")
        for value in (5, 6, 7):
            spark.sql(f"INSERT INTO {database}.d VALUES ({value})")
        lake.create_index(f"{database}.d", by("c"))
        assert len(ask(lake, lambda: spark.table(f"{database}.d").where("c = 6"))) == 1


class TestCase:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        write(tmp_path / "t/0.parquet", {"Key": [1]})
        write(tmp_path / "t/1.parquet", {"Key": [2]})
        return tmp_path / "t"

    @pytest.mark.parametrize("built", ["false", "true"])
    @pytest.mark.parametrize("asked", ["false", "true"])
    def test_an_index_is_used_only_with_the_same_resolution(
        self, spark: SparkSession, lake: Lakebloom, table: Path, built: str, asked: str
    ) -> None:
        with configured(spark, {"spark.sql.caseSensitive": built}):
            lake.create_index(table, by("Key"))
        with configured(spark, {"spark.sql.caseSensitive": asked}):
            files = ask(lake, lambda: spark.read.parquet(str(table)).where("Key = 1"))
        assert files == (["0.parquet"] if built == asked else ["0.parquet", "1.parquet"])

    def test_a_schema_spelt_otherwise(self, spark: SparkSession, lake: Lakebloom, table: Path) -> None:
        lake.create_index(table, by("Key"))
        assert ask(lake, lambda: spark.read.schema("KEY BIGINT").parquet(str(table)).where("key = 1")) == ["0.parquet"]

    def test_a_name_that_does_not_exist_in_the_files(self, spark: SparkSession, lake: Lakebloom, table: Path) -> None:
        """With regard to case, a column called otherwise is not there, and so is NULL."""
        lake.create_index(table, by("Key"))
        with configured(spark, {"spark.sql.caseSensitive": "true"}):
            ask(lake, lambda: spark.read.schema("key BIGINT").parquet(str(table)).where("key IS NULL"))

    def test_columns_that_differ_by_case_only(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        for number in range(2):
            write(tmp_path / f"u/{number}.parquet", {"k": [number], "K": [number + 10]})
        with configured(spark, {"spark.sql.caseSensitive": "true"}):
            lake.create_index(tmp_path / "u", by("k", "K"))
            frame = spark.read.parquet(str(tmp_path / "u"))
            assert ask(lake, lambda: frame.where("K = 10")) == ["0.parquet"]
            assert ask(lake, lambda: frame.where("k = 1")) == ["1.parquet"]
            assert ask(lake, lambda: frame.where("k = 10")) == []


class TestStrings:
    TYPES = ("CHAR(5)", "VARCHAR(5)", "STRING COLLATE UTF8_LCASE", "STRING COLLATE UTF8_BINARY_RTRIM")
    PREDICATES = (
        *("c = 'a'", "c = 'a    '", "c = 'abcde'", "c IN ('a', 'A')", "c = 'ABCDE'", "c <=> 'A'"),
        *("c < 'a '", "c > 'a'", "c <= 'A'", "c > 'ABCDE'", "c >= 'A' AND c <= 'a'", "c >= 'a    '"),
    )
    PATTERNS = ("c LIKE 'a%'", "c LIKE 'A%'", "startswith(c, 'a ')", "c LIKE 'AB_DE'")

    @pytest.mark.parametrize("padding", ["true", "false"])
    @pytest.mark.parametrize("kind", TYPES)
    def test_that_are_equal_without_being_the_same(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, database: str, kind: str, padding: str
    ) -> None:
        if "COLLATE" in kind and not HAS_COLLATIONS:
            pytest.skip("needs collations (Spark 4.0)")
        if kind.endswith("RTRIM") and spark.version.startswith("4.0"):
            pytest.skip("needs collations that trim (Spark 4.1)")
        for number, value in enumerate(["a", "abcde", "a  "]):
            write(tmp_path / f"t/{number}.parquet", {"c": [value]})
        lake.create_index(tmp_path / "t", by("c"))
        spark.sql(f"CREATE TABLE {database}.t (c {kind}) USING parquet LOCATION '{tmp_path}/t'")
        with configured(spark, {"spark.sql.readSideCharPadding": padding}):
            ask(lake, lambda: each(spark.table(f"{database}.t"), self.PREDICATES))
            if not ("COLLATE" in kind and spark.version < "4.2"):  # Spark refused BETWEEN there
                ask(lake, lambda: spark.table(f"{database}.t").where("c BETWEEN 'A' AND 'a'"))
            if not kind.endswith("RTRIM"):  # Spark has no patterns for these
                ask(lake, lambda: each(spark.table(f"{database}.t"), self.PATTERNS))

    @needs_collations
    def test_an_explicit_collation(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        write(tmp_path / "t/0.parquet", {"c": ["alice"]})
        write(tmp_path / "t/1.parquet", {"c": ["ALICE"]})
        lake.create_index(tmp_path / "t", by("c"))
        frame = spark.read.parquet(str(tmp_path / "t"))
        for condition in ("= 'Alice'", "LIKE 'Al%'", "< 'B'", "> 'aaa'"):
            assert len(ask(lake, lambda: frame.where(f"c COLLATE UTF8_LCASE {condition}"))) == 2  # noqa: B023
        assert ask(lake, lambda: frame.where("c < 'B'")) == ["1.parquet"]
        ask(lake, lambda: each(frame, [f"c COLLATE UNICODE {sign} 'alice'" for sign in ("<", "<=", ">", ">=", "=")]))
        assert ask(lake, lambda: frame.where("c = 'alice'")) == ["0.parquet"]

    def test_text_that_is_not_utf_8(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        for number, value in enumerate([b"\xff\xfe", b"\xff", "\ufffd".encode()]):
            array = pa.array([value], pa.binary()).cast(pa.string(), safe=False)
            write(tmp_path / f"t/{number}.parquet", {"c": array})
        lake.create_index(tmp_path / "t", by("c"))
        frame = spark.read.parquet(str(tmp_path / "t"))
        for wanted in ("X'fffe'", "X'ff'", "X'efbfbd'"):
            for sign in ("=", "<", ">=", "<=", ">"):
                ask(lake, lambda: frame.where(f"c {sign} CAST({wanted} AS STRING)"))  # noqa: B023
            ask(lake, lambda: frame.where(f"startswith(c, CAST({wanted} AS STRING))"))  # noqa: B023


class TestSettings:
    @pytest.mark.parametrize("mode", ["CORRECTED", "LEGACY"])
    def test_old_dates(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, mode: str) -> None:
        for number, value in enumerate([dt.date(1500, 1, 1), dt.date(2000, 1, 1)]):
            write(tmp_path / f"t/{number}.parquet", {"d": pa.array([value])})
        lake.create_index(tmp_path / "t", by("d"))
        frame = spark.read.option("datetimeRebaseMode", mode).parquet(str(tmp_path / "t"))
        days = ["1500-01-01", "1499-12-23", "1500-01-10", "2000-01-01"]
        ask(lake, lambda: each(frame, [f"d {sign} DATE'{day}'" for day in days for sign in ("=", "<", ">=")]))

    def test_that_change_what_is_found(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        for number in range(2):
            moments = pa.array([dt.datetime(2020, 1, 1 + number)]).cast(pa.timestamp("us", "UTC"))
            write(tmp_path / f"t/{number}.parquet", {"k": [number], "t": moments})
        lake.create_index(tmp_path / "t", by("k", "t"))
        moment = "TIMESTAMP'2020-01-02 00:00:00+00:00'"
        for value, kept in (("true", 2), ("false", 1)):
            with configured(spark, {"spark.sql.parquet.int96TimestampConversion": value}):
                frame = spark.read.parquet(str(tmp_path / "t"))
                assert len(ask(lake, lambda: frame.where("k = 1"))) == 1  # noqa: B023
                for sign in ("=", ">=", "<"):
                    assert len(ask(lake, lambda: frame.where(f"t {sign} {moment}"))) == kept  # noqa: B023

    @pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
    def test_the_time_zone_of_the_session(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, zone: str
    ) -> None:
        """A timestamp of a Parquet file is a point in time; one in text is what the session makes of it."""
        with configured(spark, {"spark.sql.session.timeZone": "UTC"}):
            frame = spark.sql("SELECT TIMESTAMP'2024-03-10 02:30:00' AS t")
            frame.coalesce(1).write.parquet(str(tmp_path / "p"))
            frame.coalesce(1).write.csv(str(tmp_path / "c"))
            lake.create_index(tmp_path / "p", BloomIndexConfig("p", ["t"], fpp=EXACT))
            lake.create_index(self._csv(spark, tmp_path), BloomIndexConfig("c", ["t"], fpp=EXACT))
        with configured(spark, {"spark.sql.session.timeZone": zone}):
            hours = ("02:30:00", "03:30:00", "06:30:00", "21:30:00")
            wanted = [f"t IN (TIMESTAMP'2024-03-10 {hour}', TIMESTAMP'2024-03-09 {hour}')" for hour in hours]
            wanted += [f"t {sign} TIMESTAMP'2024-03-10 {hour}'" for hour in hours for sign in ("<", ">=")]
            ask(lake, lambda: each(self._csv(spark, tmp_path), wanted))
            ask(lake, lambda: each(spark.read.parquet(str(tmp_path / "p")), wanted))

    @staticmethod
    def _csv(spark: SparkSession, directory: Path) -> DataFrame:
        return spark.read.schema("t TIMESTAMP").csv(str(directory / "c"))

    @pytest.fixture
    def moving(self, spark: SparkSession) -> Iterator[Any]:
        """The JVM's own time zone."""
        java: Any = spark.sparkContext._jvm
        zones = java.java.util.TimeZone
        before = zones.getDefault()
        yield lambda name: zones.setDefault(zones.getTimeZone(name))
        zones.setDefault(before)

    def test_the_time_zone_of_the_jvm(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, moving: Any) -> None:
        table = str(tmp_path / "t")
        with configured(spark, {"spark.sql.session.timeZone": "UTC"}):
            moving("UTC")
            spark.sql("SELECT TIMESTAMP'2024-01-01 00:00:00' AS t").coalesce(1).write.orc(table)
            lake.create_index(spark.read.orc(table), by("t"))
            moving("America/New_York")
            for hour in ("00:00:00", "05:00:00"):
                ask(lake, lambda: spark.read.orc(table).where(f"t = TIMESTAMP'2024-01-01 {hour}'"))  # noqa: B023


class TestFormats:
    def test_csv(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        table = tmp_path / "t"
        table.mkdir()
        (table / "0.csv").write_text("k|v\na;x|1\n\n")
        (table / "1.csv").write_text("k|v\nb;y|2\nbroken\n")
        (table / "2.csv").write_text('k|v\n"c"|3\n|\n')
        usual = {"header": "true", "sep": "|", "schema": "k STRING, v INT"}

        def read(**changes: str) -> DataFrame:
            options = usual | changes
            return spark.read.options(**options).schema(options["schema"]).csv(str(table))  # type: ignore[arg-type]

        lake.create_index(read(), by("k"))
        assert ask(lake, lambda: read().where("k = 'a;x'")) == ["0.csv"]
        assert len(ask(lake, lambda: read().where("k IS NULL"))) == 3  # NULL depends on what else is read
        for changes in (
            {"sep": ";"},
            {"header": "false"},
            {"quote": "'"},
            {"nullValue": "a;x"},
            {"schema": "v STRING, k STRING"},
            {"schema": "k STRING"},
            {"schema": "k STRING, v STRING"},
            {"mode": "DROPMALFORMED"},
        ):
            wanted = [f"k = '{value}'" for value in ("a", "a;x", "k", "1", '"c"', "c")]
            ask(lake, lambda: each(read(**changes), wanted))  # noqa: B023

    def test_json(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        table = tmp_path / "t"
        table.mkdir()
        (table / "0.json").write_text('{"k": "a", "n": 1}\n{"k": "x", "n": "no number"}\n')
        (table / "1.json").write_text('{"k": "b", "n": 2}\n{"K": "z"}\nno json\n')
        read = spark.read.schema("k STRING, n INT").json
        lake.create_index(read(str(table)), by("k", "n"))
        assert ask(lake, lambda: read(str(table)).where("k = 'a'")) == ["0.json"]
        assert ask(lake, lambda: read(str(table)).where("n = 2").select("n")) == ["1.json"]
        wanted = ["k = 'x'", "k = 'z'", "k IS NULL", "n IS NULL", "n IS NOT NULL AND k = 'x'"]
        for schema in ("k STRING, n INT", "k STRING, n STRING", "n INT, k STRING"):
            ask(lake, lambda: each(spark.read.schema(schema).json(str(table)), wanted))  # noqa: B023

    def test_orc(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        table = str(tmp_path / "t")
        for number in range(3):
            frame = spark.sql(f"SELECT {number}L AS k, NULLIF('s{number}', 's2') AS s, struct({number} AS x) AS n")
            frame.coalesce(1).write.mode("append").orc(table)
        lake.create_index(spark.read.orc(table), by("k", "s", "n.x"))
        for predicate in ("k = 1", "s = 's1'", "n.x = 1", "s IS NULL", "k IN (1, 7) AND s IS NOT NULL"):
            assert len(ask(lake, lambda: spark.read.orc(table).where(predicate))) == 1, predicate  # noqa: B023
        assert len(ask(lake, lambda: spark.read.option("mergeSchema", "true").orc(table).where("k = 1"))) == 1

    def test_another_format(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        table = tmp_path / "t"
        table.mkdir()
        (table / "0").write_text("a\n")
        (table / "1").write_text("b\n")
        lake.create_index(spark.read.text(str(table)), by("value"))
        assert ask(lake, lambda: spark.read.text(str(table)).where("value = 'a'")) == ["0"]
        assert ask(lake, lambda: spark.read.schema("value STRING").csv(str(table)).where("value = 'a'")) == ["0", "1"]
        assert len(ask(lake, lambda: spark.read.text(str(table), wholetext=True).where("value = 'a\\n'"))) == 2

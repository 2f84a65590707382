"""Every setting of Spark's readers is known, and those that change values keep an index from answering."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import UnsupportedSourceError
from lakebloom.tables.reader_settings import ALL, CHANGES, HARMLESS, is_of
from tests.spark.reader_classes import entries_of_readers
from tests.spark.skipping.support import EXACT, ask, configured
from tests.spark.support import write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PARTIAL, EXACT_STRINGS = "spark.sql.json.enablePartialResults", "spark.sql.json.enableExactStringParsing"


def by(name: str, *columns: str) -> BloomIndexConfig:
    return BloomIndexConfig(name, list(columns), fpp=EXACT)


def unlisted(keys: Iterable[str]) -> list[str]:
    """The keys that stand in none of the two lists."""
    known = {setting.key for setting in CHANGES} | HARMLESS.keys()
    return sorted(set(keys) - known)


class TestEverySettingIsListed:
    def entries(self, spark: SparkSession) -> dict[str, Any]:
        java: Any = spark._jvm
        conf = getattr(getattr(java, "org.apache.spark.sql.internal.SQLConf$"), "MODULE$")
        entries = conf.getConfigEntries().toArray()
        return {entry.key(): entry for entry in entries}

    def test_that_spark_s_reader_classes_look_at(self, spark: SparkSession) -> None:
        java: Any = spark._jvm
        conf = getattr(getattr(java, "org.apache.spark.sql.internal.SQLConf$"), "MODULE$")
        names = entries_of_readers(Path(pyspark.__file__).parent / "jars")
        assert {"JSON_ENABLE_PARTIAL_RESULTS", "CASE_SENSITIVE", "CSV_PARSER_COLUMN_PRUNING"} <= names
        assert unlisted(str(getattr(conf, name)().key()) for name in names) == []

    def test_that_is_named_after_a_format(self, spark: SparkSession) -> None:
        entries = self.entries(spark)
        assert unlisted(key for key in entries if any(is_of(name, key) for name in ALL)) == []
        assert unlisted(["spark.sql.json.isNew", PARTIAL]) == ["spark.sql.json.isNew"]

    def test_defaults_are_those_of_spark(self, spark: SparkSession) -> None:
        """Those of Spark 4; a session of Spark 3 counts as one that sets them otherwise."""
        entries = self.entries(spark)
        found = {
            setting.key: setting.value(entries[setting.key].defaultValueString())
            for setting in CHANGES
            if setting.key in entries
        }
        expected = {setting.key: setting.standard for setting in CHANGES if setting.key in entries}
        refusing = [key for key in expected if "Rebase" in key or "timeParserPolicy" in key]
        assert found == {**expected, **(dict.fromkeys(refusing, "exception") if spark.version < "4" else {})}

    def test_that_orc_has(self, spark: SparkSession) -> None:
        java: Any = spark._jvm
        entries = list(java.org.apache.orc.OrcConf.values())
        assert unlisted(str(entry.getAttribute()) for entry in entries) == []


class TestText:
    def json(self, spark: SparkSession, path: Path) -> DataFrame:
        return spark.read.schema("s STRUCT<n: INT, k: STRING>").json(str(path))

    def save(self, path: Path, *numbers: int) -> None:
        path.mkdir(exist_ok=True)
        for number in numbers:
            (path / f"{number}.json").write_text(f'{{"s": {{"n": "bad", "k": "x{number}"}}}}\n')

    @pytest.mark.parametrize("built", ["true", "false"])
    def test_json_that_is_read_under_another_setting(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, built: str
    ) -> None:
        self.save(tmp_path / "t", 0, 1)
        with configured(spark, {PARTIAL: built}):
            lake.create_index(self.json(spark, tmp_path / "t"), by("t", "s.k"))
        self.save(tmp_path / "t", 2)
        lake.refresh_index("t")  # reads as the build did, whatever the session's settings are by now
        counts = {}
        for asked in ("true", "false"):
            with configured(spark, {PARTIAL: asked, "spark.sql.csv.parser.columnPruning.enabled": "false"}):
                counts[asked] = len(ask(lake, lambda: self.json(spark, tmp_path / "t").where("s.k = 'x2'")))
        assert counts == {"true": 1, "false": 3} if built == "true" else {"true": 3, "false": 0}
        assert spark.conf.get(PARTIAL) == "true"

    def test_rows_that_are_dropped_for_another_column(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path
    ) -> None:
        """Which rows are malformed depends on the columns that a query reads, so a build must not read several."""
        (tmp_path / "t").mkdir()
        (tmp_path / "t/0.csv").write_text("a,1\nb,bad\n")
        (tmp_path / "t/1.csv").write_text("c,3\n")
        frame = spark.read.schema("k STRING, v INT").option("mode", "dropMalformed").csv(str(tmp_path / "t"))
        with pytest.raises(UnsupportedSourceError, match="malformed"):
            lake.create_index(frame, by("both", "k", "v"))
        lake.create_index(frame, by("t", "k"))
        assert ask(lake, lambda: frame.where("k = 'b'").select("k")) == ["0.csv"]
        assert ask(lake, lambda: frame.where("k = 'c'")) == ["1.csv"]


class TestOrc:
    def test_columns_that_are_found_by_their_places(self, spark: SparkSession, lake: Lakebloom, tmp_path: Path) -> None:
        for number in range(2):
            columns = f"'a{number}' AS _col0, 'b{number}' AS _col1, struct({number} AS x, 7 AS y) AS _col2"
            frame = spark.sql(f"SELECT {columns}")
            frame.coalesce(1).write.mode("append").orc(str(tmp_path / "t"))
        read = lambda schema: spark.read.schema(schema).orc(str(tmp_path / "t"))  # noqa: E731
        usual = "a STRING, b STRING, s STRUCT<x: INT, y: INT>"
        lake.create_index(read(usual), by("t", "a", "s.x"))
        assert len(ask(lake, lambda: read(usual).where("a = 'a1'"))) == 1
        assert len(ask(lake, lambda: read(usual).where("s.x = 1"))) == 1
        assert len(ask(lake, lambda: read("A STRING, c STRING, s STRUCT<x: INT, y: INT>").where("a = 'a1'"))) == 1
        for schema, predicate in {
            "b STRING, a STRING, s STRUCT<x: INT, y: INT>": "a = 'b1'",
            "c STRING, a STRING, b STRUCT<x: INT, y: INT>": "a = 'b1'",
        }.items():
            assert len(ask(lake, lambda: read(schema).where(predicate))) == 2  # noqa: B023

    @pytest.mark.parametrize("built", ["true", "false"])
    def test_that_is_told_to_go_by_places(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path, built: str
    ) -> None:
        for number in range(2):
            frame = spark.sql(f"SELECT 'a{number}' AS a, 'b{number}' AS b")
            frame.coalesce(1).write.mode("append").orc(str(tmp_path / "t"))
        key = "orc.force.positional.evolution"
        with configured(spark, {key: built}):
            lake.create_index(spark.read.schema("b STRING, a STRING").orc(str(tmp_path / "t")), by("t", "a"))
        for asked in ("true", "false"):
            with configured(spark, {key: asked}):
                for schema in ("b STRING, a STRING", "a STRING, b STRING"):
                    for value in ("a1", "b1"):
                        read = spark.read.schema(schema)
                        ask(lake, lambda: read.orc(str(tmp_path / "t")).where(f"a = '{value}'"))  # noqa: B023


class TestParquet:
    def test_ids_of_fields_count_where_a_schema_has_them(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path
    ) -> None:
        import pyarrow as pa
        from pyspark.sql.types import LongType, StructField, StructType

        for number in range(2):
            write(tmp_path / f"plain/{number}.parquet", {"k": [number]})
            fields = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(i)}) for i, name in enumerate("ab")]
            table = pa.table([[number], [number + 10]], schema=pa.schema(fields))
            write(tmp_path / f"ids/{number}.parquet", {})
            pa.parquet.write_table(table, tmp_path / f"ids/{number}.parquet")
        lake.create_index(tmp_path / "plain", by("plain", "k"))
        lake.create_index(tmp_path / "ids", by("ids", "a"))
        with configured(spark, {"spark.sql.parquet.fieldId.read.enabled": "true"}):
            assert len(ask(lake, lambda: spark.read.parquet(str(tmp_path / "plain")).where("k = 1"))) == 1
            swapped = StructType([StructField("a", LongType(), metadata={"parquet.field.id": 1})])
            frame = spark.read.schema(swapped).parquet(str(tmp_path / "ids"))
            assert len(ask(lake, lambda: frame.where("a = 11"))) == 2

    def test_settings_of_other_formats_and_of_other_types_do_not_count(
        self, spark: SparkSession, lake: Lakebloom, tmp_path: Path
    ) -> None:
        import datetime as dt

        for number in range(2):
            write(tmp_path / f"t/{number}.parquet", {"k": [number], "day": [dt.date(2020, 1, 1 + number)]})
        lake.create_index(tmp_path / "t", by("t", "k", "day"))
        settings = {PARTIAL: "false", EXACT_STRINGS: "false", "orc.force.positional.evolution": "true"}
        frame = lambda: spark.read.parquet(str(tmp_path / "t"))  # noqa: E731
        with configured(spark, settings | {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}):
            assert len(ask(lake, lambda: frame().where("k = 1"))) == 1
            assert len(ask(lake, lambda: frame().where("day = DATE'2020-01-02'"))) == 2
        with configured(spark, settings):
            assert len(ask(lake, lambda: frame().where("day = DATE'2020-01-02'"))) == 1

"""Columns that cannot have an index say why; names follow the session's rule about case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import ColumnNotFoundError, UnsupportedTypeError
from tests.spark.needs import HAS_COLLATIONS, HAS_VARIANT, needs_collations, needs_variant
from tests.spark.support import kept, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("in_tasks")]
FEW, PADDED, PLAIN = "at most 256 values", "pads and trims", "only plain values have a hash"
COLLATED = {"collated": ("STRING COLLATE UTF8_LCASE", "'a'", "its collation calls equal")} if HAS_COLLATIONS else {}
OTHER = " COLLATE UNICODE_CI" if HAS_COLLATIONS else ""
FREE = {"free": ("VARIANT", "parse_json('1')", "have no hash")} if HAS_VARIANT else {}
REFUSED = {
    "flag": ("BOOLEAN", "true", FEW),
    "tiny": ("TINYINT", "1Y", FEW),
    **COLLATED,
    "fixed": ("CHAR(5)", "'a'", PADDED),
    "limited": ("VARCHAR(5)", "'a'", PADDED),
    "months": ("INTERVAL YEAR TO MONTH", "INTERVAL '1-1' YEAR TO MONTH", "have no hash"),
    "seconds": ("INTERVAL DAY TO SECOND", "INTERVAL '1 1:1:1' DAY TO SECOND", "have no hash"),
    **FREE,
    "list": ("ARRAY<BIGINT>", "array(1)", PLAIN),
    "pairs": ("MAP<STRING, BIGINT>", "map('a', 1)", PLAIN),
    "group": (
        f"STRUCT<flag: BOOLEAN, c: STRING{OTHER}, k: BIGINT>",
        f"named_struct('flag', true, 'c', 'a'{OTHER}, 'k', 1L)",
        PLAIN,
    ),
}
NESTED = {"group.flag": FEW, "group.c": "its collation calls equal"}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    location = tmp_path_factory.mktemp("types") / "t"
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in REFUSED.items())
    spark.sql(f"CREATE TABLE every_type ({columns}) USING parquet LOCATION '{location}'")
    spark.sql(f"INSERT INTO every_type SELECT {', '.join(value for _, value, _ in REFUSED.values())}")
    yield "every_type"
    spark.sql("DROP TABLE every_type")


@pytest.mark.parametrize(
    "column",
    [
        *(column for column in REFUSED if column not in ("collated", "free")),
        "group.flag",
        *(pytest.param(column, marks=needs_collations) for column in ("collated", "group.c")),
        pytest.param("free", marks=needs_variant),
    ],
)
def test_refused(spark: SparkSession, lake: Lakebloom, table: str, tmp_path: Path, column: str) -> None:
    reason = NESTED.get(column) or REFUSED[column][2]
    for source in (table, spark.table(table)):
        with pytest.raises(UnsupportedTypeError, match=f"cannot have a Bloom index: .*{reason}"):
            lake.create_index(source, BloomIndexConfig("x", ["group.k", column], fpp=1e-6))
    assert not (tmp_path / "indexes").exists()


def test_the_leaf_beside_them(lake: Lakebloom, table: str) -> None:
    lake.create_index(table, BloomIndexConfig("x", ["group.k"], fpp=1e-6))
    assert lake.candidates("x", col("group.k") == 1).num_rows == 1
    assert lake.candidates("x", col("group.k") == 2).num_rows == 0


class TestCase:
    @pytest.fixture
    def sensitive(self, spark: SparkSession) -> Iterator[None]:
        spark.conf.set("spark.sql.caseSensitive", "TRUE")
        yield
        spark.conf.unset("spark.sql.caseSensitive")

    def test_without_regard_to_case(self, lake: Lakebloom, tmp_path: Path) -> None:
        write(tmp_path / "t/0.parquet", {"Key": pa.array([1])})
        lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["kEY"], fpp=1e-6))
        assert lake.index("x").columns == ("Key",)
        assert kept(lake, "x", col("key") == 1) == ["0.parquet"]
        assert kept(lake, "x", col("KEY") == 2) == []

    @pytest.mark.usefixtures("sensitive")
    def test_with_regard_to_case(self, lake: Lakebloom, tmp_path: Path) -> None:
        write(tmp_path / "t/0.parquet", {"Key": pa.array([1])})
        with pytest.raises(ColumnNotFoundError, match=r"the table has no column key.*did you mean Key\?"):
            lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["key"], fpp=1e-6))
        lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["Key"], fpp=1e-6))
        assert kept(lake, "x", col("Key") == 2) == []

    def test_a_file_spelt_otherwise(self, lake: Lakebloom, tmp_path: Path) -> None:
        write(tmp_path / "t/0.parquet", {"key": pa.array([1])})
        write(tmp_path / "t/1.parquet", {"KEY": pa.array([2])})
        lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["key"], fpp=1e-6))
        assert kept(lake, "x", col("key") == 2) == ["1.parquet"]

    @pytest.mark.usefixtures("sensitive")
    def test_columns_that_differ_by_case_only(self, lake: Lakebloom, tmp_path: Path) -> None:
        write(tmp_path / "t/0.parquet", {"key": pa.array([1]), "KEY": pa.array([2])})
        lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["key", "KEY"], fpp=1e-6))
        assert kept(lake, "x", col("key") == 2) == []
        assert kept(lake, "x", col("KEY") == 2) == ["0.parquet"]

"""Which files a condition reads: data, predicate, and the exact set of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.skipping.letters import BY_LETTER, EVERYTHING, letters, write_letters
from tests.spark.skipping.support import EXACT, ask_each, files_read, skipping
from tests.spark.support import write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

MANY = ", ".join(str(number) for number in range(100, 111))
TEN_THOUSAND = ", ".join(str(number) for number in range(5, 10_005))

CASES = {
    # Equality
    "k = 1": "af",
    "1 = k": "af",
    "k = 77": "",
    "k <=> 1": "af",
    "1 <=> k": "af",
    "k <=> NULL": "df",
    "NOT (k <=> NULL)": "abcf",
    "k = NULL": "",
    "s = 'ünï'": "f",
    "s = 'it\\'s'": "f",
    "s = ''": "c",
    "s = 'ONE'": "",
    "s = 'one '": "",
    # Lists
    "k IN (1)": "af",
    "k IN (3, 5)": "bc",
    "k IN (3, NULL)": "b",
    "k IN (NULL)": "",
    f"k IN ({MANY})": "",
    f"k IN (3, {MANY})": "b",
    f"k IN (3, NULL, {MANY})": "b",
    f"k IN ({TEN_THOUSAND})": "c",
    "s IN ('one', 'five')": "ac",
    # NULL
    "k IS NULL": "df",
    "k IS NOT NULL": "abcf",
    "n IS NULL": "abd",
    "n IS NOT NULL": "acf",
    "isnull(n) AND isnotnull(k)": "ab",
    # Connectives
    "k = 1 AND s = 'one'": "a",
    "k = 1 AND n = 7": "f",
    "k = 1 AND s = 'three'": "",
    "k = 1 OR s = 'three'": "abf",
    "k = 1 OR k = 5": "acf",
    "(k = 1 AND s = 'one') OR (k = 3 AND s = 'three')": "ab",
    "k = 1 AND (n = 1 OR n = 5)": "af",
    "NOT (k = 1)": EVERYTHING,
    "NOT (k IS NULL)": "abcf",
    "NOT (k IS NOT NULL)": "df",
    "NOT (k IS NOT NULL OR n IS NOT NULL)": "d",
    "NOT (k IS NOT NULL AND n IS NOT NULL)": "abdf",
    "NOT (k <> 1)": "af",
    "NOT (k <> 1 OR s <> 'one')": "a",
    "NOT (NOT (k = 1))": "af",
    "k = 1 AND v = 1": "af",
    "k = 1 OR v = 3": EVERYTHING,  # v has no index
    "k = 1 AND (n = 1 OR v = 3)": "af",
    # What filters do not answer
    "k <> 1": EVERYTHING,
    "NOT (k <=> 1)": EVERYTHING,
    "k NOT IN (1, 2)": EVERYTHING,
    "k NOT IN (1, NULL)": "",
    "k > 1": EVERYTHING,
    "k BETWEEN 1 AND 1": EVERYTHING,
    "k >= 1 AND k <= 1 AND s = 'one'": "a",
    "v = 1": EVERYTHING,
    "s LIKE 'one'": "a",  # Spark makes it an equality
    "s LIKE 'on%'": EVERYTHING,
    "k + 1 = 2": EVERYTHING,
    "abs(k) = 1": EVERYTHING,
    "upper(s) = 'ONE'": EVERYTHING,
    "upper(s) IN ('ONE', 'TWO')": EVERYTHING,
    "CAST(k AS STRING) = '1'": EVERYTHING,
    "try_cast(s AS INT) = 1": EVERYTHING,
    "coalesce(k, 1) = 1": EVERYTHING,
    "k = v": EVERYTHING,
    "k = n": EVERYTHING,
    "k = n AND k = 1": "af",
    "k = CAST(rand() * 0 + 1 AS BIGINT)": EVERYTHING,
    # Literals of other types
    "k = 1.0": "af",
    "k = 1.5": "",  # Spark knows by itself
    "k = '1'": "af",
    "n = 3000000000": "",
    "n = 1L": "af",
    "k = 1S": "af",
    "k = 1D": EVERYTHING,
    # Names
    "nested.k = 1": "f",
    "nested.k = 5": "c",
    "nested.k IS NULL": "adf",
    "nested.deep.k = 3": "b",
    "nested IS NULL": EVERYTHING,
    "`a.b` = 1": "af",
    "a.b = 1": EVERYTHING,
    "`ключ ☃` = 3": "b",
    "K = 1": "af",
    "NESTED.Deep.K = 3": "b",
    "`A.B` = 3": "b",
}  # fmt: skip


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lakebloom:
    home = tmp_path_factory.mktemp("letters")
    lake = Lakebloom(spark, home / "indexes")
    lake.create_index(write_letters(home / "t"), BY_LETTER)
    return lake


@pytest.fixture(scope="module")
def table(spark: SparkSession, lake: Lakebloom) -> DataFrame:
    return spark.read.parquet(lake.index("by_letter").source)


@pytest.fixture(scope="module")
def read(lake: Lakebloom, table: DataFrame) -> dict[str, list[str]]:
    """What each predicate reads; all of them return what they return without an index."""
    return ask_each(lake, table, CASES, "k", "n", "s", "v")


@pytest.mark.parametrize("predicate", CASES, ids=lambda predicate: predicate[:60])
def test_files_read(read: dict[str, list[str]], predicate: str) -> None:
    assert letters(read[predicate]) == CASES[predicate]


def test_one_value_more_than_are_asked_for(lake: Lakebloom, table: DataFrame) -> None:
    with skipping(lake):
        assert letters(files_read(table.where(f"k IN (4, {TEN_THOUSAND})"))) == EVERYTHING


@pytest.mark.parametrize("granularity", ["row_group", 2])
def test_smaller_units_decide_about_their_file(
    spark: SparkSession, tmp_path: Path, granularity: Literal["row_group"] | int
) -> None:
    """A condition must hold within one unit: k = 1 and s = 'd' are in one file and in no row group of it."""
    table = tmp_path / "t"
    write(table / "0.parquet", {"k": [1, 2, 3, 4], "s": ["a", "b", "c", "d"]}, row_group_size=2)
    write(table / "1.parquet", {"k": [5, 6, 7, None], "s": ["e", "f", None, None]}, row_group_size=2)
    lake = Lakebloom(spark, tmp_path / "indexes")
    lake.create_index(table, BloomIndexConfig("x", ["k", "s"], fpp=EXACT, granularity=granularity))
    frame = spark.read.parquet(str(table))
    wanted = {
        "k = 4": ["0.parquet"],
        "k IN (2, 7)": ["0.parquet", "1.parquet"],
        "k = 1 AND s = 'b'": ["0.parquet"],
        "k = 1 AND s = 'd'": [],
        "k = 6 AND s IS NULL": [],
        "k = 7 AND s IS NULL": ["1.parquet"],
        "k = 5 AND k IS NULL": [],
    }
    assert ask_each(lake, frame, wanted) == wanted


def test_several_indexes_on_one_table(spark: SparkSession, tmp_path: Path) -> None:
    """Each drops what it can; together they also answer an OR over their columns."""
    table = write_letters(tmp_path / "t")
    lake = Lakebloom(spark, tmp_path / "indexes")
    for column in ("k", "s", "n"):
        lake.create_index(table, BloomIndexConfig(f"by_{column}", [column], fpp=EXACT))
    frame = spark.read.parquet(str(table))
    wanted = {
        "k = 1 AND s = 'one'": "a",
        "k = 1 AND s = 'three'": "",
        "k = 5 OR s = 'three'": "bc",
        "(k = 5 OR s = 'three') AND n = 5": "c",
        "k = 5 OR s = 'three' OR n = 7": "bcf",
        "k = 5 OR s = 'three' OR v = 1": EVERYTHING,
        "NOT (k IS NOT NULL AND s IS NOT NULL)": "bdf",
    }
    assert {asked: letters(files) for asked, files in ask_each(lake, frame, wanted).items()} == wanted

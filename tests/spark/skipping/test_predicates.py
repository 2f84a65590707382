"""Which files a condition reads: data, predicate, and the exact set of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.needs import marked, possible
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
    "k + 1 > 3": EVERYTHING,
    "k > n": EVERYTHING,
    "v > 5": EVERYTHING,
    # Ranges, by min and max
    "k > 1": "abc",
    "k < 3": "af",
    "1 >= k": "af",
    "k > 5": "",
    "k >= 5": "c",
    "NOT (k < 5)": "c",
    "NOT (k > 4)": "abf",
    "k BETWEEN 1 AND 1000": "abcf",
    "k >= 1 AND k <= 1 AND s = 'one'": "a",
    "k > 4 OR s = 'one'": "ac",
    "k = 3 OR k > 4": "bc",
    "k > 4 OR v = 1": EVERYTHING,
    "k > 2 AND v > 1": "bc",
    "n > 5": "cf",
    "n > 5L": "cf",
    "s > 'one'": "abf",
    "s < 'a'": "c",
    "s >= 'ü'": "f",
    "(k > 4) IS TRUE": "c",
    "(k > 4) IS FALSE": "abf",
    "(k > 4) IS NOT TRUE": "abdf",
    "CASE WHEN k > 4 THEN true ELSE false END": "c",
    "coalesce(k > 4, true)": "cdf",
    "nested.k > 4": "c",
    "nested.deep.k < 2": "f",
    "`a.b` < 3": "af",
    "K > 4": "c",
    "k > NULL": "",
    # Prefixes
    "s LIKE 'on%'": "af",  # f has it's and ünï
    "s LIKE 'ü%'": "f",
    "s LIKE 'ü_ï'": "f",
    "s LIKE 'i%s'": "f",
    "s LIKE 'it\\'%'": "f",
    "s LIKE '%'": EVERYTHING,
    "startswith(s, 'f')": "c",
    "s NOT LIKE 'o%'": EVERYTHING,
    "s LIKE '%e'": EVERYTHING,
    "s LIKE 'ü!_%' ESCAPE '!'": "f",
    "s LIKE 'i%t%s'": "f",
    "s LIKE k": EVERYTHING,
    # Ranges of one value, or of few whole numbers
    "k BETWEEN 3 AND 3": "b",
    "3 BETWEEN k AND k": "b",
    "k BETWEEN 4 AND 5": "bc",
    "k > 2 AND k < 4": "b",
    "2 < k AND 4 > k": "b",
    "k BETWEEN 5 AND 3": "",
    "k NOT BETWEEN 3 AND 3": "abcf",
    "NOT (k < 3 OR k > 3)": "b",
    "k BETWEEN 6 AND 105": "",
    "k BETWEEN 6 AND 106": "",
    "k BETWEEN NULL AND 3": "",
    "k BETWEEN -9223372036854775807L AND 9223372036854775807L": "abcf",
    "n BETWEEN 5L AND 6L": "c",
    "s BETWEEN 'one' AND 'one'": "a",
    "s BETWEEN 'one' AND 'two'": "abf",
    "k BETWEEN 3 AND 3 OR s = 'one'": "ab",
    "k >= 3 AND (k <= 3 OR n = 5)": "bc",
    # Tests of a truth
    "(k = 3) IS TRUE": "b",
    "(k = 3) IS NOT TRUE": EVERYTHING,
    "(k = 3) IS FALSE": EVERYTHING,
    "(k <> 3) IS FALSE": "b",
    "NOT ((k <> 3) IS NOT FALSE)": "b",
    "(k = 3) IS UNKNOWN": "df",
    "(k = 3) IS NOT UNKNOWN": "abcf",
    "(k = 3) IS NULL": "df",
    "(k IN (3, 5)) IS TRUE": "bc",
    "(k IN (3, NULL)) IS NULL": EVERYTHING,
    "(k > 3) IS NULL": "df",
    "(k = 3 AND s = 'three') IS TRUE": "b",
    "(k = 3 OR s = 'one') IS TRUE": "ab",
    "(k = 3 AND n = 5) IS NULL": "bd",
    "(k = 3 OR n = 5) IS NULL": "abdf",
    "(k = 3 OR NULL) IS TRUE": "b",
    "(k = 3) <=> true": "b",
    "(k = 3) = true": "b",
    "(k <> 3) = false": "b",
    "(k = 3) <=> NULL": "df",
    "(k IS NULL) IS TRUE": "df",
    "(k IS NULL) IS FALSE": "abcf",
    "(k = 3) = (n = 3)": EVERYTHING,
    # CASE, IF and COALESCE
    "CASE WHEN k = 3 THEN true ELSE false END": "b",
    "CASE WHEN k = 3 THEN true END": "b",
    "CASE WHEN k = 3 THEN 'x' ELSE 'y' END = 'x'": "b",
    "CASE WHEN k = 3 THEN 'x' ELSE 'y' END <> 'x'": EVERYTHING,
    "CASE k WHEN 3 THEN true WHEN 5 THEN n = 6 ELSE false END": "bc",
    "CASE WHEN k = 3 THEN false ELSE n = 5 END": "c",
    "CASE WHEN k IS NULL THEN false ELSE true END": "abcf",
    "CASE WHEN k = 3 THEN NULL ELSE s = 'one' END": "a",
    "CASE WHEN k = 3 THEN true WHEN v = 1 THEN false ELSE s = 'one' END": "ab",
    "NOT CASE WHEN k = 3 THEN NULL WHEN k = 5 THEN false ELSE true END": "c",
    "(CASE WHEN k = 3 THEN NULL ELSE true END) IS NULL": "b",
    "if(k = 3, true, false)": "b",
    "if(k = 3, n = 1, n = 7)": "f",
    "if(k IS NULL, s = 'it\\'s', k = 5)": "cf",
    "if(v = 1, k = 1, k = 3)": "abf",
    "if(k = 3, true, v = 1)": EVERYTHING,
    "nullif(k, 3) IS NULL": "bdf",
    "coalesce(k = 3, false)": "b",
    "coalesce(k = 3, true)": "bdf",
    "NOT coalesce(k <> 3, true)": "b",
    "decode(k, 3, true, false)": "b",
    # Structs
    "nested = named_struct('k', 5L, 'deep', named_struct('k', 5L))": "c",
    "nested = named_struct('k', 5, 'deep', named_struct('k', 5))": "c",
    "nested = named_struct('k', 5L, 'deep', named_struct('k', 4L))": "",
    "nested <=> named_struct('k', 5L, 'deep', named_struct('k', 5L))": "c",
    "nested <> named_struct('k', 5L, 'deep', named_struct('k', 5L))": EVERYTHING,
    "nested.deep = named_struct('k', 3L)": "b",
    "nested.deep = named_struct('k', CAST(NULL AS BIGINT))": "adf",
    "nested.deep <> named_struct('k', CAST(NULL AS BIGINT))": EVERYTHING,
    "(nested.deep = named_struct('k', 3L)) IS NULL": "adf",
    "nested = named_struct('k', CAST(NULL AS BIGINT), 'deep', named_struct('k', CAST(NULL AS BIGINT)))": "adf",
    "nested.deep IN (named_struct('k', 3L), named_struct('k', 5L))": "bc",
    "nested.deep IN (named_struct('k', 3L), NULL)": "b",
    "nested.deep NOT IN (named_struct('k', 3L))": EVERYTHING,
    "(k, n) = (5L, 6)": "c",
    "(k, s) IN ((1L, 'one'), (3L, 'three'))": "ab",
    "(k, n) = (CAST(NULL AS BIGINT), 7)": "f",
    "(k, v) = (5L, 6)": "c",
    # Lists that are arrays
    "array_contains(array(3, 5), k)": "bc",
    "array_contains(array(3L, 5L), n)": "c",
    "array_contains(array(3, NULL), k)": "b",
    "NOT array_contains(array(3), k)": EVERYTHING,
    "NOT array_contains(array(3, NULL), k)": "",
    "array_contains(array(3), k) IS NULL": "df",
    "array_contains(array(k), 3)": EVERYTHING,
    "v = 1": EVERYTHING,
    "s LIKE 'one'": "a",  # Spark makes it an equality
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
    return ask_each(lake, table, possible(CASES), "k", "n", "s", "v")


@pytest.mark.parametrize("predicate", marked(CASES), ids=lambda predicate: predicate[:60])
def test_files_read(read: dict[str, list[str]], predicate: str) -> None:
    assert letters(read[predicate]) == CASES[predicate]


def test_a_list_may_have_any_length(lake: Lakebloom, table: DataFrame) -> None:
    with skipping(lake):
        assert letters(files_read(table.where(f"k IN (4, {TEN_THOUSAND})"))) == "bc"


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

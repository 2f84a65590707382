"""Names and types of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedTypeError
from lakebloom.tables.columns import ColumnNames, arrow_type, format_name, parse_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = {
    "a": ("a",),
    "s.k": ("s", "k"),
    "a b.c-d": ("a b", "c-d"),
    "`a.b`": ("a.b",),
    "s.`k.l`.m": ("s", "k.l", "m"),
    "`odd``name`": ("odd`name",),
    "`a`.`b`": ("a", "b"),
    "ü.日本": ("ü", "日本"),
}
BAD_NAMES = ["", ".", "a.", ".a", "a..b", "a`b", "`a", "`a`b", "a.`b", "``"]


@pytest.mark.parametrize(("name", "parts"), NAMES.items())
def test_names_are_parts(name: str, parts: tuple[str, ...]) -> None:
    assert parse_name(name) == parts


@pytest.mark.parametrize("name", BAD_NAMES)
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_name(name)


@given(st.lists(st.text(alphabet="ab.` ü", min_size=1), min_size=1, max_size=4))
def test_a_written_name_is_read_back(parts: list[str]) -> None:
    assert parse_name(format_name(parts)) == tuple(parts)


@pytest.mark.spark
def test_spark_reads_names_the_same_way(spark: SparkSession) -> None:
    attribute = spark._jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
    for name, parts in NAMES.items():
        parsed = attribute.parseAttributeName(name)
        assert tuple(parsed.apply(i) for i in range(parsed.length())) == parts


_PARTS = st.sampled_from(["k", "K", "s", "S", "kelvin", "\u212aelvin", "\u0130", "i", "straße", "STRASSE"])
_PATHS = st.lists(_PARTS, min_size=1, max_size=2).map(tuple)


@given(st.lists(_PATHS, max_size=6, unique=True), _PATHS, st.booleans())
def test_a_name_means_one_column_or_none(
    paths: list[tuple[str, ...]], wanted: tuple[str, ...], case_sensitive: bool
) -> None:
    whole = list(dict.fromkeys(path[:end] for path in paths for end in range(1, len(path) + 1)))
    names = ColumnNames(whole, case_sensitive=case_sensitive)
    here: list[tuple[str, ...]] = [()]
    for part in wanted:
        same = (lambda other: other == part) if case_sensitive else (lambda other: other.lower() == part.lower())  # noqa: B023
        here = [path for path in whole for above in here if path[:-1] == above and same(path[-1])]
        if len(here) != 1:
            break
    expected = here[0] if len(here) == 1 else None
    assert names.find(wanted) == expected
    if expected is not None:
        assert names.require(wanted) == expected
    else:
        with pytest.raises(ColumnNotFoundError, match="several columns" if here else "no column"):
            names.require(wanted)


@pytest.mark.spark
@pytest.mark.parametrize("case_sensitive", [False, True])
def test_spark_finds_the_same_columns(spark: SparkSession, case_sensitive: bool) -> None:
    """Spark's analyser is the judge, for names without letters that only Java's equalsIgnoreCase takes for equal."""
    from pyspark.errors import AnalysisException

    schemas = ["k INT, K INT", "K INT, j INT", "s STRUCT<k: INT, K: INT>, t INT", "s STRUCT<k: INT>, S STRUCT<j: INT>"]
    wanted = ["k", "K", "j", "J", "s", "S", "s.k", "S.k", "s.K", "S.j", "s.j", "t.k", "nope"]
    spark.conf.set("spark.sql.caseSensitive", str(case_sensitive).lower())
    try:
        for schema in schemas:
            frame = spark.createDataFrame([], schema)
            fields = [(field.name, getattr(field.dataType, "names", [])) for field in frame.schema]
            paths = [path for name, leaves in fields for path in [(name,), *((name, leaf) for leaf in leaves)]]
            names = ColumnNames(paths, case_sensitive=case_sensitive)
            for name in wanted:
                try:
                    found = frame.select(name).columns[0]
                except AnalysisException:
                    found = None
                ours = names.find(parse_name(name))
                assert (ours is None) == (found is None), (schema, name)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("spark_type", "expected"),
    [
        ("smallint", pa.int16()),
        ("int", pa.int32()),
        ("bigint", pa.int64()),
        ("float", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("string", pa.string()),
        ("binary", pa.binary()),
        ("decimal(38,18)", pa.decimal128(38, 18)),
        ("decimal(5, 0)", pa.decimal128(5, 0)),
    ],
)
def test_types_that_can_have_an_index(spark_type: str, expected: pa.DataType) -> None:
    assert arrow_type(spark_type) == expected


@pytest.mark.parametrize(
    ("spark_type", "reason"),
    [
        ("boolean", "skips nothing"),
        ("tinyint", "skips nothing"),
        ("string collate UTF8_LCASE", "collation"),
        ("char(3)", "pads"),
        ("varchar(10)", "pads"),
        ("array<int>", "leaf"),
        ("map<string,int>", "leaf"),
        ("struct<a:int>", "leaf"),
        ("variant", "no hash"),
        ("interval day to second", "no hash"),
        ("time(6)", "no hash"),
        ("void", "no hash"),
        ("decimal(39,0)", "no hash"),
        ("decimal(0,0)", "no hash"),
        ("decimal(5,-2)", "no hash"),
        ("", "no hash"),
    ],
)
def test_types_that_cannot(spark_type: str, reason: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=reason):
        arrow_type(spark_type)

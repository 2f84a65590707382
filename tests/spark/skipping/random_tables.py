"""Random tables, indexes over them, what happens to both, and random conditions in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

from lakebloom.tables.columns import format_name
from tests.predicate.sql_text import spark_literal, to_sql
from tests.predicate.strategies import INDEXED, SCHEMA, TYPES, leaves, literals_of, table_of
from tests.spark.needs import possible

if TYPE_CHECKING:
    from lakebloom.predicate.tree import Predicate
    from lakebloom.tables.columns import ColumnPath

Action: TypeAlias = Literal["append", "replace", "delete", "touch", "refresh", "refresh fully", "optimize"]
TRUTH_TESTS = ["IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN", "<=> true"]
ACTIONS: list[Action] = ["append", "replace", "delete", "touch", "refresh", "refresh fully", "optimize"]

# What no filter answers, and the columns that it needs.
OTHER_CONDITIONS = {
    "upper(t) = 'A'": "t", "t LIKE 'a%'": "t", "t LIKE 'a'": "t", "concat(t, '') = 'a'": "t",
    "t IN ('a', upper('ä'))": "t", "t = 'a' COLLATE UTF8_LCASE": "t", "coalesce(big, 1) = 1": "big",
    "CAST(big AS STRING) = '1'": "big", "big BETWEEN 0 AND 1": "big", "abs(i) = 1": "i", "big = i": "big i",
    "i <=> small": "i small", "d = f": "d f", "d = 0": "d", "isnan(d)": "d", "length(y) = 1": "y",
    "if(flag, i = 1, i = 2)": "flag i", "CASE WHEN i = 1 THEN true ELSE big = 2 END": "i big",
    "year(day) = 1970": "day", "s IS NULL": "s", "nvl(s.k, 2) = 2": "s", "CAST(at AS DATE) = DATE'1970-01-01'": "at",
    "s = named_struct('k', 1L, 't', 'a')": "s", "s <=> named_struct('k', 1L, 't', CAST(NULL AS STRING))": "s",
    "s IN (named_struct('k', 1L, 't', 'a'), named_struct('k', 2L, 't', ''))": "s", "(i, big) = (1, 1L)": "i big",
    "array_contains(array(1, 2), i)": "i", "array_contains(array(1L, NULL), i)": "i", "coalesce(i = 1, false)": "i",
    "array_contains(array(0.0D, double('NaN')), d)": "d", "array_contains(array(0.0D), f)": "f",
    "d BETWEEN double('NaN') AND double('NaN')": "d", "cents BETWEEN 1 AND 2": "cents", "f BETWEEN 0 AND 0": "f",
    "rand() < 2": "", "true": "", "false": "", "CAST(NULL AS BOOLEAN)": "", "id % 2 = 0": "", "id = 1": "",
}  # fmt: skip


@dataclass(frozen=True)
class RandomFile:
    """Rows, how many of them make a row group, and which columns the file has."""

    rows: list[dict[ColumnPath, Any]]
    row_group_size: int
    columns: tuple[str, ...]

    def table(self, first_id: int) -> pa.Table:
        """The file as Arrow; ids tell all rows of a table apart."""
        table = table_of([{**dict.fromkeys(TYPES), **row} for row in self.rows])
        ids = pa.array(range(first_id, first_id + len(self.rows)), pa.int32())
        return table.select(list(self.columns)).append_column("id", ids)


@dataclass(frozen=True)
class RandomIndex:
    """Columns, and how they are indexed."""

    columns: list[str]
    granularity: Literal["file", "row_group"] | int
    fpp: float


@dataclass(frozen=True)
class Case:
    """A table, its indexes, what happens then, and what is asked at the end."""

    schema: str
    files: list[RandomFile]
    indexes: list[RandomIndex]
    actions: list[tuple[Action, RandomFile]]
    conditions: list[str]


@st.composite
def cases(draw: st.DrawFn, num_conditions: int) -> Case:
    """Draw a table of a few columns, and conditions on them."""
    chosen = draw(st.lists(st.sampled_from(sorted(INDEXED)), min_size=2, max_size=4, unique=True))
    extra = draw(st.lists(st.sampled_from([("flag",), ("tiny",), ("bare",)]), max_size=1))
    columns = sorted({leaf for leaf in SCHEMA if leaf[0] in {column[0] for column in (*chosen, *extra)}})
    names = [format_name(column) for column in columns if column in INDEXED]
    index = st.builds(
        RandomIndex,
        st.lists(st.sampled_from(names), min_size=1, unique=True),
        st.sampled_from(["file", "row_group", 2]),
        st.sampled_from([0.01, 1e-4]),
    )
    files = _files(columns)
    return Case(
        _ddl(columns),
        draw(st.lists(files, min_size=2, max_size=5)),
        draw(st.lists(index, min_size=1, max_size=2)),
        draw(st.lists(st.tuples(st.sampled_from(ACTIONS), files), max_size=4)),
        draw(st.lists(_conditions(columns), min_size=num_conditions, max_size=num_conditions)),
    )


def _ddl(columns: list[ColumnPath]) -> str:
    fields = [f"`{column[0]}` {TYPES[column]}" for column in columns if len(column) == 1]
    structs = ["s STRUCT<k: BIGINT, t: STRING>"] if any(len(column) > 1 for column in columns) else []
    return ", ".join(["id INT", *fields, *structs])


def _files(columns: list[ColumnPath]) -> st.SearchStrategy[RandomFile]:
    row = st.fixed_dictionaries({column: st.none() | st.sampled_from(SCHEMA[column][1]) for column in columns})
    top_level = tuple(sorted({column[0] for column in columns}))
    present = st.just(top_level) | st.lists(st.sampled_from(top_level), unique=True).map(tuple)
    return st.builds(RandomFile, st.lists(row, max_size=4), st.integers(1, 3), present)


def _conditions(columns: list[ColumnPath]) -> st.SearchStrategy[str]:
    known = {column[0] for column in columns}
    others = [text for text in possible(OTHER_CONDITIONS) if known.issuperset(OTHER_CONDITIONS[text].split())]
    own_type = leaves([column for column in columns if column in INDEXED], literals_of).map(_sql)
    leaf = st.one_of(own_type, own_type, own_type, leaves(columns).map(_sql), st.sampled_from(others))

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        some = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(
            some.map(lambda parts: f"({' AND '.join(parts)})"),
            some.map(lambda parts: f"({' OR '.join(parts)})"),
            inner.map(lambda part: f"(NOT {part})"),
            st.tuples(inner, st.sampled_from(TRUTH_TESTS)).map(lambda both: f"(({both[0]}) {both[1]})"),
            st.tuples(inner, inner, inner | st.just("NULL")).map(
                lambda parts: "(CASE WHEN {} THEN {} ELSE {} END)".format(*parts)
            ),
        )

    return st.recursive(leaf, grow, max_leaves=4)


def _sql(leaf: Predicate) -> str:
    return to_sql(leaf, "`", "<=>", spark_literal)

"""Spark as the judge of ``row_mask``: the meaning of every comparison of a column with a literal."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from lakebloom.predicate.python_literals import literal as literal_of
from lakebloom.predicate.rows.evaluate import row_mask
from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.predicate.tree import Compare, Equals, EqualsNullSafe, IsIn, Not, Predicate
from tests.predicate.sql_text import spark_literal, to_sql
from tests.predicate.strategies import SCHEMA, TYPES, literals_for, table_of
from tests.spark.needs import from_arrow, to_arrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")
# Spark calls `integer_column < 18446744073709551616` TRUE, even where the column is NULL.
SPARK_FORGETS_NULL = [(Kind.INTEGER, literal_of(2**64))]


def all_comparisons() -> list[Predicate]:
    """A column of every type with every literal that it may meet."""
    found: list[Predicate] = []
    columns = {name: column for column, name in TYPES.items()}  # one of each type
    for name, column in columns.items():
        literals = literals_for(name)
        for literal in literals:
            found.append(Equals(column, literal))
            if (spark_type(name).kind, literal) not in SPARK_FORGETS_NULL:
                found.append(Compare(column, "<", literal))
        found += [Not(EqualsNullSafe(column, literal)) for literal in literals[::3]]
        found += [Compare(column, ">=", literal) for literal in literals if literal.type == name]
        found += [IsIn(column, (one, other)) for one, other in product(literals[:12:4], literals[1::5])]
    return found


def test_spark_compares_like_this(spark: SparkSession, tmp_path: Path) -> None:
    longest = max(len(values) for _, values in SCHEMA.values())
    rows = [
        {column: values[i] if i < len(values) else None for column, (_, values) in SCHEMA.items()}
        for i in range(longest + 1)
    ]
    table = table_of(rows)
    spark.conf.set("spark.sql.ansi.enabled", "true")  # the default of Spark 4: bigint and float are compared as double
    frame = from_arrow(spark, table, tmp_path).coalesce(1).cache()
    predicates = all_comparisons()
    for start in range(0, len(predicates), 200):
        batch = predicates[start : start + 200]
        texts = [to_sql(predicate, "`", "<=>", spark_literal) for predicate in batch]
        spark_says = to_arrow(frame.selectExpr(*(f"coalesce({text}, false) AS p{i}" for i, text in enumerate(texts))))
        for i, (predicate, text) in enumerate(zip(batch, texts, strict=True)):
            assert row_mask(predicate, table, TYPES).to_pylist() == spark_says.column(i).to_pylist(), text

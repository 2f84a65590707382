"""A join filter as a Spark column: False for values that certainly have no partner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.spark.expressions import canonical_hash, might_contain
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from lakebloom.index.joins import JoinFilter
    from lakebloom.sbbf.filter import Sbbf

__all__ = ["filter_words", "might_contain_column"]

_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def might_contain_column(spark: SparkSession, join_filter: JoinFilter, given: Column | str) -> Column:
    """Return whether the indexed column may hold a value; NULL for NULL.

    The filter's words come from a subquery, so that plans and logs do not hold them. A column of another type, which
    Spark would compare in yet another one, is an error of the query.
    """
    from pyspark.sql import functions as F  # noqa: N812

    column = F.col(given) if isinstance(given, str) else given
    offsets = pa.array([0, 8 * join_filter.filter.num_blocks], pa.int32())
    words = pa.ListArray.from_arrays(offsets, pa.array(filter_words(join_filter.filter)))
    subquery = spark.createDataFrame(pa.table({"words": words})).scalar()
    hashed = canonical_hash(column.cast(join_filter.type), join_filter.type)
    test = might_contain(subquery, hashed, join_filter.filter.num_blocks)
    name = f"{join_filter.name}.{format_name(join_filter.column)}"
    error = F.concat(
        F.lit(f"[TYPE_MISMATCH] might_contain of {name} compares {join_filter.type}; found "),
        F.typeof(column),
        F.lit(f". Hint: cast the column to {join_filter.type}"),
    )
    return F.when(F.typeof(column).isin(_same_values(join_filter.type)), test).otherwise(
        F.raise_error(error).cast("boolean")
    )


def filter_words(f: Sbbf) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the words of a filter one after the other, as Spark's int."""
    words: np.ndarray[tuple[int], np.dtype[np.int32]] = np.ascontiguousarray(f.words).reshape(-1).view(np.int32)
    return words


def _same_values(type_name: str) -> list[str]:
    """Return the types whose values a cast to this one keeps, as Spark's own comparison does."""
    if spark_type(type_name).kind is Kind.INTEGER:
        return [*_INTEGERS[: _INTEGERS.index(type_name) + 1], "void"]
    return [type_name, *(["float"] if type_name == "double" else []), "void"]

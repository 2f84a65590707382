"""``might_contain``: a filter as a Spark column. ``prune_join``: a table without files that hold no key of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakebloom.errors import InvalidArgumentError, UnsupportedSourceError, UnsupportedTypeError
from lakebloom.index.query.scans import LOG
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.spark.build.expressions import LONG_DIGITS, canonical_hash, might_contain
from lakebloom.spark.conf import column_of
from lakebloom.spark.versions import words_column
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from lakebloom.index.query.join_filters import JoinFilter
    from lakebloom.index.settings import Settings
    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.spark.rule.install import Skipping

__all__ = ["filter_words", "might_contain_column", "pruned_by_keys"]

_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def might_contain_column(spark: SparkSession, join_filter: JoinFilter, given: Column | str) -> Column:
    """Return whether the indexed column may hold a value; NULL for NULL.

    The filter's words come from a subquery, so that plans and logs do not contain them. With a column of another type,
    the query fails. Raises UnsupportedTypeError for a decimal of more than 18 digits: its bytes can only be computed
    from its digits as text, which takes longer than the join.
    """
    from pyspark.sql import functions as F  # noqa: N812

    _require_fast(join_filter)
    column = F.col(given) if isinstance(given, str) else given
    subquery = words_column(spark, filter_words(join_filter.filter))
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


def _require_fast(join_filter: JoinFilter) -> None:
    kind = spark_type(join_filter.type)
    if kind.kind is Kind.DECIMAL and kind.precision > LONG_DIGITS:
        raise UnsupportedTypeError(
            f"might_contain of {join_filter.name}.{format_name(join_filter.column)} would slow the query down",
            found=f"{join_filter.type}, which takes 100 times as long to hash as a bigint",
            hint=f"index a decimal of at most {LONG_DIGITS} digits, or leave out files with prune_join",
        )


def pruned_by_keys(
    skipping: Skipping, indexed: DataFrame, small: DataFrame, columns: Sequence[str], settings: Settings
) -> DataFrame:
    """Return a DataFrame without the files that hold no key of another, looked up column by column.

    Raises ColumnNotFoundError and InvalidArgumentError for wrong columns, UnsupportedSourceError if no index is found
    for the DataFrame's files.
    """
    if not columns:
        raise InvalidArgumentError("a join needs at least one column", found="none", hint='on="user_id"')
    for column in columns:
        for frame in (indexed, small):
            column_of(frame, column, "a side of the join")
        # Collect one key more than the limit, to see that there are too many.
        some = small.select(column).where(small[column].isNotNull()).distinct().limit(settings.join_max_keys + 1)
        pruned = skipping.without_partners(indexed, column, some)
        if not isinstance(pruned, Reason):
            if pruned.is_condition and not skipping.installed:
                LOG.warning("prune_join on %s: files of a Delta or Iceberg table are skipped after enable()", column)
            indexed = pruned.frame
        elif pruned in (Reason.NO_MATCHING_INDEX, Reason.UNSUPPORTED_TABLE):
            raise UnsupportedSourceError(
                f"no index can find the files with the keys of {column}",
                found=", ".join(indexed.inputFiles()[:1]) or "a frame that reads no files",
                hint="index this column; the frame may filter, project and group by it, and must have it in the type "
                "of the other side's, or in one that holds all of its values",
            )
        else:
            LOG.warning("prune_join on %s leaves out no file, %s: %s", column, pruned.value, pruned.meaning)
    return indexed


def filter_words(f: Sbbf) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the words of a filter in order, as Spark's int."""
    words: np.ndarray[tuple[int], np.dtype[np.int32]] = np.ascontiguousarray(f.words).reshape(-1).view(np.int32)
    return words


def _same_values(type_name: str) -> list[str]:
    """Return the types that can be cast to this one without loss, as Spark does in comparisons."""
    if spark_type(type_name).kind is Kind.INTEGER:
        return [*_INTEGERS[: _INTEGERS.index(type_name) + 1], "void"]
    return [type_name, *(["float"] if type_name == "double" else []), "void"]

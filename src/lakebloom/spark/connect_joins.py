"""``prune_join`` on Spark Connect: the keys of the small side become a condition of ``lake.read``.

A client cannot install an optimizer rule on the server. So lakebloom finds the indexed table in the client's plan, and
reads it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lakebloom.errors import InvalidArgumentError, LakebloomError, SourceError, UnsupportedSourceError
from lakebloom.index.query.scans import LOG
from lakebloom.predicate.column import col
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.tree import And
from lakebloom.spark.conf import column_of
from lakebloom.spark.connect_reads import sources_of
from lakebloom.spark.data_source.source import source_reader
from lakebloom.spark.error_cause import cause
from lakebloom.spark.sources.connect import connect_scan
from lakebloom.tables.columns import ColumnNames, folded_name, format_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.predicate.tree import Predicate
    from lakebloom.store.records import Commit

__all__ = ["read_by_keys"]

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_EXACT = (*_INTEGERS, "string", "date", "binary")
"""Types whose values do not change on the way to Python and back. Timestamps do: they depend on time zones."""


class _Traced(NamedTuple):
    name: str
    predicate: Predicate | None = None
    columns: Sequence[str] | None = None


def read_by_keys(
    spark: SparkSession,
    sides: tuple[DataFrame, DataFrame],
    columns: Sequence[str],
    commits: Mapping[str, Commit | Exception],
    read: Callable[[str, Predicate, Sequence[str] | None], DataFrame],
    max_keys: int,
) -> DataFrame:
    """Return the rows of the first side, the indexed one, that have a key of the other; or the side itself, and log.

    Raises InvalidArgumentError and ColumnNotFoundError for wrong columns, UnsupportedSourceError if no index is found
    for the side.
    """
    if not columns:
        raise InvalidArgumentError("a join needs at least one column", found="none", hint='on="user_id"')
    indexed, small = sides
    types = [dict(side.dtypes) for side in sides]
    names = [column_of(side, column, "a side of the join") for column in columns for side in sides]
    pairs = list(zip(names[::2], names[1::2], strict=True))
    traced = _traced(spark, indexed, [mine for mine, _ in pairs], commits)
    parts: list[Predicate] = [] if traced.predicate is None else [traced.predicate]
    for mine, theirs in pairs:
        _require_exact(mine, types[0][mine], types[1][theirs], traced.name)
        keys = _keys(small, theirs, max_keys)
        if keys is None:
            LOG.warning("prune_join on %s leaves out no file, %s", mine, Reason.TOO_MANY_KEYS.meaning)
            return indexed
        parts.append(col(format_name([mine])).isin(keys))
    found = read(traced.name, And(tuple(parts)), traced.columns)
    if found.dtypes != indexed.dtypes:
        raise _not_traced(mine, traced.name, "a DataFrame with other columns than the table of the index")
    return found


def _traced(
    spark: SparkSession, frame: DataFrame, columns: Sequence[str], commits: Mapping[str, Commit | Exception]
) -> _Traced:
    """Return the index on a DataFrame's table that has filters for most of the columns."""
    plan: Any = frame._plan
    root = plan.to_proto(spark.client).root
    while root.WhichOneof("rel_type") == "subquery_alias":
        root = root.subquery_alias.input
    if root.WhichOneof("rel_type") == "read" and (sources := list(sources_of(spark, frame))):
        reader = source_reader(spark, sources[0])
        return _Traced(reader.index, reader.where, reader.columns)
    active = {name: e for name, e in commits.items() if not isinstance(e, Exception) and e.state == "active"}
    wanted = ColumnNames([(column,) for column in columns], case_sensitive=False)
    known = {
        name: {folded_name(path[:1]) for path in _paths(commit) if wanted.matches(path[:1])}
        for name, commit in active.items()
    }
    best = max((name for name in known if known[name]), key=lambda name: len(known[name]), default=None)
    try:
        scan = connect_scan(spark, frame)
    except LakebloomError as error:
        raise _not_traced(columns[0], best, error.found) from error
    here = [
        name
        for name, commit in active.items()
        if known[name]
        and commit.table.format == scan.format == "parquet"
        and commit.table.locations == scan.locations
        and not (set(map(str.lower, scan.options)) - {"path"})
    ]
    if not here:
        raise _not_traced(columns[0], best, f"no index over {', '.join(scan.locations)} that has it")
    return _Traced(max(here, key=lambda name: len(known[name])))


def _paths(commit: Commit) -> list[tuple[str, ...]]:
    return [column.path for column in commit.config.columns if len(column.path) == 1]


def _require_exact(column: str, mine: str, theirs: str, index: str) -> None:
    same = mine == theirs or (mine in _INTEGERS and theirs in _INTEGERS)
    if not same or not (mine in _EXACT or mine.startswith("decimal(")):
        raise UnsupportedSourceError(
            f"the keys of {column} cannot be looked up as they are",
            found=f"{mine} on the indexed side, {theirs} on the other",
            hint=f"make the condition yourself: lake.read({index!r}, col({column!r}).isin(values))",
        )


def _keys(small: DataFrame, column: str, max_keys: int) -> list[Any] | None:
    """Return the distinct keys without NULL; None if there are more than ``most``."""
    try:
        name = format_name([column])
        some = small.select(name).where(small[name].isNotNull()).distinct().limit(max_keys + 1).collect()
    except LakebloomError:
        raise
    except Exception as error:
        raise SourceError(
            f"the keys of {column} cannot be collected",
            found=cause(error),
            hint="run the small side alone to see the error",
        ) from error
    return None if len(some) > max_keys else [row[0] for row in some]


def _not_traced(column: str, index: str | None, found: str) -> UnsupportedSourceError:
    keys = f"[row[0] for row in small.select({column!r}).distinct().collect()]"
    name = repr(index) if index is not None else '"by_user"'
    return UnsupportedSourceError(
        "on Spark Connect, prune_join takes a whole table: spark.table(name), spark.read.parquet(path) or "
        "lake.read(name)",
        found=found,
        hint=f"read it by the keys, then filter and join: lake.read({name}, col({column!r}).isin({keys}))",
    )

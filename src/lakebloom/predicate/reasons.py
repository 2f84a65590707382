"""Why an index, or a part of a predicate, dropped nothing: stable codes, each with a remedy.

docs/REASONS.md lists them with examples.
"""

from __future__ import annotations

import enum

__all__ = ["Reason"]


class Reason(str, enum.Enum):
    """A code with its meaning and its remedy.

    >>> Reason.NEGATED.value, Reason.NEGATED.remedy
    ('NEGATED', 'none needed: a filter can prove that a value is absent, never that it is present')
    """

    meaning: str
    remedy: str

    def __new__(cls, code: str, meaning: str, remedy: str) -> Reason:
        """Make a member from a tuple of the list below."""
        member = str.__new__(cls, code)
        member._value_, member.meaning, member.remedy = code, meaning, remedy
        return member

    NO_INDEX = (
        "NO_INDEX",
        "the column has no filters here",
        "create an index that has this column",
    )
    TYPE_MISMATCH = (
        "TYPE_MISMATCH",
        "the value does not convert to the column's type without loss",
        "compare the column with a value of its own type",
    )
    COLLATION = (
        "COLLATION",
        "strings that are equal in this collation have different hashes",
        "index and compare a column with the binary collation (UTF8_BINARY)",
    )
    CHAR_PADDING = (
        "CHAR_PADDING",
        "char and varchar values are padded or trimmed when compared",
        "store the column as string",
    )
    NEGATED = (
        "NEGATED",
        "the condition excludes values",
        "none needed: a filter can prove that a value is absent, never that it is present",
    )
    NOT_SUPPORTED = (
        "NOT_SUPPORTED",
        "an index answers only =, <=>, IN, <, >, BETWEEN, LIKE 'x%' and IS [NOT] NULL on a bare column",
        "compare the column itself, without function or cast, with a literal",
    )
    NOT_NEEDED = (
        "NOT_NEEDED",
        "the other conditions already decided which units to read",
        "none needed",
    )
    OR_NOT_ANSWERED = (
        "OR_NOT_ANSWERED",
        "no index answers the other side of this OR, so any file may match",
        "index the column of the other side too, or split the OR into two queries",
    )
    PARTITIONS = (
        "PARTITIONS",
        "the table's partitions answer this; no index is needed",
        "none needed",
    )
    PARTITION_IN_OR = (
        "PARTITION_IN_OR",
        "a partition column and another column in one OR: neither partitions nor filters can answer it alone",
        "split the OR into two queries",
    )

    NOT_SELECTIVE = (
        "NOT_SELECTIVE",
        "nearly every file would be kept: the list is too long for the rate of the filters, or the filters are full",
        "use fewer values, or build the index with a lower fpp or the right expected_items",
    )
    NO_USABLE_PREDICATE = (
        "NO_USABLE_PREDICATE",
        "an index can answer no part of the condition",
        "compare an indexed column with =, <=>, IN, <, >, BETWEEN, LIKE 'x%' or IS NULL",
    )
    NEEDS_ALL_ROWS = (
        "NEEDS_ALL_ROWS",
        "an operator between the condition and the files needs all rows: with fewer files the result would change",
        "put the condition or join below the limit, sample, window, aggregation or observation",
    )
    NO_MATCHING_INDEX = (
        "NO_MATCHING_INDEX",
        "no index covers the location of these files",
        "create_index over this table",
    )
    READ_DIFFERS = (
        "READ_DIFFERS",
        "the query reads the files in another way than the index did",
        "read with the same format, schema, options and session settings as the index, or create another index",
    )
    UNSUPPORTED_TABLE = (
        "UNSUPPORTED_TABLE",
        "not a plain read: a stream, a metadata table, changes, or a statement that looks for rows to rewrite",
        "none yet",
    )
    CACHED = (
        "CACHED",
        "the rows come from Spark's cache",
        "none needed; unpersist() makes Spark read the files again",
    )
    STALE_FILES = (
        "STALE_FILES",
        "some files are unindexed (new, or changed since they were indexed) and are read",
        "refresh_index",
    )
    STALE_FILTER = (
        "STALE_FILTER",
        "the global filter lacks unindexed files of the table, and they are too large to add during planning",
        "refresh_index, or raise spark.lakebloom.join.mergeMaxBytes",
    )
    JOIN_NOT_SAFE = (
        "JOIN_NOT_SAFE",
        "rows of this side without a partner are in the result too",
        "none needed: see docs/JOINS.md",
    )
    BROADCAST_JOIN = (
        "BROADCAST_JOIN",
        "one side is small enough to be broadcast, so this side is not shuffled",
        "none needed",
    )
    JOIN_TOO_SMALL = (
        "JOIN_TOO_SMALL",
        "this side is so small that a filter would cost more than it saves",
        "lower spark.lakebloom.join.minBytes",
    )
    RUNTIME_FILTER = (
        "RUNTIME_FILTER",
        "this side already has a runtime filter of Spark",
        "none needed",
    )
    INDEX_UNREADABLE = (
        "INDEX_UNREADABLE",
        "the index could not be read",
        "see the message; verify_index lists what is damaged",
    )
    TIMED_OUT = (
        "TIMED_OUT",
        "the index did not answer in time",
        "raise spark.lakebloom.query.timeoutMs, or keep the index on faster storage",
    )
    DELETED = (
        "DELETED",
        "the index is deleted",
        "restore_index",
    )
    DISABLED = (
        "DISABLED",
        "skipping was not enabled when the query was planned",
        "call enable() and run the query again",
    )
    PLANNED_BEFORE = (
        "PLANNED_BEFORE",
        "the query was planned before this index was created or changed",
        "make the DataFrame again",
    )
    NOT_REPEATABLE = (
        "NOT_REPEATABLE",
        "the small side may have other keys when the query runs",
        "remove random expressions, or fix the small side's rows with localCheckpoint()",
    )
    KEYS_AT_RUN_TIME = (
        "KEYS_AT_RUN_TIME",
        "Spark computes the keys of the other side of the join when the query runs",
        "collect them first: lake.prune_join(table, other, on), or join with other.localCheckpoint()",
    )
    CACHE_NOT_FILLED = (
        "CACHE_NOT_FILLED",
        "the other side of the join is marked for caching, but its rows are not in the cache yet",
        "fill the cache first, for example with count(), and make the DataFrame again",
    )
    TOO_MANY_KEYS = (
        "TOO_MANY_KEYS",
        "the other side of the join is too large to look up its keys",
        "join with fewer keys, or raise spark.lakebloom.join.maxKeys or spark.lakebloom.join.maxKeyBytes",
    )
    KEY_COMPUTED = (
        "KEY_COMPUTED",
        "the join compares an expression computed from the indexed column",
        "compare the column itself, and compute on the other side: cast the other side's key to the column's type",
    )

    @classmethod
    def of_unknown(cls, reason: str) -> Reason:
        """Return the code that an ``Unknown`` names, NOT_SUPPORTED if it names none."""
        return cls.__members__.get(reason, cls.NOT_SUPPORTED)

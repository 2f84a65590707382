"""Predicates in Python: ``(col("user_id") == 42) & col("day").is_not_null()``.

The result is a tree of ``lakebloom.predicate.tree``. Its parts combine with ``&``, ``|`` and ``~``. These bind tighter
than comparisons in Python, so each comparison needs parentheses.
"""

from __future__ import annotations

from typing import NoReturn

from lakebloom.errors import InvalidArgumentError
from lakebloom.predicate.python_literals import literal, literals
from lakebloom.predicate.tree import (
    And,
    Compare,
    Equals,
    EqualsNullSafe,
    IsIn,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Operator,
    StartsWith,
)
from lakebloom.tables.columns import ColumnPath, format_name, parse_name

__all__ = ["Column", "col"]


def col(name: str) -> Column:
    """Return a column to compare with values. ``a.b`` is a leaf of a struct; backticks quote a name with a dot.

    >>> col("user_id") == 42
    Equals(column=('user_id',), value=Literal(type='bigint', value=42))
    >>> ~col("s.k").is_null() & (col("`odd.name`") != "x")  # doctest: +ELLIPSIS
    And(children=(Not(child=IsNull(column=('s', 'k'))), Not(child=Equals(column=('odd.name',), ...
    """
    if not isinstance(name, str):
        raise InvalidArgumentError("the name of a column must be a string", found=name)
    return Column(parse_name(name))


class Column:
    """A column of the table, made by ``col``. A comparison with it is a predicate."""

    __slots__ = ("path",)
    __hash__ = None  # type: ignore[assignment]  # == makes predicates
    __array_ufunc__ = None  # numpy then leaves `np.int64(5) == col("a")` to this class

    def __init__(self, path: ColumnPath) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"col({format_name(self.path)!r})"

    def __eq__(self, value: object) -> Equals:  # type: ignore[override]
        """SQL's ``=``. With None it is ``= NULL``, which matches nothing: use ``is_null()``."""
        return Equals(self.path, _value(value))

    def __ne__(self, value: object) -> Not:  # type: ignore[override]
        """SQL's ``<>``: neither ``= x`` nor ``<> x`` matches NULL. With None it matches nothing."""
        return Not(self == value)

    def eq_null_safe(self, value: object) -> EqualsNullSafe:
        """SQL's ``<=>``: like ``=``, but NULL equals NULL and nothing else."""
        return EqualsNullSafe(self.path, _value(value))

    def isin(self, values: object) -> IsIn:
        """SQL's ``IN``. ``values`` is a list, tuple, set or other iterable, a numpy array or an Arrow array."""
        if isinstance(values, Column):
            _refuse_column(values)
        return IsIn(self.path, literals(values))

    def is_null(self) -> IsNull:
        """SQL's ``IS NULL``."""
        return IsNull(self.path)

    def is_not_null(self) -> IsNotNull:
        """SQL's ``IS NOT NULL``."""
        return IsNotNull(self.path)

    def between(self, low: object, high: object) -> And:
        """SQL's ``BETWEEN``: both ends belong to the range."""
        return And((self >= low, self <= high))

    def startswith(self, prefix: str | bytes) -> StartsWith:
        """SQL's ``LIKE 'prefix%'``, for a string or a binary."""
        value = _value(prefix)
        if value.type not in ("string", "binary"):
            raise InvalidArgumentError(
                "startswith takes a string, or bytes for a binary column", found=prefix.__class__.__name__
            )
        return StartsWith(self.path, value)

    def __lt__(self, value: object) -> Compare:
        return self._compare("<", value)

    def __le__(self, value: object) -> Compare:
        return self._compare("<=", value)

    def __gt__(self, value: object) -> Compare:
        return self._compare(">", value)

    def __ge__(self, value: object) -> Compare:
        return self._compare(">=", value)

    def _compare(self, op: Operator, value: object) -> Compare:
        return Compare(self.path, op, _value(value))

    def _is_no_predicate(self, *_: object) -> NoReturn:
        raise InvalidArgumentError(
            "a column is not a predicate, and & | bind tighter than comparisons",
            found=repr(self),
            hint="put each comparison in parentheses: (col('a') == 1) & (col('b') == 2)",
        )

    __and__ = __rand__ = __or__ = __ror__ = __invert__ = __bool__ = _is_no_predicate


def _value(value: object) -> Literal:
    if isinstance(value, Column):
        _refuse_column(value)
    return literal(value)


def _refuse_column(column: Column) -> NoReturn:
    raise InvalidArgumentError(
        "a column can be compared with values, not with another column",
        found=repr(column),
        hint="filter the rows after the lookup",
    )

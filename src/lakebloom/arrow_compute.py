"""PyArrow's functions on arrays, without loading ``pyarrow.compute``.

    from lakebloom import arrow_compute as pc

``pyarrow.compute`` writes a wrapper and its documentation for each of three hundred functions while it is imported,
which takes a fifth of the time of loading PyArrow. What a lookup calls is here under the same name, with the same
arguments in front; all other names load ``pyarrow.compute`` and are its own. So do the methods of arrays and tables
that call a function (``take``, ``cast``, ``filter``, ``is_null``): a lookup calls the functions instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

try:
    from pyarrow import _compute
except ImportError:  # pragma: no cover  # a version of PyArrow that has them elsewhere
    import pyarrow.compute as _compute

if TYPE_CHECKING:
    from collections.abc import Callable


_WITHOUT_OPTIONS = frozenset(
    {"add", "all", "and_", "and_kleene", "any", "binary_join_element_wise", "equal", "greater", "greater_equal"}
    | {"if_else", "indices_nonzero", "invert", "is_nan", "is_null", "is_valid", "less", "less_equal"}
    | {"max", "min", "min_max", "or_", "or_kleene"}
)
"""Functions that are called without options."""


def __getattr__(name: str) -> Any:
    if name not in _WITHOUT_OPTIONS:
        import pyarrow.compute

        return getattr(pyarrow.compute, name)
    found = globals()[name] = _function(name.removesuffix("_"))
    return found


def _function(name: str) -> Callable[..., Any]:
    call = _compute.get_function(name).call
    return lambda *arguments: call(arguments)


_call = _compute.call_function


def cast(values: Any, kind: pa.DataType, safe: bool = True) -> Any:
    """Convert values to a type. Unless it is ``safe``, values may lose digits."""
    options = _compute.CastOptions
    return _call("cast", [values], options.safe(kind) if safe else options.unsafe(kind))


def fill_null(values: Any, value: Any) -> Any:
    """Replace NULLs with a value."""
    return _call("coalesce", [values, pa.scalar(value, values.type)])


def index_in(values: Any, value_set: Any) -> Any:
    """Return the position of each value in a set, or NULL."""
    return _call("index_in", [values], _compute.SetLookupOptions(value_set))


def is_in(values: Any, value_set: Any) -> Any:
    """Tell whether each value is in a set."""
    return _call("is_in", [values], _compute.SetLookupOptions(value_set))


def starts_with(values: Any, pattern: Any) -> Any:
    """Tell whether each value begins with a text."""
    return _call("starts_with", [values], _compute.MatchSubstringOptions(pattern))


def take(values: Any, indices: Any) -> Any:
    """Return the values, or the rows of a table, at some positions."""
    return _call("take", [values, indices])

"""Checks the arguments of public calls by name, before anything is done.

``@typed_arguments`` decorates a class. A call with a misspelt or surplus argument is a WrongCallError that names the
right one; an argument of the wrong kind is an InvalidArgumentError that says what to pass. One name has one kind in
all of lakebloom, so the kinds are a table. The check takes a microsecond.
"""

from __future__ import annotations

import datetime
import functools
import numbers
import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from lakebloom.calls import wrong_call
from lakebloom.errors import IndexNotFoundError, InvalidArgumentError
from lakebloom.index.as_of import AsOf

__all__ = ["KINDS", "as_of_arguments", "column_list", "kind_of", "typed_arguments"]

ClassT = TypeVar("ClassT", bound=type)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_CONFIG = 'BloomIndexConfig("by_user", ["user_id"])'


class Kind(NamedTuple):
    """The kind that an argument must have."""

    fits: Callable[[Any], bool]
    wanted: str
    hint: str


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # numpy's too


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str)


def _are_names(value: object) -> bool:
    if isinstance(value, str):
        return True
    is_list = isinstance(value, Collection) and not isinstance(value, (bytes, bytearray, Mapping))
    return is_list and not hasattr(value, "dtypes") and all(map(_is_text, value))  # type: ignore[call-overload]


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_config(value: object) -> bool:
    from lakebloom.index.config import BloomIndexConfig

    return isinstance(value, BloomIndexConfig)


def _are_options(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_text(key) and _is_text(text) for key, text in value.items())


def _is_frame(value: object) -> bool:
    return hasattr(value, "sparkSession") and hasattr(value, "schema")


_FLAG = Kind(_is_flag, "True or False", "")
_FRAME = Kind(_is_frame, "a Spark DataFrame", "spark.read.parquet(path), spark.table(name) or spark.createDataFrame(…)")
KINDS = {
    "name": Kind(_is_text, "an index name", 'a string such as "by_user"; lake.indexes() lists those that exist'),
    "config": Kind(_is_config, "a BloomIndexConfig", _CONFIG),
    "columns": Kind(_are_names, "a list of column names", 'columns=["user_id"]'),
    "column": Kind(_is_text, "the name of a column", 'a string such as "user_id"'),
    "on": Kind(_are_names, "the name of a column, or a list of names", 'on="user_id"'),
    "mode": Kind(_is_text, '"quick" or "full"', ""),
    "unindexed": Kind(_is_text, '"scan", "skip" or "error"', ""),
    "limit": Kind(_is_count, "a whole number", "limit=10"),
    "sample": Kind(_is_number, "a number between 0 and 1", "sample=0.1 reads a tenth of the files"),
    "retention": Kind(lambda value: isinstance(value, datetime.timedelta), "a datetime.timedelta",
                      "retention=datetime.timedelta(days=7)"),
    "path": Kind(_is_path, "the path of a file", 'a string such as "report.html"'),
    "location": Kind(_is_path, "a directory or a URI", 'location="/data/indexes" or location="s3://bucket/indexes"'),
    "options": Kind(_are_options, "the options of an object store, by name", 'options={"region": "eu-west-1"}'),
    "text": Kind(_is_text, "SQL text", 'lake.sql("SHOW BLOOM INDEXES")'),
    "indexed": _FRAME,
    "small": _FRAME,
    "progress": Kind(lambda value: _is_flag(value) or callable(value), "True, False or a function",
                     "progress=False turns it off"),
    "quoted": Kind(callable, "a function", "quoted=print"),
    "force": _FLAG,
    "replace": _FLAG,
    "allow_shrink": _FLAG,
    "auto_refresh": _FLAG,
    "from_embedded": _FLAG,
}  # fmt: skip
"""By the name of the argument. Other arguments are checked where they are used."""

_CALL_HINTS = {
    name: f"options of an index belong to its config: {name}(table, {_CONFIG})"
    for name in ("create_index", "price_index")
}


def kind_of(value: object) -> str:
    """Return a short description of a value: the value itself if it is short.

    >>> kind_of("by_user"), kind_of(None), kind_of([1, 2]), kind_of(object())
    ("'by_user'", 'None', 'a list', 'an object')
    """
    if value is None or isinstance(value, (str, bool, int, float, os.PathLike)):
        return repr(value)[:100]
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    library = {"pandas": "pandas ", "pyarrow": "pyarrow ", "polars": "polars ", "pyspark": "Spark ", "numpy": "numpy "}
    words = f"{library.get(package, '')}{name}"
    return f"{'an' if words[0] in 'aeiouAEIOU' else 'a'} {words}"


def column_list(columns: Any) -> Any:
    """Return names of columns as a list, also for a single name; None stays None."""
    return [columns] if isinstance(columns, str) else columns


def as_of_arguments(version: Any, timestamp: Any) -> AsOf:
    """Return which version of a table a call means. Raises InvalidArgumentError.

    >>> as_of_arguments(None, "1970-01-01T00:00:01Z").timestamp_ms
    1000
    """
    if version is not None and timestamp is not None:
        raise InvalidArgumentError("give a version or a timestamp, not both", found=f"{version} and {timestamp}")
    if version is not None and (not _is_count(version) or version < 0):
        raise InvalidArgumentError("version must be a number from 0 on", found=kind_of(version), hint="version=7")
    if timestamp is None:
        return AsOf(None if version is None else int(version))
    hint = 'timestamp="2024-05-01T12:00:00Z", or a datetime with a time zone'
    try:
        # Before 3.11 Python does not read the Z.
        moment = (
            datetime.datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", timestamp)) if _is_text(timestamp) else timestamp
        )
    except ValueError:
        raise InvalidArgumentError("timestamp is not a time", found=kind_of(timestamp), hint=hint) from None
    if not isinstance(moment, datetime.datetime) or moment.tzinfo is None:
        raise InvalidArgumentError("timestamp must be a time with a time zone", found=kind_of(timestamp), hint=hint)
    return AsOf(None, (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // _MILLISECOND)


def typed_arguments(cls: ClassT) -> ClassT:
    """Check the arguments of all public methods of a class, inherited ones and the constructor included."""
    members = {name: value for part in reversed(cls.__mro__[:-1]) for name, value in vars(part).items()}
    for name, value in members.items():
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(value, classmethod):
            setattr(cls, name, classmethod(_checked(value.__func__, cls.__name__)))
        elif callable(value) and hasattr(value, "__code__"):
            setattr(cls, name, _checked(value, cls.__name__))
    return cls


def _checked(function: Any, class_name: str) -> Any:
    code = function.__code__
    names = code.co_varnames[1 : code.co_argcount]
    known = {*names, *code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]}
    kinds = {name: KINDS[name] for name in known if name in KINDS}
    optional = dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
    optional.update(function.__kwdefaults__ or {})

    @functools.wraps(function)
    def call(self: Any, /, *args: Any, **given: Any) -> Any:
        for name, value in (*zip(names, args, strict=False), *given.items()):
            if name in kinds and not (name in optional and value is optional[name]) and not kinds[name].fits(value):
                raise _wrong_kind(function.__name__, class_name, name, value)
        try:
            return function(self, *args, **given)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # raised inside the call
            shown = class_name if function.__name__ == "__init__" else function.__name__
            hint = _CALL_HINTS.get(shown, "")
            raise wrong_call(shown, [*names, *sorted(known.difference(names))], given, error, hint) from None
        except IndexNotFoundError as error:
            suggest = getattr(self, "_suggested", None)
            better = error if suggest is None else suggest(error)
            if better is error:
                raise
            raise better from error

    return call


def _wrong_kind(call: str, class_name: str, name: str, value: Any) -> InvalidArgumentError:
    kind = KINDS[name]
    hint = kind.hint
    if name == "config" and call in _CALL_HINTS:
        hint = f"{call}(table, {_CONFIG})"
        if isinstance(value, str) and value:
            hint = f'{call}(table, BloomIndexConfig({value!r}, ["user_id"]))'
    elif name == "name" and hasattr(value, "name"):
        hint = f"pass its name: {value.name!r}"
    elif kind is _FRAME and type(value).__module__.startswith("pandas"):
        hint = "spark.createDataFrame(frame) makes one of it"
    shown = class_name if call == "__init__" else f"{call}()"
    return InvalidArgumentError(f"{name} of {shown} must be {kind.wanted}", found=kind_of(value), hint=hint)

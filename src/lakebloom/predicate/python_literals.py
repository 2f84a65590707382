"""Python, numpy and Arrow values as literals.

    bool                    boolean                 date                    date
    int                     bigint, or              datetime with a zone    timestamp
                            decimal(38,0) beyond    datetime without        timestamp_ntz
    float                   double                  Decimal                 the narrowest decimal(p,s)
    str, UUID               string                  bytes-like              binary
    None, pandas' NaT       NULL                    numpy, Arrow            by their own type; unsigned ones as Spark
                                                                            reads them: uint32 is a bigint

A UUID becomes its text in lower case, as Spark tables store it.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import uuid
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from pyarrow import types as pt

import lakebloom.arrow_compute as pc
from lakebloom.errors import InvalidArgumentError, UnsupportedTypeError, ValueConversionError
from lakebloom.predicate.spark_types import fits
from lakebloom.predicate.tree import NULL, Literal
from lakebloom.sbbf.values.read import is_scalar, to_chunks

__all__ = ["literal", "literals"]

_MAX_DIGITS = 38
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)


def literal(value: object) -> Literal:
    """Return one value as a literal.

    Raises UnsupportedTypeError for a type that Spark's literals do not have, ValueConversionError for a value that
    Spark's type cannot hold, and InvalidArgumentError for a string that is not legal Unicode.

    >>> literal(5), literal(1.5)
    (Literal(type='bigint', value=5), Literal(type='double', value='1.5'))
    """
    if type(value) is str:  # a list may have a million
        return Literal("string", value)
    if value is None:
        return NULL
    if _is_typed_scalar(value):
        return _from_arrow(to_chunks(value)[0])[0]
    for kind, convert in _CONVERSIONS.items():
        if isinstance(value, kind):
            return convert(value)
    raise UnsupportedTypeError(
        "a column can be compared with a number, a string, bytes, a date, a timestamp or None",
        found=value.__class__.__name__,
        hint="use isin([...]) for several values" if isinstance(value, Iterable) else "convert the value first",
    )


def literals(values: object) -> tuple[Literal, ...]:
    """Return the values of a list, tuple, set or other iterable, a numpy array or an Arrow array as literals."""
    if is_scalar(values) or not isinstance(values, Iterable):
        raise InvalidArgumentError(
            "isin takes a collection of values", found=values.__class__.__name__, hint="use == for one value"
        )
    if isinstance(values, np.ndarray) and values.dtype.kind in "OSU":
        return tuple(map(literal, values.tolist()))
    if isinstance(values, np.ndarray | pa.Array | pa.ChunkedArray):
        return tuple(made for chunk in to_chunks(values) for made in _from_arrow(chunk))
    return tuple(map(literal, values))


def _is_typed_scalar(value: object) -> bool:
    # numpy's strings and bytes are also Python's. As arrays they would lose NULs at the end.
    if isinstance(value, str | bytes | pa.UuidScalar):
        return False
    return isinstance(value, np.generic | pa.Scalar) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _int(value: int) -> Literal:
    if fits(value, 64):
        return Literal("bigint", int(value))
    if abs(value) < 10**_MAX_DIGITS:
        return Literal(f"decimal({_MAX_DIGITS},0)", str(int(value)))
    raise ValueConversionError(f"a number has at most {_MAX_DIGITS} digits", found=f"{value.bit_length()} bits")


def _str(value: str) -> Literal:
    return Literal("string", str.__str__(value))  # not str(value): an enum's __str__ returns the member's name


def _datetime(value: datetime.datetime) -> Literal:
    if value != value:  # pandas' NaT, which is a datetime
        return NULL
    if getattr(value, "nanosecond", 0):  # pandas' Timestamp
        raise ValueConversionError("a timestamp cannot be finer than microseconds", found=str(value))
    if value.utcoffset() is None:
        return Literal("timestamp_ntz", int((value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND))
    return Literal("timestamp", int((value - _EPOCH_UTC) // _MICROSECOND))


def _date(value: datetime.date) -> Literal:
    return Literal("date", (value - _EPOCH.date()).days)


def _decimal(value: decimal.Decimal) -> Literal:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueConversionError("a decimal must be finite", found=str(value))
    scale = max(-exponent, 0)
    if len(digits) + max(exponent, 0) > _MAX_DIGITS or scale > _MAX_DIGITS:
        raise ValueConversionError(f"a decimal has at most {_MAX_DIGITS} digits", found=str(value))
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    precision = max(len(str(unscaled)), scale)
    return Literal(f"decimal({precision},{scale})", str(-unscaled if sign else unscaled))


def _binary(value: Any) -> Literal:
    return Literal("binary", base64.b64encode(value).decode())


# The order matters: a bool is an int, and a datetime is a date.
_CONVERSIONS: dict[type, Callable[[Any], Literal]] = {
    bool: lambda value: Literal("boolean", value),
    int: _int,
    float: lambda value: Literal("double", float.__repr__(value)),
    str: _str,
    bytes: _binary,
    bytearray: _binary,
    memoryview: _binary,
    datetime.datetime: _datetime,
    datetime.date: _date,
    decimal.Decimal: _decimal,
    uuid.UUID: lambda value: Literal("string", str(value)),
    pa.UuidScalar: lambda value: literal(value.as_py()),
}

_ARROW_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
}


def _from_arrow(array: pa.Array) -> list[Literal]:
    kind = array.type
    if pt.is_dictionary(kind):
        return _from_arrow(array.dictionary_decode())
    if pt.is_null(kind):
        return [NULL] * len(array)
    if kind in _ARROW_NAMES:
        return _typed(_ARROW_NAMES[kind], array.to_pylist())
    if pt.is_uint64(kind):
        return _typed("decimal(20,0)", array.to_pylist(), str)
    if pt.is_float16(kind) or pt.is_float32(kind):
        return _typed("float", _cast(array, pa.float32()).to_pylist(), repr)
    if pt.is_date(kind):
        return _typed("date", _cast(_cast(array, pa.date32()), pa.int32()).to_pylist())
    if pt.is_timestamp(kind):
        micros = _cast(_cast(array, pa.timestamp("us", kind.tz)), pa.int64())
        return _typed("timestamp_ntz" if kind.tz is None else "timestamp", micros.to_pylist())
    if pt.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= _MAX_DIGITS:
        unscaled = decimal.Context(prec=_MAX_DIGITS, traps=[decimal.Inexact])
        scale = decimal.Decimal(kind.scale)
        return _typed(
            f"decimal({kind.precision},{kind.scale})",
            array.to_pylist(),
            lambda value: str(int(value.scaleb(scale, unscaled))),
        )
    if _is_plain(kind):
        return [literal(value) for value in array.to_pylist()]
    _refuse(kind)


def _typed(name: str, values: list[Any], form: Callable[[Any], bool | int | str] | None = None) -> list[Literal]:
    return [Literal(name, value if form is None or value is None else form(value)) for value in values]


def _is_plain(kind: pa.DataType) -> bool:
    """Tell whether Python has one type for these values, so that ``literal`` converts them."""
    text = pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)
    octets = pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind) or pt.is_fixed_size_binary(kind)
    return bool(text or octets or pt.is_float64(kind) or pt.is_decimal(kind) or str(kind) == "extension<arrow.uuid>")


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return pc.cast(array, kind)
    except pa.ArrowInvalid as error:
        raise ValueConversionError(f"values of type {array.type} do not fit {kind}", found=str(error)) from error


def _refuse(kind: pa.DataType) -> NoReturn:
    raise UnsupportedTypeError("values of this Arrow type cannot be compared with a column", found=str(kind))

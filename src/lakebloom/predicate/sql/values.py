"""Values in a condition, read as the type of the column that they are compared with.

smallint ... bigint, decimal     42, -7, 1.50; also in quotes
float, double                    1.5, 1e-3, 'NaN', '-Infinity': the nearest value that the column can hold
string                           'text', a quote inside is doubled
binary                           X'00FF', or 'text' for its UTF-8 bytes
date                             '2024-02-29', with or without DATE before it
timestamp                        '2024-02-29 12:30:00+01:00'; without a zone it is UTC
timestamp_ntz                    '2024-02-29 12:30:00'
boolean                          TRUE, FALSE
any                              NULL
"""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Callable
from dataclasses import dataclass

from lakebloom.errors import InvalidArgumentError, ValueConversionError
from lakebloom.predicate.python_literals import literal
from lakebloom.predicate.spark_types import Kind, SparkType, spark_type
from lakebloom.predicate.tree import NULL, Literal

__all__ = ["NOT_VALID", "Written", "typed"]

NOT_VALID = "not a valid value of this type"
_MAX_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Written:
    """A value as written: the text, without quotes if it has any, and the keyword before the quotes."""

    text: str
    quoted: bool = False
    prefix: str = ""

    @classmethod
    def of(cls, kind: str, text: str) -> Written:
        """Return a token of the parser as a value."""
        if kind not in ("string", "prefixed"):
            return cls(text)
        prefix, _, rest = text.partition("'")
        return cls(rest[:-1].replace("''", "'"), quoted=True, prefix=prefix.strip().upper())


def typed(written: Written, column_type: str) -> Literal:
    """Return a value as a literal to compare with a column of this Spark type.

    Raises InvalidArgumentError or ValueConversionError for a text that is not a value of the type.

    >>> typed(Written("1.50"), "decimal(10,2)"), typed(Written("2024-02-29", quoted=True), "date")
    (Literal(type='decimal(3,2)', value='150'), Literal(type='date', value=19782))
    """
    if not written.quoted and written.text.upper() == "NULL":
        return NULL
    kind = spark_type(column_type)
    read = _READERS.get(kind.kind)
    if read is None:  # values of this type are never hashed or compared, only shown
        return Literal(column_type, written.text)
    try:
        return read(written, kind)
    except (ValueError, decimal.InvalidOperation, OverflowError) as error:
        if isinstance(error, InvalidArgumentError | ValueConversionError):
            raise
        raise InvalidArgumentError(NOT_VALID, found=written.text, hint=_EXAMPLES[kind.kind]) from error


def _number(written: Written, _: SparkType) -> Literal:
    _require_no_prefix(written)
    number = decimal.Decimal(_digits(written))
    whole = number.is_finite() and number.adjusted() < _MAX_DIGITS and number == number.to_integral_value()
    return literal(int(number) if whole and "." not in written.text else number)


def _floating(written: Written, kind: SparkType) -> Literal:
    _require_no_prefix(written)
    number = float(_digits(written))
    if kind.bits == 32:
        (number,) = struct.unpack("<f", struct.pack("<f", number))
        return Literal("float", repr(number))
    return literal(number)


def _digits(written: Written) -> str:
    """Return a text that SQL reads as a number. Python also reads 1_000 and digits of other scripts."""
    if "_" in written.text or not written.text.isascii():
        raise ValueError(written.text)
    return written.text


def _string(written: Written, _: SparkType) -> Literal:
    _require_no_prefix(written)
    if not written.quoted:
        raise InvalidArgumentError("text needs quotes", found=written.text, hint=f"write '{written.text}'")
    return literal(written.text)


def _binary(written: Written, _: SparkType) -> Literal:
    if not written.quoted:
        raise InvalidArgumentError("bytes need quotes", found=written.text, hint=_EXAMPLES[Kind.BINARY])
    return literal(bytes.fromhex(written.text) if written.prefix == "X" else written.text.encode())


def _date(written: Written, _: SparkType) -> Literal:
    _require_prefix(written, "DATE")
    return literal(datetime.date.fromisoformat(written.text))


def _timestamp(written: Written, kind: SparkType) -> Literal:
    _require_prefix(written, "TIMESTAMP", "TIMESTAMP_NTZ")
    text = written.text.strip()
    if text.upper().endswith(("Z", "UTC")):  # Python 3.10 reads offsets only
        text = text.rstrip("zZ").removesuffix("UTC").strip() + "+00:00"
    moment = datetime.datetime.fromisoformat(text)
    if kind.kind is Kind.TIMESTAMP:
        return literal(moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.timezone.utc))
    if moment.tzinfo is not None:
        raise InvalidArgumentError("the type has no time zone", found=written.text, hint="leave the zone out")
    return literal(moment)


def _boolean(written: Written, _: SparkType) -> Literal:
    if written.text.upper() not in ("TRUE", "FALSE"):
        raise ValueError(written.text)
    return literal(written.text.upper() == "TRUE")


def _require_prefix(written: Written, *prefixes: str) -> None:
    if written.prefix not in ("", *prefixes) or not written.quoted:
        raise ValueError(written.text)


def _require_no_prefix(written: Written) -> None:
    if written.prefix:
        raise InvalidArgumentError(f"{written.prefix} values have another type", found=written.text)


_READERS: dict[Kind, Callable[[Written, SparkType], Literal]] = {
    Kind.INTEGER: _number,
    Kind.DECIMAL: _number,
    Kind.FLOATING: _floating,
    Kind.STRING: _string,
    Kind.BINARY: _binary,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMP_NTZ: _timestamp,
    Kind.BOOLEAN: _boolean,
}
_EXAMPLES = {
    Kind.INTEGER: "write a number such as 42",
    Kind.DECIMAL: "write a number such as 1.50",
    Kind.FLOATING: "write a number such as 1.5",
    Kind.STRING: "write 'text'",
    Kind.BINARY: "write X'00FF'",
    Kind.DATE: "write '2024-02-29'",
    Kind.TIMESTAMP: "write '2024-02-29 12:30:00+01:00'",
    Kind.TIMESTAMP_NTZ: "write '2024-02-29 12:30:00'",
    Kind.BOOLEAN: "write TRUE or FALSE",
}

"""Values of partitions: from what manifests hold to the JSON form of the specification, and to constants of files.

Writers differ in the types that they declare for one partition field: a day is an int for some and a date for others,
and readers must take both. So a value gets the type that follows from the table's partition spec, whatever its manifest
declares: otherwise the deletes of one writer would not reach the files of another one.

The value of an identity partition is that of the column in all rows of the file, which may not have the column at all:
a table that was migrated from Hive keeps such files.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lakebloom.errors import DataFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakebloom.tables.formats.iceberg.manifests import ListedFile
    from lakebloom.tables.formats.iceberg.metadata import PartitionField, PartitionSpec

__all__ = ["Partition", "Partitions", "identity_sources", "value_to_json"]

_IDENTITY, _VOID = "identity", "void"
_COUNTED = frozenset({"year", "month", "day", "hour", "bucket"})
_FIRST_FIELD_ID = 1000
_EPOCH = datetime.datetime(1970, 1, 1)
_DECIMAL = re.compile(r"decimal\(\d+, ?(\d+)\)")
_BYTES = re.compile(r"(uuid|binary)$|fixed\[")
_EXACT = decimal.Context(prec=80, traps=[decimal.InvalidOperation, decimal.Inexact])
_UNKNOWN = ""
_UNITS = {"date": "days", "time": "µs of a day"} | {
    f"{name}{ending}": unit for name in ("timestamp", "timestamptz") for ending, unit in (("", "µs"), ("_ns", "ns"))
}
_HELD_AS = {"boolean": bool, "int": int, "long": int, "float": float, "double": float, "string": str} | dict.fromkeys(
    _UNITS, int
)


class Partition(NamedTuple):
    """The partition of a file. Two are equal if they are the same one, whoever wrote the manifests."""

    spec_id: int
    values: tuple[str | None, ...]
    """In JSON, in the order of the spec's fields; None is NULL."""


class Partitions:
    """Tells the partitions of a table's files."""

    def __init__(self, specs: Mapping[int, PartitionSpec], columns: Mapping[int, str]) -> None:
        """``columns`` are the types of all columns that the table ever had, by id."""
        self._specs = specs
        self._fields = {
            number: tuple(
                (_number(place, field), _result_type(field, columns)) for place, field in enumerate(spec.fields)
            )
            for number, spec in specs.items()
        }

    def is_everywhere(self, spec_id: int) -> bool:
        """Tell whether equality deletes of a spec are about the files of all partitions."""
        spec = self._specs.get(spec_id)
        return spec is None or spec.is_unpartitioned

    def of(self, entry: ListedFile) -> Partition:
        """Return the partition of a file. Raises DataFileError where its values are not what the spec says."""
        held = {number: (declared, value) for number, declared, value in entry.partition}
        try:
            return Partition(
                entry.spec_id,
                tuple(
                    value_to_json(kind, *held.get(number, (kind, None)))
                    for number, kind in self._fields.get(entry.spec_id, ())
                ),
            )
        except (ValueError, ArithmeticError) as error:
            raise DataFileError(
                f"{entry.uri} has a partition that does not fit the table's partition spec {entry.spec_id}",
                found=str(error) or type(error).__name__,
                hint="query the table with its own engine to see whether it can read it",
            ) from error

    def constants(self, entry: ListedFile, partition: Partition) -> tuple[tuple[str, str | None], ...]:
        """Return the values of columns that all rows of a file have, by ``#id``."""
        held = {number for number, _, _ in entry.partition}
        fields = zip(self._specs[entry.spec_id].fields, self._fields[entry.spec_id], partition.values, strict=True)
        return tuple(
            (f"#{field.source_id}", value)
            for field, (number, _), value in fields
            if field.transform == _IDENTITY and field.source_id is not None and number in held
        )


def value_to_json(kind: str, declared: str, value: Any) -> str | None:
    """Return a value of a manifest as JSON: the same for all types that a manifest may declare for it.

    ``kind`` is the type that follows from the partition spec, empty where that is not known. Raises ValueError or
    ArithmeticError for what is no value of the type.

    >>> value_to_json("date", "date", 19782), value_to_json("date", "int", 19782)
    ('"2024-02-29"', '"2024-02-29"')
    >>> value_to_json("timestamptz", "timestamp", 1), value_to_json("int", "int", None)
    ('"1970-01-01T00:00:00.000001+00:00"', None)
    """
    if value is None or kind == _VOID:
        return None
    if declared in _UNITS and kind in _UNITS and _UNITS[declared] != _UNITS[kind]:
        raise ValueError(f"{declared} instead of {kind}")
    return msgspec.json.encode(_plain(kind, value)).decode()


def _plain(kind: str, value: Any) -> Any:
    if kind in _HELD_AS and type(value) is not _HELD_AS[kind]:
        raise ValueError(f"{type(value).__name__} instead of {kind}")
    scale = _DECIMAL.fullmatch(kind)
    if scale is not None:
        return _plain_decimal(value, int(scale[1]))
    if isinstance(value, uuid.UUID):
        value = value.bytes
    if _BYTES.match(kind) and not isinstance(value, bytes):
        raise ValueError(f"{type(value).__name__} instead of {kind}")
    if isinstance(value, bytes):
        return str(uuid.UUID(bytes=value)) if kind == "uuid" else value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and kind in _UNITS:
        return _plain_time(kind, value)
    return value if isinstance(value, bool | int | float | str) else str(value)


def _plain_decimal(value: Any, scale: int) -> str:
    if isinstance(value, bytes):  # a manifest may leave out what the bytes mean
        value = _EXACT.scaleb(decimal.Decimal(int.from_bytes(value, "big", signed=True)), -scale)
    if not isinstance(value, decimal.Decimal):
        raise ValueError(f"{type(value).__name__} instead of a decimal")
    return format(value.quantize(decimal.Decimal(1).scaleb(-scale), context=_EXACT), "f")


def _plain_time(kind: str, value: int) -> str | int:
    try:
        if kind == "date":
            return (_EPOCH + datetime.timedelta(days=value)).date().isoformat()
        if _UNITS[kind] == "µs":
            moment = (_EPOCH + datetime.timedelta(microseconds=value)).isoformat()
            return f"{moment}+00:00" if kind == "timestamptz" else moment
    except OverflowError:
        pass  # beyond what Python can say; the partition is known all the same, only the column cannot be read
    return value


def _number(place: int, field: PartitionField) -> int:
    return _FIRST_FIELD_ID + place if field.field_id is None else field.field_id


def _result_type(field: PartitionField, columns: Mapping[int, str]) -> str:
    """Return the type of a partition field; empty where it is not known."""
    transform = field.transform.partition("[")[0]
    if transform in _COUNTED:
        return "int"
    if transform in (_IDENTITY, "truncate"):
        return columns.get(field.source_id or 0, _UNKNOWN)
    return _VOID if transform == _VOID else _UNKNOWN


def identity_sources(specs: Mapping[int, PartitionSpec]) -> frozenset[int]:
    """Return the ids of the columns that are partition values in some spec."""
    return frozenset(
        field.source_id
        for spec in specs.values()
        for field in spec.fields
        if field.transform == _IDENTITY and field.source_id is not None
    )

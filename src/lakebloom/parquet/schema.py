"""The schema of a Parquet file: the footer has its elements in depth-first order; the leaves are the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from thrift.Thrift import TType

from lakebloom.errors import CorruptFooterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.parquet.thrift_tree import Struct
    from lakebloom.sbbf.hashing.parquet import PhysicalType

__all__ = ["Leaf", "LogicalType", "Repetition", "SchemaElement", "leaves_of", "physical_type", "read_element"]

Repetition: TypeAlias = Literal["REQUIRED", "OPTIONAL", "REPEATED"]

MAX_SCHEMA_DEPTH = 128

_PHYSICAL_TYPES: tuple[PhysicalType, ...] = (
    "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY",
)  # fmt: skip
_REPETITIONS: tuple[Repetition, ...] = ("REQUIRED", "OPTIONAL", "REPEATED")
_CONVERTED_TYPES = (
    "UTF8", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME_MILLIS", "TIME_MICROS",
    "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS", "UINT_8", "UINT_16", "UINT_32", "UINT_64", "INT_8", "INT_16", "INT_32",
    "INT_64", "JSON", "BSON", "INTERVAL",
)  # fmt: skip
_LOGICAL_TYPES = {
    1: "STRING", 2: "MAP", 3: "LIST", 4: "ENUM", 5: "DECIMAL", 6: "DATE", 7: "TIME", 8: "TIMESTAMP", 10: "INTEGER",
    11: "UNKNOWN", 12: "JSON", 13: "BSON", 14: "UUID", 15: "FLOAT16", 16: "VARIANT", 17: "GEOMETRY", 18: "GEOGRAPHY",
}  # fmt: skip
_UNITS = {1: "ms", 2: "us", 3: "ns"}


@dataclass(frozen=True, slots=True)
class LogicalType:
    """The logical type of a column. Only DECIMAL, TIME, TIMESTAMP and INTEGER have parameters."""

    name: str
    """The name in the specification; "#19" for an unknown member of the union."""
    scale: int | None = None
    precision: int | None = None
    unit: str | None = None
    """"ms", "us" or "ns" """
    is_adjusted_to_utc: bool | None = None
    bit_width: int | None = None
    is_signed: bool | None = None


@dataclass(frozen=True, slots=True)
class SchemaElement:
    """A column or a group of columns. Missing and unknown attributes are None."""

    name: str
    physical_type: PhysicalType | None
    type_length: int | None
    repetition: Repetition | None
    num_children: int
    converted_type: str | None
    logical_type: LogicalType | None
    scale: int | None
    precision: int | None
    field_id: int | None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column of the file. The column chunks of a row group are in the order of the leaves."""

    number: int
    path: tuple[str, ...]
    element: SchemaElement
    ancestors: tuple[int, ...]
    """The schema elements above it, and its own, without the root."""
    is_repeated: bool
    """True within a list or map."""

    @property
    def physical_type(self) -> PhysicalType:
        """How its values are stored."""
        return cast("PhysicalType", self.element.physical_type)


def read_element(tree: Struct) -> SchemaElement:
    """Return the element of a SchemaElement struct."""
    name = tree.get(4, TType.STRING)
    return SchemaElement(
        name=text("the name of a column", name if name is not None else b""),
        physical_type=physical_type(tree.get(1, TType.I32)),
        type_length=tree.get(2, TType.I32),
        repetition=_member(_REPETITIONS, tree.get(3, TType.I32)),
        num_children=tree.get(5, TType.I32) or 0,
        converted_type=_member(_CONVERTED_TYPES, tree.get(6, TType.I32)),
        logical_type=_logical_type(tree.get(10, TType.STRUCT)),
        scale=tree.get(7, TType.I32),
        precision=tree.get(8, TType.I32),
        field_id=tree.get(9, TType.I32),
    )


def leaves_of(elements: Sequence[SchemaElement]) -> tuple[Leaf, ...]:
    """Return the columns of a schema. Raises CorruptFooterError if the elements are not one tree."""
    if not elements:
        raise _corrupt("no elements")
    leaves: list[Leaf] = []
    # Open schema groups: how many children are missing, and path, ancestors and repetition of these children.
    waiting: list[tuple[int, tuple[str, ...], tuple[int, ...], bool]] = [(elements[0].num_children, (), (), False)]
    for number, element in enumerate(elements[1:], 1):
        while waiting and waiting[-1][0] == 0:
            waiting.pop()
        if not waiting:
            raise _corrupt(f"{len(elements)} elements, the last {len(elements) - number} outside of the tree")
        missing, path, ancestors, repeated = waiting.pop()
        waiting.append((missing - 1, path, ancestors, repeated))
        below = (*path, element.name), (*ancestors, number), repeated or element.repetition == "REPEATED"
        # A schema group may be empty; a column has a type and no children.
        if element.num_children or element.physical_type is None:
            if element.num_children < 0 or len(waiting) > MAX_SCHEMA_DEPTH:
                raise _corrupt(f"{element.num_children} children at depth {len(waiting)}")
            waiting.append((element.num_children, *below))
        else:
            leaves.append(Leaf(len(leaves), below[0], element, below[1], below[2]))
    if any(missing for missing, *_ in waiting):
        raise _corrupt(f"a tree that goes on after its {len(elements)} elements")
    return tuple(leaves)


def physical_type(number: int | None) -> PhysicalType | None:
    """Return the physical type with this number in a footer, None for an unknown number."""
    return cast("PhysicalType | None", _member(_PHYSICAL_TYPES, number))


def text(what: str, data: bytes) -> str:
    """Return bytes of the footer as text. Raises CorruptFooterError."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptFooterError(
            f"{what} in a Parquet file is not UTF-8", found=data[:64].hex(" "), hint="check that the file is complete"
        ) from error


def _member(members: tuple[Any, ...], number: int | None) -> Any:
    return members[number] if number is not None and 0 <= number < len(members) else None


def _logical_type(union: Struct | None) -> LogicalType | None:
    if union is None or not union.fields:
        return None
    number, kind, member = union.fields[0]
    if kind != TType.STRUCT:
        raise _corrupt(f"a logical type of Thrift type {kind} instead of a struct")
    name = _LOGICAL_TYPES.get(number, f"#{number}")
    if name == "DECIMAL":
        return LogicalType(name, scale=member.get(1, TType.I32), precision=member.get(2, TType.I32))
    if name in ("TIME", "TIMESTAMP"):
        unit = member.get(2, TType.STRUCT)
        units = [_UNITS.get(choice) for choice, _, _ in unit.fields] if unit is not None else []
        return LogicalType(name, unit=units[0] if units else None, is_adjusted_to_utc=member.get(1, TType.BOOL))
    if name == "INTEGER":
        return LogicalType(name, bit_width=member.get(1, TType.BYTE), is_signed=member.get(2, TType.BOOL))
    return LogicalType(name)


def _corrupt(found: str) -> CorruptFooterError:
    return CorruptFooterError(
        "the schema of a Parquet file is not a tree of columns", found=found, hint="check that the file is complete"
    )

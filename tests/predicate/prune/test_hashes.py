"""Which literals can be asked of which columns, and that they are asked by the hash that the column's values have."""

from __future__ import annotations

import base64
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakebloom import hash_values
from lakebloom.predicate.column import col
from lakebloom.predicate.prune import hashes as literals_module
from lakebloom.predicate.prune.hashes import to_hash, to_hashes, why_kept
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.tree import NULL, Literal
from lakebloom.sbbf.hashing.hash_values import hash_array
from lakebloom.tables.columns import arrow_type

NAN = float("nan")

# Literal, column type, the value that the column holds where they are equal.
ASKED: list[tuple[Literal, str, Any]] = [
    (Literal("int", 5), "int", 5),
    (Literal("tinyint", 5), "smallint", 5),
    (Literal("bigint", 5), "smallint", 5),
    (Literal("bigint", -(2**15)), "smallint", -(2**15)),
    (Literal("bigint", 2**31 - 1), "int", 2**31 - 1),
    (Literal("smallint", -1), "bigint", -1),
    (Literal("bigint", -(2**63)), "bigint", -(2**63)),
    (Literal("decimal(5,2)", "500"), "int", 5),
    (Literal("decimal(38,0)", str(2**63 - 1)), "bigint", 2**63 - 1),
    (Literal("bigint", 5), "decimal(5,2)", Decimal("5.00")),
    (Literal("bigint", -999), "decimal(5,2)", Decimal("-999.00")),
    (Literal("decimal(2,1)", "15"), "decimal(5,2)", Decimal("1.50")),
    (Literal("decimal(5,2)", "150"), "decimal(10,1)", Decimal("1.5")),
    (Literal("decimal(38,4)", "15000"), "decimal(9,2)", Decimal("1.50")),
    (Literal("decimal(3,2)", "-150"), "decimal(18,2)", Decimal("-1.50")),
    (Literal("decimal(3,2)", "-150"), "decimal(38,10)", Decimal("-1.50")),
    (Literal("float", "1.5"), "float", 1.5),
    (Literal("double", "1.5"), "float", 1.5),
    (Literal("double", "Infinity"), "float", float("inf")),
    (Literal("float", "0.10000000149011612"), "double", float(np.float32(0.1))),
    (Literal("double", "0.1"), "double", 0.1),
    (Literal("double", "-0.0"), "double", 0.0),
    (Literal("double", "0.0"), "double", -0.0),
    (Literal("float", "-0.0"), "float", 0.0),
    (Literal("double", "-0.0"), "float", 0.0),
    (Literal("double", "NaN"), "double", NAN),
    (Literal("double", "NaN"), "float", NAN),
    (Literal("float", "NaN"), "double", NAN),
    (Literal("bigint", 5), "double", 5.0),
    (Literal("bigint", 2**53), "double", float(2**53)),
    (Literal("int", 2**24), "float", float(2**24)),
    (Literal("string", "ä"), "string", "ä"),
    (Literal("string", ""), "string", ""),
    (Literal("binary", base64.b64encode(b"\x00\xff").decode()), "binary", b"\x00\xff"),
    (Literal("date", -1), "date", -1),
    (Literal("timestamp", 1_700_000_000_123_456), "timestamp", 1_700_000_000_123_456),
    (Literal("timestamp_ntz", -1), "timestamp_ntz", -1),
]

KEPT: list[tuple[Literal, str]] = [
    # out of range: never a guess
    (Literal("bigint", 3_000_000_000), "int"),
    (Literal("int", 40_000), "smallint"),
    (Literal("decimal(38,0)", str(2**63)), "bigint"),
    (Literal("bigint", 1000), "decimal(5,2)"),
    (Literal("decimal(4,0)", "-1000"), "decimal(5,2)"),
    (Literal("double", "1e300"), "float"),
    # not exact
    (Literal("decimal(2,1)", "15"), "int"),
    (Literal("decimal(4,3)", "1505"), "decimal(5,2)"),
    (Literal("double", "0.1"), "float"),
    (Literal("bigint", 2**53 + 1), "double"),
    (Literal("bigint", 2**63 - 1), "double"),
    (Literal("int", 2**24 + 1), "float"),
    # doubles against exact numbers, which Spark compares as doubles
    (Literal("double", "5.0"), "int"),
    (Literal("double", "5.0"), "bigint"),
    (Literal("double", "1.5"), "decimal(5,2)"),
    (Literal("float", "5.0"), "int"),
    (Literal("decimal(2,1)", "15"), "double"),
    # other kinds
    (Literal("string", "5"), "int"),
    (Literal("bigint", 5), "string"),
    (Literal("string", "a"), "binary"),
    (Literal("binary", "YQ=="), "string"),
    (Literal("boolean", True), "int"),
    (Literal("string", "2024-01-01"), "date"),
    (Literal("bigint", 5), "date"),
    (Literal("bigint", 5), "timestamp"),
    *(
        (Literal(one, 0), other)
        for one, other in product(("date", "timestamp", "timestamp_ntz"), repeat=2)
        if one != other
    ),
    # types that no filter has
    (Literal("string collate UTF8_LCASE", "a"), "string"),
    (Literal("string", "a"), "string collate UTF8_LCASE"),
    (Literal("string collate UTF8_LCASE", "a"), "string collate UTF8_LCASE"),
    (Literal("char(3)", "a  "), "string"),
    (Literal("string", "a"), "char(3)"),
    (Literal("string", "a"), "varchar(3)"),
    (Literal("boolean", True), "boolean"),
    (Literal("tinyint", 1), "tinyint"),
    (Literal("interval day", 1), "interval day"),
    (Literal("interval day", 1), "bigint"),
    (Literal("variant", "1"), "array<int>"),
    # NULL has no hash
    (NULL, "int"),
    (Literal("int", None), "int"),
]


def held(value: Any, column_type: str) -> pa.Array:
    kind = arrow_type(column_type)
    if pa.types.is_temporal(kind):
        return pa.array([value], pa.int32() if kind == pa.date32() else pa.int64()).view(kind)
    return pa.array([value], kind)


@pytest.mark.parametrize(("literal", "column_type", "value"), ASKED)
def test_a_literal_is_asked_by_the_hash_of_the_column_s_value(literal: Literal, column_type: str, value: Any) -> None:
    (expected,) = hash_array(held(value, column_type))[0].tolist()
    assert to_hash(literal, column_type) == expected


@pytest.mark.parametrize(("literal", "column_type"), KEPT)
def test_what_does_not_convert_without_loss_is_kept(literal: Literal, column_type: str) -> None:
    assert to_hash(literal, column_type) is None


def test_a_list_of_mixed_types_is_asked_as_a_whole() -> None:
    values = [Literal("bigint", 5), Literal("decimal(3,2)", "600"), Literal("tinyint", 7)]
    hashes, converted = to_hashes(values, "int")
    assert converted
    assert set(hashes.tolist()) == set(hash_values(pa.array([5, 6, 7], pa.int32())).tolist())


@pytest.mark.parametrize("odd", [Literal("double", "5.0"), Literal("string", "5"), Literal("bigint", 2**40), NULL])
def test_one_value_that_cannot_be_asked_keeps_everything(odd: Literal) -> None:
    hashes, converted = to_hashes([Literal("bigint", 5), odd], "int")
    assert not converted
    assert len(hashes) == 0


def test_no_values_have_no_hashes() -> None:
    hashes, converted = to_hashes([], "int")
    assert converted
    assert hashes.dtype == np.uint64
    assert len(hashes) == 0


@pytest.mark.parametrize(
    ("column_type", "values"),
    [
        ("string", [f"user-{i}" for i in range(10_000)]),
        ("int", range(10_000)),
        ("double", [i / 7 for i in range(10_000)]),
        ("decimal(20,4)", [Decimal(i).scaleb(-4) for i in range(10_000)]),
    ],
)
def test_a_long_list_is_hashed_at_once(column_type: str, values: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    def count(array: pa.Array) -> Any:
        hashed.append(len(array))
        return hash_array(array)

    monkeypatch.setattr(literals_module, "hash_array", count)
    hashes, converted = to_hashes(col("a").isin(values).values, column_type)
    assert converted
    assert hashed == [10_000]
    assert set(hashes.tolist()) == set(hash_values(pa.array(values, arrow_type(column_type))).tolist())


@pytest.mark.parametrize(
    ("literal", "column_type", "reason"),
    [
        (Literal("string", "a"), "string collate UTF8_LCASE", Reason.COLLATION),
        (Literal("string collate UNICODE_CI", "a"), "string", Reason.COLLATION),
        (Literal("string", "a"), "char(5)", Reason.CHAR_PADDING),
        (Literal("varchar(5)", "a"), "string", Reason.CHAR_PADDING),
        (Literal("double", "1.5"), "int", Reason.TYPE_MISMATCH),
    ],
)
def test_the_reason_for_keeping(literal: Literal, column_type: str, reason: Reason) -> None:
    assert to_hash(literal, column_type) is None
    assert why_kept([literal], column_type) is reason


def test_every_reason_has_a_code_a_meaning_and_a_remedy() -> None:
    for name, reason in Reason.__members__.items():
        assert reason.value == name
        for line in (reason.meaning, reason.remedy):
            assert line
            assert "\n" not in line

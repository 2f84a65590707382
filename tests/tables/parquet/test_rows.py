"""Rows of a table's files: names as Spark resolves them, nested columns in the table's types, small batches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.errors import ColumnNotFoundError, DataFileError, UnsupportedTypeError
from lakebloom.tables.parquet import rows
from lakebloom.tables.parquet.rows import TableRows
from lakebloom.tables.schema import TableSchema

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.tables.file_identity import TableFile


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def struct(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": [field(*each) for each in fields]}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def table_of(
    path: Path, columns: dict[str, Any], *schema: tuple[str, Any], **options: Any
) -> tuple[TableRows, TableFile]:
    pq.write_table(pa.table(columns), path / "f.parquet", **options.pop("writing", {}))
    parsed = TableSchema.parse(json.dumps(struct(*schema)), case_sensitive=options.pop("case_sensitive", False))
    table = TableRows([str(path)], parsed, [], {}, **options)
    (file,) = table.files()
    return table, file


def read(path: Path, columns: dict[str, Any], *schema: tuple[str, Any], **options: Any) -> list[dict[str, Any]]:
    table, file = table_of(path, columns, *schema, **options)
    wanted = table.schema_of(table.chosen(None))
    with table.opened(file, wanted) as opened:
        whole = opened.read(opened.row_groups, wanted)
    whole.validate(full=True)
    assert pa.Table.from_batches(table.batches(file, None, wanted), wanted) == whole
    found: list[dict[str, Any]] = whole.to_pylist()
    return found


def test_names_without_and_with_regard_to_case(tmp_path: Path) -> None:
    columns = {"K": [1], "s": pa.array([{"A": 2}])}
    schema = ("k", "long"), ("s", struct(("a", "long"), ("A2", "long")))
    assert read(tmp_path, columns, *schema) == [{"k": 1, "s": {"a": 2, "A2": None}}]
    exact = ("k", "long"), ("s", struct(("A", "long"), ("a", "long")))
    assert read(tmp_path, columns, *exact, case_sensitive=True) == [{"k": None, "s": {"A": 2, "a": None}}]


@pytest.mark.parametrize("columns", [{"k": [1], "K": [2]}, {"s": pa.array([{"k": 1, "K": 2}])}])
def test_names_that_fit_several_columns(tmp_path: Path, columns: dict[str, Any]) -> None:
    schema = ("k", "long") if "k" in columns else ("s", struct(("k", "long")))
    with pytest.raises(ColumnNotFoundError, match="several columns k"):
        read(tmp_path, columns, schema)


def test_lists_of_every_layout(tmp_path: Path) -> None:
    values = [[1, None], None, [], [3, 4]]
    layouts = {"list": pa.list_(pa.int32()), "large": pa.large_list(pa.int32())}
    columns: dict[str, Any] = {name: pa.array(values, kind) for name, kind in layouts.items()}
    columns["fixed"] = pa.array([[1, 2], None, [3, None], [5, 6]], pa.list_(pa.int32(), 2))
    found = read(tmp_path, columns, *((name, array("long")) for name in columns))
    assert [row["list"] for row in found] == [row["large"] for row in found] == values
    assert [row["fixed"] for row in found] == [[1, 2], None, [3, None], [5, 6]]


def test_maps_and_nulls_at_every_level(tmp_path: Path) -> None:
    inner = pa.struct([("x", pa.int32()), ("gone", pa.string())])
    values = [{"a": {"x": 1, "gone": "g"}, "b": None}.items(), None, {}.items()]
    kind = {
        "type": "map",
        "keyType": "string",
        "valueType": struct(("new", "string"), ("x", "long")),
        "valueContainsNull": True,
    }
    found = read(tmp_path, {"m": pa.array(map(_pairs, values), pa.map_(pa.string(), inner))}, ("m", kind))
    assert [row["m"] for row in found] == [[("a", {"new": None, "x": 1}), ("b", None)], None, []]


def _pairs(items: Any) -> list[Any] | None:
    return None if items is None else list(items)


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"c": [1]}, struct(("a", "long"))),
        ({"c": pa.array([{"a": 1}])}, "long"),
        ({"c": [[1]]}, "long"),
        ({"c": [1]}, array("long")),
        ({"c": pa.array([{"a": 1}])}, struct(("b", "long"))),
        ({"c": [2**40]}, "integer"),
        ({"c": pa.array([300], pa.int32())}, "byte"),
        ({"c": [[2**40]]}, array("integer")),
        ({"c": ["x"]}, "boolean"),
        ({"c": [1]}, "timestamp"),
        ({"c": pa.array([1], pa.timestamp("us"))}, "timestamp"),
    ],
)
def test_what_spark_reads_otherwise_is_refused(tmp_path: Path, columns: dict[str, Any], kind: Any) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column c.*query the table with Spark"):
        read(tmp_path, columns, ("c", kind))


def test_bytes_are_strings_without_being_decoded(tmp_path: Path) -> None:
    table, file = table_of(tmp_path, {"c": [b"abc", b"\xff"]}, ("c", "string"))
    (batch,) = table.batches(file, None, table.schema_of(["c"]))
    assert batch.column("c").cast(pa.binary()).to_pylist() == [b"abc", b"\xff"]


def test_batches_have_few_rows_or_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BATCH_ROWS", 30)
    columns = {"k": range(100), "s": ["x" * 100] * 100}
    options = {"writing": {"row_group_size": 50, "use_dictionary": False}}
    table, file = table_of(tmp_path, columns, ("k", "long"), ("s", "string"), ("none", "long"), **options)
    schema = table.schema_of(["k", "s"])
    assert [batch.num_rows for batch in table.batches(file, None, schema)] == [30, 20, 30, 20]
    assert [batch["k"][0].as_py() for batch in table.batches(file, [1], schema)] == [50, 80]
    assert [batch.num_rows for batch in table.batches(file, None, table.schema_of(["none"]))] == [30, 20, 30, 20]
    monkeypatch.setattr(rows, "BATCH_BYTES", 1000)
    assert max(batch.num_rows for batch in table.batches(file, None, schema)) < 10


def test_damage_is_named(tmp_path: Path) -> None:
    table, file = table_of(tmp_path, {"k": range(100)}, ("k", "long"))
    data = bytearray((tmp_path / "f.parquet").read_bytes())
    data[4:60] = bytes(56)
    (tmp_path / "f.parquet").write_bytes(data)
    with pytest.raises(DataFileError, match=r"could not read .*f\.parquet as Parquet"):
        list(table.batches(file, None, table.schema_of(["k"])))

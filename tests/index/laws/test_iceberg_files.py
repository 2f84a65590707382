"""The files of an Iceberg table are those of a snapshot, with the rows that its deletes leave."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebloom import col
from lakebloom.errors import DataFileError, LakebloomError, NotFoundError, UnsupportedSourceError
from lakebloom.tables.formats.iceberg.table import Source
from tests.index.iceberg_lake import P_SPEC, IcebergIndexes, Model
from tests.index.logged_lake import NAME
from tests.tables.formats.iceberg.hand_table import Entry, HandTable, column, with_id

SCHEMA = pa.schema([with_id("k", pa.int64(), 1), with_id("s", pa.string(), 2)])


def rows(*values: int) -> pa.Table:
    return pa.table([list(values), [f"s{value}" for value in values]], schema=SCHEMA)


def plain(root: Path, **options: Any) -> HandTable:
    return HandTable(root, [column(1, "k", "long"), column(2, "s", "string")], **options)


def keys(indexes: IcebergIndexes, where: str = "k is null or k is not null", **options: Any) -> list[int]:
    return sorted(indexes.open().lookup(NAME, where, **options)["k"].to_pylist())


def test_equality_deletes_apply_to_older_rows_only(tmp_path: Path) -> None:
    table = plain(tmp_path / "t")
    table.commit(table.data(rows(1, 2, 3)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    key = pa.schema([with_id("k", pa.int64(), 1)])
    # A row of the same commit has the same sequence number, and stays.
    table.commit(table.equality(pa.table([[1, 3]], schema=key), [1]), table.data(rows(1)))
    assert keys(indexes) == [1, 2]
    table.commit(table.data(rows(3)))
    assert keys(indexes) == [1, 2, 3]
    assert keys(indexes, "k = 3") == [3]
    indexes.refresh()
    assert keys(indexes, "k = 3", unindexed="error") == [3]
    assert keys(indexes, "k = 1", unindexed="skip") == [1]


@pytest.mark.slow
def test_equality_deletes_know_null_and_every_type(tmp_path: Path) -> None:
    kinds: dict[str, tuple[pa.DataType, list[Any]]] = {
        "double": (pa.float64(), [1.5, math.nan, 0.0, -0.0, None]),
        "float": (pa.float32(), [1.5, math.nan, 0.0, -0.0, None]),
        "uuid": (pa.binary(16), [b"0123456789abcdef", b"x" * 16, None]),
        "boolean": (pa.bool_(), [True, False, None]),
        "time": (pa.time64("us"), [1, 2, None]),
        "date": (pa.date32(), [1, 2, None]),
        "timestamptz": (pa.timestamp("us", "UTC"), [1, 2, None]),
        "decimal(9, 2)": (pa.decimal128(9, 2), [1, 2, None]),
        "binary": (pa.binary(), [b"", b"x", None]),
        "string": (pa.string(), ["", "x", None]),
    }
    for number, (kind, (stored, values)) in enumerate(kinds.items()):
        for deleted in values:
            root = tmp_path / f"{number} {deleted}".replace("/", "_")
            table = HandTable(root / "t", [column(1, "k", "long"), column(2, "v", kind)])
            fields = pa.schema([with_id("k", pa.int64(), 1), with_id("v", stored, 2)])
            given = pa.array(values, stored)
            table.commit(table.data(pa.table([pa.array(range(len(values))), given], schema=fields)))
            indexes = IcebergIndexes(root, root / "t")
            indexes.create("k")
            only = pa.schema([with_id("v", stored, 2)])
            table.commit(table.equality(pa.table([pa.array([deleted], stored)], schema=only), [2]))
            found = indexes.open().lookup(NAME, "k is null or k is not null", columns=["k"])["k"].to_pylist()
            assert found == [at for at, value in enumerate(values) if repr(value) != repr(deleted)], (kind, deleted)


def test_equality_deletes_on_columns_that_were_promoted_or_dropped(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t", [column(1, "k", "long"), column(2, "v", "int")])
    fields = pa.schema([with_id("k", pa.int64(), 1), with_id("v", pa.int32(), 2)])
    table.commit(table.data(pa.table([[1, 2, 3], [5, 6, None]], schema=fields)))
    table.schema([column(1, "k", "long"), column(2, "v", "long")])
    large = pa.table([[5, 6 + (1 << 32)]], schema=pa.schema([with_id("v", pa.int64(), 2)]))
    table.commit(table.equality(large, [2]))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    assert keys(indexes) == [2, 3]
    table.schema([column(1, "k", "long")])
    assert keys(indexes) == [2, 3]
    # A file that was written after the column was dropped does not have it: its rows are NULL there.
    table.commit(table.data(pa.table([[4]], schema=pa.schema([with_id("k", pa.int64(), 1)]))))
    nothing = pa.table([pa.array([None], pa.int64())], schema=pa.schema([with_id("v", pa.int64(), 2)]))
    table.commit(table.equality(nothing, [2]))
    assert keys(indexes) == [2]


def test_equality_deletes_of_a_partition_stay_in_it(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    for partition in ("a", "b", None):
        model.append([{1: 1, 2: "x", 3: partition}], with_partition=partition != "b")
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    model.delete_equal([1], [(1,)], model.files[0])
    assert indexes.open().lookup(NAME, "k = 1")["p"].to_pylist() == ["b", None]
    # The value of a partition is that of the column, also where the file does not have it.
    model.delete_equal([3, 1], [("b", 1), ("c", 1)], None)
    assert indexes.open().lookup(NAME, "k = 1")["p"].to_pylist() == [None]


def test_a_vector_takes_the_place_of_position_deletes(tmp_path: Path) -> None:
    table = plain(tmp_path / "t", version=3)
    data = table.data(rows(*range(100)))
    table.commit(data)
    first = table.current
    old = table.positions({data.path: [0]}, data)
    table.commit(old)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.vector([1, 99], data))
    assert keys(indexes) == [0, *range(2, 99)]
    assert len(keys(indexes, version=first)) == 100
    assert keys(indexes, "k = 99", timestamp="2023-11-14T22:13:22+00:00") == [99]


@pytest.mark.parametrize("alone", [True, False])
def test_position_deletes_that_a_vector_took_the_place_of_are_not_read(tmp_path: Path, alone: bool) -> None:
    table = plain(tmp_path / "t", version=3)
    data = table.data(rows(0, 1, 2))
    table.commit(data)
    old = table.positions({data.path: [0]}, data, alone=alone)
    old.format = "AVRO"
    table.commit(old)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    with pytest.raises(DataFileError, match="not Parquet"):
        keys(indexes)
    table.commit(table.vector([0, 1], data))
    assert keys(indexes) == [2]
    # Equality deletes are no part of a vector.
    other = table.equality(pa.table([[2]], schema=pa.schema([with_id("k", pa.int64(), 1)])), [1])
    other.format = "ORC"
    table.commit(other)
    with pytest.raises(DataFileError, match="not Parquet"):
        keys(indexes)


def test_a_vector_of_no_file_is_an_error(tmp_path: Path) -> None:
    """Nobody knows which rows it deletes, and they would come back."""
    table = plain(tmp_path / "t", version=3)
    data = table.data(rows(0, 1, 2))
    table.commit(data)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    vector = table.vector([0], data)
    vector.referenced = None
    table.commit(vector)
    with pytest.raises(DataFileError, match="does not say of which file"):
        keys(indexes)


def test_equality_deletes_by_no_column_are_an_error(tmp_path: Path) -> None:
    table = plain(tmp_path / "t")
    table.commit(table.data(rows(1, 2)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.equality(pa.table([[1]], schema=pa.schema([with_id("k", pa.int64(), 1)])), []))
    with pytest.raises(DataFileError, match="does not say by which columns"):
        keys(indexes)


def test_damaged_deletes_are_errors_and_rows_do_not_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = plain(tmp_path / "t", version=3)
    files = [table.data(rows(1, 2)) for _ in range(3)]
    table.commit(*files)
    key = pa.schema([with_id("k", pa.int64(), 1)])
    deletes = [
        table.vector([0], files[0]),
        table.positions({files[1].path: [0]}, files[1], alone=True),
        table.equality(pa.table([[1]], schema=key), [1]),
    ]
    table.commit(*deletes)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    assert keys(indexes, "k = 1") == []
    from lakebloom.tables.formats.iceberg import equality_deletes, position_deletes

    # Without what is kept: a thread of a lookup that failed may still keep what it read of the good file.
    monkeypatch.setattr(equality_deletes, "_deleted_values", equality_deletes._deleted_values.__wrapped__)
    monkeypatch.setattr(position_deletes, "_by_file", position_deletes._by_file.__wrapped__)
    for entry in deletes:
        path = Path(entry.path)
        good = path.read_bytes()
        for bad in (None, good[:-9] if entry.format == "PARQUET" else good[:12], b"\0" * len(good)):
            if bad is None:
                path.unlink()
            else:
                path.write_bytes(bad)
            with pytest.raises(LakebloomError):
                keys(indexes, "k = 1")
            path.write_bytes(good)
    assert keys(indexes, "k = 1") == []


def test_deletes_that_are_not_parquet_are_refused(tmp_path: Path) -> None:
    table = plain(tmp_path / "t")
    data = table.data(rows(1, 2))
    table.commit(data)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(Entry(str(tmp_path / "x.avro"), 5, 1, 0, (), 1, "AVRO"))
    with pytest.raises(DataFileError, match="not Parquet"):
        keys(indexes, "k = 1")


@pytest.mark.parametrize("kind", ["ORC", "AVRO"])
def test_data_files_of_other_formats_are_never_skipped(tmp_path: Path, kind: str) -> None:
    table = plain(tmp_path / "t")
    other = tmp_path / f"t/data/x.{kind.lower()}"
    other.write_bytes(b"ORC or Avro")
    table.commit(table.data(rows(1, 2)), Entry(str(other), 11, 1, 0, (), 0, kind))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    assert indexes.entry().summary["files_rejected"] == 1
    for where in ("k = 1", "k = 77"):
        with pytest.raises(UnsupportedSourceError, match=f"is a file of {kind}.*rewrite the table's data files"):
            keys(indexes, where)
    assert keys(indexes, "k = 1", unindexed="skip") == [1]


def test_only_files_of_the_snapshot_are_candidates(tmp_path: Path) -> None:
    table = plain(tmp_path / "t")
    first, second = table.data(rows(1, 2)), table.data(rows(2, 3))
    table.commit(first, second)
    before = table.current
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(removed=[first])
    lake = indexes.open()
    assert lake.candidates(NAME, col("k") == 2)["path"].to_pylist() == [second.path]
    for unindexed in ("scan", "skip", "error"):
        assert keys(indexes, "k = 2", unindexed=unindexed) == [2]
        assert keys(indexes, "k = 2", unindexed=unindexed, version=before) == [2, 2]
    table.roll_back(before)
    assert keys(indexes, "k = 2", unindexed="error") == [2, 2]


def test_another_file_of_the_same_name_and_size_is_not_the_indexed_one(tmp_path: Path) -> None:
    table = plain(tmp_path / "t")
    first = table.data(rows(1, 2))
    table.commit(first)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(removed=[first])
    again = table.data(rows(3, 4))
    Path(again.path).replace(first.path)
    again.path = first.path
    assert again.size == first.size
    table.commit(again)
    assert keys(indexes, "k = 3") == [3]
    assert keys(indexes, "k = 1") == []


def test_a_refresh_reads_new_files_only(tmp_path: Path) -> None:
    table = plain(tmp_path / "t")
    table.commit(*[table.data(rows(number)) for number in range(20)])
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    assert indexes.create("k").files == 20
    for number in range(2):
        table.commit(table.data(rows(100 + number)))
    assert indexes.refresh().files == 2
    assert indexes.entry().table.snapshot is not None
    assert indexes.entry().table.snapshot.version == table.current
    again = indexes.entry().version
    indexes.refresh()
    assert indexes.entry().version == again


def test_a_metadata_file_is_one_version_for_ever(tmp_path: Path) -> None:
    table = plain(tmp_path / "t")
    table.commit(table.data(rows(1)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t", Source(metadata=f"file://{table.metadata_file}"))
    indexes.create("k")
    table.commit(table.data(rows(2)))
    assert keys(indexes) == [1]
    indexes.refresh()
    assert keys(indexes) == [1]


def test_a_file_that_is_expired_meanwhile(tmp_path: Path) -> None:
    """A lookup answers for the snapshot after it, or says that the file is gone."""
    table = plain(tmp_path / "t")
    first = table.data(rows(1, 2))
    table.commit(first)
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    before = table.current
    table.commit(table.data(rows(1, 3)), removed=[first])
    Path(first.path).unlink()
    assert keys(indexes, "k = 1") == [1]
    with pytest.raises(NotFoundError):
        keys(indexes, "k = 1", version=before)


def test_an_empty_table_and_its_first_rows(tmp_path: Path) -> None:
    table = plain(tmp_path / "t", spec=[P_SPEC | {"source-id": 2}])
    table.commit(table.data(rows(1), 0, ("s1",)))
    indexes = IcebergIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(removed=table.manifests[0].entries)
    assert keys(indexes) == []
    table.commit(table.data(rows(4), 0, ("s4",)))
    assert keys(indexes, "s = 's4'") == [4]

"""Deletion vectors: the rows that deltalake's own engine leaves out, and an error for everything that is damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.errors import DataFileError, LakebloomError, NotFoundError
from lakebloom.tables.formats.delta.deletion_vectors import DeletionVector
from lakebloom.tables.formats.delta.log import DeltaLog
from tests.tables.formats.delta.hand_table import HandTable, field
from tests.tables.formats.delta.judge import judged_rows

SETS: list[set[int]] = [set(), {0}, {1, 5, 99}, set(range(50)), set(range(0, 100, 2)), set(range(100))]


def live_rows(root: Path, version: int | None = None) -> list[int]:
    """Return the keys that are left when the vectors of a version are applied."""
    log = DeltaLog(f"file://{root}")
    snapshot = log.newest() if version is None else log.at(version)
    found: list[int] = []
    for entry in snapshot.data_files.values():
        keys = np.array(pq.read_table(entry.file.uri.removeprefix("file://"))["k"].to_pylist(), dtype=np.int64)
        if entry.deletes is not None:
            keys = keys[~entry.deletes.open({}).deleted(np.arange(len(keys), dtype=np.int64))]
        found += keys.tolist()
    return sorted(found)


def keys(start: int, count: int = 100) -> pa.Table:
    return pa.table({"k": pa.array(range(start, start + count), pa.int64())})


@pytest.mark.parametrize("form", ["inline", "relative", "relative with prefix", "absolute"])
def test_the_rows_that_are_left_are_those_of_deltalake(tmp_path: Path, form: str) -> None:
    table = HandTable(tmp_path, [field("k", "long")])
    added = [table.add(f"{number}.parquet", keys(1000 * number)) for number in range(len(SETS))]
    table.commit(*added)
    if form == "inline":
        vectors = [table.inline(rows) for rows in SETS]
    else:
        vectors = table.stored(*SETS, prefix="ab" if "prefix" in form else "", absolute=form == "absolute")
    table.commit(*map(table.remove, added), *map(table.again, added, vectors))
    assert live_rows(tmp_path) == sorted(row["k"] for row in judged_rows(tmp_path))
    assert live_rows(tmp_path, 1) == sorted(row["k"] for row in judged_rows(tmp_path, version=1))


def test_a_large_file_with_runs_and_bits(tmp_path: Path) -> None:
    table = HandTable(tmp_path, [field("k", "long")])
    added = table.add("a.parquet", keys(0, 200_000))
    (vector,) = table.stored({*range(10, 9000), *range(70_000, 190_000, 3), 199_999})
    table.commit(table.again(added, vector))
    assert live_rows(tmp_path) == sorted(row["k"] for row in judged_rows(tmp_path))


def vector_of(tmp_path: Path) -> tuple[DeletionVector, Path]:
    table = HandTable(tmp_path, [field("k", "long")])
    (described,) = table.stored({1, 2, 70_000})
    added = table.add("a.parquet", keys(0))
    table.commit(table.again(added, described))
    (entry,) = DeltaLog(f"file://{tmp_path}").newest().data_files.values()
    assert entry.deletes is not None
    return entry.deletes, Path(entry.deletes.uri.removeprefix("file://"))


def test_every_damaged_byte_is_an_error(tmp_path: Path) -> None:
    vector, file = vector_of(tmp_path)
    assert len(vector.open({})) == 3
    whole = file.read_bytes()
    for place in range(1, len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(DataFileError):
            vector.open({})
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(LakebloomError):
            vector.open({})
    file.unlink()
    with pytest.raises(NotFoundError, match="deleted rows would come back"):
        vector.open({})


@pytest.mark.parametrize("change", [{"cardinality": 2}, {"size_bytes": 20}, {"offset": 0}, {"offset": 1 << 40}])
def test_a_vector_that_is_not_as_described_is_an_error(tmp_path: Path, change: dict[str, Any]) -> None:
    vector, _ = vector_of(tmp_path)
    with pytest.raises(LakebloomError):
        msgspec.structs.replace(vector, **change).open({})


def test_a_vector_can_be_sent_to_tasks(tmp_path: Path) -> None:
    vector, _ = vector_of(tmp_path)
    assert msgspec.json.decode(msgspec.json.encode(vector), type=DeletionVector) == vector

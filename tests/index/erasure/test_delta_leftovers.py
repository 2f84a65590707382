"""Erasures from Delta tables: files that no version with the key column has, or that no version has at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.index.delta_lake import DeltaIndexes, Model
from tests.index.logged_lake import NAME

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("case", ["restore", "gap"])
def test_a_file_of_versions_without_the_column_is_read(tmp_path: Path, case: str) -> None:
    """The log of the versions that had both the file and the column is gone."""
    model = Model(tmp_path / "t", mode="name")
    key = model.columns[0]
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    model.append([{key.physical: 1}])
    if case == "gap":
        model.hand.checkpoint()
    model.append([{key.physical: 7}])
    held = model.files[-1]
    if case == "restore":
        model.drop_file(held)
        model.hand.checkpoint()
    indexes.create(key.name)
    model.columns = [each for each in model.columns if each is not key]
    model.alter()
    if case == "restore":
        model.restore(2)
        model.hand.forget(0, 1, 2)
    else:
        model.append([{}])
        model.hand.checkpoint()
        model.hand.forget(0, 2, 3)
    with indexes.open() as lake:
        plan = lake.erasure_plan(NAME, [7])
        assert (plan.rows, plan.rows_hidden, plan.problems) == (0, 1, ())
        for evidence in ("data", "index"):
            assert not plan.check(evidence).erased  # type: ignore[arg-type]
        assert lake.erasure_plan(NAME, [8]).check().erased


def test_the_directory_of_a_leftover_may_name_its_key(tmp_path: Path) -> None:
    table = tmp_path / "t"
    rows = pa.table({"k": [1, 7], "v": ["a", "b"]})
    write_deltalake(str(table), rows)
    indexes = DeltaIndexes(tmp_path, table)
    indexes.create("k")
    # The column of an index becomes one of the partitions only when the table is replaced.
    write_deltalake(str(table), rows, mode="overwrite", schema_mode="overwrite", partition_by=["k"])
    with indexes.open() as lake:
        assert lake.erasure_plan(NAME, [9]).check().erased
        (table / "k=9").mkdir()
        pq.write_table(pa.table({"v": ["x", "y"]}), table / "k=9/left.parquet")
        pq.write_table(pa.table({"k": [10], "v": ["x"]}), table / "left.parquet")
        for key, name, rows in ((9, "k=9/left.parquet", 2), (10, "left.parquet", 1)):
            check = lake.erasure_plan(NAME, [key]).check()
            assert [(file.path, file.rows_hidden) for file in check.held_by] == [(str(table / name), rows)]
        assert lake.erasure_plan(NAME, [11]).check().erased


def test_an_odd_leftover_is_a_problem(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_deltalake(str(table), pa.table({"k": [1, 2], "v": ["a", "b"]}))
    indexes = DeltaIndexes(tmp_path, table)
    indexes.create("k")
    pq.write_table(pa.table({"k": ["seven"], "v": ["x"]}), table / "of-an-older-schema.parquet")
    (table / "junk.parquet").write_bytes(b"PAR1" * 9)
    with indexes.open() as lake:
        check = lake.erasure_plan(NAME, [7]).check()
    assert not check.erased
    assert sorted(name for name in ("of-an-older-schema", "junk") for each in check.problems if name in each) == [
        "junk",
        "of-an-older-schema",
    ]
    assert "not proven" in check.verdict()


@pytest.mark.parametrize("name", ["000000_0", "_tmp/.x", "part-0.parquet.inprogress", ".hidden/part-0"])
def test_leftovers_are_known_by_their_bytes(tmp_path: Path, name: str) -> None:
    table = tmp_path / "t"
    write_deltalake(str(table), pa.table({"k": [1, 2], "v": ["a", "b"]}))
    indexes = DeltaIndexes(tmp_path, table)
    indexes.create("k")
    (table / "notes.txt").write_text("no Parquet file at all")
    (table / name).parent.mkdir(exist_ok=True)
    with indexes.open() as lake:
        assert lake.erasure_plan(NAME, [7]).check().erased
        pq.write_table(pa.table({"k": [7], "v": ["x"]}), table / name)
        check = lake.erasure_plan(NAME, [7]).check()
    assert [(file.path, file.state) for file in check.held_by] == [(str(table / name), "unreferenced")]
    assert not check.erased

"""The statement of a plan is run on a Delta table by deltalake's engine: it deletes the rows that the plan counted."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.index.delta_lake import DeltaIndexes
from tests.index.logged_lake import NAME, ordered
from tests.tables.formats.delta.judge import judged_rows

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.index.erasure.records import ErasurePlan

_DELETE = re.compile(r"DELETE FROM delta\.`(?P<path>[^`]*)` WHERE `(?P<column>[^`]*)` (?P<rest>IN \(.*\));")
_MERGE = re.compile(
    r"CREATE OR REPLACE TEMPORARY VIEW erased_keys AS SELECT key FROM parquet\.`(?P<keys>[^`]*)`;\n"
    r"MERGE INTO delta\.`(?P<path>[^`]*)` AS t USING erased_keys AS k "
    r"ON t\.`(?P<column>[^`]*)` = k\.key WHEN MATCHED THEN DELETE;"
)
DAY = datetime.date(2024, 2, 29)
COLUMNS: dict[str, list[Any]] = {
    "long": [-1, 7, 1 << 62, 8],
    "string": ["user-7", "", "a b", "100%", "it's", "zürich"],
    "date": [DAY, datetime.date(1999, 12, 31), DAY + datetime.timedelta(1)],
    "binary": [b"\x00\xff", b"", b"seven"],
    "double": [1.5, -0.0, 1e300],
}
KINDS = {
    "long": pa.int64(),
    "string": pa.string(),
    "date": pa.date32(),
    "binary": pa.binary(),
    "double": pa.float64(),
}


def run(plan: ErasurePlan) -> int:
    """Run the first statement with deltalake, and return how many rows it deleted."""
    statement = plan.steps[0].statement
    deleted = _DELETE.fullmatch(statement)
    if deleted is not None:
        # deltalake quotes names in another way than Spark.
        found = DeltaTable(deleted["path"]).delete(f'"{deleted["column"]}" {deleted["rest"]}')
        return int(found["num_deleted_rows"])
    merged = _MERGE.fullmatch(statement)
    assert merged is not None, statement
    keys = pq.read_table(merged["keys"])
    merger = DeltaTable(merged["path"]).merge(keys, f't."{merged["column"]}" = k.key', "k", "t")
    return int(merger.when_matched_delete().execute()["num_target_rows_deleted"])


@pytest.mark.parametrize("with_file", [False, True])
@pytest.mark.parametrize("kind", COLUMNS)
def test_it_deletes_what_the_plan_counts(tmp_path: Path, kind: str, with_file: bool) -> None:
    values = COLUMNS[kind]
    rows = pa.table({"the key": pa.array(values, KINDS[kind]), "n": pa.array(range(len(values)), pa.int64())})
    for _ in range(2):
        write_deltalake(tmp_path / "t", rows, mode="append")
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("`the key`")
    lake = indexes.open()
    for value in values[:-1]:
        plan = lake.erasure_plan(NAME, [value])
        assert plan.rows == 2
        if with_file or not _DELETE.fullmatch(plan.steps[0].statement):
            plan = plan.write_keys(tmp_path / "keys.parquet")
        assert run(plan) == 2
        check = plan.check()
        assert (check.rows, check.erased) == (0, False)  # older versions hold them
    left = judged_rows(tmp_path / "t")
    assert ordered(left) == ordered([row for row in rows.to_pylist() if row["the key"] == values[-1]] * 2)
    DeltaTable(tmp_path / "t").vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert lake.erasure_plan(NAME, values[:-1]).check().erased
    assert lake.erasure_plan(NAME, values[-1:]).rows == 2


def test_many_keys_are_read_from_a_file(tmp_path: Path) -> None:
    for part in range(3):
        keys = pa.array(range(part * 500, part * 500 + 500), pa.int64())
        write_deltalake(tmp_path / "t", pa.table({"k": keys}), mode="append")
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    plan = lake.erasure_plan(NAME, range(0, 2000, 3)).write_keys(tmp_path / "keys.parquet")
    assert plan.rows == run(plan) == 500
    assert plan.check().rows == 0
    assert len(judged_rows(tmp_path / "t")) == 1000

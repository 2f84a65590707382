"""What ``test_iceberg_metadata.py`` runs with Iceberg's connector, on tables opened from metadata files."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from lakebloom import BloomIndexConfig, Lakebloom
from tests.index.iceberg_lake import IcebergIndexes
from tests.index.laws.test_iceberg import History
from tests.spark.iceberg_cases import Cases
from tests.spark.iceberg_connector import session, table_frame

SQL = {"int": "INT", "long": "BIGINT", "string": "STRING"}


def main(home: str, seeds: str, steps: str) -> None:
    """Follow histories: a seed is a number and the version of the format, as 3v2."""
    spark = session()
    found = {each: history(spark, Path(home) / each, each, int(steps)) for each in seeds.split(",")}
    spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


def history(spark: Any, home: Path, name: str, steps: int) -> dict[str, Any]:
    """Compare queries after each step of one history, some of them of older snapshots."""
    seed, version = map(int, name.split("v"))
    random_ = random.Random(seed)
    # The connector fails where rows are deleted by a column that was dropped since, and takes no defaults in filters.
    table = History(home / "t", seed, version, equality=seed % 3 != 0)
    if table.equality or version == 3:
        table.drop_and_add = lambda: None  # type: ignore[method-assign]
    indexes = IcebergIndexes(home, home / "t")
    indexes.create("k", "s")
    lake = Lakebloom(spark, indexes.location)
    cases = Cases(spark, lake)
    for number in range(steps):
        table.step()
        if number % 3 == 2:
            indexes.refresh(random_.choice(["quick", "full"]))
            lake.enable()
        _compare(cases, table, number, None, random_)
        _compare(cases, table, number, random_.choice(list(table.model.snapshots)), random_)
    _sources(cases, lake, table, name)
    lake.close()
    return cases.found


def _sources(cases: Cases, lake: Lakebloom, table: History, name: str) -> None:
    """A DataFrame of a metadata file is a source that has no newer version."""
    file = str(table.model.hand.metadata_file)
    lake.create_index(table_frame(cases.spark, file), BloomIndexConfig(f"fixed_{name}", ["k"]))
    known = lake.catalog.index(f"fixed_{name}").log.newest().table.snapshot
    assert known is not None
    assert known.fixed
    assert known.metadata == f"file://{file.removeprefix('file://')}"


def _compare(cases: Cases, table: History, number: int, snapshot: int | None, random_: random.Random) -> None:
    model = table.model
    columns, rows = (model.columns if snapshot is None else model.snapshots[snapshot][0]), model.rows(snapshot)
    column = random_.choice(columns)
    values = [row[column.name] for row in rows if row[column.name] is not None]
    value = random_.choice([*values, table._value(column, 1)]) if values else table._value(column, 1)
    text = "IS NULL" if value is None else f"= {value!r}"
    condition = f"`{column.name}` {text}"
    file = str(model.hand.metadata_file)
    where = "now" if snapshot is None else "then"
    # The connector refuses older snapshots without a column by which the table was partitioned later.
    cases.same_or_refused(
        f"{number} {where} {condition}", lambda: table_frame(cases.spark, file, snapshot).where(condition)
    )
    if number % 2 == 0:
        keys = cases.spark.sql(
            f"VALUES (CAST({'NULL' if value is None else repr(value)} AS {SQL[column.kind]})) AS t(x)"
        )

        def joined() -> Any:
            table = table_frame(cases.spark, file, snapshot)
            return table.join(keys, table[f"`{column.name}`"].eqNullSafe(keys.x))

        cases.same_or_refused(f"{number} {where} joined by {column.name}", joined)


if __name__ == "__main__":
    main(*sys.argv[1:])

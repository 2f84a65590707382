"""What ``test_iceberg_random.py`` runs on Spark 3.5: a random history of a table in SQL, with queries in between."""

from __future__ import annotations

import json
import random
import sys
from typing import TYPE_CHECKING, Any

from lakebloom import BloomIndexConfig, Lakebloom
from tests.spark.iceberg_catalog import COW, MOR
from tests.spark.iceberg_connector import catalog_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WIDER = {"int": "BIGINT", "float": "DOUBLE", "decimal(9,2)": "DECIMAL(18, 2)"}
NAMES = ("k", "s", "x", "y", "z", "w")


class History:
    """A random history. What Iceberg itself cannot do is tried, and nothing is lost."""

    def __init__(self, spark: SparkSession, home: str, seed: int) -> None:
        self.spark, self.random, self.name = spark, random.Random(seed), f"h{seed}"
        self.table = f"ice.db.{self.name}"
        self.lake = Lakebloom(spark, f"{home}/indexes{seed}")
        self.next = 0
        self.failed: dict[str, int] = {}
        version = 2 + seed % 2
        spark.sql(
            f"CREATE TABLE {self.table} (k INT, s STRING, x FLOAT, y DECIMAL(9, 2), p INT) USING iceberg "
            f"PARTITIONED BY (p) TBLPROPERTIES ('format-version'='{version}', {MOR})"
        )
        for _ in range(3):
            self.append()
        self.lake.create_index(f"{home}/warehouse/db/{self.name}", BloomIndexConfig(self.name, ["k", "s", "x", "y"]))

    @property
    def columns(self) -> dict[str, str]:
        return dict(self.spark.table(self.table).dtypes)

    def value(self, kind: str, key: int) -> str:
        """Return a literal; the same key has the same value in all columns, and large ones where they fit."""
        key = key * 17 % 101
        if key % 11 == 10:
            return "NULL"
        if kind == "string":
            return f"'s{key}'"
        return f"{key + (5_000_000_000 if kind == 'bigint' and key % 3 == 0 else 0)}"

    def append(self) -> None:
        kinds = self.columns
        rows = []
        for key in range(self.next, self.next + self.random.randint(1, 12)):
            values = [f"{key % 2}" if name == "p" else self.value(kind, key) for name, kind in kinds.items()]
            rows.append(f"({', '.join(values)})")
        self.next += len(rows)
        self.spark.sql(f"INSERT INTO {self.table} VALUES {', '.join(rows)}")

    def condition(self, kinds: dict[str, str]) -> str:
        name = self.random.choice(list(kinds))
        key = self.random.randrange(self.next)
        value = f"{key % 2}" if name == "p" else self.value(kinds[name], key)
        if value == "NULL":
            return f"`{name}` IS NULL"
        other = self.value(kinds[name], key + 1)
        return self.random.choice(
            [f"`{name}` = {value}", f"`{name}` = {value}", f"`{name}` <=> {value}", f"`{name}` IN ({value}, {other})"]
        )

    def delete(self) -> None:
        self.spark.sql(f"DELETE FROM {self.table} WHERE {self.condition(self.columns)}")

    def update(self) -> None:
        kinds = self.columns
        name = self.random.choice([name for name in kinds if name != "p"])
        value = self.value(kinds[name], self.random.randrange(self.next))
        self.spark.sql(f"UPDATE {self.table} SET `{name}` = {value} WHERE {self.condition(kinds)}")

    def merge(self) -> None:
        kinds = self.columns
        name = self.random.choice([name for name in kinds if name != "p"])
        keys = ", ".join(f"({self.value(kinds[name], self.random.randrange(self.next))})" for _ in range(2))
        self.spark.sql(
            f"MERGE INTO {self.table} AS t USING (SELECT DISTINCT col1 AS v FROM VALUES {keys}) AS u "
            f"ON t.`{name}` = u.v "
            + self.random.choice(["WHEN MATCHED THEN DELETE", "WHEN MATCHED THEN UPDATE SET p = 1 - p"])
        )

    def alter(self, text: str) -> None:
        self.spark.sql(f"ALTER TABLE {self.table} {text}")

    def rename(self) -> None:
        name = self.random.choice([name for name in self.columns if name != "p"])
        self.alter(f"RENAME COLUMN {name} TO {self.random.choice(NAMES)}")

    def add(self) -> None:
        self.alter(f"ADD COLUMN {self.random.choice(NAMES)} {self.random.choice(['INT', 'STRING'])}")

    def drop(self) -> None:
        if len(self.columns) > 3:
            self.alter(f"DROP COLUMN {self.random.choice([name for name in self.columns if name != 'p'])}")

    def widen(self) -> None:
        for name, kind in self.columns.items():
            if kind in WIDER and name != "p":
                self.alter(f"ALTER COLUMN {name} TYPE {WIDER[kind]}")
                return

    def partition(self) -> None:
        name = self.random.choice([name for name in self.columns if name != "p"])
        transform = self.random.choice([f"bucket(2, {name})", f"truncate(1, {name})", "p"])
        self.alter(f"{self.random.choice(['ADD', 'DROP'])} PARTITION FIELD {transform}")

    def mode(self) -> None:
        self.alter(f"SET TBLPROPERTIES ({self.random.choice([MOR, COW])})")

    def compact(self) -> None:
        self.spark.sql(
            f"CALL ice.system.rewrite_data_files(table => 'db.{self.name}', options => map('rewrite-all', 'true'))"
        )

    def manifests(self) -> None:
        self.spark.sql(f"CALL ice.system.rewrite_manifests('db.{self.name}')")

    def expire(self) -> None:
        self.spark.sql(
            f"CALL ice.system.expire_snapshots(table => 'db.{self.name}', older_than => TIMESTAMP '2100-01-01', "
            "retain_last => 3)"
        )

    def snapshots(self) -> list[int]:
        found = self.spark.sql(f"SELECT snapshot_id FROM {self.table}.snapshots").collect()
        return [row[0] for row in found]

    def roll_back(self) -> None:
        chosen = self.random.choice(self.snapshots())
        self.spark.sql(f"CALL ice.system.set_current_snapshot('db.{self.name}', {chosen})")

    def refresh(self) -> None:
        self.lake.refresh_index(self.name, mode=self.random.choice(["quick", "quick", "full"]))

    def step(self) -> str:
        usual = [self.append] * 5 + [self.delete] * 2 + [self.update] * 2 + [self.merge] * 2 + [self.refresh] * 3
        rare = [self.rename, self.add, self.drop, self.widen, self.partition, self.mode, self.compact, self.manifests]
        chosen = self.random.choice([*usual, *rare, self.expire, self.roll_back])
        self.lake.enable()
        try:
            chosen()
        except Exception:  # such as a name that is taken, or a column of a partition that cannot go
            self.failed[chosen.__name__] = self.failed.get(chosen.__name__, 0) + 1
        return chosen.__name__

    def frames(self) -> list[tuple[str, str]]:
        """Return places and conditions to query."""
        chosen = self.random.choice(self.snapshots())
        then = f"{self.table} VERSION AS OF {chosen}"
        old = dict(self.spark.sql(f"SELECT * FROM {then}").dtypes)
        now = self.columns
        return [(self.table, self.condition(now)), (self.table, self.condition(now)), (then, self.condition(old))]


def outcome(frame: DataFrame) -> Any:
    """Return the rows of a query, or the kind of its error: Iceberg cannot filter columns that were renamed since."""
    try:
        return sorted(map(str, frame.collect()))
    except Exception as error:
        return type(error).__name__


def follow(spark: SparkSession, home: str, seed: int, steps: int) -> dict[str, Any]:
    """Compare queries after each step."""
    history = History(spark, home, seed)
    wrong, files, kept, rows, errors = [], 0, 0, 0, 0
    for number in range(steps):
        done = history.step()
        for place, condition in history.frames():
            query = f"SELECT * FROM {place} WHERE {condition}"
            history.lake.enable()
            ours = outcome(spark.sql(query))
            last = history.lake.last_query()
            history.lake.disable()
            theirs = outcome(spark.sql(query))
            if ours != theirs:
                wrong.append([number, done, query, len(ours), len(theirs)])
            if isinstance(ours, str):
                errors += 1
                continue
            rows += len(ours)
            for scan in () if last is None else last.scans:
                files, kept = files + (scan.files or 0), kept + (scan.files_kept or 0)
    history.lake.close()
    return {
        "wrong": wrong, "files": files, "kept": kept, "rows": rows, "errors": errors, "failed": history.failed
    }  # fmt: skip


def main(home: str, steps: str, *seeds: str) -> None:
    """Follow the histories of some seeds."""
    spark = catalog_session(f"{home}/warehouse")
    found = {seed: follow(spark, home, int(seed), int(steps)) for seed in seeds}
    spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

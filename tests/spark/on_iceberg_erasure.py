"""What ``test_iceberg_erasure.py`` runs on Spark 3.5 with Iceberg's connector: the statements of erasure plans."""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.index.iceberg_lake import IcebergIndexes
from tests.index.logged_lake import NAME
from tests.spark.iceberg_connector import catalog_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebloom.index.erasure.records import ErasureReport

_MERGE_ON_READ = "'write.delete.mode'='merge-on-read'"
_TABLES = {
    "copies": "'write.delete.mode'='copy-on-write'",
    "marks": f"'format-version'='2', {_MERGE_ON_READ}",
    "vectors": f"'format-version'='3', {_MERGE_ON_READ}",
}
_KEYS: dict[str, list[Any]] = {
    "k": [7, 25],
    "s": ["s3", "it's 9"],
    "d": [datetime.date(2024, 1, 12)],
    "b": [b"\x00\xff\x0e"],
    "f": [15.5],
}


class Table:
    """A table with an index, a tag and a branch."""

    def __init__(self, spark: SparkSession, home: Path, name: str, properties: str) -> None:
        self._spark, self._name, self.name = spark, name, f"ice.db.{name}"
        columns = "k bigint, s string, d date, b binary, f double"
        spark.sql(f"CREATE TABLE {self.name} ({columns}) USING iceberg TBLPROPERTIES ({properties})")
        for first in (0, 20):
            values = (
                "id, if(id % 10 = 9, concat('it\\'s ', id), concat('s', id)), date_add(DATE'2024-01-01', int(id)), "
                "concat(X'00FF', unhex(lpad(hex(id), 2, '0'))), id + 0.5"
            )
            spark.sql(f"INSERT INTO {self.name} SELECT {values} FROM range({first}, {first + 20}, 1, 1)")
        spark.sql(f"ALTER TABLE {self.name} CREATE TAG `of old`")
        spark.sql(f"ALTER TABLE {self.name} CREATE BRANCH side")
        self.path = home / "warehouse/db" / name
        self._home = home / name
        self.indexes = IcebergIndexes(self._home, self.path)
        self.indexes.create(*_KEYS)

    def count(self) -> int:
        """Count all rows, as Spark reads them."""
        return int(self._spark.sql(f"SELECT count(*) FROM {self.name}").collect()[0][0])

    def run(self, report: ErasureReport, *titles: str) -> None:
        """Run the statements of some steps, with the table's name in the catalog: the index has it by its path."""
        names = {
            f"iceberg.`{self.path}`": self.name,
            f"'`{self.path}`'": f"'db.{self._name}'",
            "CALL iceberg.": "CALL ice.",
        }
        for step in report.steps:
            if not titles or step.title in titles:
                statement = step.statement
                for by_path, name in names.items():
                    statement = statement.replace(by_path, name)
                assert str(self.path) not in statement, statement
                for part in statement.rstrip(";").split(";\n"):
                    self._spark.sql(part)

    def erase(self, column: str, keys: list[Any], *, from_file: bool) -> dict[str, Any]:
        """Do what a plan says, and return what was counted before, between and afterwards."""
        lake = self.indexes.open()
        before = self.count()
        plan = lake.erasure_plan(NAME, keys, column=column)
        if from_file or "keys.parquet" in plan.statement:
            plan = plan.write_keys(self._home / f"{column}.parquet")
        self.run(plan, "Delete the rows")
        deleted = plan.check()
        self.run(deleted)
        # Times in a plan are those of the plan: what the first steps made is expired by the statement of another check.
        self.run(plan.check())
        check = plan.check()
        return {
            "planned": plan.rows,
            "titles": [step.title for step in plan.steps],
            "deleted": before - self.count(),
            "left": [deleted.rows, deleted.erased],
            "erased": [check.rows, check.erased, list(check.problems), [file.path for file in check.held_by]],
        }


def main(home: Path) -> None:
    spark = catalog_session(str(home / "warehouse"))
    found: dict[str, Any] = {}
    for name, properties in _TABLES.items():
        table = Table(spark, home, name, properties)
        for number, (column, keys) in enumerate(_KEYS.items()):
            found[f"{name} {column}"] = table.erase(column, keys, from_file=number % 2 == 1)
    spark.stop()
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

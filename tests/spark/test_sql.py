"""Statements about indexes: what each means, what each returns, and that all else is Spark's."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import IndexExistsError, IndexNotFoundError, InvalidArgumentError, PredicateSyntaxError
from lakebloom.spark.statements import CreateIndex, DropIndex, OneIndex, ShowIndexes, parse_statement
from lakebloom.spark.table_functions import _handlers
from tests.test_package import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MEANINGS = [
    ("CREATE BLOOM INDEX i ON t (k)", CreateIndex(BloomIndexConfig("i", ["k"]), "t")),
    (
        "create bloom index if not exists by-user on table db.events (user_id, s.k, `odd.name`)\n"
        "options (fpp = 0.001, granularity = row_group, global_filter = true, expected_items = 100);",
        CreateIndex(
            BloomIndexConfig("by-user", ["user_id", "s.k", "`odd.name`"], 0.001, 100, "row_group", True),
            "db.events",
            if_not_exists=True,
        ),
    ),
    ("CREATE BLOOM INDEX i ON '/a b/it''s' (k)", CreateIndex(BloomIndexConfig("i", ["k"]), "/a b/it's")),
    ("CREATE BLOOM INDEX i ON parquet.`/data` (k)", CreateIndex(BloomIndexConfig("i", ["k"]), "parquet.`/data`")),
    (
        "CREATE BLOOM INDEX i ON t (k) OPTIONS (granularity = 8192)",
        CreateIndex(BloomIndexConfig("i", ["k"], granularity=8192), "t"),
    ),
    (
        "create or  replace bloom index i on t (k)",
        CreateIndex(BloomIndexConfig("i", ["k"]), "t", or_replace=True),
    ),
    ("REFRESH BLOOM INDEX i", OneIndex("REFRESH", "i")),
    ("REFRESH BLOOM INDEX i QUICK", OneIndex("REFRESH", "i")),
    ("refresh bloom index i full", OneIndex("REFRESH", "i", "full")),
    ("REFRESH BLOOM INDEX i ALLOW SHRINK", OneIndex("REFRESH", "i", allow_shrink=True)),
    ("refresh bloom index i full allow shrink;", OneIndex("REFRESH", "i", "full", allow_shrink=True)),
    ("VACUUM BLOOM INDEX i RETAIN 1.5 HOURS", OneIndex("VACUUM", "i", retention=datetime.timedelta(hours=1.5))),
    ("DROP BLOOM INDEX IF EXISTS `i`", DropIndex("i", if_exists=True)),
    ("SHOW BLOOM INDEXES", ShowIndexes()),
    ("DESCRIBE BLOOM INDEX i", OneIndex("DESCRIBE", "i")),
    ("DESC HISTORY BLOOM INDEX i", OneIndex("HISTORY", "i")),
    *((f"{verb} BLOOM INDEX i", OneIndex(verb, "i")) for verb in ("OPTIMIZE", "VERIFY", "REPAIR", "RESTORE", "VACUUM")),
]


@pytest.mark.parametrize(("text", "meaning"), MEANINGS, ids=[text for text, _ in MEANINGS])
def test_what_a_statement_means(text: str, meaning: object) -> None:
    assert parse_statement(text) == meaning


@pytest.mark.parametrize("text", ["SELECT 1", "CREATE TABLE bloom (index int)", "SHOW TABLES", "DROP INDEX i ON t", ""])
def test_the_rest_is_for_spark(text: str) -> None:
    assert parse_statement(text) is None


MISTAKES = [
    ("CREATE BLOOM INDEX i ON t", "expected \\(", "its end"),
    ("CREATE BLOOM INDEX i t (k)", "expected ON", "'t"),
    ("CREATE BLOOM INDEX i ON t (k) OPTIONS (fp = 1)", "no such option", "did you mean fpp"),
    ("CREATE BLOOM INDEX i ON t ()", "expected a column", r"'\)'"),
    ("REFRESH BLOOM INDEX i SLOWLY", "expected the end", "'SLOWLY'"),
    ("CREATE OR REPLACE BLOOM INDEX IF NOT EXISTS i ON t (k)", "expected ON", "'NOT EXISTS"),
    ("REFRESH BLOOM INDEX i ALLOW", "expected the end", "'ALLOW'"),
    ("DROP BLOOM INDEX", "expected the name of an index", "its end"),
    ("VACUUM BLOOM INDEX i RETAIN many HOURS", "a number of hours", "'many"),
    ("DROP BLOOM INDEX i ยง %", "expected", "%"),
]


@pytest.mark.parametrize(("text", "expected", "found"), MISTAKES, ids=[text for text, *_ in MISTAKES])
def test_a_mistake_is_pointed_at(text: str, expected: str, found: str) -> None:
    with pytest.raises(PredicateSyntaxError, match=f"(?s){expected}.*{found}"):
        parse_statement(text)


@pytest.mark.spark
def test_the_life_of_an_index(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lakebloom(spark, tmp_path / "indexes")
    spark.range(0, 40, 1, 4).selectExpr("id AS k", "id AS v").write.parquet(str(tmp_path / "t"))
    create = f"CREATE BLOOM INDEX {{}} i ON '{tmp_path}/t' (k) OPTIONS (fpp = 0.01)"
    assert lake.sql("SHOW BLOOM INDEXES").collect() == []
    assert dict(lake.sql(create.format("")).collect())["files"] == "4"
    with pytest.raises(IndexExistsError):
        lake.sql(create.format(""))
    assert dict(lake.sql(create.format("IF NOT EXISTS")).collect())["version"] == "1"
    assert dict(lake.sql("CREATE BLOOM INDEX IF NOT EXISTS i ON nowhere (k)").collect())["version"] == "1"
    replace = create.replace("CREATE", "CREATE OR REPLACE").replace("(k)", "(v)")
    assert dict(lake.sql(replace.format("")).collect())["version"] == "2"
    assert dict(lake.sql("DESCRIBE BLOOM INDEX i").collect())["columns"] == "v"
    lake.sql(create.replace("CREATE", "CREATE OR REPLACE").format(""))
    (shown,) = lake.sql("SHOW BLOOM INDEXES").collect()
    assert (shown.name, shown.state, shown.columns, shown.files) == ("i", "active", ["k"], 4)
    spark.range(40, 44, 1, 1).selectExpr("id AS k", "id AS v").write.mode("append").parquet(str(tmp_path / "t"))
    assert dict(lake.sql("REFRESH BLOOM INDEX i").collect())["files"] == "1"
    lake.sql("OPTIMIZE BLOOM INDEX i")
    assert dict(lake.sql("VERIFY BLOOM INDEX i").collect())["corrupt"] == ""
    lake.sql("REPAIR BLOOM INDEX i")
    lake.sql("DROP BLOOM INDEX i")
    assert dict(lake.sql("DESCRIBE BLOOM INDEX i").collect())["state"] == "deleted"
    with pytest.raises(IndexExistsError, match="restore_index"):
        lake.sql(create.format("IF NOT EXISTS"))
    lake.sql("RESTORE BLOOM INDEX i")
    lake.sql("VACUUM BLOOM INDEX i RETAIN 100 HOURS")
    operations = [row.operation for row in lake.sql("DESCRIBE HISTORY BLOOM INDEX i").collect()]
    assert operations[0] == "restore"
    assert operations[-1] == "create"
    assert lake.sql("SELECT 5 AS five").collect()[0].five == 5


@pytest.mark.spark
def test_what_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lakebloom(spark, tmp_path / "indexes")
    assert lake.sql("DROP BLOOM INDEX IF EXISTS i").collect() == []
    for statement in ("DROP BLOOM INDEX i", "REFRESH BLOOM INDEX i", "DESCRIBE BLOOM INDEX i"):
        with pytest.raises(IndexNotFoundError):
            lake.sql(statement)
    with pytest.raises(InvalidArgumentError, match="fpp"):
        lake.sql("CREATE BLOOM INDEX i ON t (k) OPTIONS (fpp = 2)")


def test_the_table_functions_are_documented() -> None:
    page = (ROOT / "docs/SQL.md").read_text()
    for name, (_, columns) in _handlers("nowhere", {}).items():
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{name}(")]
        named = re.findall(r"`(\w+)`", line.split("|")[2])
        assert named == re.findall(r"(?:^|, )(\w+) (?=[a-z])", columns), name


def test_every_statement_is_documented() -> None:
    page = (ROOT / "docs/SQL.md").read_text()
    verbs = {text.split()[0].upper() for text, _ in MEANINGS} - {"DESC"}
    assert all(re.search(rf"^\| `{verb} ", page, re.MULTILINE) for verb in verbs), verbs
    assert verbs == {
        *["CREATE", "REFRESH", "OPTIMIZE", "VACUUM", "VERIFY", "REPAIR", "DROP", "RESTORE", "SHOW", "DESCRIBE"]
    }

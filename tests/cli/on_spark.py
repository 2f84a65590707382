"""The verbs that run Spark, run by test_spark_verbs in a process of its own, because each stops its session."""

from __future__ import annotations

import io
import json
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from lakebloom.cli.main import main
from tests.spark.support import keys, write


def run(*arguments: str) -> dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    return {"code": int(code), "out": out.getvalue(), "err": err.getvalue()}


def everything(home: Path) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    table = str(keys(home / "t", range(1000), range(1000, 2000), range(2000, 3000)))
    place = ["--location", str(home / "indexes"), "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"]
    create = ["create", "by_k", table, "-c", "k", *place]
    found = {
        "advise": run("advise", table, *place[2:], "--output", "json"),
        "dry": run(*create, "--dry-run", "--output", "json"),
        "dry_text": run(*create, "--dry-run"),
        "none_yet": run("list", *place[:2]),
        "create": run(*create, "--output", "json"),
        "again": run(*create),
        "no_column": run("create", "other", table, "-c", "kk", *place),
        "no_table": run("create", "other", str(home / "missing"), "-c", "k", *place),
        "explain": run("explain", f"SELECT * FROM parquet.`{table}` WHERE k = 1500", *place, "--output", "json"),
        "no_sql": run("explain", "SELEKT 1", *place),
    }
    keys(home / "t", range(3000, 4000), first=3)
    found["refresh"] = run("refresh", "by_k", *place)
    write(home / "bare/a.parquet", {"id": range(100)})
    found["embed"] = run("embed", str(home / "bare"), "-c", "id", *place, "--output", "json")
    found["inspect"] = run("inspect", str(home / "bare/a.parquet"), "--output", "json")
    return found


if __name__ == "__main__":
    print(json.dumps(everything(Path(sys.argv[1]))))  # noqa: T201

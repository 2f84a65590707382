"""The outcomes of all lines as Markdown: what passed, what was skipped for which reason, and what failed."""

from __future__ import annotations

import datetime
from collections import Counter

from compatibility.outcomes import Outcome
from compatibility.targets import AREAS, PYTHON, Target

__all__ = ["page"]

INTRODUCTION = """\
The tests of queries, predicates, types, joins, explain, formats, catalogs, embedding, clusters, storage, data source
and Spark Connect, with random queries among them, on the newest patch of every Spark that lakebloom supports. The Java
sources are compiled by the Janino inside that Spark. `make compat` writes this page in one run; only pyspark differs
between the lines.
"""
TWICE = ("Not all is from one run. These files were run once more, after something was mended:", "")


def page(outcomes: list[Outcome], java: str, minutes: float) -> str:
    """Return the page as Markdown."""
    lines = [
        "# Compatibility",
        "",
        INTRODUCTION,
        f"Commit {' and '.join(sorted({each.commit for each in outcomes}))}, {datetime.date.today().isoformat()}, "
        f"Java {java}, Python {PYTHON}, {minutes:.0f} minutes in all.",
        "",
        *repeated(outcomes),
        "| | passed | failed | skipped | minutes |",
        "|---|---:|---:|---:|---:|",
    ]
    for each in outcomes:
        counts = " | ".join(f"{each.count(kind):,}" for kind in ("passed", "failed", "skipped"))
        lines.append(f"| {title(each.target)} | {counts} | {each.minutes:.0f} |")
    lines += ["", "## By area", "", "Passed; in brackets what was skipped.", ""]
    lines += ["| | " + " | ".join(each.target.name for each in outcomes) + " |", "|---" + "|---:" * len(outcomes) + "|"]
    for area, paths in AREAS.items():
        lines.append(f"| {area} | " + " | ".join(cell(each, paths) for each in outcomes) + " |")
    lines += ["", "## What is skipped, and why", ""]
    reasons = sorted({why for each in outcomes for found, why in each.tests.values() if found == "skipped"})
    lines += ["| | " + " | ".join(each.target.name for each in outcomes) + " |", "|---" + "|---:" * len(outcomes) + "|"]
    for reason in reasons:
        counts = [Counter(each.tests.values())["skipped", reason] for each in outcomes]
        lines.append(f"| {reason} | " + " | ".join(str(count or "") for count in counts) + " |")
    failed = [
        f"- {each.target.name}: `{test}`{' (' + why + ')' if why else ''}"
        for each in outcomes
        for test, (found, why) in each.tests.items()
        if found == "failed"
    ]
    lines += ["", "## What failed", "", *(failed or ["Nothing."]), ""]
    return "\n".join([*lines, LIMITS])


def repeated(outcomes: list[Outcome]) -> list[str]:
    """Return the lines about files that were run once more, after something was mended."""
    found = [
        f"- {each.target.name}, commit {commit}: " + ", ".join(f"`{file}`" for file in files)
        for each in outcomes
        for commit in dict.fromkeys(each.again.values())
        if (files := [file for file, at in each.again.items() if at == commit])
    ]
    return [*TWICE, *found, ""] if found else []


def title(target: Target) -> str:
    """Return what a line of the page is about."""
    with_server = f", server {target.server}" if target.server else ""
    return f"{target.package} {target.version}{with_server}"


def cell(outcome: Outcome, paths: tuple[str, ...]) -> str:
    """Return the counts of one area."""
    passed, failed, skipped = (outcome.count(kind, paths) for kind in ("passed", "failed", "skipped"))
    return (
        f"{passed}{f' ({skipped})' if skipped else ''}{f', {failed} failed' if failed else ''}"
        if (passed or failed or skipped)
        else ""
    )


LIMITS = """## Limits

| | |
|---|---|
| Spark 4.0 to 4.3 | Java 17 or newer, Python 3.10 or newer (4.3: 3.11 or newer) |
| Spark 3.5 | classic sessions only. The data source (`lake.read`) and Spark Connect raise an error |
| Python with Spark 3.5 | 3.10 or 3.11, which pyspark 3.5 supports; 3.12 lacks `distutils`, which it imports |
| Installing with Spark 3.5 | `pip install lakebloom "pyspark==3.5.*" "pandas>=2.2,<3"`. The extra `[spark]` brings Spark 4: pyspark 3.5's own extras want numpy 1, and lakebloom needs numpy 2 |
| Java with Spark 3.5 | tested with 17. Spark 3.5 also runs on 8 and 11; lakebloom's Java sources use nothing newer than Java 8, but were not run there |
| Delta Lake | its tables are read from their logs, compared with `deltalake` 1.6.6. Spark's queries of them: contract tests against classes of Delta's names and shapes; no run with Delta's jar, which no package index that the tests reach has (`tests/spark/test_delta_jar.py` runs where `LAKEBLOOM_DELTA_JAR` names one) |
| Iceberg | its tables are read from their metadata, compared with pyiceberg 0.12 and with the connector for Spark (iceberg-spark-runtime 1.10.2, of `snowpark-connect-deps-iceberg` 1.0.2) on Spark 4.3, which opens metadata files without a catalog; catalogs: SQL (SQLite), REST (a server of the tests), Glue (moto's) and Hive (the metastore 2.3 of Spark's jars). Spark's queries of them: the same connector on Spark 3.5 with a Hadoop catalog and SQL, and on Spark 4.3 from metadata files; no build of the connector for Spark 4 |
| Vendors' builds | not tested; lakebloom looks for features, not for version numbers |
"""  # noqa: E501

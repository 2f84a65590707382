"""Plays a newcomer: `python -m tests.newcomer.play [--update]`, or `make newcomer`, `make newcomer UPDATE=1`.

1. builds the wheel and installs it with the extra `spark` into an empty virtual environment,
2. pastes docs/QUICKSTART.md,
3. makes the mistakes that people make, in Python and on the command line, one of them without Java,
4. executes a notebook, and looks at its page in Chromium,
5. works on Spark Connect,
6. runs from cron: no HOME, no TERM, nearly no PATH.

All that is printed is compared with the files in `golden`, with paths, times and sizes written as `~`, `T` and `N`. A
difference is shown, and the exit code is 1; `--update` writes the files anew, to be read like any other change.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.report.browser import find

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
WORK = ROOT / ".newcomer"
BIN = WORK / "venv/bin"
NOTEBOOK = [
    "from pyspark.sql import SparkSession\n"
    "from lakebloom import BloomIndexConfig, Lakebloom, col\n"
    'spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()\n'
    'spark.range(0, 10_000, 1, 10).selectExpr("id * 7919 % 10007 AS user_id", "id AS amount").write.parquet("events")',
    'lake = Lakebloom(spark, "indexes")\nlake.create_index("events", BloomIndexConfig("by_user", ["user_id"]))',
    "lake.indexes()",
    "lake",
    'lake.enable()\nquery = spark.read.parquet("events").where("user_id = 42")\nquery.collect()',
    "lake.explain(query)",
    "lake.last_query()",
    'lake.lookup("by_user", "user_id = 42").to_pandas()',
    'lake.advise("events")',
]


def install() -> None:
    """Build the wheel and install it, with Spark, into an empty environment."""
    shutil.rmtree(WORK, ignore_errors=True)
    pip = ["-m", "pip", "--disable-pip-version-check", "-q"]
    _quietly([sys.executable, *pip, "wheel", "--no-deps", "-w", str(WORK), str(ROOT)])
    (wheel,) = WORK.glob("lakebloom-*.whl")
    _quietly([sys.executable, "-m", "venv", str(WORK / "venv")])
    constraints = ["-c", str(ROOT / "constraints.txt")]
    _quietly([str(BIN / "python"), *pip, "install", *constraints, f"{wheel}[spark]"])


def install_more() -> None:
    """Install what people have who write notebooks and use Spark Connect; no part of lakebloom's extra."""
    _quietly([str(BIN / "python"), "-m", "pip", "-q", "install", "nbconvert", "ipykernel", "pyspark[connect]"])


def _quietly(command: list[str]) -> None:
    done = subprocess.run(command, cwd=tempfile.gettempdir(), capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


def environment(**further: str) -> dict[str, str]:
    """That of someone who has activated the environment."""
    kept = ("HOME", "LANG", "JAVA_HOME", "TMPDIR", "CHROMIUM")
    found = {key: os.environ[key] for key in kept if key in os.environ}
    return {**found, "PATH": f"{BIN}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1", **further}


def run(command: list[str], home: Path, env: dict[str, str] | None = None) -> str:
    """Return what a command prints, on both streams, and its exit code if it is not 0."""
    done = subprocess.run(command, cwd=home, env=env or environment(), capture_output=True, text=True, timeout=900)
    end = f"exit code {done.returncode}\n" if done.returncode else ""
    return done.stdout + _without_spark(done.stderr) + end


def _without_spark(text: str) -> str:
    """Leave out what Spark's Java process writes when it starts, which is not ours to change."""
    lines = text.replace("\r", "\n").splitlines(keepends=True)
    return "".join(line for line in lines if not _SPARK_SAYS.search(line) and line.strip())


_SPARK_SAYS = re.compile(
    r"^WARNING: Using incubator modules|Spark's default log4j|^Setting default log level|^To adjust logging level|"
    r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN|^Setting Spark log level|\[Stage \d|"
    r'^{"ts": "'
)


_JAVA_SAYS = re.compile(r"(?m)^(\d\d/\d\d/\d\d \S+ ERROR |\s+at |\s+\.\.\. \d|Caused by: |java\.|org\.apache\.).*\n")
"""The log of a Connect server, which is on the same screen here."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def quickstart(home: Path) -> str:
    """Paste the page."""
    page = str(ROOT / "docs/QUICKSTART.md")
    done = subprocess.run(
        [str(BIN / "python"), str(ROOT / "tests/pasting.py"), page],
        cwd=home, env=environment(), capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    outcome = json.loads(done.stdout)[page]
    assert outcome["error"] is None, outcome["error"]
    assert "Warning" not in outcome["said"] + done.stderr, outcome["said"] + done.stderr
    return _without_chance(outcome["printed"].replace(str(home), "~"))


def _without_chance(text: str) -> str:
    """Leave out keys, which are random, and with them what filters let through."""
    text = _UUID.sub("UUID", text)
    text = re.sub(r"\d+(?:[,.]\d+)*(?:e-?\d+)?", "N", text)
    return re.sub(r"\bN files?\b", "N files", text)


def mistakes(home: Path) -> str:
    """Make mistakes in Python."""
    return run([str(BIN / "python"), str(HERE / "scripts/mistakes.py")], home)


def commands(home: Path) -> str:
    """Make mistakes on the command line; in the end without Java."""
    lakebloom = str(BIN / "lakebloom")
    run([str(BIN / "python"), "-c", _TABLE], home)
    place = ["--location", "indexes"]
    calls = [
        ["lookup", "by_user", "user_id = 1"],
        ["create", "by_user", "events", "-c", "user", "--dry-run", *place],
        ["create", "by_user", "evens", "-c", "user_id", "--dry-run", *place],
        ["creat", "by_user", "events", *place],
        ["create", "by_user", "events", "-c", "user_id", "--fpp", "low", *place],
        ["lookup", "by_usr", "user_id = 1", *place],
        ["advise", "events"],
        ["create", "by_user", "events", "-c", "user_id", "--dry-run", *place],
        ["list", *place],
        ["status", *place],
    ]
    parts = [f"$ lakebloom {' '.join(call)}\n{run([lakebloom, *call], home)}" for call in calls]
    without_java = environment(PATH=str(BIN), JAVA_HOME="/nonexistent")
    call = ["create", "by_user", "events", "-c", "user_id", *place]
    parts.append(f"$ lakebloom {' '.join(call)}      # no Java\n{run([lakebloom, *call], home, without_java)}")
    return "\n".join(parts)


_TABLE = """
import os, pyarrow as pa, pyarrow.parquet as pq
os.makedirs("events")
for part in range(10):
    ids = range(part * 1000, part * 1000 + 1000)
    pq.write_table(pa.table({"user_id": [i * 7919 % 10007 for i in ids], "day": ids}), f"events/{part}.parquet")
"""


def notebook(home: Path) -> str:
    """Execute a notebook, look at its page, and return the outputs as text."""
    cells = [
        {"cell_type": "code", "id": str(i), "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for i, source in enumerate(NOTEBOOK)
    ]
    made = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (home / "first.ipynb").write_text(json.dumps(made))
    convert = [str(BIN / "python"), "-m", "nbconvert", "--execute"]
    run([*convert, "--to", "notebook", "--output", "done.ipynb", "first.ipynb"], home)
    run([str(BIN / "python"), "-m", "nbconvert", "--to", "html", "done.ipynb"], home)
    chromium = find()
    if chromium is not None:
        _photograph(chromium, home / "done.html", WORK / "notebook.png")
    parts = []
    for number, cell in enumerate(json.loads((home / "done.ipynb").read_text())["cells"]):
        for output in cell["outputs"]:
            data = output.get("data", {})
            shown = output.get("text", data.get("text/plain", output.get("traceback", "")))
            kind = output.get("name") or ("card" if "text/html" in data else "text")
            text = _without_spark("".join(shown))
            if text.strip():  # a bar leaves nothing behind
                parts.append(f"[{number}] {kind}\n{text}\n")
    return "\n".join(parts)


def _photograph(chromium: str, page: Path, target: Path) -> None:
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,3400"]
    _quietly([chromium, *flags, f"--screenshot={target}", page.as_uri()])


def connect(home: Path) -> str:
    """Work on a Spark Connect server."""
    free_port = environment(SPARK_TESTING="1")  # else it is 15002, which may be taken
    return _JAVA_SAYS.sub("", run([str(BIN / "python"), str(HERE / "scripts/connect.py")], home, free_port))


def cron(home: Path) -> str:
    """Run as cron does, with next to no environment."""
    run([str(BIN / "python"), "-c", _TABLE], home)
    env = {"PATH": "/usr/bin:/bin"}
    if "JAVA_HOME" in os.environ:
        env["JAVA_HOME"] = os.environ["JAVA_HOME"]
    place = ["--location", str(home / "indexes")]
    calls = [
        ["create", "by_user", str(home / "events"), "-c", "user_id", *place],
        ["refresh", "--all", *place],
        ["status", "--fail-if-stale", *place],
        ["lookup", "by_user", "user_id = 42", *place],
    ]
    lakebloom = str(BIN / "lakebloom")
    return "\n".join(f"$ lakebloom {' '.join(call)}\n{run([lakebloom, *call], home, env)}" for call in calls)


PARTS: dict[str, Callable[[Path], str]] = {
    "quickstart": quickstart,
    "mistakes": mistakes,
    "commands": commands,
    "cron": cron,
    "notebook": notebook,
    "connect": connect,
}
_ALIKE = [
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+\d\d:\d\d|Z)?"), "T"),
    (re.compile(r"\d{4}-\d\d-\d\d(?= )"), "T"),
    (re.compile(r"(?<=seconds)( +)[\d.e-]+ \(.*\)"), r"\1T"),
    (re.compile(r"took [\d.]+ s\b"), "took T"),
    (re.compile(r"[\d,.]+ (bytes|kB|MB)"), r"N \1"),
    (re.compile(r"[\d,]+(?= \(N (?:bytes|kB|MB)\))"), "N"),
    (re.compile(r"(bytes (?:read|written) +)[\d,]+"), r"\1N"),
    (re.compile(r"part-[\w.-]+parquet"), "part-….parquet"),
    (re.compile(r"0x[0-9a-f]{6,}"), "0x…"),
    (_UUID, "UUID"),
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"[ \t]+(?=\n)"), ""),
    (re.compile(r"(?m)^ +[#.?]+$"), "    MAP"),  # files are in the order in which Spark lists them
    (re.compile(r"(?<=\S) {2,}"), "  "),  # the width of a column depends on paths
]


def normalised(text: str, home: Path) -> str:
    """Return a text without what differs between machines and runs."""
    text = text.replace(str(home), "~").replace(str(BIN.parent), "VENV").replace(str(ROOT), "ROOT")
    for pattern, instead in _ALIKE:
        text = pattern.sub(instead, text)
    return text.strip() + "\n"


def main() -> int:
    """Play all parts, or some; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="only these", default=[])
    parser.add_argument("--update", action="store_true", help="write what was printed as the golden texts")
    parser.add_argument("--installed", action="store_true", help="use the environment of the last time")
    arguments = parser.parse_args()
    chosen = arguments.parts or list(PARTS)
    differences = 0
    if not arguments.installed:
        install()
    more = arguments.installed
    for name in chosen:
        if name in ("notebook", "connect") and not more:
            install_more()
            more = True
        with tempfile.TemporaryDirectory(prefix="newcomer-") as directory:
            home = Path(directory).resolve()
            found = normalised(PARTS[name](home), home)
        golden = HERE / "golden" / f"{name}.txt"
        if arguments.update:
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(found)
            continue
        expected = golden.read_text() if golden.exists() else ""
        shown = list(difflib.unified_diff(expected.splitlines(), found.splitlines(), str(golden), "now", lineterm=""))
        print(f"{name}: {'as it should be' if not shown else 'differs'}")
        print("\n".join(shown))
        differences += bool(shown)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

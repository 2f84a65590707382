"""What a bench found: records that say what was measured, against whom, and whether it is enough."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec
from rich.console import Console
from rich.table import Table

Unit = Literal["s", "ms", "ns", "MB", "MB/s", "bytes", ""]
Kind = Literal["at most", "at least"]
HEADINGS = ("what", "ours", "theirs", "peer", "ratio", "bar")
_ROOT = Path(__file__).parents[1]
_PACKAGES = (
    "pyspark",
    "pyarrow",
    "numpy",
    "numba",
    "duckdb",
    "datafusion",
    "polars",
    "pylance",
    "chdb",
    "lmdb",
    "rocksdict",
    "rbloom",
    "deltalake",
    "pyiceberg",
)


@dataclass(frozen=True, slots=True)
class Result:
    """A figure of ours beside that of a peer, or beside a limit of its own.

    With a peer the bar is for a ratio: "at most" for ours / theirs, "at least" for theirs / ours. Without one it is for
    our own figure. Results without a bar only inform.
    """

    name: str
    ours: float
    unit: Unit
    peer: str = ""
    theirs: float | None = None
    bar: float | None = None
    kind: Kind = "at most"
    limited_by: str = ""
    """What our figure goes into, where it is known."""

    @property
    def ratio(self) -> float:
        """What the bar is for."""
        if self.theirs is None:
            return self.ours
        return self.ours / self.theirs if self.kind == "at most" else self.theirs / self.ours

    @property
    def met(self) -> bool:
        """Whether the bar is reached, by the three digits that are shown; true where there is none."""
        if self.bar is None:
            return True
        shown = float(f"{self.ratio:.3g}")
        return shown <= self.bar if self.kind == "at most" else shown >= self.bar

    @property
    def verdict(self) -> str:
        """What a reader looks for."""
        return "" if self.bar is None else "met" if self.met else "missed"

    def cells(self) -> list[str]:
        """Return a row of a table, as HEADINGS has it."""
        theirs = "" if self.theirs is None else figure(self.theirs, self.unit)
        ratio = "" if self.theirs is None else f"{self.ratio:.3g}"
        bar = ""
        if self.bar is not None:
            limit = f"{self.bar:.3g}" if self.theirs is not None else figure(self.bar, self.unit)
            bar = f"{'<=' if self.kind == 'at most' else '>='} {limit}"
        return [self.name, figure(self.ours, self.unit), theirs, self.peer, ratio, bar]


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the plot of latencies."""

    series: str
    files: int
    ms: float
    rows_per_file: int = 25_000


@dataclass(frozen=True, slots=True)
class Matrix:
    """Several methods beside each other, one row each, with figures as text."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def printed(self) -> Table:
        """Return it as a table for the terminal."""
        made = table(self.title, self.headings[:1], self.headings[1:])
        for row in self.rows:
            made.add_row(*row)
        return made


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a bench found."""

    results: list[Result]
    points: list[Point] = field(default_factory=list)
    elapsed_s: float = 0.0
    matrices: list[Matrix] = field(default_factory=list)
    date: str = ""
    commit: str = ""
    """What was measured; with a + if files had changed since."""
    failure: str = ""
    """How the last run failed, if it did; what else is here is of the last run that ended."""


def figure(value: float, unit: Unit) -> str:
    """Return a figure with three digits and its unit."""
    shown = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{shown} {unit}".strip()


def table(title: str, left: Sequence[str], right: Sequence[str] = ()) -> Table:
    """Return an empty table with columns of text and columns of figures."""
    made = Table(title=title, title_justify="left")
    for heading in left:
        made.add_column(heading)
    for heading in right:
        made.add_column(heading, justify="right")
    return made


def print_results(console: Console, title: str, results: Sequence[Result]) -> None:
    """Print results as one table."""
    printed = Table(title=title, title_justify="left")
    for heading in HEADINGS:
        printed.add_column(heading, justify="left" if heading in ("what", "peer") else "right")
    printed.add_column("")
    colours = {"met": "[green]met[/]", "missed": "[red]missed[/]"}
    for result in results:
        printed.add_row(*result.cells(), colours.get(result.verdict, ""))
    console.print(printed)
    console.print("[dim]bars: <= is for ours / theirs, >= for theirs / ours; without a peer, for our own figure[/]")


def versions() -> dict[str, str]:
    """Return the versions of everything that takes part."""
    found = {"Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def today() -> str:
    """Return the date, as pages show it."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def commit() -> str:
    """Return the commit that is measured, with a + if code has changed since; empty where there is no Git."""
    try:
        name, changes = (
            subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()
            for arguments in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "--", "src", "bench"))
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return name + "+" * bool(changes)


def main(title: str, run: Callable[[Console], Outcome]) -> None:
    """Run one bench, print and keep what it found; the exit status is 0 where every bar is reached."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--outcome", type=Path, help="a file for the results as JSON")
    arguments = parser.parse_args()
    console = Console(width=150)
    started = time.perf_counter()
    found = run(console)
    found = replace(found, elapsed_s=time.perf_counter() - started, date=today(), commit=commit())
    print_results(console, title, found.results)
    if arguments.outcome is not None:
        arguments.outcome.write_bytes(msgspec.json.encode(found))
    sys.exit(0 if all(result.met for result in found.results) else 1)


def read_outcome(path: Path) -> Outcome:
    """Return what a bench kept."""
    return msgspec.json.decode(path.read_bytes(), type=Outcome)

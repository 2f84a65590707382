"""What a bench found: records that say what was measured, against whom, and whether it is enough."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table

Unit = Literal["s", "ms", "ns", "MB", "bytes", "bits", ""]
Bar = Literal["at most", "at least"]


@dataclass(frozen=True, slots=True)
class Result:
    """A figure of ours beside that of a peer, or beside a limit of its own.

    With a peer the bar is for a ratio: "at most" for ours / theirs, "at least" for theirs / ours. Without one it is for
    our own figure. Results without a bar only inform.
    """

    bench: str
    name: str
    ours: float
    unit: Unit
    peer: str = ""
    theirs: float | None = None
    bar: float | None = None
    kind: Bar = "at most"
    limited_by: str = ""
    """What our time goes into, where it is known."""

    @property
    def ratio(self) -> float:
        """What the bar is for."""
        if self.theirs is None:
            return self.ours
        return self.ours / self.theirs if self.kind == "at most" else self.theirs / self.ours

    @property
    def met(self) -> bool:
        """Whether the bar is reached; true where there is none."""
        if self.bar is None:
            return True
        return self.ratio <= self.bar if self.kind == "at most" else self.ratio >= self.bar

    def cells(self) -> list[str]:
        """Return the row of a printed table: name, ours, theirs, peer, ratio, bar."""
        theirs = "" if self.theirs is None else figure(self.theirs, self.unit)
        ratio = "" if self.theirs is None else f"{self.ratio:.3g}"
        bar = ""
        if self.bar is not None:
            limit = f"{self.bar:.3g}" if self.theirs is not None else figure(self.bar, self.unit)
            bar = f"{'<=' if self.kind == 'at most' else '>='} {limit}"
        return [self.name, figure(self.ours, self.unit), theirs, self.peer, ratio, bar]


HEADINGS = ("what", "ours", "theirs", "peer", "ratio", "bar")


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


def verdict(result: Result) -> str:
    """Return what a reader looks for."""
    if result.bar is None:
        return ""
    return "[green]met[/]" if result.met else "[red]missed[/]"


def print_results(console: Console, title: str, results: Iterable[Result]) -> None:
    """Print results as one table."""
    printed = Table(title=title, title_justify="left")
    for heading in HEADINGS:
        printed.add_column(heading, justify="left" if heading in ("what", "peer") else "right")
    printed.add_column("")
    for result in results:
        printed.add_row(*result.cells(), verdict(result))
    console.print(printed)


def status(results: Iterable[Result]) -> int:
    """Return the exit status of a bench: 0 where every bar is reached."""
    return 0 if all(result.met for result in results) else 1


def versions() -> dict[str, str]:
    """Return the versions of everything that takes part."""
    names = ("lakebloom", "pyspark", "pyarrow", "numpy", "numba", "duckdb", "datafusion", "polars", "pylance", "rbloom")
    found = {"Python": platform.python_version()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def finish(console: Console, title: str, results: Sequence[Result]) -> None:
    """Print results and end the process with their status."""
    print_results(console, title, results)
    sys.exit(status(results))

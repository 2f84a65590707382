"""All benches in one run: `make bench`. Prints one table and writes docs/BENCHMARKS.md and docs/latency.svg.

Each bench is a process of its own, as it is alone, so that none finds another's Spark, threads or memory. What it found
is kept in .bench/results when it ends. One that fails, or does not end in time, is named on the page and makes the run
fail, and the others still count. Names as arguments choose some of them; the page then has the others from their last
run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
from rich.console import Console

from bench.parameters import IS_TINY, LONGEST_S, WORK
from bench.plot import latency_svg
from bench.report import page
from bench.results import Outcome, commit, print_results, read_outcome, today

BENCHES = ("start", "kernels", "build", "needle", "lookup", "board", "join", "embed", "scale", "size", "tables")
DOCS = WORK if IS_TINY else Path(__file__).parents[1] / "docs"
FOLDER = WORK / "results"


def run(console: Console, name: str) -> None:
    """Run one bench, and keep what it found. Bars that were missed are in it."""
    kept, new = FOLDER / f"{name}.json", FOLDER / f"{name}.new"
    new.unlink(missing_ok=True)
    console.rule(name)
    started = time.perf_counter()
    ended = _process([sys.executable, "-W", "ignore", "-m", f"bench.{name}", "--outcome", str(new)])
    if new.exists():
        new.replace(kept)
    else:
        before = read_outcome(kept) if kept.exists() else Outcome([])
        kept.write_bytes(msgspec.json.encode(replace(before, failure=f"{ended}, {today()}, commit {commit()}")))
    console.print(f"[dim]{name}: {time.perf_counter() - started:.0f} s in all[/]")


def _process(command: list[str]) -> str:
    """Run a command and all that it starts; return how it ended."""
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            return f"exit status {process.wait(LONGEST_S)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"stopped after {LONGEST_S:.0f} s"
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHES)
    if unknown:
        sys.exit(f"no bench is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    console = Console(width=150)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or BENCHES:
        run(console, name)
        write_pages(_outcomes())  # a run that is stopped has its first pages
    outcomes = _outcomes()
    console.rule("all")
    for name, outcome in outcomes.items():
        print_results(console, name, outcome.results)
    results = [result for outcome in outcomes.values() for result in outcome.results if result.bar is not None]
    met = sum(result.met for result in results)
    console.print(f"{met} of {len(results)} bars met; {DOCS / 'BENCHMARKS.md'} and {DOCS / 'latency.svg'} are written")
    failed = [name for name, outcome in outcomes.items() if outcome.failure]
    for name in failed:
        console.print(f"[red]{name} failed: {outcomes[name].failure}[/]")
    return 0 if met == len(results) and not failed else 1


def _outcomes() -> dict[str, Outcome]:
    return {name: read_outcome(path) for name in BENCHES if (path := FOLDER / f"{name}.json").exists()}


def write_pages(outcomes: dict[str, Outcome]) -> None:
    """Write the two pages."""
    points = [point for outcome in outcomes.values() for point in outcome.points]
    if points:
        (DOCS / "latency.svg").write_text(latency_svg(points))
    (DOCS / "BENCHMARKS.md").write_text(page(outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

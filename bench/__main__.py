"""All benches in one run: `make bench`. Prints one table and writes docs/BENCHMARKS.md and docs/latency.svg.

Each bench is a process of its own, as it is alone, so that none finds another's Spark, threads or memory. One that
fails is named and makes the run fail, and the others still count. Names as arguments choose some of them; the pages
then have those of the others from their last run.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from bench.parameters import WORK
from bench.plot import latency_svg
from bench.report import page
from bench.results import Outcome, print_results, read_outcome

BENCHES = ("start", "kernels", "build", "needle", "lookup", "board", "join", "embed", "scale", "size", "tables")
DOCS = Path(__file__).parents[1] / "docs"
FOLDER = WORK / "outcomes"


def run(console: Console, name: str) -> bool:
    """Run one bench; tell whether it came to an end. Bars that were missed are in what it found."""
    kept = FOLDER / f"{name}.json"
    kept.unlink(missing_ok=True)
    console.rule(name)
    started = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-m", f"bench.{name}", "--outcome", str(kept)], check=False)
    console.print(f"[dim]{name}: {time.perf_counter() - started:.0f} s in all[/]")
    return kept.exists()


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHES)
    if unknown:
        sys.exit(f"no bench is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    console = Console(width=150)
    FOLDER.mkdir(parents=True, exist_ok=True)
    failed = [name for name in names or BENCHES if not run(console, name)]
    outcomes = {name: read_outcome(path) for name in BENCHES if (path := FOLDER / f"{name}.json").exists()}
    write_pages(outcomes)
    console.rule("all")
    for name, outcome in outcomes.items():
        print_results(console, name, outcome.results)
    results = [result for outcome in outcomes.values() for result in outcome.results if result.bar is not None]
    met = sum(result.met for result in results)
    console.print(f"{met} of {len(results)} bars met; docs/BENCHMARKS.md and docs/latency.svg are written")
    for name in failed:
        console.print(f"[red]{name} failed[/]")
    return 0 if met == len(results) and not failed else 1


def write_pages(outcomes: dict[str, Outcome]) -> None:
    """Write the two pages."""
    points = [point for outcome in outcomes.values() for point in outcome.points]
    if points:
        (DOCS / "latency.svg").write_text(latency_svg(points))
    (DOCS / "BENCHMARKS.md").write_text(page(outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Methods that run in turn over the same data. Each has its result checked before its time counts.

Rounds alternate and the best of each method counts, so that a busy machine disturbs all of them alike.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from rich.console import Console

from bench.results import Result, table

SourceT = TypeVar("SourceT")


@dataclass(slots=True)
class Contestant(Generic[SourceT]):
    """A method. ``run`` is timed; ``check`` raises where the result is wrong, and then no time counts."""

    name: str
    run: Callable[..., object]
    check: Callable[..., None]
    bar: float | None = None
    """How much of this method's time ours may take; None for one that only informs."""
    prepare: Callable[[SourceT], None] = lambda source: None
    """What the method finds ready and is not charged for."""
    times: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The time that counts."""
        return min(self.times)

    def compete(self, source: SourceT, work: Path) -> float:
        """Run once, with an empty folder for the output, and return the time."""
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        started = time.perf_counter()
        result = self.run(source, work)
        elapsed = time.perf_counter() - started
        self.check(source, work, result)
        shutil.rmtree(work)
        return elapsed


@dataclass(frozen=True, slots=True)
class Race(Generic[SourceT]):
    """Contestants whose times may be compared, because they run in turn."""

    ours: list[Contestant[SourceT]]
    others: list[Contestant[SourceT]]
    rounds: int

    @property
    def all(self) -> list[Contestant[SourceT]]:
        """Ours first."""
        return [*self.ours, *self.others]

    def warm_up(self, source: SourceT, work: Path) -> None:
        """Run all once over little data, to load what they need."""
        for contestant in self.all:
            contestant.prepare(source)
            contestant.compete(source, work)

    def run(self, console: Console, source: SourceT, work: Path, most_s: float = float("inf")) -> None:
        """Run all rounds; when time is up, no further one begins."""
        for contestant in self.all:
            contestant.prepare(source)
        started = time.perf_counter()
        for _ in range(self.rounds):
            for contestant in self.all:
                contestant.times.append(contestant.compete(source, work))
                console.print(f"[dim]{contestant.name}: {contestant.times[-1]:.2f} s[/]")
            if time.perf_counter() - started > most_s:
                return

    def results(self) -> list[Result]:
        """Return our slowest method beside each of the others."""
        slowest = max(self.ours, key=lambda mine: mine.best)
        return [Result(slowest.name, slowest.best, "s", other.name, other.best, other.bar) for other in self.others]


def print_races(console: Console, title: str, races: Sequence[Race[SourceT]]) -> None:
    """Print the best and the worst times."""
    printed = table(f"{title}; seconds", ["method"], ["best", "worst", "rounds"])
    for race in races:
        for contestant in race.all:
            worst = max(contestant.times)
            printed.add_row(contestant.name, f"{contestant.best:.2f}", f"{worst:.2f}", str(len(contestant.times)))
        printed.add_section()
    console.print(printed)

"""What takes part: something that runs over a table, and a check of what came out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.build.source import Source


@dataclass(slots=True)
class Contestant:
    """A method. ``run`` is timed; ``check`` raises where the result is wrong, and then no time counts."""

    name: str
    run: Callable[[Source, Path], Any]
    check: Callable[[Source, Path, Any], None]
    bar: float | None = None
    """How much of this method's time ours may take; None for one that only informs."""
    prepare: Callable[[Source], None] = lambda source: None
    """What the method finds ready and is not charged for."""
    times: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.times)

    def compete(self, source: Source, work: Path) -> float:
        """Run once, with an empty folder for the output, and return the time."""
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        started = time.perf_counter()
        result = self.run(source, work)
        elapsed = time.perf_counter() - started
        self.check(source, work, result)
        shutil.rmtree(work)
        return elapsed

"""Where the time of an operation went. Loads nothing: it begins to count before the modules that it times are there."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Phases"]


@dataclass(slots=True)
class Phases:
    """How long each phase of an operation took. Together they are all of its time, from ``Phases()`` on."""

    seconds: dict[str, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.perf_counter
    _counted_to_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._counted_to_s = self.clock()

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block to a phase, with what came since the phase before."""
        try:
            yield
        finally:
            now_s = self.clock()
            self.seconds[name] = self.seconds.get(name, 0.0) + now_s - self._counted_to_s
            self._counted_to_s = now_s

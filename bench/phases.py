"""How long the parts of a bench take, printed as each of them ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def phase(console: Console, name: str) -> Iterator[None]:
    """Print how long what is inside takes, and how long processors work for it: a busy machine changes only the first.

    Processes that it starts count once they have ended.
    """
    started, worked = time.perf_counter(), _processors_s()
    yield
    elapsed_s, worked_s = time.perf_counter() - started, _processors_s() - worked
    console.print(f"[dim]{name}: {elapsed_s:.1f} s, processors {worked_s:.1f} s[/]")


def _processors_s() -> float:
    return sum(os.times()[:4])

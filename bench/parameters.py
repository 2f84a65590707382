"""Every size, seed, number of rounds and bar of the benches, in one place."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

WORK = Path(".bench").resolve()
"""Where data is kept between runs."""
PROCESSES = 2


class Lookup:
    """Rows by key without Spark."""

    seed = 7
    sizes = (100, 1000, 4000)
    rows_per_file = 25_000
    questions = 60
    """How many different keys a quick method is asked."""
    case_s = 3.0
    """A method that has taken so long for one kind of question is asked no more of that kind."""
    slow_s = 20.0
    """A method that takes so long for one question is not asked about larger tables."""
    cold_rounds = 5
    cold_s = 1.0
    """A method that takes so long in a process that runs already is not asked in a new one."""
    keys = 100
    growth_bar = 2.0
    warm_bars: ClassVar = {1000: (15, 40, 5), 4000: (40, 150, 8)}
    """How many times faster than the fastest engine on the same files: present key, absent key, many keys."""
    lance_bars = (1.5, 0.5, 2.0)
    """How much of the time of Lance's Bloom filter index."""
    cold_bars: ClassVar = {1000: 1.0, 4000: 0.6}
    """How much of the time of the fastest engine on the same files, for a whole process."""


class Units:
    """Very many units, of which there are only filters."""

    seed = 8
    segments = 50
    units_per_segment = 20_000
    num_blocks = 12
    probe_bar_s = 0.015
    questions = 40

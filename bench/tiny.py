"""Sizes with which every bench ends in seconds: `make bench TINY=1` shows that all of them run, and measures nothing.

What it finds is kept in .bench/tiny, and no page of the documentation is written.
"""

from __future__ import annotations

from typing import Any

TINY: dict[str, dict[str, Any]] = {
    "Kernels": {"count": 200_000, "rbloom_count": 20_000, "rounds": 1, "transposed_bytes": 1 << 20},
    "Start": {"rounds": 1, "spark_rounds": 1, "small_files": 4},
    "Build": {
        "files": 40,
        "rows_per_file": 500,
        "warm_up_files": 4,
        "rounds": 1,
        "slow_rounds": 1,
        "few": 20,
        "many": 60,
        "refresh_rounds": 2,
    },
    "Needle": {
        "sizes": (100, 110, 120),
        "rows_per_file": 200,
        "tiny_files": 200,
        "planning_rounds": 3,
        "first_rounds": 2,
        "most_wasted": 0.2,
        "rounds": {100: 1, 110: 1, 120: 1},
        "plain_bars": {110: 10},
        "embedded_bars": {110: 4},
    },
    "Large": {"files": 4, "rows_per_file": 8_000, "rows_per_group": 4_000, "rounds": 1},
    "Embed": {"files": 2, "rows_per_file": 20_000, "warm_up_rows": 2_000, "rounds": 1},
    "Join": {"rows": 100_000, "keys": 5_000, "rounds": 1},
    "Lookup": {
        "sizes": (100, 110, 120),
        "questions": 3,
        "cold_rounds": 1,
        "very_many": {1000: 1.0},
        "warm_bars": {110: (15, 40, 5), 120: (40, 150, 8)},
        "cold_bars": {110: 1.0, 120: 0.6},
    },
    "LargeLookup": {"files": 4, "questions": 12},
    "Board": {"small_files": (110, 120), "questions": 3, "space_gb": 1, "cold_rounds": 1},
    "Wide": {"files": 4, "rows_per_file": 1_000, "columns": 30},
    "Distant": {"questions": 2},
    "Units": {"segments": 4, "units_per_segment": 1_000, "questions": 4},
    "Opening": {"units": 10_000, "few_units": 1_000},
    "Scale": {"files": (20, 40, 80), "columns": (1, 2, 4), "files_of_columns": 10, "rounds": 2},
    "Size": {"files": 20, "rows_per_file": 9_000, "tiny_files": 20, "probes": 40_000, "users": 20_000},
    "Tables": {
        "files": 30,
        "rows_per_file": 500,
        "erased_files": 40,
        "erased_rows_per_file": 300,
        "questions": 3,
        "slow_questions": 1,
        "many": 1_000,
        "pyiceberg_keys": 100,
        "erased_keys": {500: 5.0},
        "very_many_keys": 5_000,
        "refresh_few": 20,
        "refresh_many": 60,
        "refresh_rounds": 2,
    },
}

"""Asking an index of a million units: time, bytes and memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from bench.parameters import Units
from bench.results import Result, table
from bench.scale.units import NAME, Shape, planted, wide_index
from lakebloom import Lakebloom, col
from lakebloom.index.catalog import Catalog
from lakebloom.index.query.reader import Reader
from lakebloom.storage.metered import Metered

MEMORY = """
import json, sys, time
started = time.perf_counter()
from lakebloom import Lakebloom, col
lake = Lakebloom(location=sys.argv[1])
found = lake.candidates("units", col("k") == int(sys.argv[2])).num_rows
elapsed_s = time.perf_counter() - started
for key in sys.argv[3:]:
    found += lake.candidates("units", col("k") == int(key)).num_rows
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
kilobytes = {name: int(status[name].split()[0]) for name in ("RssAnon", "RssFile")}
print(json.dumps({"found": found, "first_s": elapsed_s, **kilobytes}))
"""


def probe_results(console: Console) -> list[Result]:
    """Ask keys whose planes were not read before, then the same keys again."""
    shape = Shape()
    location, merged_s = wide_index(shape)
    homes = planted(shape.segments)
    present = list(homes)[: Units.questions]
    absent = range(10**9, 10**9 + Units.questions)

    lake = Lakebloom(location=location)
    first_s = _ask(lake, present[-1], homes)
    new_s = [_ask(lake, key, homes) for key in [*present, *absent]]
    present_s = [_ask(lake, key, homes) for key in present]
    absent_s = [_ask(lake, key, homes) for key in absent]

    memory = _memory(location, [str(key) for key in present[:10]])
    opening_bytes, question_bytes = _bytes(location, present[:2])
    printed = table(f"{shape.all_units:,} units, merged from {shape.segments} segments", ["what"], ["median", "worst"])
    named = {
        "first question of an object": [first_s],
        "planes not read before (checksums)": new_s,
        "present key, planes seen": present_s,
        "absent key, planes seen": absent_s,
    }
    for name, times in named.items():
        printed.add_row(name, f"{1e3 * statistics.median(times):.2f} ms", f"{1e3 * max(times):.2f} ms")
    filters_mb = 32 * 2 * shape.all_units * shape.blocks / 1e6
    printed.add_row(f"merging {filters_mb:.0f} MB of filters", f"{merged_s:.1f} s", "")
    printed.add_row("first question of a process, with imports", f"{1e3 * memory['first_s']:.0f} ms", "")
    printed.add_row("bytes from an object store to open and ask one key", f"{opening_bytes / 1e6:.1f} MB", "")
    printed.add_row("bytes from an object store for one more key", f"{question_bytes / 1e6:.1f} MB", "")
    printed.add_row("memory of a process, its own", f"{memory['RssAnon'] / 1e3:.0f} MB", "")
    printed.add_row("memory of a process, mapped files", f"{memory['RssFile'] / 1e3:.0f} MB", "")
    console.print(printed)
    bar = 1e3 * Units.probe_bar_s
    million = f"{shape.all_units:,} units"
    return [
        Result(f"{million}: absent key", 1e3 * statistics.median(absent_s), "ms", bar=bar),
        Result(f"{million}: present key", 1e3 * statistics.median(present_s), "ms", bar=bar),
        Result(f"{million}: planes not read before", 1e3 * statistics.median(new_s), "ms"),
        Result(f"{million}: first question", 1e3 * first_s, "ms"),
        Result(f"{million}: bytes for a key", question_bytes / 1e6, "MB", bar=Units.bytes_bar_mb),
        Result(f"{million}: memory", memory["RssAnon"] / 1e3, "MB"),
        Result(f"{million}: merging", filters_mb / merged_s, "MB/s"),
    ]


def _ask(lake: Lakebloom, key: int, homes: dict[int, tuple[int, int]]) -> float:
    started = time.perf_counter()
    found = lake.candidates(NAME, col("k") == key)
    elapsed_s = time.perf_counter() - started
    if key in homes:
        segment, unit = homes[key]
        name = f"part-{segment * Units.units_per_segment + unit:07d}-c000.snappy.parquet"
        assert name in {Path(path).name for path in found["path"].to_pylist()}, "a false negative"
    assert found.num_rows <= 20, f"{found.num_rows} units are kept"
    return elapsed_s


def _memory(location: Path, keys: list[str]) -> dict[str, float]:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    command = [sys.executable, "-c", MEMORY, str(location), *keys]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(run.stdout)
    assert found["found"] >= len(keys)
    return found


def _bytes(location: Path, keys: list[int]) -> tuple[int, int]:
    """Return what an object store would be asked for: for the first key, and for one more."""
    index = Catalog(location, wrap=Metered).index(NAME)
    assert isinstance(index.storage, Metered)
    reader, read = Reader(index), []
    for key in keys:
        reader.candidates(col("k") == key)
        read.append(index.storage.bytes_read)
    return read[0], read[1] - read[0]

"""Opening an index of a million units in one segment, and comparing it with a listing of a million files.

Names and tags are as long as Spark and a local disk make them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.parameters import WORK, Opening
from bench.results import Result, table
from bench.scale.units import NAME, commit
from lakebloom import Sbbf
from lakebloom.index.catalog import Catalog
from lakebloom.index.snapshot import Snapshot
from lakebloom.store.segments import SegmentWriter
from lakebloom.store.unit_columns import FILES, UNITS, UnitColumns, facts_schema
from lakebloom.tables.file_identity import TableFile

HOME = 777
"""The unit that has the key."""
KEY = HOME * 25_000 + 42
ASK = """
import json, sys, time
from lakebloom import Lakebloom, col
started = time.perf_counter()
lake = Lakebloom(location=sys.argv[1])
lake.index("units")
found, times = [], []
key = int(sys.argv[2])
for key in (key + 1, key, key, key + 2):
    found.append(lake.candidates("units", col("k") == key).num_rows)
    times.append(time.perf_counter() - started)
    started = time.perf_counter()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
kilobytes = sum(int(status[name].split()[0]) for name in ("RssAnon", "RssFile", "RssShmem"))
print(json.dumps({"found": found, "times": times, "kB": kilobytes}))
"""


def opening_results(console: Console) -> list[Result]:
    """Open the index in processes of its own, and compare a listing with it."""
    asked = {units: _asked(wide_index(units)) for units in (Opening.few_units, Opening.units)}
    few, many = asked.values()
    more_mb = (many["kB"] - few["kB"]) / 1e3
    compared_s = _compared(wide_index(Opening.units))
    printed = table("one segment", ["what"], [f"{units:,} units" for units in asked])
    for number, what in enumerate(("open, absent key", "present key", "present key again", "another absent key")):
        printed.add_row(what, *(f"{1e3 * each['times'][number]:.2f} ms" for each in asked.values()))
    printed.add_row("memory", *(f"{each['kB'] / 1e3:.0f} MB" for each in asked.values()))
    printed.add_row("compare with a listing", "", f"{1e3 * compared_s:.0f} ms")
    console.print(printed)
    million = f"{Opening.units:,} units"
    return [
        Result(f"{million}: open and one absent key", 1e3 * many["times"][0], "ms", bar=1e3 * Opening.open_bar_s),
        Result(f"{million}: first present key", 1e3 * many["times"][1], "ms"),
        Result(f"{million}: memory beyond that of {Opening.few_units}", more_mb, "MB", bar=Opening.memory_bar_mb),
        Result(f"{million}: compare with a listing", 1e3 * compared_s, "ms", bar=1e3 * Opening.compare_bar_s),
    ]


def wide_index(units: int) -> Path:
    """Return the location of an index of one segment, which is written first if it is not there."""
    location = WORK / "scale" / f"wide-{units}"
    done = location.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(location, ignore_errors=True)
        index = Catalog(location).index(NAME)
        writer = SegmentWriter(index.storage, "wide", [("k",)])
        words = np.zeros((1, units, 8), dtype=np.uint32)
        holder = Sbbf(1)
        holder.insert([KEY])
        words[:, min(HOME, units - 1)] = holder.words
        writer.add_tile(0, list(range(units)), [words])
        index.log.create(commit((writer.finish(wide_columns(units), ["bigint"], 1e-7),), "file:///nowhere"))
        done.touch()
    return location


def wide_columns(count: int) -> UnitColumns:
    """Return so many files of one unit each, made as columns."""
    numbers = np.arange(count)
    days = pa.DictionaryArray.from_arrays(
        pa.array(numbers // 1000, pa.int32()),
        pa.array([f"file:///nowhere/day={day:05d}/" for day in range(-(-count // 1000))]),
    )
    names = [f"part-{i:07d}-7d0f4c9e-1b3a-4f0e-8d6e-abcdef012345.c000.snappy.parquet" for i in range(count)]
    tags = [f"{1 << 20 | i:x}.17979cfe362a{i:04x}.{i:x}" for i in range(count)]
    files = [days, names, numbers + 1_000_000, numbers + 1_700_000_000_000, tags, numbers]
    zeros = np.zeros(count, dtype=np.int64)
    units = [zeros, zeros + 25_000, zeros, zeros + 1, zeros + 4, zeros + 1_000_000]
    facts = [zeros, zeros, numbers * 25_000, numbers * 25_000 + 24_999]
    return UnitColumns(
        *(
            pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
            for columns, schema in ((files, FILES), (units, UNITS))
        ),
        (
            pa.table(
                [pa.array(c, f.type) for c, f in zip(facts, facts_schema("bigint"), strict=True)],
                schema=facts_schema("bigint"),
            ),
        ),
    )


def _asked(location: Path) -> dict[str, list[float]]:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    run = subprocess.run(
        [sys.executable, "-c", ASK, str(location), str(KEY)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[float]] = json.loads(run.stdout)
    assert found["found"] == [0, 1, 1, 0], found
    return found


def _compared(location: Path) -> float:
    """Return how long it takes to find the unindexed files in a listing: one changed, one new."""
    index = Catalog(location).index(NAME)
    listed = list(Snapshot(index.storage, index.active()).files)
    listed[5] = listed[5]._replace(size_bytes=1)
    listed.append(TableFile("file:///nowhere/day=99999/new.parquet", 1, 1))
    snapshot = Snapshot(index.storage, index.active())
    started = time.perf_counter()
    unknown = snapshot.unknown(listed)
    elapsed_s = time.perf_counter() - started
    assert unknown == [listed[5], listed[-1]]
    return elapsed_s

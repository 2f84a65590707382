"""Hash+insert and hash+check, one thread, side by side with Arrow C++ and rbloom: `make bench-kernels`.

Every filter is compared before any time is: ours must have Arrow's bits. Rounds alternate
between the contestants and the best of each counts, so that a busy machine disturbs all of them alike.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from bench.kernels import arrow_cpp
from bench.parameters import WORK, Kernels
from bench.results import Outcome, Result, main, table
from lakebloom import Sbbf
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, WORDS_PER_BLOCK
from lakebloom.sbbf.kernels import compiled
from lakebloom.store.tile_layout import SLACK_BYTES, layout_of

FOLDER = WORK / "kernels"


def values_of(kind: str, count: int = Kernels.count) -> pa.Array:
    rng = np.random.default_rng(Kernels.seed)
    if kind == "int64":
        return pa.array(rng.integers(-(2**63), 2**63 - 1, count, dtype=np.int64))
    letters = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    data = letters[rng.integers(0, 16, (count, Kernels.string_bytes), dtype=np.uint8)]
    offsets = np.arange(0, Kernels.string_bytes * count + 1, Kernels.string_bytes, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data.tobytes()))


def ns_per_value(work: Callable[[], object], count: int) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e9 / count


def measure_ours(f: Sbbf, values: pa.Array) -> dict[str, float]:
    times = {"insert": ns_per_value(lambda: f.insert(values), len(values))}
    answers: list[Any] = []
    times["check"] = ns_per_value(lambda: answers.append(f.might_contain(values)), len(values))
    assert np.all(answers[0]), "a false negative"
    return times


def measure_rbloom(kind: str, values: pa.Array, filter_bytes: int) -> dict[str, float]:
    """rbloom takes Python objects one by one; it is given a tenth of the values, already made."""
    import rbloom

    items = values.slice(0, Kernels.rbloom_count).to_pylist()
    # rbloom is sized by (items, rate): this rate gives it as many bits.
    bits_per_item = 8 * filter_bytes / len(items)
    rate = min(0.999, max(1e-15, float(np.exp(-bits_per_item * np.log(2) ** 2))))
    f = rbloom.Bloom(len(items), rate)
    return {
        "insert": ns_per_value(lambda: f.update(items), len(items)),
        "check": ns_per_value(lambda: [item in f for item in items], len(items)),
    }


def best(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {operation: min(times[operation] for times in rounds) for operation in rounds[0]}


def compare(console: Console) -> list[Result]:
    program = arrow_cpp.compile_program(FOLDER)
    title = f"{Kernels.count:,} values, one thread, ns a value; pyarrow {pa.__version__}"
    headings = ["lakebloom", "Arrow, one by one", "Arrow, batches", "rbloom"]
    printed = table(title, ["values", "operation", "filter"], headings)
    results = []
    for kind in ("int64", "string"):
        values = values_of(kind)
        data = arrow_cpp.write_values(FOLDER, kind, values)
        for label, filter_bytes in Kernels.sizes.items():
            ours, single, batch = [], [], []
            f = Sbbf(filter_bytes // 32)
            f.insert(values)
            for _ in range(Kernels.rounds):
                ours.append(measure_ours(f, values))
                theirs = arrow_cpp.run(program, kind, data, filter_bytes)
                assert theirs.hits == Kernels.count
                assert theirs.filter == f, "the bits differ from Arrow's"
                single.append(theirs.single)
                batch.append(theirs.batch)
            rbloom = measure_rbloom(kind, values, filter_bytes)
            for operation in ("insert", "check"):
                mine, one, many = best(ours)[operation], best(single)[operation], best(batch)[operation]
                printed.add_row(kind, operation, label, *(f"{x:.1f}" for x in (mine, one, many, rbloom[operation])))
                # The faster of Arrow's two interfaces, one value at a time and batches.
                name, bar = f"{operation} {kind}, {label}", Kernels.bars[kind, operation]
                results.append(Result(name, mine, "ns", "Arrow C++", min(one, many), bar))
    console.print(printed)
    return results


FIRST_RESULT = """
import json, time
started = time.perf_counter()
import numpy as np
from lakebloom import Sbbf
f = Sbbf(1024)
f.insert(np.arange(200_000))
f.might_contain(np.arange(200_000))
print(json.dumps(time.perf_counter() - started))
"""


def start_times() -> Result:
    """Time a process to its first bulk result, with a filled cache of machine code."""
    cache = (FOLDER / "numba-cache").resolve()
    shutil.rmtree(cache, ignore_errors=True)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}

    def seconds() -> float:
        run = subprocess.run(
            [sys.executable, "-c", FIRST_RESULT], env=environment, capture_output=True, text=True, check=True
        )
        return float(json.loads(run.stdout))

    compiling = seconds()
    warm = min(seconds() for _ in range(3))
    name = "first bulk result of a process, from the cache of machine code"
    detail = f"{compiling:.1f} s where it has to compile"
    return Result(name, warm, "s", bar=Kernels.first_result_bar_s, limited_by=detail)


def transposition() -> list[Result]:
    """Return how fast filters become planes and come back, for tiles of some units."""
    results = []
    for units in Kernels.transposed_units:
        rng = np.random.default_rng(Kernels.seed)
        layout = layout_of(units)
        num_rows = Kernels.transposed_bytes // (units * BYTES_PER_BLOCK)
        blocks = rng.integers(0, 2**32, (num_rows, units, WORDS_PER_BLOCK), dtype=np.uint32)
        rows = np.zeros(layout.file_bytes(num_rows) + SLACK_BYTES, dtype=np.uint8)
        back = np.empty_like(blocks)
        written, read = [], []
        for _ in range(Kernels.rounds + 1):  # the first one loads
            rows[:] = 0
            started = time.perf_counter()
            compiled.to_planes(blocks, rows, layout.row_bytes, layout.plane_bits)
            written.append(time.perf_counter() - started)
            started = time.perf_counter()
            compiled.from_planes(rows, layout.row_bytes, layout.plane_bits, back)
            read.append(time.perf_counter() - started)
        assert np.array_equal(blocks, back)
        for name, times in (("filters to planes", written), ("planes to filters", read)):
            speed = blocks.nbytes / min(times[1:]) / 1e6
            bar = Kernels.transposed_bar_mb_s
            results.append(Result(f"{name}, {units:,} units", speed, "MB/s", bar=bar, kind="at least"))
    return results


def run(console: Console) -> Outcome:
    """Measure everything."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    return Outcome([*compare(console), *transposition(), start_times()])


if __name__ == "__main__":
    main("hashing and filtering", run)

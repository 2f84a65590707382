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
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bench.kernels import arrow_cpp
from lakebloom import Sbbf

COUNT = 10_000_000
STRING_BYTES = 36
SEED = 6
ROUNDS = 3
SIZES = {"16 KiB": 16 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
BARS = {("int64", "insert"): 0.55, ("int64", "check"): 0.85, ("string", "insert"): 0.80, ("string", "check"): 0.80}
RBLOOM_COUNT = 1_000_000
COLD_BAR_S = 1.0
WORK = Path(".bench") / "kernels"


def values_of(kind: str, count: int = COUNT) -> pa.Array:
    rng = np.random.default_rng(SEED)
    if kind == "int64":
        return pa.array(rng.integers(-(2**63), 2**63 - 1, count, dtype=np.int64))
    letters = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    data = letters[rng.integers(0, 16, (count, STRING_BYTES), dtype=np.uint8)]
    offsets = np.arange(0, STRING_BYTES * count + 1, STRING_BYTES, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data.tobytes()))


def ns_per_value(work: Callable[[], object], count: int) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e9 / count


def measure_ours(f: Sbbf, values: pa.Array) -> dict[str, float]:
    times = {"insert": ns_per_value(lambda: f.insert(values), len(values))}
    answers: list[object] = []
    times["check"] = ns_per_value(lambda: answers.append(f.might_contain(values)), len(values))
    assert np.all(answers[0]), "a false negative"
    return times


def measure_rbloom(kind: str, values: pa.Array, filter_bytes: int) -> dict[str, float]:
    """rbloom takes Python objects one by one; it is given a tenth of the values, already made."""
    import rbloom

    items = values.slice(0, RBLOOM_COUNT).to_pylist()
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


def compare(console: Console) -> bool:
    program = arrow_cpp.compile_program(WORK)
    table = Table(title=f"{COUNT:,} values, one thread, ns a value; pyarrow {pa.__version__}", title_justify="left")
    for heading in (
        "values",
        "operation",
        "filter",
        "lakebloom",
        "Arrow one",
        "Arrow batch",
        "rbloom",
        "ratio",
        "bar",
        "",
    ):
        table.add_column(heading, justify="left" if heading in ("values", "operation", "filter", "") else "right")
    met = True
    for kind in ("int64", "string"):
        values = values_of(kind)
        data = arrow_cpp.write_values(WORK, kind, values)
        for label, filter_bytes in SIZES.items():
            ours, single, batch = [], [], []
            f = Sbbf(filter_bytes // 32)
            f.insert(values)
            for _ in range(ROUNDS):
                ours.append(measure_ours(f, values))
                theirs = arrow_cpp.run(program, kind, data, filter_bytes)
                assert theirs.hits == COUNT
                assert theirs.filter == f, "the bits differ from Arrow's"
                single.append(theirs.single)
                batch.append(theirs.batch)
            rbloom = measure_rbloom(kind, values, filter_bytes)
            for operation in ("insert", "check"):
                mine, one, many = best(ours)[operation], best(single)[operation], best(batch)[operation]
                ratio, bar = mine / min(one, many), BARS[kind, operation]
                met &= ratio <= bar
                verdict = "[green]met[/]" if ratio <= bar else "[red]missed[/]"
                figures = [f"{x:.1f}" for x in (mine, one, many, rbloom[operation])]
                table.add_row(kind, operation, label, *figures, f"{ratio:.2f}", f"{bar:.2f}", verdict)
    console.print(table)
    console.print("ratio: lakebloom against the faster of Arrow C++'s two interfaces, one value at a time and batches")
    return met


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


def start_times(console: Console) -> bool:
    """Time a process to its first bulk result, with an empty cache of machine code and with a filled one."""
    cache = (WORK / "numba-cache").resolve()
    shutil.rmtree(cache, ignore_errors=True)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}

    def seconds() -> float:
        run = subprocess.run(
            [sys.executable, "-c", FIRST_RESULT], env=environment, capture_output=True, text=True, check=True
        )
        return float(json.loads(run.stdout))

    cold, warm = seconds(), min(seconds() for _ in range(3))
    console.print(
        f"first bulk result of a process: {cold:.2f} s when it compiles, {warm:.2f} s from the cache", end=" "
    )
    console.print(f"(bar {COLD_BAR_S:.1f} s: {'[green]met[/]' if warm < COLD_BAR_S else '[red]missed[/]'})")
    return warm < COLD_BAR_S


def main() -> int:
    console = Console(width=120)
    WORK.mkdir(parents=True, exist_ok=True)
    results = [compare(console), start_times(console)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

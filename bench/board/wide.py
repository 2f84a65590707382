"""A table of 200 columns: what of it is read for one row grows with what is asked for, not with the table."""

from __future__ import annotations

import json
import random
import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.build.source import uuids
from bench.lookup.source import ABSENT, MANY, PRESENT, Question
from bench.parameters import Lookup, Wide


def wide_files(work: Path) -> list[tuple[str, int, str]]:
    """Write the table with and without filters inside its files, if it is not there; return some rows of each file."""
    truth = work / "truth.json"
    if not truth.exists():
        shutil.rmtree(work, ignore_errors=True)
        for copy in ("plain", "embedded"):
            (work / copy).mkdir(parents=True)
        truth.write_text(json.dumps([row for number in range(Wide.files) for row in _write(work, number)]))
    return [(key, amount, path) for key, amount, path in json.loads(truth.read_text())]


def _write(work: Path, number: int) -> list[tuple[str, int, str]]:
    rng = np.random.default_rng([Wide.seed, number])
    rows = Wide.rows_per_file
    columns: dict[str, Any] = {"uuid": uuids(rng, rows), "amount": rng.integers(0, 2**40, rows)}
    columns |= {f"measure_{i:03d}": rng.random(rows).astype(np.float32) for i in range(20)}
    columns |= {f"number_{i:03d}": rng.integers(0, 200, rows) for i in range(Wide.columns - len(columns))}
    table = pa.table(columns)
    name = f"part-{number:05d}.parquet"
    pq.write_table(table, work / "plain" / name)
    embedded = {"uuid": {"ndv": rows, "fpp": 0.01}}
    pq.write_table(table, work / "embedded" / name, bloom_filter_options=embedded)
    chosen = rng.choice(rows, 4 * Lookup.keys // Wide.files + 1, replace=False).tolist()
    found = zip(*(table[column].take(pa.array(chosen)).to_pylist() for column in ("uuid", "amount")), strict=True)
    return [(key, amount, str(work / "plain" / name)) for key, amount in found]


def wide_questions(rows: list[tuple[str, int, str]], count: int) -> dict[str, list[Question]]:
    """Return questions of each kind, each with keys of its own."""
    rng = random.Random(Wide.seed)
    absent = [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(count)]
    return {
        PRESENT: [Question.of([row]) for row in rng.sample(rows, count)],
        ABSENT: [Question([key], [], {}) for key in absent],
        MANY: [Question.of(rng.sample(rows, Lookup.keys)) for _ in range(count)],
    }

"""A lake of about 1 GB in zstd, as an event log has it: two keys to look for, and what the events carry along.

Written once and kept, with some of its keys. Columns that are not read cost embedding nothing but their bytes.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.build.source import uuids
from bench.parameters import PROCESSES, Embed

KEYS = ("user_id", "order_id")
ROWS_PER_GROUP = 500_000
_WORDS = np.array([f"word-{number}" for number in range(500)])
_WORDS_PER_NOTE = 6


@dataclass(frozen=True, slots=True)
class Lake:
    """A directory of Parquet files without filters."""

    folder: str
    files: int
    rows_per_file: int
    keys: dict[str, list[str]]
    """For each key column the value of one row of each file, as SQL."""

    @property
    def rows(self) -> int:
        return self.files * self.rows_per_file

    @property
    def paths(self) -> list[Path]:
        return sorted(Path(self.folder).glob("*.parquet"))


def lake(folder: Path, files: int, rows_per_file: int) -> Lake:
    """Return the lake in a folder, which is written first if it is not there."""
    truth = folder.with_suffix(".json")
    if truth.exists():
        return Lake(**json.loads(truth.read_text()))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        written = list(pool.map(partial(_write_file, folder, rows_per_file), range(files)))
    keys = {name: [row[i] for row in written] for i, name in enumerate(KEYS)}
    made = Lake(str(folder), files, rows_per_file, keys)
    truth.write_text(json.dumps(asdict(made), indent=1))
    return made


def _write_file(folder: Path, rows: int, number: int) -> tuple[str, str]:
    rng = np.random.default_rng([Embed.seed, number])
    users, orders = uuids(rng, rows), rng.integers(0, 2**63 - 1, rows, dtype=np.int64)
    words = [_WORDS[rng.integers(0, len(_WORDS), rows)] for _ in range(_WORDS_PER_NOTE)]
    note = words[0]
    for word in words[1:]:
        note = np.strings.add(np.strings.add(note, " "), word)
    sessions = rng.integers(0, 256, 16 * rows, dtype=np.uint8)
    table = pa.table(
        {
            "user_id": users,
            "order_id": orders,
            "moment": pa.array(np.cumsum(rng.integers(0, 2000, rows))).cast(pa.timestamp("us")),
            "country": pa.array(rng.integers(0, 200, rows)).cast(pa.string()),
            "session": pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(sessions)]),
            "amount": rng.random(rows),
            "score": rng.normal(size=rows),
            "note": pa.array(note),
        }
    )
    dictionaries = ["country", "note"]
    name = f"part-{number:05d}.zstd.parquet"
    pq.write_table(table, folder / name, compression="zstd", use_dictionary=dictionaries, row_group_size=ROWS_PER_GROUP)
    return f"'{users[number].as_py()}'", str(orders[number])

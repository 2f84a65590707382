"""The table that every contestant indexes, written as Spark would write it, kept between runs, with the truth about it.

Keys are uuids, so a file's dictionary would not pay and Spark stores them plain; pages end at 20,000 rows and snappy is
Spark's codec. Two columns of payload are what a method that rewrites files has to carry along.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial, reduce
from operator import xor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from bench.parameters import PROCESSES, Build

_SAMPLED_FILES = 20
_SPARK_HASH_SEED = 42
_HEX_PAIRS = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint16)


@dataclass(frozen=True, slots=True)
class Source:
    """A directory of Parquet files, and what must be found in it."""

    folder: str
    files: int
    rows: int
    hashes: int
    """XOR of Spark's xxhash64 of all keys, as Spark's signed number."""
    keys: dict[str, str]
    """Some keys, each with the name of the one file that has it."""


def source(folder: Path, files: int, rows_per_file: int) -> Source:
    """Return the table in a folder, which is written first if it is not there."""
    truth = folder.with_suffix(".json")
    if truth.exists():
        return Source(**json.loads(truth.read_text()))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        write = partial(write_file, folder, rows_per_file)
        written = list(pool.map(write, range(files), chunksize=max(1, files // 100)))
    hashes = reduce(xor, (hashes for _, _, hashes in written))
    sampled = written[:: max(1, files // _SAMPLED_FILES)]
    signed = hashes - (1 << 64) if hashes >> 63 else hashes
    made = Source(str(folder), files, files * rows_per_file, signed, {key: name for name, key, _ in sampled})
    truth.write_text(json.dumps(asdict(made), indent=1))
    return made


def write_file(folder: Path, rows: int, number: int) -> tuple[str, str, int]:
    """Write one file; return its name, one of its keys, and the XOR of the keys' hashes."""
    rng = np.random.default_rng([Build.seed, number])
    keys = uuids(rng, rows)
    table = pa.table(
        {"uuid": keys, "amount": rng.integers(-(2**63), 2**63 - 1, rows, dtype=np.int64), "score": rng.random(rows)}
    )
    name = f"part-{number:05d}.snappy.parquet"
    pq.write_table(
        table,
        folder / name,
        compression="snappy",
        use_dictionary=False,
        max_rows_per_page=20_000,
        store_schema=False,
    )
    hashes = (xxhash.xxh64_intdigest(key, _SPARK_HASH_SEED) for key in keys.cast(pa.binary()).to_pylist())
    return name, keys[number % rows].as_py(), reduce(xor, hashes)


def uuids(rng: np.random.Generator, count: int) -> pa.Array:
    """Return random uuids of version 4 as text."""
    raw = rng.integers(0, 256, (count, 16), dtype=np.uint8)
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    digits = _HEX_PAIRS[raw].view(np.uint8)
    text = np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1)
    offsets = np.arange(0, 36 * count + 1, 36, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text)))


def require_found(kept: dict[str, set[str]], table: Source, most: float = 0.03) -> None:
    """Check what filters kept for the sampled keys: the file that has the key, and of the others hardly any."""
    for key, file in table.keys.items():
        assert file in kept[key], f"{key} is in {file}, whose filter says no"
    share = sum(map(len, kept.values())) - len(kept)
    assert share <= most * len(kept) * table.files, f"the filters kept {share} files in vain"

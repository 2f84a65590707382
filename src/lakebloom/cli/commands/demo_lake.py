"""The lake of the demo: small files of random keys, as a stream of events writes them."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["DemoLake"]

_FILES, _ROWS, _SEED = 400, 5_000, 4


class DemoLake:
    """A table below ``path``. ``needle`` is a key of one of its files, ``keys`` are three of each file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.needle = ""
        self.keys: list[str] = []
        self._rng = np.random.default_rng(_SEED)
        self._files = 0

    def write(self) -> str:
        """Write the files, and return a summary."""
        self.path.mkdir()
        started = time.perf_counter()
        self.append(_FILES)
        size = sum(path.stat().st_size for path in self.path.iterdir())
        elapsed_s = time.perf_counter() - started
        return f"{_FILES} files, {_FILES * _ROWS:,} rows, {size / 1e6:.0f} MB, made in {elapsed_s:.1f} s"

    def append(self, files: int) -> str:
        """Write more files, and return a key of the last one."""
        for _ in range(files):
            keys = self._write_file()
            if self._files == _FILES // 3:
                self.needle = keys[_ROWS // 2].as_py()
            if self._files <= _FILES:
                self.keys.extend(keys[:3].to_pylist())
        newest: str = keys[0].as_py()
        return newest

    def _write_file(self) -> pa.Array:
        keys = _uuids(self._rng, _ROWS)
        columns = {"user_id": keys, "event": self._rng.integers(0, 50, _ROWS), "amount": self._rng.random(_ROWS)}
        path = self.path / f"part-{self._files:05d}.parquet"
        pq.write_table(pa.table(columns), path, compression="zstd", use_dictionary=["event"])
        self._files += 1
        return keys


def _uuids(rng: np.random.Generator, count: int) -> pa.Array:
    """Return random uuids as text."""
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    text = digits[rng.integers(0, 16, (count, 36), dtype=np.uint8)]
    text[:, [8, 13, 18, 23]] = ord("-")
    offsets = np.arange(0, 36 * count + 1, 36, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text.tobytes()))

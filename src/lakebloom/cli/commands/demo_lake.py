"""The lake of the demo: small files of random keys, as a stream of events writes them."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["DemoDelta", "DemoLake", "LargeFile", "write_large_file"]

_FILES, _ROWS, _SEED = 400, 5_000, 4
_LARGE_ROWS, _LARGE_GROUP = 2_000_000, 1_000_000


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


class LargeFile(NamedTuple):
    """A file of real size, and a key in it."""

    path: Path
    needle: str
    summary: str


def write_large_file(folder: Path) -> LargeFile:
    """Write one file of two million rows and twelve columns, as PyArrow does by default."""
    folder.mkdir()
    started = time.perf_counter()
    rng = np.random.default_rng(_SEED)
    columns: dict[str, Any] = {"user_id": _uuids(rng, _LARGE_ROWS)}
    columns |= {f"count_{number}": rng.integers(0, 1000, _LARGE_ROWS) for number in range(5)}
    columns |= {f"measure_{number}": rng.random(_LARGE_ROWS) for number in range(5)}
    columns["amount"] = rng.integers(0, 2**40, _LARGE_ROWS)
    table = pa.table(columns)
    path = folder / "part-00000.parquet"
    pq.write_table(table, path, row_group_size=_LARGE_GROUP)
    size, elapsed_s = path.stat().st_size, time.perf_counter() - started
    summary = f"{_LARGE_ROWS:,} rows, 12 columns, 2 row groups, {size / 1e6:.0f} MB, made in {elapsed_s:.1f} s"
    return LargeFile(path, table["user_id"][_LARGE_ROWS * 2 // 3].as_py(), summary)


class DemoDelta:
    """A Delta table of some files of a lake, with a log of two versions: the second has one row less."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, files: list[Path]) -> None:
        """Write the first version, with copies of these files."""
        (self.path / "_delta_log").mkdir(parents=True)
        for file in files:
            shutil.copy2(file, self.path)
        kinds = {"user_id": "string", "event": "long", "amount": "double"}
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
        about = {
            "id": "lakebloom-demo",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {},
        }
        added = [self._added(self.path / file.name) for file in files]
        self._commit(0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": about}, *added)

    def delete(self, key: str, file: Path) -> None:
        """Write the second version, in which one file is replaced by another without the rows of a key."""
        rows = pq.read_table(file)
        new = file.with_name(f"without-{file.name}")
        pq.write_table(rows.filter(pc.field("user_id") != key), new)
        removed = {"path": file.name, "deletionTimestamp": time.time_ns() // 1_000_000, "dataChange": True}
        self._commit(1, {"remove": removed}, self._added(new))

    @staticmethod
    def _added(file: Path) -> dict[str, Any]:
        found = file.stat()
        size, time_ms = found.st_size, found.st_mtime_ns // 1_000_000
        facts = {"path": file.name, "partitionValues": {}, "size": size, "modificationTime": time_ms}
        return {"add": {**facts, "dataChange": True}}

    def _commit(self, version: int, *actions: dict[str, Any]) -> None:
        text = "".join(f"{json.dumps(action)}\n" for action in actions)
        (self.path / "_delta_log" / f"{version:020}.json").write_text(text)


def _uuids(rng: np.random.Generator, count: int) -> pa.Array:
    """Return random uuids as text."""
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    text = digits[rng.integers(0, 16, (count, 36), dtype=np.uint8)]
    text[:, [8, 13, 18, 23]] = ord("-")
    offsets = np.arange(0, 36 * count + 1, 36, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text.tobytes()))

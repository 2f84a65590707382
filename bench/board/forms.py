"""What each peer keeps of a lake: made once, with what it cost in time and bytes.

A form that is there is not made again, so its cost is that of the day it was made, one form after another. A form that
would take very long, judging by a lake with fewer keys, is not made.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.ledger import Cost, Ledger
from bench.lookup.engines import clickhouse_session, rocksdb_options
from bench.lookup.source import size_of
from bench.parameters import Board
from bench.tables.source import take_over

LMDB, ROCKSDB, CLICKHOUSE = "LMDB, key to file", "RocksDB, key to file", "ClickHouse, its own table"
_FIRST_CHARACTERS = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])
"""Where a UUID has its 32 digits; the rest are hyphens."""


@dataclass(frozen=True, slots=True)
class Lake:
    """A folder of files, where its forms are, and how many rows it has."""

    name: str
    """That of our index, and of ClickHouse's copy."""
    title: str
    plain: Path
    embedded: Path
    lance: Path
    lance_versions: dict[str, int]
    indexes: Path
    work: Path
    rows: int
    by_row_group: bool = False
    """Whether files are large, so that whoever knows the place of a key reads a row group."""
    has_logs: bool = False
    """Whether the files are a Delta and an Iceberg table as well."""

    @property
    def table(self) -> str:
        """The name of ClickHouse's copy."""
        return f"board.{self.name}"

    @property
    def delta(self) -> Path:
        """The Delta table."""
        return self.work / "delta"

    @property
    def iceberg(self) -> Path:
        """The Iceberg table."""
        return self.work / "iceberg"


def make_forms(lake: Lake, smaller: tuple[Lake, dict[str, Cost]] | None) -> dict[str, float]:
    """Make what is missing; return how long forms would take that are not made."""
    lake.work.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(lake.name)
    makers: dict[str, Callable[[Lake], int]] = {
        LMDB: _write_lmdb,
        ROCKSDB: _write_rocksdb,
        CLICKHOUSE: _write_clickhouse,
    }
    not_made = {}
    for name, make in makers.items():
        if smaller is not None and name not in ledger.costs():
            expected_s = smaller[1][name].build_s * lake.rows / smaller[0].rows
            if expected_s > Board.form_s:
                not_made[name] = expected_s
                continue
        ledger.made(name, lambda make=make: make(lake))
    if lake.has_logs:
        _make_logs(lake)
    return not_made


def _make_logs(lake: Lake) -> None:
    """Make a Delta table of other names of the files with filters, and an Iceberg table of the files without."""
    from deltalake import convert_to_deltalake

    done = lake.work / "logs.done"
    if done.exists():
        return
    for folder in (lake.delta, lake.iceberg):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for file in lake.embedded.iterdir():
        os.link(file, lake.delta / file.name)
    convert_to_deltalake(str(lake.delta))
    take_over(sorted(lake.plain.iterdir()), lake.iceberg)
    done.touch()


def _sorted_places(lake: Lake) -> Iterator[tuple[bytes, bytes]]:
    """Yield all keys in order, as 16 bytes, each with its place."""
    keys, places = [], []
    for number, path in enumerate(sorted(lake.plain.iterdir())):
        file = pq.ParquetFile(path)
        for group in range(file.metadata.num_row_groups):
            texts = file.read_row_group(group, columns=["uuid"])["uuid"].combine_chunks()
            keys.append(_as_bytes(texts))
            places.append(np.full(len(texts), (number << 16) | group, np.uint32))
    joined, place = np.concatenate(keys), np.concatenate(places)
    high, low = (part.astype(np.uint64) for part in joined.view(">u8").reshape(-1, 2).T)
    order = np.argsort(high)
    if (np.diff(high[order]) == 0).any():
        order = np.lexsort((low, high))
    for start in range(0, len(order), Board.batch_rows):
        some = order[start : start + Board.batch_rows]
        yield from zip(
            joined[some].view("V16")[:, 0].tolist(), place[some].astype(">u4").view("V4").tolist(), strict=True
        )


def _as_bytes(texts: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the 16 bytes of each UUID, a row each."""
    _, offsets, data = texts.buffers()
    first = np.frombuffer(offsets, np.int32)[texts.offset]
    letters = np.frombuffer(data, np.uint8, 36 * len(texts), first).reshape(-1, 36)[:, _FIRST_CHARACTERS]
    nibbles = np.where(letters >= ord("a"), letters - (ord("a") - 10), letters - ord("0"))
    return np.ascontiguousarray((nibbles[:, 0::2] << 4) | nibbles[:, 1::2])


def _write_lmdb(lake: Lake) -> int:
    import lmdb

    target = lake.work / "lmdb"
    shutil.rmtree(target, ignore_errors=True)
    environment = lmdb.open(str(target), map_size=1 << 40, sync=False, metasync=False, lock=False)
    with environment.begin(write=True) as transaction, transaction.cursor() as cursor:
        cursor.putmulti(_sorted_places(lake), append=True)
    environment.sync(True)
    environment.close()
    return size_of(target)


def _write_rocksdb(lake: Lake) -> int:
    from rocksdict import Rdict, SstFileWriter

    target = lake.work / "rocksdb"
    shutil.rmtree(target, ignore_errors=True)
    part = lake.work / "sorted.sst"
    writer = SstFileWriter(rocksdb_options())
    writer.open(str(part))
    for key, place in _sorted_places(lake):
        writer[key] = place
    writer.finish()
    database = Rdict(str(target), rocksdb_options())
    database.ingest_external_file([str(part)])
    database.close()
    part.unlink(missing_ok=True)
    return size_of(target)


def _write_clickhouse(lake: Lake) -> int:
    found = clickhouse_session(str(lake.work / "clickhouse"))
    found.query("CREATE DATABASE IF NOT EXISTS board ENGINE = Atomic")
    found.query(f"DROP TABLE IF EXISTS {lake.table} SYNC")
    source = f"file('{lake.plain}/*.parquet', Parquet) SETTINGS schema_inference_make_columns_nullable = 0"
    kept = "SETTINGS old_parts_lifetime = 1"  # or parts that were merged stay for minutes, and take as much again
    found.query(f"CREATE TABLE {lake.table} ENGINE = MergeTree ORDER BY tuple() {kept} EMPTY AS SELECT * FROM {source}")
    found.query(f"ALTER TABLE {lake.table} ADD INDEX by_uuid uuid TYPE bloom_filter({Board.fpp}) GRANULARITY 1")
    found.query(f"INSERT INTO {lake.table} SELECT * FROM {source}")
    found.query(f"OPTIMIZE TABLE {lake.table} FINAL")
    size = found.query(f"SELECT data_compressed_bytes FROM system.data_skipping_indices WHERE table = '{lake.name}'")
    found.close()
    return int(str(size))

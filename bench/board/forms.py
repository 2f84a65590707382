"""What each peer keeps of a lake: made once, with what it cost in time and bytes.

A form that is there is not made again, so its cost is that of the day it was made, one form after another.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.lookup.engines import clickhouse_session, rocksdb_options
from bench.lookup.race import BLOOM, BTREE, OURS
from bench.parameters import Board
from bench.session import session
from lakebloom import BloomIndexConfig, Lakebloom

LMDB, ROCKSDB, CLICKHOUSE = "LMDB, key to file", "RocksDB, key to file", "ClickHouse, its own table"


@dataclass(frozen=True, slots=True)
class Lake:
    """A folder of files under one name, where its forms are, and how many rows it has."""

    name: str
    title: str
    plain: Path
    embedded: Path
    lance: Path
    work: Path
    rows: int
    by_row_group: bool
    """Whether files are large, so that whoever knows the place of a key reads a row group."""

    @property
    def table(self) -> str:
        """The name of ClickHouse's copy."""
        return f"board.{self.name}"


class Cost(msgspec.Struct, frozen=True):
    """What it took to make a form; the bytes are those of what answers for keys, not of copies of the rows."""

    build_s: float
    size_bytes: int


def costs_of(lake: Lake) -> dict[str, Cost]:
    """Return the cost of each form by the name of its method; what is not there is made first."""
    lake.work.mkdir(parents=True, exist_ok=True)
    made: dict[str, Callable[[Lake], int]] = {
        OURS: _index,
        LMDB: _write_lmdb,
        ROCKSDB: _write_rocksdb,
        CLICKHOUSE: _write_clickhouse,
        BLOOM: _lance("BLOOMFILTER"),
        BTREE: _lance("BTREE"),
    }
    path = lake.work / "costs.json"
    costs = msgspec.json.decode(path.read_bytes(), type=dict[str, Cost]) if path.exists() else {}
    for name, make in made.items():
        if name not in costs:
            started = time.perf_counter()
            size = make(lake)
            costs[name] = Cost(time.perf_counter() - started, size)
            path.write_bytes(msgspec.json.encode(costs))
    return costs


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _index(lake: Lake) -> int:
    """The time includes starting Spark."""
    spark = session("board")
    try:
        found = Lakebloom(spark, lake.work / "indexes")
        found.create_index(str(lake.plain), BloomIndexConfig(lake.name, ["uuid"]), replace=True)
        return found.index(lake.name).size_bytes
    finally:
        spark.stop()


def _sorted_places(lake: Lake) -> Iterator[tuple[bytes, bytes]]:
    """Yield all keys in order, as 16 bytes, each with its place."""
    keys, places = [], []
    for number, path in enumerate(sorted(lake.plain.iterdir())):
        file = pq.ParquetFile(path)
        for group in range(file.metadata.num_row_groups):
            texts = file.read_row_group(group, columns=["uuid"])["uuid"].combine_chunks()
            keys.append(_as_bytes(texts))
            places.append(np.full(len(texts), (number << 16) | group, np.uint32))
    joined, place = np.concatenate(keys).view("V16"), np.concatenate(places)
    high, low = joined.view(">u8").reshape(-1, 2).astype(np.uint64).T
    order = np.lexsort((low, high))
    for start in range(0, len(order), Board.batch_rows):
        some = order[start : start + Board.batch_rows]
        key_bytes, place_bytes = joined[some].tobytes(), place[some].astype(">u4").tobytes()
        for i in range(len(some)):
            yield key_bytes[16 * i : 16 * i + 16], place_bytes[4 * i : 4 * i + 4]


def _as_bytes(texts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the 16 bytes of each UUID."""
    digits = pc.binary_join(pc.split_pattern(texts, "-"), "").buffers()[2]
    raw = np.frombuffer(digits, np.uint8, 32 * len(texts))
    nibbles = np.where(raw >= ord("a"), raw - ord("a") + 10, raw - ord("0")).astype(np.uint8)
    return (nibbles[0::2] << 4) | nibbles[1::2]


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
    found.query(f"CREATE TABLE {lake.table} ENGINE = MergeTree ORDER BY tuple() EMPTY AS SELECT * FROM {source}")
    found.query(f"ALTER TABLE {lake.table} ADD INDEX by_uuid uuid TYPE bloom_filter({Board.fpp}) GRANULARITY 1")
    found.query(f"INSERT INTO {lake.table} SELECT * FROM {source}")
    found.query(f"OPTIMIZE TABLE {lake.table} FINAL")
    size = found.query(f"SELECT data_compressed_bytes FROM system.data_skipping_indices WHERE table = '{lake.name}'")
    found.close()
    return int(str(size))


def _lance(kind: str) -> Callable[[Lake], int]:
    def make(lake: Lake) -> int:
        import lance

        dataset = lance.dataset(str(lake.lance))
        for index in dataset.describe_indices():
            dataset.drop_index(index.name)
        before = size_of(lake.lance / "_indices")
        dataset.create_scalar_index("uuid", kind)
        (lake.work / f"lance-{kind}").write_text(str(dataset.version))
        return size_of(lake.lance / "_indices") - before

    return make

"""Hostile files, asked in a process of its own with little memory: a typed error or an answer, nothing else.

    python -m tests.fuzz.hostile HOME SEED COUNT MINUTES

HOME/case holds the number of the case that is asked, for the one who finds this process dead. Bytes that are damaged
at random, with checksums that no longer fit, must give a typed error or the right answer. What was made with checksums
that fit may lie, as its writer may; it must not take memory or time without end, or raise anything untyped.
"""

from __future__ import annotations

import random
import resource
import shutil
import signal
import struct
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lakebloom.parquet
from lakebloom import BloomIndexConfig, col
from lakebloom.errors import LakebloomError
from lakebloom.parquet.inspection import inspect_file
from lakebloom.store.commits import entry_path
from lakebloom.store.records import FORMAT_VERSION
from lakebloom.store.tile_layout import layout_of
from tests.fuzz.damage import damaged, with_hostile_value
from tests.index.lake import NAME, Lake

MEMORY_BYTES = 2 << 30
MOST_FAILURES = 10
CASE_S = 120
"""After so long a case is taken for one without end."""

COMMON = ("k", "s", "n")
PREDICATES = [col("k") == 45, col("s").isin(["s3", "s41"]) | (col("n") == 2), col("n").is_null() & (col("k") != 5)]


class Index:
    """A small index in two versions, with two layers, row groups as units and global filters."""

    def __init__(self, home: Path) -> None:
        self.lake = Lake(home, {"k": "bigint", "s": "string", "n": "int"})
        self.lake.fill(range(3))
        self.lake.create(BloomIndexConfig(NAME, list(COMMON), fpp=1e-4, granularity="row_group", global_filter=True))
        self.lake.fill([3])
        self.lake.refresh()
        self.root = Path(self.lake.location) / NAME
        self.commit = self.lake.entry()
        self.whole = {path: path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}
        self.tables = {path: path.read_bytes() for path in sorted(self.lake.table.iterdir())}
        self.right = self.answers()

    def answers(self) -> list[Any]:
        lake = self.lake.open()
        found: list[Any] = [lake.candidates(NAME, predicate).to_pylist() for predicate in PREDICATES]
        return [*found, lake.lookup(NAME, PREDICATES[0]).to_pylist()]

    def ask_everything(self) -> None:
        """Whatever a user may do with an index, errors of each apart."""
        lake = self.lake.open()
        for question in (
            self.answers,
            lake.indexes,
            lambda: str(lake.index(NAME)),
            lambda: str(lake.history(NAME)),
            lambda: lake.verify_index(NAME),
            lambda: lake.lookup(NAME, PREDICATES[1], unindexed="skip"),
            lambda: lake.optimize_index(NAME),
        ):
            try:
                question()
            except LakebloomError as error:
                str(error)

    def put_back(self) -> None:
        for path in [path for path in self.root.rglob("*") if path.is_file() and path not in self.whole]:
            path.unlink()
        for path, data in self.whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for path, data in self.tables.items():
            if path.read_bytes() != data:
                path.write_bytes(data)

    def write_commit(self, body: bytes, version: int) -> None:
        head = msgspec.json.encode({"lakebloom": FORMAT_VERSION, "crc32": zlib.crc32(body)})
        (self.root / entry_path(version)).write_bytes(head + b"\n" + body + b"\n")


# Kinds of cases. Each changes something and asks.


def damaged_index(index: Index, rng: random.Random) -> str:
    path = rng.choice(list(index.whole))
    path.write_bytes(damaged(index.whole[path], rng))
    try:
        became = index.answers()
    except LakebloomError:
        return "refused"
    assert became == index.right, f"a wrong answer after damage to {path}"
    return "answered"


def hostile_commit(index: Index, rng: random.Random) -> str:
    tree = msgspec.json.decode(msgspec.json.encode(index.commit))
    body = msgspec.json.encode(with_hostile_value(tree, rng)) if rng.random() < 0.9 else b"[" * 100_000
    index.write_commit(body, index.commit.version)
    index.ask_everything()
    return "survived"


def _with_file(index: Index, path: str, data: bytes, head_bytes: int | None = None) -> None:
    """Store other bytes for a file of the index, with the sizes and checksums that the log then has."""
    (index.root / path).write_bytes(data)
    tree = msgspec.json.decode(msgspec.json.encode(index.commit))
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict) and node.get("path") == path:
            node.update(size_bytes=len(data), crc32=zlib.crc32(data))
            if "head_bytes" in node:
                head = min(len(data), node["head_bytes"] if head_bytes is None else head_bytes)
                node.update(head_bytes=head, head_crc32=zlib.crc32(data[:head]))
        waiting.extend(node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
    index.write_commit(msgspec.json.encode(tree), index.commit.version)


def _batched(table: pa.Table, metadata: dict[bytes, bytes], rows: int, compression: str | None) -> tuple[bytes, int]:
    """Return a table in batches, with checksums that fit, and the size of its head."""
    schema = table.schema.remove_metadata()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    batches = []
    for start in range(0, max(1, table.num_rows), rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            writer.write_table(table.slice(start, rows).combine_chunks().replace_schema_metadata(None))
        batches.append(sink.getvalue().to_pybytes()[len(schema.serialize()) : -8])
    described = b"".join(struct.pack("<II", len(batch), zlib.crc32(batch)) for batch in batches)
    head = schema.with_metadata({**metadata, b"batches": described.hex().encode()}).serialize().to_pybytes()
    return head + b"".join(batches) + b"\xff\xff\xff\xff\0\0\0\0", len(head)


def hostile_file(index: Index, rng: random.Random) -> str:
    path = rng.choice(sorted(index.commit.paths))
    _with_file(index, path, damaged(index.whole[index.root / path], rng))
    index.ask_everything()
    return "survived"


def hostile_units(index: Index, rng: random.Random) -> str:
    """Unit tables with other numbers, texts and dictionaries, more rows, in other batches, or compressed."""
    path = rng.choice(rng.choice(index.commit.segments).tables).path
    table = pa.ipc.open_stream(pa.py_buffer(index.whole[index.root / path])).read_all()
    metadata = dict(table.schema.metadata)
    column = rng.randrange(table.num_columns)
    field = table.schema.field(column)
    if pa.types.is_integer(field.type):
        top = 2 ** (field.type.bit_width - 1) - 1
        values = np.array([rng.choice([-1, 0, 1, 7, top, -top]) for _ in range(table.num_rows)])
        table = table.set_column(column, field, pa.array(values, field.type))
    elif pa.types.is_string(field.type):
        table = table.set_column(column, field, pa.array([rng.choice(["", "x", "/", "\0"])] * table.num_rows))
    elif pa.types.is_dictionary(field.type):
        texts = pa.array([rng.choice(["", "file:///", "s3://b/", None])], pa.string())
        indices = pa.array(np.full(table.num_rows, rng.choice([0, 1, -1]), np.int32))
        table = table.set_column(column, field, pa.DictionaryArray.from_arrays(indices, texts, safe=False))
    elif rng.random() < 0.3:
        table = pa.concat_tables([table] * rng.choice([2, 1000])).combine_chunks()
    if rng.random() < 0.3:
        metadata[b"first_units"] = rng.choice([b"", b"zz", b"00", b"ff" * 8, b"00" * 16])
    data, head_bytes = _batched(table, metadata, rng.choice([1, 4096]), rng.choice([None, None, "zstd", "lz4"]))
    _with_file(index, path, data, head_bytes)
    index.ask_everything()
    return "survived"


def unpacking(index: Index, rng: random.Random) -> str:
    """A small file that unpacks to gigabytes."""
    path = rng.choice(index.commit.segments[0].tables).path
    table = pa.ipc.open_stream(pa.py_buffer(index.whole[index.root / path])).read_all()
    rows = 200_000
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["file:///x"]))
        if pa.types.is_dictionary(field.type)
        else pa.nulls(rows, field.type)
        if field.nullable
        else pa.array(["x"] * rows)
        if pa.types.is_string(field.type)
        else pa.array(np.zeros(rows, np.int64)).cast(field.type)
        for field in table.schema
    ]
    schema = table.schema.remove_metadata()
    huge = pa.concat_tables([pa.table(arrays, schema=schema)] * rng.choice([1, 20]))
    data, head_bytes = _batched(huge, dict(table.schema.metadata), len(huge), rng.choice(["zstd", "lz4"]))
    _with_file(index, path, data, head_bytes)
    index.ask_everything()
    return "survived"


def hostile_table(index: Index, rng: random.Random) -> str:
    """A file of the table that is not what it was: read as unindexed, or refused."""
    path = rng.choice(list(index.tables))
    data = index.tables[path]
    path.write_bytes(_hostile_parquet(data, rng))
    lake = index.lake.open()
    for question in (
        lambda: lake.lookup(NAME, PREDICATES[0]),
        lambda: lake.lookup(NAME, PREDICATES[2]),
        lambda: index.lake.refresh(),
        lambda: lake.advise(str(index.lake.table)),
    ):
        try:
            question()
        except LakebloomError as error:
            str(error)
    return "survived"


def _hostile_parquet(data: bytes, rng: random.Random) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    if rng.random() < 0.3:
        return damaged(data, rng)
    footer = damaged(data[-8 - length : -8], rng)
    return data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def hostile_parquet(index: Index, rng: random.Random) -> str:
    path = index.root.parent.parent / "hostile.parquet"
    source = index.root.parent.parent / "filtered.parquet"
    if not source.exists():
        options = {"k": {"ndv": 100, "fpp": 0.01}, "s": {"ndv": 100, "fpp": 0.01}}
        columns = {"k": range(100), "s": [f"s{i}" for i in range(100)], "x": [[i] for i in range(100)]}
        pq.write_table(pa.table(columns), source, row_group_size=40, bloom_filter_options=options)
    path.write_bytes(_hostile_parquet(source.read_bytes(), rng))
    for question in (
        lambda: [found.filter.fpp for found in lakebloom.parquet.filters(path)],
        lambda: lakebloom.parquet.might_contain(path, "k", [5, 500]),
        lambda: inspect_file(path),
        lambda: lakebloom.parquet.embed(path, path.with_name("out.parquet"), columns=["k"]),
    ):
        try:
            question()
        except LakebloomError as error:
            str(error)
    return "survived"


def hostile_lance(index: Index, rng: random.Random) -> str:
    from lakebloom.lance import open_index
    from lakebloom.lance.index_file import FPP, IndexFileContent, write_index_file
    from lakebloom.lance.zones import ZoneFilter
    from lakebloom.sbbf.filter import Sbbf

    home = index.root.parent.parent
    whole, path = home / "whole.lance", home / "hostile.lance"
    if not whole.exists():
        zones = []
        for number in range(4):
            f = Sbbf(8)
            f.insert(pa.array(range(number * 50, number * 50 + 50), pa.int64()))
            zones.append(ZoneFilter(0, number * 50, 50, number % 2 == 0, f))
        write_index_file(str(whole), IndexFileContent(tuple(zones), 50, FPP), {0: [np.array([0], np.uint32)]})
    path.write_bytes(damaged(whole.read_bytes(), rng))
    try:
        open_index(str(path)).might_contain([5, 500], type=pa.int64())
    except LakebloomError as error:
        str(error)
    return "survived"


def hostile_tile(index: Index, rng: random.Random) -> str:
    """Tiles that claim other shapes, with files that have exactly the size of these, as sparse as a disk allows."""
    tree = msgspec.json.decode(msgspec.json.encode(index.commit))
    segment = rng.choice(tree["segments"])
    tile = rng.choice(segment["tiles"])
    others = [each for each in segment["tiles"] if each["column"] == tile["column"]]
    num_units = rng.choice([1, tile["num_units"], 2047, 2048, 1 << 20, 1 << 31, 1 << 40])
    num_blocks = rng.choice([1, tile["num_blocks"], 1 << 16, (1 << 31) - 1])
    layout = layout_of(num_units)
    size_bytes = layout.file_bytes(num_blocks)
    for each in others if rng.random() < 0.5 else [tile]:
        each.update(num_units=num_units, num_blocks=num_blocks)
        each["parts"] = [{"num_blocks": num_blocks, "file": {**each["parts"][0]["file"], "size_bytes": size_bytes}}]
        with suppress(OSError), (index.root / each["parts"][0]["file"]["path"]).open("r+b") as file:
            file.truncate(min(size_bytes, 1 << 42))
    if rng.random() < 0.5:
        segment["num_units"] = num_units
    index.write_commit(msgspec.json.encode(tree), index.commit.version)
    index.ask_everything()
    return "survived"


def exchanged_tiles(index: Index, rng: random.Random) -> str:
    """Files of one kind in each other's place: refused, or the right answer."""
    tiles = sorted(path for path in index.whole if path.suffix == ".tile")
    first, second = rng.sample(tiles, 2)
    first.write_bytes(index.whole[second])
    second.write_bytes(index.whole[first])
    try:
        became = index.answers()
    except LakebloomError:
        return "refused"
    assert became == index.right, f"a wrong answer after {first} and {second} were exchanged"
    return "answered"


KINDS: list[tuple[Callable[[Index, random.Random], str], int]] = [
    (damaged_index, 6),
    (hostile_commit, 6),
    (hostile_file, 5),
    (hostile_units, 3),
    (hostile_tile, 4),
    (exchanged_tiles, 2),
    (unpacking, 1),
    (hostile_table, 3),
    (hostile_parquet, 6),
    (hostile_lance, 3),
]


class EndlessError(Exception):
    """A case that does not come to an end."""


def _endless(*_: object) -> None:
    raise EndlessError


def run(home: Path, seed: int, count: int, minutes: float) -> tuple[dict[str, int], list[str]]:
    index = Index(home)
    failures: list[str] = []
    functions, weights = zip(*KINDS, strict=True)
    done = Counter[str]()
    started = time.monotonic()
    signal.signal(signal.SIGALRM, _endless)
    for number in range(count):
        if time.monotonic() - started > 60 * minutes:
            break
        rng = random.Random(seed * 1_000_003 + number)
        kind = rng.choices(functions, weights)[0]
        (home / "case").write_text(f"{seed} {number} {kind.__name__}")
        signal.alarm(CASE_S)
        try:
            done[f"{kind.__name__}: {kind(index, rng)}"] += 1
        except BaseException:
            failures.append(f"case {(home / 'case').read_text()}\n{traceback.format_exc()}")
        finally:
            signal.alarm(0)
        index.put_back()
        if len(failures) == MOST_FAILURES:
            break
    assert failures or index.answers() == index.right
    return dict(done), failures


def main() -> int:
    home, seed, count, minutes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    done, failures = run(home, seed, count, minutes)
    sys.stdout.write(msgspec.json.encode({"done": done, "failures": failures}).decode())
    shutil.rmtree(home, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

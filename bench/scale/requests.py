"""What a question asks of an object store, counted by the store: an S3 server on loopback."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.parameters import Scale, Units
from bench.results import Result, table
from bench.s3 import BUCKET, Traffic, counting_s3
from bench.scale.opening import wide_columns
from bench.scale.units import NAME, Shape, commit, write_units
from lakebloom import Lakebloom, Sbbf, col
from lakebloom.index.catalog import Catalog
from lakebloom.index.lookup.file_reads import Unindexed
from lakebloom.sbbf.sizing import auto_fpp
from lakebloom.storage import open_storage
from lakebloom.store.segments import SegmentWriter
from lakebloom.store.unit_table import ColumnFacts, Unit
from lakebloom.tables.listing.listing import list_files

OBJECTS, ROWS, FPP = 20, 25_000, 1e-3
LOOKUPS: tuple[tuple[str, int | None, Unindexed], ...] = (
    ("first lookup", 3, "scan"),
    ("lookup, present key", 7, "scan"),
    ("lookup, present key in the same object", 7, "scan"),
    ("lookup, absent key", None, "scan"),
    ("lookup, present key, unindexed files skipped", 11, "skip"),
    ("lookup, absent key, unindexed files skipped", None, "skip"),
)
"""What is asked, of which object there is a key, and what becomes of files that the index does not know."""
SHAPES = (
    Shape(segments=1, units=1000, blocks=40),
    Shape(segments=1, units=4000, blocks=40),
    Shape(segments=4, units=4000, blocks=40),
)
WIDE = Shape(segments=1, units=1_000_000, blocks=Units.wide_blocks)


def request_results(console: Console) -> list[Result]:
    """Count what opening an index and asking it take for one segment and for several."""
    printed = table("requests to S3, as the server counts them", ["question"], ["requests", "kinds", "kB"])
    results = []
    with counting_s3() as (options, traffic):
        for shape in SHAPES:
            location = f"s3://{BUCKET}/{shape.segments}x{shape.units}"
            write_units(Catalog(location, options), shape)
            lake = Lakebloom(location=location, options=options)
            for number, question in enumerate(("first key", "another key", "100 keys")):
                keys = [number] if number < 2 else list(range(100, 200))
                traffic.clear()
                lake.candidates(NAME, col("k").isin(keys))
                what = f"{question}, segments of {shape.units:,} units: {shape.segments}"
                requests = str(sum(traffic.requests.values()))
                printed.add_row(what, requests, _kinds(traffic), f"{traffic.size_bytes / 1e3:,.0f}")
                results.append(_result(what, traffic))
        wide = _of_million(options, traffic)
        for what, count in wide.items():
            printed.add_row(what, str(sum(count.requests.values())), _kinds(count), f"{count.size_bytes / 1e3:,.0f}")
            results.append(_result(what, count))
        another = wide[f"another key, {WIDE.units:,} units"]
        results[-1:] = [
            Result(
                "a million units on S3: requests", float(sum(another.requests.values())), "", bar=Units.requests_bar
            ),
            Result("a million units on S3: bytes", another.size_bytes / 1e6, "MB", bar=Units.bytes_bar_mb),
        ]
        for what, count in _lookups(options, traffic).items():
            printed.add_row(what, str(sum(count.requests.values())), _kinds(count), f"{count.size_bytes / 1e3:,.0f}")
            results.append(_result(what, count))
    console.print(printed)
    return results


def _of_million(options: dict[str, str], traffic: Traffic) -> dict[str, Traffic]:
    """Count what a key over a million units in one segment takes."""
    location = f"s3://{BUCKET}/million"
    index = Catalog(location, options).index(NAME)
    writer = SegmentWriter(index.storage, "wide", [("k",)])
    rng = np.random.default_rng(Scale.seed)
    shape = (WIDE.blocks, WIDE.units, 8)
    layers = [rng.integers(0, 2**32, shape, np.uint32) & rng.integers(0, 2**32, shape, np.uint32) for _ in range(2)]
    writer.add_tile(0, list(range(WIDE.units)), layers)
    record = writer.finish(wide_columns(WIDE.units), ["bigint"], auto_fpp(WIDE.units))
    index.log.create(commit((record,), "file:///nowhere"))
    lake = Lakebloom(location=location, options=options)
    counts = {}
    for number, question in enumerate(("first key", "another key")):
        traffic.clear()
        lake.candidates(NAME, col("k") == number)
        counts[f"{question}, {WIDE.units:,} units"] = Traffic(traffic.requests.copy(), traffic.size_bytes)
    return counts


def _lookups(options: dict[str, str], traffic: Traffic) -> dict[str, Traffic]:
    """Count what whole lookups take, with rows from a table of some objects."""
    table_uri, location = f"s3://{BUCKET}/table", f"s3://{BUCKET}/lookups"
    storage = open_storage(table_uri, options)
    tables = [_rows(number) for number in range(OBJECTS)]
    for number, rows in enumerate(tables):
        contents = io.BytesIO()
        pq.write_table(rows, contents)
        storage.write(f"part-{number:05d}.parquet", contents.getvalue())
    index = Catalog(location, options).index(NAME)
    writer = SegmentWriter(index.storage, "only", [("k",)])
    filters = [Sbbf.for_items(ROWS, FPP) for _ in tables]
    for one, rows in zip(filters, tables, strict=True):
        one.insert(rows["k"])
    writer.add_tile(0, list(range(OBJECTS)), [np.stack([one.words for one in filters], axis=1)])
    files = list_files([table_uri], options)
    record = writer.finish([Unit(file, 0, ROWS, 0, 1, (ColumnFacts(0),)) for file in files], ["bigint"], FPP)
    index.log.create(commit((record,), table_uri))
    lake = Lakebloom(location=location, options=options)
    counts = {}
    for what, home, unindexed in LOOKUPS:
        key = -1 if home is None else int(tables[home]["k"][ROWS // 2].as_py())
        traffic.clear()
        found = lake.lookup(NAME, col("k") == key, unindexed=unindexed)
        assert found.num_rows == (home is not None)
        counts[f"{what}, {OBJECTS} objects"] = Traffic(traffic.requests.copy(), traffic.size_bytes)
    return counts


def _rows(number: int) -> pa.Table:
    rng = np.random.default_rng([Scale.seed, number])
    return pa.table({"k": rng.integers(0, 2**62, ROWS), "v": rng.random(ROWS)})


def _kinds(count: Traffic) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(count.requests.items()))


def _result(what: str, count: Traffic) -> Result:
    detail = f"{count.size_bytes / 1e3:,.0f} kB"
    return Result(f"S3 requests: {what}", float(sum(count.requests.values())), "", limited_by=detail)

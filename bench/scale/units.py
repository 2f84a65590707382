"""An index of very many units of which there are only filters: as full as real ones are, but with few blocks.

A question reads one row of each tile, whatever the number of blocks, so few of them show what many would cost. Some
keys are really in one unit each.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from bench.parameters import WORK, Units
from lakebloom import hash_values
from lakebloom.index.catalog import Catalog
from lakebloom.sbbf.kernels import portable
from lakebloom.sbbf.layers import mix
from lakebloom.sbbf.sizing import auto_fpp
from lakebloom.storage import Storage
from lakebloom.store.records import ColumnRecord, ConfigRecord, Entry, SegmentRecord, SourceRecord
from lakebloom.store.segments import SegmentWriter
from lakebloom.store.units import ColumnFacts, Unit
from lakebloom.tables.files import TableFile

NAME = "units"
ROWS_PER_UNIT = 25_000
_FIELD = {"name": "k", "type": "long", "nullable": True, "metadata": {}}


def units_index(segments: int = Units.segments, units: int = Units.units_per_segment) -> Path:
    """Return the location of an index of so many units, which is written first if it is not there."""
    location = WORK / "scale" / f"units-{segments}x{units}"
    done = location.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(location, ignore_errors=True)
        _write(location, segments, units)
        done.touch()
    return location


def planted(segments: int) -> dict[int, tuple[int, int]]:
    """Return the keys that are in the index: key -> segment, unit."""
    rng = np.random.default_rng([Units.seed, segments])
    homes = zip(rng.integers(0, segments, 1000).tolist(), rng.integers(0, 100, 1000).tolist(), strict=True)
    return dict(enumerate(homes))


def block_of(keys: list[int]) -> list[int]:
    """Return the number of the block of the first layer that each key falls into."""
    found: list[int] = portable.block_numbers(_hashes(keys), Units.num_blocks).tolist()
    return found


def _hashes(keys: list[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.asarray(hash_values(np.array(keys, dtype=np.int64)))


def _write(location: Path, segments: int, units: int) -> None:
    index = Catalog(location).index(NAME)
    fpp = auto_fpp(segments * units)
    homes = planted(segments)
    records = tuple(_segment(index.storage, number, units, fpp, homes) for number in range(segments))
    config = ConfigRecord(NAME, (ColumnRecord(("k",), "bigint"),), None, None, "file", False)
    schema = json.dumps({"type": "struct", "fields": [_FIELD]})
    source = SourceRecord("parquet", ("file:///nowhere",), schema_json=schema)
    index.log.create(Entry(1, 1_700_000_000_000, "create", "active", "bench", config, source, records))


def _segment(storage: Storage, number: int, units: int, fpp: float, homes: dict[int, tuple[int, int]]) -> SegmentRecord:
    writer = SegmentWriter(storage, f"{number:05d}", [("k",)])
    rng = np.random.default_rng([Units.seed, number])
    keys = [key for key, (segment, _) in homes.items() if segment == number]
    slots = [homes[key][1] for key in keys]
    layers = []
    for layer in range(2):
        words = _full_blocks(rng, units)
        hashes = _hashes(keys) if layer == 0 else mix(_hashes(keys))
        places = (portable.block_numbers(hashes, Units.num_blocks), np.array(slots, dtype=np.int64))
        np.bitwise_or.at(words, places, portable.masks(hashes))
        layers.append(words)
    writer.add_tile(0, list(range(units)), layers)
    return writer.finish([_unit(number * units + i) for i in range(units)], ["bigint"], fpp)


def _full_blocks(rng: np.random.Generator, units: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Three bits in eight are set: a layer then lets one value in 2,500 through, as those of a million units do."""
    shape = (Units.num_blocks, units, 8)
    first, second, third = (rng.integers(0, 2**32, shape, dtype=np.uint32) for _ in range(3))
    return first & (second | third)


def _unit(number: int) -> Unit:
    uri = f"file:///nowhere/day={number // 1000:05d}/part-{number:07d}-c000.snappy.parquet"
    return Unit(
        TableFile(uri, 1_000_000 + number, 1_700_000_000_000 + number), 0, ROWS_PER_UNIT, 0, 1, (ColumnFacts(0),)
    )

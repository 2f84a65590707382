"""An index of very many units of which there are only filters: as full as real ones are, but with few blocks.

A question reads eight planes of one row of each tile, whatever the number of blocks, so few of them show what many
would cost. Some keys are really in one unit each.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.parameters import WORK, Units
from lakebloom import hash_values
from lakebloom.index.catalog import Catalog
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.sbbf.kernels import portable
from lakebloom.sbbf.layers import mix
from lakebloom.sbbf.sizing import auto_fpp
from lakebloom.storage import Storage
from lakebloom.store.records import ColumnRecord, Commit, ConfigRecord, SegmentRecord, TableRecord
from lakebloom.store.segments import SegmentWriter
from lakebloom.store.unit_table import ColumnFacts, Unit
from lakebloom.tables.file_identity import TableFile

NAME = "units"
ROWS_PER_UNIT = 25_000
_FIELDS = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in (("k", "long"), ("v", "double"))
]


@dataclass(frozen=True, slots=True)
class Shape:
    """How large an index is."""

    segments: int = Units.segments
    units: int = Units.units_per_segment
    """Of each segment."""
    blocks: int = Units.num_blocks

    @property
    def all_units(self) -> int:
        """Of all segments."""
        return self.segments * self.units


def wide_index(shape: Shape) -> tuple[Path, float]:
    """Return the location of the same units merged into one segment, and how long merging took here."""
    location = WORK / "scale" / f"merged-{shape.segments}x{shape.units}x{shape.blocks}"
    done = location.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(location, ignore_errors=True)
        write_units(Catalog(location), shape)
        started = time.perf_counter()
        optimize_index(Catalog(location), NAME)
        done.write_text(str(time.perf_counter() - started))
    return location, float(done.read_text())


def planted(segments: int) -> dict[int, tuple[int, int]]:
    """Return the keys that are in the index: key -> segment, unit."""
    rng = np.random.default_rng([Units.seed, segments])
    homes = zip(rng.integers(0, segments, 1000).tolist(), rng.integers(0, 100, 1000).tolist(), strict=True)
    return dict(enumerate(homes))


def _hashes(keys: list[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.asarray(hash_values(np.array(keys, dtype=np.int64)))


def write_units(catalog: Catalog, shape: Shape, homes: dict[int, tuple[int, int]] | None = None) -> None:
    """Write an index of this shape, with these keys or those of ``planted`` in it."""
    index = catalog.index(NAME)
    homes = planted(shape.segments) if homes is None else homes
    records = tuple(_segment(index.storage, number, shape, homes) for number in range(shape.segments))
    index.log.create(commit(records, "file:///nowhere"))


def commit(segments: tuple[SegmentRecord, ...], table: str) -> Commit:
    """Return the first commit of an index on column k of a table with the columns k and v."""
    config = ConfigRecord(NAME, (ColumnRecord(("k",), "bigint"),), None, None, "file", False)
    source = TableRecord("parquet", (table,), schema_json=json.dumps({"type": "struct", "fields": _FIELDS}))
    return Commit(1, 1_700_000_000_000, "create", "active", "bench", config, source, segments)


def _segment(storage: Storage, number: int, shape: Shape, homes: dict[int, tuple[int, int]]) -> SegmentRecord:
    writer = SegmentWriter(storage, f"{number:05d}", [("k",)])
    rng = np.random.default_rng([Units.seed, number])
    keys = [key for key, (segment, _) in homes.items() if segment == number]
    slots = [homes[key][1] for key in keys]
    layers = []
    for layer in range(2):
        words = _full_blocks(rng, shape)
        hashes = _hashes(keys) if layer == 0 else mix(_hashes(keys))
        places = (portable.block_numbers(hashes, shape.blocks), np.array(slots, dtype=np.int64))
        np.bitwise_or.at(words, places, portable.masks(hashes))
        layers.append(words)
    writer.add_tile(0, list(range(shape.units)), layers)
    units = [_unit(number * shape.units + i) for i in range(shape.units)]
    return writer.finish(units, ["bigint"], auto_fpp(shape.all_units))


def _full_blocks(rng: np.random.Generator, shape: Shape) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Three bits in eight are set: a layer then lets one value in 2,500 through, as those of a million units do."""
    size = (shape.blocks, shape.units, 8)
    first, second, third = (rng.integers(0, 2**32, size, dtype=np.uint32) for _ in range(3))
    return first & (second | third)


def _unit(number: int) -> Unit:
    uri = f"file:///nowhere/day={number // 1000:05d}/part-{number:07d}-c000.snappy.parquet"
    return Unit(
        TableFile(uri, 1_000_000 + number, 1_700_000_000_000 + number), 0, ROWS_PER_UNIT, 0, 1, (ColumnFacts(0),)
    )

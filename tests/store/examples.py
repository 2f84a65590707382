"""Small records and segments to test with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.layers import in_layer
from lakebloom.store.records import BatchedRecord, ColumnRecord, Commit, ConfigRecord, SegmentRecord, TableRecord
from lakebloom.store.segments import SegmentWriter
from lakebloom.store.unit_table import ColumnFacts, Unit
from lakebloom.tables.file_identity import TableFile

if TYPE_CHECKING:
    from lakebloom.storage import Storage

CONFIG = ConfigRecord(
    name="i",
    columns=(ColumnRecord(("k",), "bigint"),),
    fpp=None,
    expected_items=None,
    granularity="file",
    global_filter=False,
)
SOURCE = TableRecord(format="parquet", locations=("file:///t",))


def bumped(base: Commit) -> Commit:
    """One more commit, counted on top of all that others counted."""
    return msgspec.structs.replace(base, summary={"count": base.summary.get("count", 0) + 1})


def unit_tables(segment: str, size_bytes: int = 500) -> tuple[BatchedRecord, BatchedRecord, tuple[BatchedRecord, ...]]:
    """The records of a segment's files, units and facts of one column."""
    files, units, facts = (
        BatchedRecord(f"segments/{segment}/{name}.arrow", size_bytes, 6, 10, 6)
        for name in ("files", "units", "k.facts")
    )
    return files, units, (facts,)


def entry(*, with_segment: bool = False) -> Commit:
    segments = ()
    if with_segment:
        segments = (SegmentRecord("s", ("bigint",), 0.01, 1, 1, 10, 100, ("a", "a"), *unit_tables("s"), ()),)
    return Commit(
        version=1,
        timestamp_ms=1_700_000_000_000,
        operation="create",
        state="active",
        writer="test",
        config=CONFIG,
        table=SOURCE,
        segments=segments,
    )


def table_file(number: int) -> TableFile:
    return TableFile(f"file:///t/{number}.parquet", 1000 + number, 1_700_000_000_000 + number)


def hashes_of(unit: int, count: int = 50) -> np.ndarray:
    return np.random.default_rng(unit).integers(0, 2**64, count, dtype=np.uint64)


def write_segment(
    storage: Storage, name: str, sizes: dict[int, int], *, layers: int = 2, first_unit: int = 0
) -> SegmentRecord:
    """A segment whose units, numbered from ``first_unit``, have filters of these sizes: {blocks: units}."""
    writer = SegmentWriter(storage, name, [("k",)])
    units: list[Unit] = []
    for blocks, count in sizes.items():
        members = list(range(len(units), len(units) + count))
        words = [np.zeros((blocks, count, 8), dtype=np.uint32) for _ in range(layers)]
        for slot, member in enumerate(members):
            number = first_unit + member
            for layer in range(layers):
                f = Sbbf(blocks)
                f.insert_hashes(in_layer(hashes_of(number), layer))
                words[layer][:, slot] = f.words
            units.append(Unit(table_file(number), 0, 50, 0, 1, (ColumnFacts(0),)))
        writer.add_tile(0, members, words)
    return writer.finish(units, ["bigint"], 0.01)

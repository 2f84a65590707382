"""Bounds in the unit table: every type comes back as it was written, and merging carries them along."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from lakebloom import errors
from lakebloom.storage import open_storage
from lakebloom.store.merge import merge_segments
from lakebloom.store.min_max import bound_type
from lakebloom.store.records import ColumnRecord, SegmentRecord
from lakebloom.store.segments import Segment, SegmentWriter
from lakebloom.store.unit_table import ColumnFacts, Unit, UnitTable
from tests.store.examples import CONFIG, table_file

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Storage
    from lakebloom.store.min_max import BoundValue

BOUNDS: dict[str, tuple[BoundValue, BoundValue]] = {
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-1, 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
    "date": (-719162, 2932896),
    "timestamp": (0, 2**62),
    "timestamp_ntz": (-1, 1),
    "float": (float("-inf"), 1.5),
    "double": (0.0, float("nan")),
    "decimal(18,4)": (-(10**18) + 1, 10**18 - 1),
    "decimal(38,4)": (Decimal("-" + "9" * 34 + ".9999"), Decimal("0.0001")),
    "string": (b"", b"\xc3\xa9"),
    "binary": (b"\x00", b"\xff\x00"),
}
TYPES = list(BOUNDS)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path / "index")


def write(storage: Storage, name: str, first: int) -> SegmentRecord:
    """A segment of three units without filters; the second one knows no bounds, the third one no upper bound."""
    known = tuple(ColumnFacts(0, min=low, max=high) for low, high in BOUNDS.values())
    half = tuple(ColumnFacts(0, min=low) for low, _ in BOUNDS.values())
    facts = [known, tuple(ColumnFacts(0) for _ in BOUNDS), half]
    units = [Unit(table_file(first + i), 0, 50, 0, 1, columns) for i, columns in enumerate(facts)]
    return SegmentWriter(storage, name, [(kind,) for kind in BOUNDS]).finish(units, TYPES, 0.01)


def opened(storage: Storage, record: SegmentRecord) -> Segment:
    columns = tuple(ColumnRecord((kind,), kind) for kind in BOUNDS)
    return Segment(storage, record, msgspec.structs.replace(CONFIG, columns=columns))


def test_bounds_come_back_as_they_were_written(storage: Storage) -> None:
    segment = opened(storage, write(storage, "s", 0))
    for kind, (low, high) in BOUNDS.items():
        lows, highs = segment.units.bounds(TYPES.index(kind))
        assert lows.type == highs.type == bound_type(kind)
        assert repr(lows.to_pylist()) == repr([low, None, low])
        assert repr(highs.to_pylist()) == repr([high, None, None])


def test_merging_carries_bounds_along(storage: Storage) -> None:
    segments = [opened(storage, write(storage, f"s{i}", 3 * i)) for i in range(2)]
    keep = [np.array([True, False, True]), np.array([False, True, True])]
    record = merge_segments(storage, "merged", [(kind,) for kind in BOUNDS], list(zip(segments, keep, strict=True)))
    merged = opened(storage, record)
    for kind, (low, high) in BOUNDS.items():
        lows, highs = merged.units.bounds(TYPES.index(kind))
        assert repr(lows.to_pylist()) == repr([low, low, None, low])
        assert repr(highs.to_pylist()) == repr([high, None, None, None])


def test_a_type_that_cannot_be_indexed_is_damage(storage: Storage) -> None:
    record = write(storage, "s", 0)
    with pytest.raises(errors.CorruptIndexError, match="array<int>"):
        UnitTable(storage, msgspec.structs.replace(record, types=("array<int>", *TYPES[1:])))
    with pytest.raises(errors.CorruptIndexError, match="another schema"):
        UnitTable(storage, msgspec.structs.replace(record, types=("string", *TYPES[1:]))).bounds(0)

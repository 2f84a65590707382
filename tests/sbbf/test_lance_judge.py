"""A real Lance index: every zone's filter, rebuilt from the same rows, has the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakebloom import Sbbf, sizing
from lakebloom.sbbf.encoding import LANCE

pytest.importorskip("lance")

ROWS, ROWS_PER_FILE, ROWS_PER_ZONE, FPP = 2500, 1500, 512, 0.01
RNG = np.random.default_rng(15)


def integers(kind: pa.DataType) -> pa.Array:
    info = np.iinfo(kind.to_pandas_dtype())
    return pa.array(RNG.integers(info.min, info.max, ROWS, dtype=info.dtype, endpoint=True))


COLUMNS = {
    **{str(kind): integers(kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): integers(kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "float": pa.array([*RNG.normal(size=ROWS - 3), 0.0, -0.0, float("nan")], pa.float32()),
    "double": pa.array([*RNG.normal(size=ROWS - 3), 0.0, -0.0, float("nan")], pa.float64()),
    "date32": integers(pa.int32()).view(pa.date32()),
    "timestamp": integers(pa.int64()).view(pa.timestamp("us")),
    "timestamp with zone": integers(pa.int64()).view(pa.timestamp("ms", "Asia/Tokyo")),
    "string": pa.array([f"key-{i}" * (i % 9) for i in range(ROWS)]),
    "large_string": pa.array([f"key-{i}" * (i % 9) for i in range(ROWS)], pa.large_string()),
    "binary": pa.array([RNG.bytes(i % 50) for i in range(ROWS)]),
}


def with_nulls(column: pa.Array) -> pa.Array:
    """NULL every seventh value, and all of the last zone."""
    numbers = np.arange(ROWS)
    return pc.if_else(pa.array((numbers % 7 == 0) | (numbers >= 2012)), pa.scalar(None, column.type), column)


def zones_of_index(path: Path, column: pa.Array) -> list[dict[str, Any]]:
    """Write a dataset of one column, index it with Lance, and read the index file."""
    import lance
    from lance.file import LanceFileReader
    from lance.indices import IndexConfig

    dataset = lance.write_dataset(pa.table({"c": column}), str(path), max_rows_per_file=ROWS_PER_FILE)
    # Given as keywords, these parameters would be ignored.
    parameters = {"number_of_items": ROWS_PER_ZONE, "probability": FPP}
    dataset.create_scalar_index("c", IndexConfig(index_type="bloomfilter", parameters=parameters))
    (file,) = path.glob("_indices/*/bloomfilter.lance")
    zones: list[dict[str, Any]] = LanceFileReader(str(file)).read_all().to_table().to_pylist()
    return zones


@pytest.mark.parametrize("nullable", [False, True], ids=["full", "with nulls"])
@pytest.mark.parametrize("name", COLUMNS)
def test_lance_writes_the_same_bits(name: str, nullable: bool, tmp_path: Path) -> None:
    column = with_nulls(COLUMNS[name]) if nullable else COLUMNS[name]
    zones = zones_of_index(tmp_path / "dataset", column)
    assert [zone["zone_length"] for zone in zones] == [512, 512, 476, 512, 488]
    for zone in zones:
        start = zone["fragment_id"] * ROWS_PER_FILE + zone["zone_start"]
        rows = column.slice(start, zone["zone_length"])
        ours = Sbbf.for_items(ROWS_PER_ZONE, FPP, rule="lance")
        ours.insert(rows, encoding=LANCE)
        assert zone["has_null"] == (rows.null_count > 0)
        assert zone["bloom_filter_data"] == ours.to_bytes()
    assert len(zones[0]["bloom_filter_data"]) == 32 * sizing.num_blocks(ROWS_PER_ZONE, FPP, rule="lance")

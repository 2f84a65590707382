"""Parquet files with every kind of column, and questions to the filters inside of them."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebloom import Sbbf
from lakebloom.parquet.footer import read_footer
from lakebloom.tables.columns import parse_name

ROWS = 120
DAY = datetime.timedelta(days=1)
EPOCH = datetime.datetime(1970, 1, 1)


def all_types(rows: int = ROWS) -> pa.Table:
    """Return a table with a column of each type that can have a filter, some of them nested, with NULLs."""
    n = range(rows)
    columns: dict[str, pa.Array] = {
        "int8": pa.array([i - 60 for i in n], pa.int8()),
        "int32": pa.array([None if i % 7 == 0 else i * 1000 for i in n], pa.int32()),
        "int64": pa.array([i * 10**12 for i in n], pa.int64()),
        "uint8": pa.array([255 - i for i in n], pa.uint8()),
        "uint32": pa.array([2**32 - 1 - i for i in n], pa.uint32()),
        "uint64": pa.array([2**64 - 1 - i for i in n], pa.uint64()),
        "date": pa.array([i * 100 for i in n], pa.date32()),
        "ms": pa.array([EPOCH + i * DAY for i in n], pa.timestamp("ms")),
        "us": pa.array([EPOCH + i * DAY for i in n], pa.timestamp("us", "UTC")),
        "ns": pa.array([EPOCH + i * DAY for i in n], pa.timestamp("ns")),
        "duration": pa.array([i * DAY for i in n], pa.duration("us")),
        "decimal9": pa.array([Decimal(i - 60).scaleb(-2) for i in n], pa.decimal128(9, 2)),
        "decimal38": pa.array([Decimal(i - 60).scaleb(20) for i in n], pa.decimal128(38, 2)),
        "text": pa.array([None if i % 5 == 0 else f"user-{i}" for i in n]),
        "large_text": pa.array([f"large-{i}" for i in n], pa.large_string()),
        "few": pa.array([f"few-{i % 3}" for i in n]).dictionary_encode(),
        "bytes": pa.array([bytes([0xFF, i]) for i in n], pa.binary()),
        "fixed": pa.array([bytes([i] * 5) for i in n], pa.binary(5)),
        "uuid": pa.array([uuid.UUID(int=i).bytes for i in n], pa.uuid()),
        "s": pa.array([None if i % 4 == 0 else {"k": f"k-{i}", "a.b": i} for i in n]),
        "l": pa.array([[i, None, i + 5000] if i % 2 else [] for i in n], pa.list_(pa.int64())),
        "m": pa.array([[(f"key-{i}", i)] for i in n], pa.map_(pa.string(), pa.int64())),
        "nothing": pa.nulls(rows, pa.string()),
    }
    return pa.table(columns)


NAMES = [
    *(name for name in all_types(1).column_names if name not in ("s", "l", "m")),
    "s.k",
    "s.`a.b`",
    "l.list.element",
    "m.key_value.key",
    "m.key_value.value",
]


def leaf_values(table: pa.Table, name: str) -> pa.Array:
    """Return the values of one of ``NAMES`` that are not NULL."""
    top, *below = parse_name(name)
    array = table[top].combine_chunks()
    if top == "m":
        array = array.keys if below[-1] == "key" else array.items
    elif top == "l":
        array = array.flatten()
    elif below:
        array = pc.struct_field(array, [below[0]])
    return array.drop_null()


def write(path: Path, table: pa.Table | None = None, **options: Any) -> Path:
    """Write a table in row groups of 50 rows, with page indexes and sorting columns."""
    pq.write_table(
        all_types() if table is None else table,
        path,
        **{"row_group_size": 50, "write_page_index": True, "data_page_size": 100, **options},
    )
    return path


def embedded(path: Path, number: int) -> list[Sbbf | None]:
    """Return the filters of a leaf, one for each row group."""
    data = path.read_bytes()
    found: list[Sbbf | None] = []
    for group in read_footer(path).row_groups:
        offset, length = group.columns[number].bloom_filter_offset, group.columns[number].bloom_filter_length
        # Parquet of Spark 3.5 writes no length; what follows a filter is ignored.
        end = None if offset is None or length is None else offset + length
        found.append(None if offset is None else Sbbf.from_parquet(data[offset:end]))
    return found


def assert_same_values(ours: list[Sbbf | None], theirs: list[Sbbf | None]) -> None:
    """Compare filters of other sizes: folded to the smaller one, filters of the same values are equal."""
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine is not None
        assert other is not None
        blocks = min(mine.num_blocks, other.num_blocks)
        assert mine.fold(blocks) == other.fold(blocks)

"""Lance datasets with a column of every type that Lance has Bloom filters for, and Lance's own index on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

import lakebloom.lance

if TYPE_CHECKING:
    from lance import LanceDataset

ROWS, ROWS_PER_FRAGMENT, ROWS_PER_ZONE, FPP = 2500, 1000, 256, 0.01
SOME_DELETED = "i % 3 = 0 OR (i >= 256 AND i < 600) OR i = 1999"
_RNG = np.random.default_rng(15)


def _integers(kind: pa.DataType) -> pa.Array:
    info = np.iinfo(kind.to_pandas_dtype())
    return pa.array(_RNG.integers(info.min, info.max, ROWS, dtype=info.dtype, endpoint=True))


def _ticks(kind: pa.DataType) -> pa.Array:
    width = np.int32 if kind.bit_width == 32 else np.int64
    return pa.array(_RNG.integers(0, 86_400, ROWS, dtype=width)).view(kind)


COLUMNS = {
    **{str(kind): _integers(kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): _integers(kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "float": pa.array([*_RNG.normal(size=ROWS - 3), 0.0, -0.0, float("nan")], pa.float32()),
    "double": pa.array([0.0, -0.0, float("nan"), *_RNG.normal(size=ROWS - 3)], pa.float64()),
    "date32": _integers(pa.int32()).view(pa.date32()),
    "date64": pc.multiply(_ticks(pa.date64()).view(pa.int64()), 86_400_000).view(pa.date64()),
    "time32[s]": _ticks(pa.time32("s")),
    "time32[ms]": _ticks(pa.time32("ms")),
    "time64[us]": _ticks(pa.time64("us")),
    "time64[ns]": _ticks(pa.time64("ns")),
    "timestamp[s]": _ticks(pa.timestamp("s")),
    "timestamp[us]": _integers(pa.int64()).view(pa.timestamp("us")),
    "timestamp[ns]": _integers(pa.int64()).view(pa.timestamp("ns")),
    "timestamp[ms, Asia/Tokyo]": _ticks(pa.timestamp("ms", "Asia/Tokyo")),
    "string": pa.array([f"key-{i}" * (i % 9) for i in range(ROWS)]),
    "large_string": pa.array([f"key-{i}" * (i % 9) for i in range(ROWS)], pa.large_string()),
    "binary": pa.array([_RNG.bytes(i % 50) for i in range(ROWS)]),
    "large_binary": pa.array([_RNG.bytes(i % 50) for i in range(ROWS)], pa.large_binary()),
}


def with_nulls(column: pa.Array) -> pa.Array:
    """NULL every seventh value and all of some zones, none in the first."""
    numbers = np.arange(ROWS)
    nulls = ((numbers % 7 == 0) & (numbers > 300)) | ((numbers >= 500) & (numbers < 800)) | (numbers >= 2240)
    return column.take(pa.array(numbers, mask=nulls))


def write(path: Path, column: pa.Array, *, deleted: str | None = None, **options: Any) -> LanceDataset:
    """Write a dataset of two columns, c and the row's number i, in three fragments."""
    import lance

    table = pa.table({"c": column, "i": pa.array(range(len(column)), pa.int64())})
    dataset = lance.write_dataset(table, str(path), max_rows_per_file=ROWS_PER_FRAGMENT, **options)
    if deleted is not None:
        dataset.delete(deleted)
    return lance.dataset(str(path))


def index_by_lance(dataset: LanceDataset, column: str = "c", name: str = "theirs", **parameters: Any) -> LanceDataset:
    """Give a dataset Lance's own index."""
    import lance
    from lance.indices import IndexConfig

    # Given as keywords, these parameters would be ignored.
    asked = {"number_of_items": ROWS_PER_ZONE, "probability": FPP, **parameters}
    dataset.create_scalar_index(column, IndexConfig(index_type="bloomfilter", parameters=asked), name=name)
    return lance.dataset(dataset.uri)


def numbers(dataset: LanceDataset, condition: str, *, with_index: bool = True) -> list[int]:
    """The rows that satisfy a condition, by number."""
    table = dataset.scanner(columns=["i"], filter=condition, use_scalar_index=with_index).to_table()
    return sorted(table["i"].to_pylist())


def literal(value: pa.Scalar) -> str:
    """A value as Lance's SQL writes it."""
    kind = value.type
    if pt.is_integer(kind) or pt.is_floating(kind):
        return repr(value.as_py())
    if pt.is_string(kind) or pt.is_large_string(kind):
        return f"'{value.as_py()}'"
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        return f"X'{value.as_py().hex()}'"
    width = 32 if kind.bit_width == 32 else 64
    ticks = value.cast(pa.int32() if width == 32 else pa.int64()).as_py()
    return f"arrow_cast(arrow_cast({ticks}, 'Int{width}'), '{_arrow_name(kind)}')"


def _arrow_name(kind: pa.DataType) -> str:
    if pt.is_date(kind):
        return f"Date{kind.bit_width}"
    unit = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}[kind.unit]
    if pt.is_time(kind):
        return f"Time{kind.bit_width}({unit})"
    zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
    return f"Timestamp({unit}, {zone})"


def uses_index(dataset: LanceDataset, condition: str, name: str) -> bool:
    """Whether Lance plans to ask this index."""
    plan = str(dataset.scanner(columns=["i"], filter=condition).explain_plan())
    return "ScalarIndexQuery" in plan and f"@{name}(BloomFilter)" in plan


def rows_scanned(dataset: LanceDataset, condition: str) -> str:
    """How many rows Lance read, as its own plan counted them."""
    plan = str(dataset.scanner(columns=["i"], filter=condition).analyze_plan())
    return re.findall(r"rows_scanned=([^,\]]+)", plan)[0]  # type: ignore[no-any-return]


def index_file(dataset: LanceDataset, name: str) -> tuple[Any, ...]:
    """All bytes of an index file but those of its schema, where Lance writes the metadata in any order; and these."""
    from lance.file import LanceFileReader

    (path,) = lakebloom.lance.open_index(dataset, name).files
    described = LanceFileReader(path).metadata()
    schema = described.global_buffers[0]
    data = Path(path).read_bytes()
    return data[: schema.position], data[schema.position + schema.size :], described.schema, described.schema.metadata


def size_of(dataset: LanceDataset, name: str) -> int:
    (index,) = [index for index in dataset.describe_indices() if index.name == name]
    assert index.total_size_bytes is not None
    return int(index.total_size_bytes)

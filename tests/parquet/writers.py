"""Files with filters by every writer that can be had from Python, over one set of columns."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["ABSENT", "FPP", "PRESENT", "UNSUPPORTED", "WRITERS"]

FPP = 0.01
# At this count the power of two that all writers take is just large enough, so that their rate is the promised one.
_PRESENT, _ABSENT = 1600, 4000
_COUNT = _PRESENT + _ABSENT


def _decimals(unscaled: npt.NDArray[Any], precision: int, scale: int) -> pa.Array:
    return pa.array([Decimal(int(number)).scaleb(-scale) for number in unscaled], pa.decimal128(precision, scale))


def _columns() -> dict[str, pa.Array]:
    rng = np.random.default_rng(29)
    small = rng.choice(2**31 - 1, _COUNT, replace=False)
    large = rng.choice(2**62, _COUNT)
    narrow = rng.permutation(np.arange(_COUNT))
    raw = [number.tobytes() for number in large]
    return {
        "int16": pa.array(narrow - 2800, pa.int16()),
        "int32": pa.array(small - 2**30, pa.int32()),
        "int64": pa.array(large - 2**61),
        "uint16": pa.array(narrow + 59_000, pa.uint16()),
        "uint32": pa.array(small * 2, pa.uint32()),
        "uint64": pa.array(large.astype(np.uint64) * 2 + 2**63),
        "float16": pa.array((narrow + 1).astype(np.uint16).view(np.float16)),
        "float": pa.array(rng.normal(size=_COUNT), pa.float32()),
        "double": pa.array(rng.normal(size=_COUNT)),
        "date": pa.array(narrow.astype(np.int32)).view(pa.date32()),
        "time_ms": pa.array(rng.choice(86_400_000, _COUNT, replace=False).astype(np.int32)).view(pa.time32("ms")),
        "time_us": pa.array(large % 86_400_000_000).view(pa.time64("us")),
        "millis": pa.array(large % 2**41).view(pa.timestamp("ms")),
        "micros": pa.array(large % 2**50).view(pa.timestamp("us", "UTC")),
        "nanos": pa.array(large % 2**60).view(pa.timestamp("ns")),
        "string": pa.array([f"key-{number}" for number in large]),
        "binary": pa.array(raw),
        "fixed": pa.array([value * 2 for value in raw], pa.binary(16)),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([value * 2 for value in raw], pa.binary(16))),
        "decimal9": _decimals(small % 10**9 - 5 * 10**8, 9, 2),
        "decimal18": _decimals(large % 10**18, 18, 4),
        "decimal38": _decimals(large.astype(object) * 10**18, 38, 6),
    }


_ALL = _columns()
PRESENT = {name: column[:_PRESENT] for name, column in _ALL.items()}
ABSENT = {name: column[_PRESENT:] for name, column in _ALL.items()}


def _table(writer: str) -> pa.Table:
    return pa.table({name: column for name, column in PRESENT.items() if name not in UNSUPPORTED[writer]})


def _pyarrow(table: pa.Table, directory: Path, **options: Any) -> Path:
    path = directory / "file.parquet"
    filters = {name: {"ndv": _PRESENT, "fpp": FPP} for name in table.column_names}
    pq.write_table(table, path, bloom_filter_options=filters, **options)
    return path


def _pyarrow_integers(table: pa.Table, directory: Path) -> Path:
    return _pyarrow(table, directory, store_decimal_as_integer=True, use_dictionary=False)


def _pyarrow_int96(table: pa.Table, directory: Path) -> Path:
    return _pyarrow(table, directory, use_deprecated_int96_timestamps=True)


def _duckdb(table: pa.Table, directory: Path) -> Path:
    import duckdb

    path = directory / "file.parquet"
    with duckdb.connect() as connection:
        connection.register("present", table)
        # DuckDB makes filters for columns with a dictionary only.
        connection.execute(f"COPY present TO '{path}' (FORMAT parquet, DICTIONARY_SIZE_LIMIT 100000)")
    return path


def _datafusion(table: pa.Table, directory: Path) -> Path:
    from datafusion import ParquetWriterOptions, SessionContext

    options = ParquetWriterOptions(bloom_filter_on_write=True, bloom_filter_fpp=FPP, bloom_filter_ndv=_PRESENT)
    SessionContext().from_arrow(table).write_parquet_with_options(str(directory), options)
    (path,) = directory.glob("*.parquet")
    return path


def _deltalake(table: pa.Table, directory: Path) -> Path:
    from deltalake import BloomFilterProperties, ColumnProperties, WriterProperties, write_deltalake

    column = ColumnProperties(bloom_filter_properties=BloomFilterProperties(True, FPP, _PRESENT))
    write_deltalake(str(directory), table, writer_properties=WriterProperties(default_column_properties=column))
    (path,) = directory.glob("*.parquet")
    return path


def _arro3(table: pa.Table, directory: Path) -> Path:
    from arro3.io import write_parquet

    path = directory / "file.parquet"
    write_parquet(table, path, bloom_filter_enabled=True, bloom_filter_fpp=FPP, bloom_filter_ndv=_PRESENT)
    return path


_WRITE: dict[str, Callable[[pa.Table, Path], Path]] = {
    "pyarrow": _pyarrow,
    "pyarrow, decimals as integers": _pyarrow_integers,
    "pyarrow, INT96": _pyarrow_int96,
    "duckdb": _duckdb,
    "datafusion": _datafusion,
    "deltalake": _deltalake,
    "arro3": _arro3,
}
_NO_DELTA_TYPES = {"uint16", "uint32", "uint64", "float16", "time_ms", "time_us", "nanos", "uuid"}
UNSUPPORTED = {writer: set[str]() for writer in _WRITE} | {
    "duckdb": {"float16", "decimal38"},  # it has no such type; it makes no filter
    "deltalake": _NO_DELTA_TYPES,
}
WRITERS: dict[str, Callable[[Path], Path]] = {
    name: lambda directory, name=name, write=write: write(_table(name), directory)  # type: ignore[misc]
    for name, write in _WRITE.items()
}
"""Each writes PRESENT, without the columns it does not support, below a directory and returns the file."""

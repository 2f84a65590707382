"""What the tests of this folder share: columns as lakebloom and as Spark read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakebloom.storage import normalise
from lakebloom.tables.access import TableAccess
from lakebloom.tables.columns import arrow_type, parse_name
from lakebloom.tables.parquet.columns import ColumnSpec, ParquetColumns

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

# xxhash64 chains seeds from 42 on, and this number's own hash under seed 42 is 0. A NULL leaves the seed as it is, so
# its hash is 0 as well, as it is for lakebloom.
SEED_ZERO = -365884300664092260


def read(path: Path, **types: str) -> list[pa.Array]:
    """Return whole columns, dictionaries decoded."""
    return read_columns(path, [ColumnSpec(parse_name(name), kind) for name, kind in types.items()])


def read_columns(path: Path, columns: list[ColumnSpec], *, case_sensitive: bool = False) -> list[pa.Array]:
    parts: list[list[pa.Array]] = [[] for _ in columns]
    with ParquetColumns(normalise(path), columns, TableAccess(case_sensitive=case_sensitive)) as reader:
        for row_group, shape in enumerate(reader.row_groups):
            row = shape.row_start
            for first_row, arrays in reader.batches(row_group):
                assert first_row == row
                assert {len(array) for array in arrays} == {len(arrays[0])}
                row += len(arrays[0])
                for part, array in zip(parts, arrays, strict=True):
                    part.append(decoded(array))
            assert row == shape.row_start + shape.row_count
        assert reader.num_rows == sum(map(len, parts[0]))
    types = [arrow_type(column.type) for column in columns]
    assert [{array.type for array in part} - {kind} for part, kind in zip(parts, types, strict=True)] == [set()] * len(
        columns
    )
    return [pa.chunked_array(part, kind).combine_chunks() for part, kind in zip(parts, types, strict=True)]


def decoded(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def spark_hashes(frame: DataFrame, *names: str) -> list[list[int]]:
    """Return the hashes of columns as Spark computes them, in the order of a single file's rows."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = frame.select([F.xxhash64(F.lit(SEED_ZERO), F.col(name)) for name in names]).collect()
    return [[np.uint64(row[i] % 2**64).item() for row in rows] for i in range(len(names))]

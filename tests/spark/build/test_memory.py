"""A task's memory does not grow with its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import processes

if TYPE_CHECKING:
    from pathlib import Path

ROWS, ROW_GROUP = 20_000_000, 1_000_000
LIMIT_MB = 600


@pytest.mark.slow
def test_a_file_of_20_million_rows(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64())])
    (tmp_path / "t").mkdir()
    with pq.ParquetWriter(tmp_path / "t/0.parquet", schema, compression="none", use_dictionary=False) as writer:
        for seed in range(ROWS // ROW_GROUP):
            values = np.random.default_rng(seed).integers(-(1 << 63), 1 << 63, ROW_GROUP, dtype=np.int64)
            writer.write_table(pa.table([values], schema=schema), row_group_size=ROW_GROUP)
    for granularity, units in (("file", 1), (str(8 * 8192), -(-ROWS // (8 * 8192)))):
        found = processes.run("tests.spark.in_memory", str(tmp_path / "t"), str(tmp_path / granularity), granularity)
        assert (found["rows"], found["units"]) == (ROWS, units)
        assert found["peak_mb"] < LIMIT_MB, found

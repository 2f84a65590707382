"""Global filters grow with their table, and one that would be full is left out."""

from __future__ import annotations

import pytest

from lakebloom import BloomIndexConfig, col
from tests.index.lake import NAME, Lake


@pytest.mark.slow
def test_a_table_that_grows_gets_a_larger_global_filter(lake: Lake) -> None:
    import pyarrow as pa

    lake.types = {"k": "bigint"}
    config = BloomIndexConfig(NAME, ["k"], global_filter=True)
    rows = 0
    for number, count in enumerate([10, 2000, 3000, 100, 40_000]):
        lake.write(f"f{number}", {"k": pa.array(range(rows, rows + count), pa.int64())})
        rows += count
        report = (
            lake.create(config, global_max_bytes=1 << 20) if number == 0 else lake.refresh(global_max_bytes=1 << 20)
        )
        assert (report.committed, report.left_out) == (True, ())
        (record,) = lake.entry().global_filters
        assert record.fpp <= 0.1
        assert record.ndv == pytest.approx(rows, rel=0.2)
        assert lake.indexed() == lake.uris()
    assert lake.open().verify_index(NAME).ok


@pytest.mark.parametrize("grown", [False, True])
def test_a_global_filter_that_is_full_is_left_out(lake: Lake, grown: bool) -> None:
    """It may not be larger, neither when the index is created nor later."""
    import pyarrow as pa

    lake.types = {"k": "bigint"}
    config = BloomIndexConfig(NAME, ["k"], global_filter=True)
    lake.write("f0", {"k": pa.array(range(100 if grown else 40_000), pa.int64())})
    report = lake.create(config, global_max_bytes=1 << 10)
    if grown:
        assert report.left_out == ()
        lake.write("f1", {"k": pa.array(range(100, 40_000), pa.int64())})
        report = lake.refresh(global_max_bytes=1 << 10)
    assert "k has no global filter" in report.left_out[0]
    assert "left out" in str(report)
    assert lake.entry().global_filters == ()
    assert lake.open().lookup(NAME, col("k") == 5).num_rows == 1
    lake.write("f2", {"k": pa.array(range(40_000, 40_010), pa.int64())})
    assert lake.refresh(global_max_bytes=1 << 10).committed
    assert lake.open().verify_index(NAME).ok
    assert lake.refresh("full", global_max_bytes=1 << 20).committed
    assert len(lake.entry().global_filters) == 1

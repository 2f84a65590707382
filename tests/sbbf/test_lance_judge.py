"""A real Lance index: every zone's filter, rebuilt from the same rows, has the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import Sbbf, sizing
from lakebloom.sbbf.hashing.encoding import LANCE
from tests.lance.datasets import COLUMNS, FPP, ROWS_PER_FRAGMENT, ROWS_PER_ZONE, index_by_lance, with_nulls, write

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("lance")


@pytest.mark.parametrize("nullable", [False, True], ids=["full", "with nulls"])
@pytest.mark.parametrize("name", COLUMNS)
def test_lance_writes_the_same_bits(name: str, nullable: bool, tmp_path: Path) -> None:
    from lance.file import LanceFileReader

    column = with_nulls(COLUMNS[name]) if nullable else COLUMNS[name]
    index_by_lance(write(tmp_path / "dataset", column))
    (file,) = tmp_path.glob("dataset/_indices/*/bloomfilter.lance")
    zones = LanceFileReader(str(file)).read_all().to_table().to_pylist()
    assert [zone["zone_length"] for zone in zones] == [256, 256, 256, 232, 256, 256, 256, 232, 256, 244]
    for zone in zones:
        start = zone["fragment_id"] * ROWS_PER_FRAGMENT + zone["zone_start"]
        rows = column.slice(start, zone["zone_length"])
        ours = Sbbf.for_items(ROWS_PER_ZONE, FPP, rule="lance")
        ours.insert(rows, encoding=LANCE)
        assert zone["has_null"] == (rows.null_count > 0)
        assert zone["bloom_filter_data"] == ours.to_bytes()
    assert len(zones[0]["bloom_filter_data"]) == 32 * sizing.num_blocks(ROWS_PER_ZONE, FPP, rule="lance")

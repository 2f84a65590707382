"""Objects without page indexes: the index knows where their pages lie, so that a lookup reads pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pytest
from bench.s3 import BUCKET, counting_s3

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.build.run import Workshop
from lakebloom.index.catalog import Catalog
from lakebloom.index.lookup import lookup
from lakebloom.index.settings import Settings
from lakebloom.storage import open_storage
from lakebloom.store.page_table import read_recorded
from tests.index.lake import NAME
from tests.index.local_builder import LocalBuilder, source_of
from tests.index.lookup.remote_reads import RemoteReads
from tests.index.lookup.test_lookup_pages import TYPES, real_size, written

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.store.records import SegmentRecord

ROW = 130_007


def unpaged(lake: Lakebloom) -> dict[str, int]:
    table = lake._lookups[NAME]._table
    assert table is not None
    return dict(table.rows.unpaged)


@pytest.mark.slow
def test_a_row_of_an_object_without_page_indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most four round trips for a file, and a megabyte, also after segments were merged."""
    reads = RemoteReads(monkeypatch)

    def counted_recorded(storage: Any, at: Any) -> bytes:
        reads.steps.append("recorded pages")
        return read_recorded(storage, at)

    monkeypatch.setattr(lookup, "read_recorded", counted_recorded)
    tables = [real_size(seed) for seed in (2, 3)]
    with counting_s3() as (options, traffic):
        uri, location = f"s3://{BUCKET}/unindexed-pages", f"s3://{BUCKET}/unindexed-pages-index"
        data = open_storage(uri, options)
        data.write("f0.parquet", written(tables[0], page_index=False))
        catalog = Catalog(location, options)
        record = msgspec.structs.replace(source_of(tmp_path, TYPES), locations=(uri,))
        shop = Workshop(catalog, LocalBuilder(catalog, 1, options), Settings())
        create_index(shop, record, BloomIndexConfig(NAME, ["k"], fpp=1e-6))
        data.write("f1.parquet", written(tables[1], page_index=False))
        refresh_index(shop, NAME)

        def segments() -> tuple[SegmentRecord, ...]:
            return catalog.index(NAME).log.confirmed().segments

        def asked(table: pa.Table) -> Lakebloom:
            lake = Lakebloom(location=location, options=options)
            key = table["k"][ROW].as_py()
            lake.candidates(NAME, col("k") == key)  # reads the index
            reads.clear()
            traffic.clear()
            found = lake.lookup(NAME, col("k") == key, unindexed="skip")
            assert found.to_pylist() == table.slice(ROW, 1).to_pylist()
            assert reads.steps.count("recorded pages") == 1
            assert len(reads.steps) <= 4
            assert traffic.size_bytes < 1 << 20
            assert unpaged(lake) == {}
            return lake

        for record_of in segments():
            assert record_of.pages is not None
            assert sum(file.size_bytes for file in record_of.page_files) < 4000
            assert record_of.num_units == 10
        for table in tables:
            asked(table)
        Lakebloom(location=location, options=options).optimize_index(NAME)
        (merged,) = segments()
        assert merged.num_files == 2
        for table in tables:
            lake = asked(table)
        assert merged.pages is not None
        assert lake.verify_index(NAME).ok

        # Damage of what was recorded: more is read, and verify tells.
        part = merged.pages.parts[0]
        stored = open_storage(f"{location}/{NAME}", options)
        stored.write(part.path, bytes(part.size_bytes))
        lake = Lakebloom(location=location, options=options)
        key = tables[1]["k"][ROW].as_py()
        assert lake.lookup(NAME, col("k") == key).to_pylist() == tables[1].slice(ROW, 1).to_pylist()
        assert list(unpaged(lake)) == ["unreadable page locations in the index"]
        assert not lake.verify_index(NAME).ok
        stored.write(merged.pages.table.path, bytes(merged.pages.table.size_bytes))
        lake = Lakebloom(location=location, options=options)
        assert lake.lookup(NAME, col("k") == key).to_pylist() == tables[1].slice(ROW, 1).to_pylist()
        assert list(unpaged(lake)) == ["no page index"]

        # Another file in its place.
        other = real_size(4)
        data.write("f1.parquet", written(other, page_index=False))
        assert lake.lookup(NAME, col("k") == key).num_rows == 0
        assert lake.lookup(NAME, col("k") == other["k"][7].as_py()).to_pylist() == other.slice(7, 1).to_pylist()

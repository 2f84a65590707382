"""Lookups in an object store wait for few round trips, however many columns and segments there are."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.s3 import BUCKET, counting_s3

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.build.run import Workshop
from lakebloom.index.catalog import Catalog
from lakebloom.index.query.reader import Reader
from lakebloom.index.settings import Settings
from lakebloom.index.threads import pool
from lakebloom.storage import open_storage
from lakebloom.tables.listing.inventory import Inventory
from lakebloom.tables.parquet import remote_file
from lakebloom.tuning import LISTINGS
from tests.index.lake import NAME
from tests.index.local_builder import LocalBuilder, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.s3 import Traffic

    from lakebloom.index.snapshot import Snapshot
    from lakebloom.tables.file_identity import TableFile

COLUMNS, ROWS = 12, 4_000
TYPES = {f"c{number}": "bigint" for number in range(COLUMNS)}


def rows_of(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({name: rng.integers(0, 2**62, ROWS) for name in TYPES})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lakebloom, Traffic, list[pa.Table]]]:
    """Two objects, each with a segment of its own."""
    tables = [rows_of(1), rows_of(2)]
    with counting_s3() as (options, traffic):
        uri, location = f"s3://{BUCKET}/trips", f"s3://{BUCKET}/trips-index"
        data, catalog = open_storage(uri, options), Catalog(location, options)
        shop = Workshop(catalog, LocalBuilder(catalog, 1, options), Settings())
        record = msgspec.structs.replace(source_of(tmp_path_factory.mktemp("trips"), TYPES), locations=(uri,))
        for number, table in enumerate(tables):
            contents = io.BytesIO()
            pq.write_table(table, contents, use_dictionary=False)
            data.write(f"f{number}.parquet", contents.getvalue())
            if number == 0:
                create_index(shop, record, BloomIndexConfig(NAME, ["c0"], fpp=1e-6))
            else:
                refresh_index(shop, NAME)
        yield Lakebloom(location=location, options=options), traffic, tables


@pytest.mark.slow
def test_chunks_of_a_row_group_are_one_step(store: tuple[Lakebloom, Traffic, list[pa.Table]]) -> None:
    lake, traffic, tables = store
    for row in (5, 7):
        for table in tables:
            traffic.clear()
            found = lake.lookup(NAME, col("c0") == table["c0"][row].as_py())
            assert found.to_pylist() == table.slice(row, 1).to_pylist()
    # The log, the listing, two segments, the second layer of one of them, the key column, and all other columns, which
    # lie behind each other.
    assert sum(traffic.requests.values()) <= 7, traffic.requests


@pytest.mark.slow
def test_chunks_that_are_too_large_are_read_one_by_one(
    store: tuple[Lakebloom, Traffic, list[pa.Table]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, traffic, tables = store
    monkeypatch.setattr(remote_file, "FETCHED_BYTES", 1000)
    for row in (50, 70):
        traffic.clear()
        found = lake.lookup(NAME, col("c0") == tables[0]["c0"][row].as_py())
        assert found.to_pylist() == tables[0].slice(row, 1).to_pylist()
    assert sum(traffic.requests.values()) >= COLUMNS


@pytest.mark.slow
def test_the_table_is_listed_while_the_index_is_asked(
    store: tuple[Lakebloom, Traffic, list[pa.Table]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, _, tables = store
    key = tables[1]["c0"][9].as_py()
    lake.lookup(NAME, col("c0") == key)  # knows the table from then on
    begun = threading.Event()
    listed, snapshot_of = Inventory.files, Reader.snapshot

    def files(inventory: Inventory) -> Sequence[TableFile]:
        begun.set()
        return listed(inventory)

    def snapshot(reader: Reader) -> Snapshot:
        assert begun.wait(60)
        return snapshot_of(reader)

    monkeypatch.setattr(Inventory, "files", files)
    monkeypatch.setattr(Reader, "snapshot", snapshot)
    assert lake.lookup(NAME, col("c0") == key).num_rows == 1


@pytest.mark.slow
def test_a_lookup_does_not_wait_for_listings_of_others(
    store: tuple[Lakebloom, Traffic, list[pa.Table]],
) -> None:
    """A store that does not answer holds all threads that list, and a lookup in another store goes on."""
    lake, _, tables = store
    key = tables[1]["c0"][11].as_py()
    lake.lookup(NAME, col("c0") == key)  # knows the table from then on
    done = threading.Event()
    others = [pool(LISTINGS).submit(done.wait, 60) for _ in range(LISTINGS)]
    try:
        assert lake.lookup(NAME, col("c0") == key).num_rows == 1
        assert not any(other.done() for other in others)
    finally:
        done.set()


@pytest.mark.slow
def test_a_table_that_grows_is_listed_for_each_lookup(
    store: tuple[Lakebloom, Traffic, list[pa.Table]],
) -> None:
    lake, _, _ = store
    added = rows_of(3)
    lake.lookup(NAME, col("c0") == added["c0"][0].as_py())
    contents = io.BytesIO()
    pq.write_table(added, contents)
    open_storage(f"s3://{BUCKET}/trips", lake._catalog.options).write("f9.parquet", contents.getvalue())
    assert lake.lookup(NAME, col("c0") == added["c0"][0].as_py()).to_pylist() == added.slice(0, 1).to_pylist()

"""Lookups read pages: the same rows as before, and of a file of real size little more than the pages of one row."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.s3 import BUCKET, counting_s3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index import units
from lakebloom.index.build.create import create_index
from lakebloom.index.build.run import Workshop
from lakebloom.index.catalog import Catalog
from lakebloom.index.lookup.file_reads import batches_of, candidate_reads, file_shapes, packed
from lakebloom.index.lookup.lookup import Lookups
from lakebloom.index.query.reader import Reader
from lakebloom.index.settings import Settings
from lakebloom.storage import open_storage
from lakebloom.tables.parquet import kept_footers
from lakebloom.tables.parquet.pages.local_bytes import LocalBytes
from tests.examples import most
from tests.index.lake import NAME, Lake, assert_answers, columns_of, questions
from tests.index.local_builder import LocalBuilder, source_of
from tests.index.lookup.remote_reads import RemoteReads

if TYPE_CHECKING:
    from pathlib import Path


QUESTIONS = questions([5, 25, 45, 65, 999])
ROWS, GROUP, PAGE = 200_000, 100_000, 20_000


@pytest.fixture
def always_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of the smallest row groups too, and units of few rows."""
    monkeypatch.setattr(kept_footers, "PAGED_ROWS", 0)
    monkeypatch.setattr(units, "PAGE_UNIT_ROWS", 4)


@pytest.mark.slow
@pytest.mark.usefixtures("always_pages")
@pytest.mark.parametrize("granularity", ["file", "row_group", 7, "page", "auto"])
def test_through_every_change_of_the_table(lake: Lake, granularity: str | int) -> None:
    options: dict[str, Any] = {"row_group_size": 12, "max_rows_per_page": 3, "write_batch_size": 3}
    for number in range(3):
        lake.write(f"f{number}", columns_of(range(20 * number, 20 * number + 20)), **options)
    lake.create(BloomIndexConfig(NAME, ["k", "s"], granularity=granularity))
    reader = lake.open()
    assert_answers(lake, QUESTIONS, reader)
    lake.write("f1", columns_of([5, 999, 25]), **options)
    assert_answers(lake, QUESTIONS, reader)
    lake.refresh()
    assert_answers(lake, QUESTIONS, reader)
    assert_answers(lake, QUESTIONS, lake.open())


VALUES = st.one_of(st.none(), st.integers(-3, 12))


@pytest.mark.slow
@pytest.mark.usefixtures("always_pages")
@settings(max_examples=most(25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    files=st.lists(st.lists(VALUES, min_size=1, max_size=40), min_size=1, max_size=3),
    granularity=st.one_of(st.sampled_from(["file", "row_group", "page", "auto"]), st.integers(1, 9)),
    row_group_size=st.integers(1, 30),
    page_rows=st.integers(1, 9),
    page_index=st.booleans(),
    version=st.sampled_from(["1.0", "2.0"]),
    asked=st.lists(st.integers(-4, 13), min_size=1, max_size=12),
)
def test_any_table(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[int | None]],
    granularity: str | int,
    row_group_size: int,
    page_rows: int,
    page_index: bool,
    version: str,
    asked: list[int],
) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"), {"k": "bigint", "s": "string", "n": "int"})
    for number, values in enumerate(files):
        columns = {
            "k": pa.array(values, pa.int64()),
            "s": pa.array([None if value is None else f"s{value}" for value in values], pa.string()),
            "n": pa.array(range(len(values)), pa.int32()),
        }
        lake.write(
            f"f{number}",
            columns,
            row_group_size=row_group_size,
            max_rows_per_page=page_rows,
            write_batch_size=page_rows,
            write_page_index=page_index,
            data_page_version=version,
        )
    lake.create(BloomIndexConfig(NAME, ["k", "s"], granularity=granularity, fpp=0.3))
    assert_answers(lake, questions(asked), lake.open())


def real_size(seed: int) -> pa.Table:
    """Twelve columns, as many tables have them."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"k": rng.integers(0, 2**62, ROWS), "amount": rng.integers(0, 2**30, ROWS)}
    columns |= {f"few{i}": rng.integers(0, 1000, ROWS) for i in range(5)}
    columns |= {f"day{i}": pa.array(rng.integers(0, 20_000, ROWS).astype(np.int32)).cast(pa.date32()) for i in range(2)}
    labels = pa.array([f"label-{n}" for n in range(200)])
    columns |= {f"label{i}": labels.take(pa.array(rng.integers(0, 200, ROWS))) for i in range(3)}
    return pa.table(columns)


TYPES = {"k": "bigint", "amount": "bigint"} | {f"few{i}": "bigint" for i in range(5)}
TYPES |= {f"day{i}": "date" for i in range(2)} | {f"label{i}": "string" for i in range(3)}


def written(table: pa.Table, *, page_index: bool) -> bytes:
    """As Spark writes it: pages of 20,000 rows at most, of a megabyte otherwise; few values as dictionaries."""
    contents = io.BytesIO()
    pq.write_table(
        table,
        contents,
        row_group_size=GROUP,
        max_rows_per_page=PAGE,
        data_page_size=1 << 20,
        use_dictionary=[name for name in table.column_names if name not in ("k", "amount")],
        write_page_index=page_index,
        store_schema=False,
    )
    return contents.getvalue()


class _Counts:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.size_bytes = 0
        fill = LocalBytes.fill

        def counted(file: LocalBytes, target: memoryview, pieces: Any) -> None:
            self.size_bytes += sum(piece.length for piece in pieces)
            fill(file, target, pieces)

        monkeypatch.setattr(LocalBytes, "fill", counted)


@pytest.mark.parametrize("page_index", [True, False])
def test_a_row_of_a_large_file_takes_its_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, page_index: bool
) -> None:
    lake = Lake(tmp_path, TYPES)
    lake.table.mkdir(parents=True)
    table = real_size(1)
    (lake.table / "f.parquet").write_bytes(written(table, page_index=page_index))
    lake.create(BloomIndexConfig(NAME, ["k"], granularity=PAGE, fpp=1e-6))
    reader = lake.open()
    row = 130_007
    key = table["k"][row].as_py()
    assert reader.lookup(NAME, col("k") == key).to_pylist() == table.slice(row, 1).to_pylist()
    counts = _Counts(monkeypatch)
    assert reader.lookup(NAME, col("k") == key, ["label1", "k"]).num_rows == 1
    one_page = PAGE * 8
    assert one_page < counts.size_bytes < 1.5 * one_page
    counts.size_bytes = 0
    assert reader.lookup(NAME, col("k") == key).num_rows == 1
    metadata = pq.read_metadata(lake.table / "f.parquet")
    chunks = [metadata.row_group(1).column(i) for i in range(12)]
    page_bytes = sum(chunk.total_compressed_size for chunk in chunks) * PAGE / GROUP
    dictionaries = sum(
        chunk.data_page_offset - (chunk.dictionary_page_offset or chunk.data_page_offset) for chunk in chunks
    )
    assert counts.size_bytes < page_bytes + dictionaries
    # Many keys of all row groups, and columns that the file does not have.
    rows = sorted(random.Random(3).sample(range(ROWS), 30))
    keys = [table["k"][row].as_py() for row in rows]
    found = reader.lookup(NAME, col("k").isin(keys)).to_pylist()
    assert sorted(found, key=lambda row: row["k"]) == sorted(table.take(rows).to_pylist(), key=lambda row: row["k"])


@pytest.mark.parametrize("page_index", [True, False])
@pytest.mark.parametrize("paged", [True, False])
def test_tasks_read_each_row_of_their_units_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, page_index: bool, paged: bool
) -> None:
    """However units are distributed over tasks, and whether their pages are read or their row groups."""
    monkeypatch.setattr(kept_footers, "PAGED_ROWS", 0 if paged else 10**9)
    monkeypatch.setattr(units, "PAGE_UNIT_ROWS", 20)
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    options: dict[str, Any] = {"row_group_size": 150, "max_rows_per_page": 25, "write_batch_size": 25}
    for number in range(2):
        columns = columns_of(range(400 * number, 400 * number + 400))
        lake.write(f"f{number}", columns, write_page_index=page_index, **options)
    lake.create(BloomIndexConfig(NAME, ["k"], granularity="page", fpp=1e-6))
    snapshot = lake.snapshot()
    lookups = Lookups(Reader(lake.catalog().index(NAME)))
    rows = lookups._table_of(lookups._current(snapshot)).rows
    schema = rows.schema_of(["s", "k"])
    keys = [3, 149, 150, 399, 400, 777]
    for predicate, expected in ((col("k").isin(keys), None), (col("k").is_not_null(), set(range(800)))):
        reads = candidate_reads(snapshot, predicate)
        for target_bytes in (1, 500, 1 << 20):
            tasks = packed(reads, file_shapes(snapshot, reads), target_bytes)
            assert target_bytes > 500 or len(tasks) > len(reads)
            found = [
                key
                for task in tasks
                for read in task
                for batch in batches_of(rows, read, schema, {})
                for key in batch.column(1).to_pylist()
            ]
            assert len(found) == len(set(found))
            assert set(keys) <= set(found) if expected is None else expected == set(found)
            if expected is None:
                candidates = lake.open().candidates(NAME, predicate)
                assert len(found) == sum(candidates["row_count"].to_pylist()) < 400


def test_what_cannot_be_read_by_pages_is_counted(tmp_path: Path) -> None:
    """A list without a page index: its row group is read, and the reason is counted."""
    table = pa.table({"k": range(40_000), "l": [[n] * (n % 3) for n in range(40_000)]})
    lake = Lake(tmp_path, {"k": "bigint"})
    lake.table.mkdir(parents=True)
    pq.write_table(table, lake.table / "f.parquet", max_rows_per_page=5000)
    record = source_of(lake.table, {"k": "bigint"})
    schema = msgspec.json.decode(record.schema_json or "")
    schema["fields"].append(
        {
            "name": "l",
            "type": {"type": "array", "elementType": "long", "containsNull": True},
            "nullable": True,
            "metadata": {},
        }
    )
    record = msgspec.structs.replace(record, schema_json=msgspec.json.encode(schema).decode())
    catalog = lake.catalog()
    config = BloomIndexConfig(NAME, ["k"], granularity=5000, fpp=1e-6)
    create_index(Workshop(catalog, LocalBuilder(catalog, 1), Settings()), record, config)
    reader = lake.open()
    assert reader.lookup(NAME, col("k") == 17_003).to_pylist() == table.slice(17_003, 1).to_pylist()
    table_of = reader._lookups[NAME]._table
    assert table_of is not None
    assert dict(table_of.rows.unpaged) == {"a repeated column without a page index": 1}


@pytest.mark.slow
@pytest.mark.parametrize("indexes_in_tail", [True, False])
def test_round_trips_and_bytes_of_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, indexes_in_tail: bool
) -> None:
    """At most four round trips for a file, two once its footer is known, and at most a megabyte for one row."""
    table = real_size(2)
    data = written(table, page_index=True)
    # The page indexes lie before the footer, and may be part of what is read with it.
    tail_bytes = (64 << 10) if indexes_in_tail else pq.read_metadata(io.BytesIO(data)).serialized_size + 20
    reads = RemoteReads(monkeypatch, tail_bytes)
    with counting_s3() as (options, traffic):
        uri = f"s3://{BUCKET}/large-{tail_bytes}"
        storage = open_storage(uri, options)
        storage.write("f.parquet", data)
        catalog = Catalog(f"s3://{BUCKET}/indexes-{tail_bytes}", options)
        record = msgspec.structs.replace(source_of(tmp_path, TYPES), locations=(uri,))
        config = BloomIndexConfig(NAME, ["k"], granularity=PAGE, fpp=1e-6)
        create_index(Workshop(catalog, LocalBuilder(catalog, 1, options), Settings()), record, config)

        lake = Lakebloom(location=f"s3://{BUCKET}/indexes-{tail_bytes}", options=options)

        def asked(row: int, **chosen: Any) -> int:
            key = table["k"][row].as_py()
            lake.candidates(NAME, col("k") == key)  # reads the index
            reads.clear()
            traffic.clear()
            found = lake.lookup(NAME, col("k") == key, unindexed="skip", **chosen)
            assert found.to_pylist() == table.slice(row, 1).select(found.column_names).to_pylist()
            assert not any(kind.startswith("HEAD") for kind in traffic.requests)  # only to look whether it changed
            assert sum(reads.sizes) < 1 << 20
            return len(reads.steps)

        assert asked(130_007) == (3 if indexes_in_tail else 4)
        assert asked(130_010) == 2
        assert asked(130_020, columns=["k"]) == 1
        other = real_size(3)
        storage.write("f.parquet", written(other, page_index=True))
        key = table["k"][130_007].as_py()
        assert lake.lookup(NAME, col("k") == key).num_rows == 0
        assert lake.lookup(NAME, col("k") == other["k"][7].as_py()).to_pylist() == other.slice(7, 1).to_pylist()

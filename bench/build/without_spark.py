"""What runs without Spark: PyArrow's reader, DuckDB's rewriting, Lance's index."""

from __future__ import annotations

import datetime
import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bench.build.source import Source
from bench.parameters import PROCESSES
from bench.race import Contestant


def read_rows(path: Path) -> int:
    with pq.ParquetFile(path) as file:
        return int(file.read(columns=["uuid"], use_threads=False).num_rows)


def pyarrow_reads() -> Contestant[Source]:
    pool = ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"))

    def run(source: Source, work: Path) -> int:
        return sum(pool.map(read_rows, sorted(Path(source.folder).glob("*.parquet")), chunksize=10))

    def check(source: Source, work: Path, rows: int) -> None:
        assert rows == source.rows

    return Contestant("PyArrow: read the column, two processes", run, check)


def duckdb_rewrites(bar: float) -> Contestant[Source]:
    """One file at a time on each core; DuckDB writes a filter only where it keeps a dictionary."""

    def run(source: Source, work: Path) -> None:
        options = f"FORMAT parquet, COMPRESSION snappy, DICTIONARY_SIZE_LIMIT {source.rows // source.files}"
        with duckdb.connect(config={"threads": 1}) as connection, ThreadPoolExecutor(PROCESSES) as threads:

            def copy(path: Path) -> None:
                with connection.cursor() as cursor:
                    cursor.execute(f"COPY (FROM '{path}') TO '{work / path.name}' ({options})")

            list(threads.map(copy, Path(source.folder).glob("*.parquet")))

    def check(source: Source, work: Path, result: None) -> None:
        require_parquet_filters(source, work)

    return Contestant("DuckDB: rewrite with Parquet filters", run, check, bar)


def require_parquet_filters(source: Source, folder: Path) -> None:
    """Check rewritten files: all rows, and filters that keep the file of each sampled key and hardly any other."""
    files = f"{folder}/*.parquet"
    with duckdb.connect() as connection:
        assert connection.sql(f"SELECT count(*) FROM '{files}'").fetchall() == [(source.rows,)]
        wasted = asked = 0
        for key in source.keys:
            probe = (
                f"SELECT file_name FROM parquet_bloom_probe('{files}', 'uuid', '{key}') WHERE NOT bloom_filter_excludes"
            )
            kept = {name for (name,) in connection.sql(probe).fetchall()}
            homes = connection.sql(f"SELECT filename FROM read_parquet('{files}', filename=true) WHERE uuid='{key}'")
            assert {name for (name,) in homes.fetchall()} <= kept
            wasted, asked = wasted + len(kept) - 1, asked + source.files
        assert wasted <= 0.03 * asked, f"the filters kept {wasted} files in vain"


def lance_index(bar: float) -> Contestant[Source]:
    import lance  # warns of every process started after it: here, Spark is running already

    copies: dict[str, Path] = {}

    def prepare(source: Source) -> None:
        copy = Path(f"{source.folder}.lance")
        if not (copy / "_versions").exists():
            shutil.rmtree(copy, ignore_errors=True)
            lance.write_dataset(ds.dataset(source.folder, format="parquet").scanner(), str(copy))
        copies[source.folder] = copy

    def run(source: Source, work: Path) -> Any:
        dataset = lance.dataset(str(copies[source.folder]))
        dataset.create_scalar_index("uuid", "BLOOMFILTER", replace=True)
        return dataset

    def check(source: Source, work: Path, dataset: Any) -> None:
        for key in source.keys:
            scanner = dataset.scanner(filter=f"uuid = '{key}'")
            assert "ScalarIndexQuery" in scanner.explain_plan()
            assert scanner.to_table().num_rows == 1
        dataset.cleanup_old_versions(older_than=datetime.timedelta(0), delete_unverified=True)

    return Contestant("Lance: Bloom filter index", run, check, bar, prepare)

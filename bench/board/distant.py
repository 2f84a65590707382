"""An object store 20 ms away: how many requests, how many bytes and how long one key takes, for us and for the peers.

The server is a process of its own on loopback that answers later than it could, and counts. DuckDB takes part where its
extension for S3 is installed.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq
from rich.console import Console

from bench.large.source import LargeFiles
from bench.lookup.race import BLOOM, OURS
from bench.lookup.source import ABSENT, PRESENT, Question
from bench.parameters import Distant, Large
from bench.results import Matrix, Result, figure
from bench.s3 import BUCKET, DistantS3, distant_s3
from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index.build.create import create_index
from lakebloom.index.build.in_process import build_here
from lakebloom.index.build.plan import BuildPlan, BuildResult, Shard
from lakebloom.index.build.run import Workshop
from lakebloom.index.catalog import Catalog
from lakebloom.index.current_table import CurrentTable
from lakebloom.index.settings import Settings
from lakebloom.store.records import TableRecord
from lakebloom.tables.file_identity import TableFile
from lakebloom.tables.listing.listing import list_files

Ask: TypeAlias = Callable[[str], list[tuple[str, int]]]
TABLE, INDEXES, NAME = f"s3://{BUCKET}/table", f"s3://{BUCKET}/indexes", "by_uuid"
LANCE = f"s3://{BUCKET}/lance"
_TYPES = {"int64": "long", "double": "double", "string": "string"}


def distant_results(
    console: Console, files: LargeFiles, asked: dict[str, list[Question]]
) -> tuple[Matrix, list[Result]]:
    """Ask all methods for keys of some of the large files, which are copied to the store first."""
    paths = sorted(files.plain.iterdir())[: Distant.files]
    homes = {str(path) for path in paths}
    present = [Question.of([(key, amount, path)]) for key, amount, path, _ in files.rows if path in homes]
    random.Random(Large.seed).shuffle(present)
    cases = {PRESENT: present[: Distant.questions + 1], ABSENT: asked[ABSENT][: Distant.questions + 1]}
    with distant_s3(Distant.latency_s) as server:
        _copy(server, paths)
        asks = _opened(server, console)
        found = {}
        for name, ask in asks.items():
            try:
                found[name] = {case: _measured(server, ask, cases[case]) for case in cases}
            except OSError as error:  # a peer gave up
                if name == OURS:
                    raise
                console.print(f"[dim]{name} is left out: {error}[/]")
    headings = ("", *(f"{case}, {unit}" for case in cases for unit in ("ms", "requests", "MB")))
    rows = [(name, *(figure(value, "") for case in cases for value in each[case])) for name, each in found.items()]
    title = f"{Distant.files} objects of {Large.rows_per_file:,} rows in a store {1e3 * Distant.latency_s:.0f} ms away"
    results = [
        Result(f"{title}, {case}", found[OURS][case][0], "ms", peer, found[peer][case][0])
        for case in cases
        for peer in found
        if peer != OURS
    ]
    return Matrix(title, headings, tuple(rows)), results


def _measured(server: DistantS3, ask: Ask, questions: list[Question]) -> tuple[float, float, float]:
    """Return milliseconds, requests and megabytes of a question, the medians of all but the first."""
    found = []
    for question in questions:
        server.taken()
        started = time.perf_counter()
        rows = ask(question.keys[0])
        elapsed_s = time.perf_counter() - started
        assert rows == question.rows, (rows, question.rows)
        taken = server.taken()
        found.append((1e3 * elapsed_s, float(sum(taken.requests.values())), taken.size_bytes / 1e6))
        if elapsed_s > Distant.slow_s and len(found) > 1:
            break
    times, requests, sizes = (statistics.median(each) for each in zip(*found[1:], strict=True))
    return times, requests, sizes


def _copy(server: DistantS3, paths: list[Path]) -> None:
    """Put the files, an index of ours and Lance's copy with its index into the store."""
    for path in paths:  # in parts: the server takes very long for one long request
        with _file_system(server).open_output_stream(f"{TABLE.removeprefix('s3://')}/{path.name}") as target:
            target.write(path.read_bytes())
    catalog = Catalog(INDEXES, server.options)
    shop = Workshop(catalog, _Builder(catalog, server.options), Settings())
    create_index(shop, _record(paths[0]), BloomIndexConfig(NAME, ["uuid"]))
    import lance
    import pyarrow.dataset as ds

    dataset = lance.write_dataset(ds.dataset(paths).scanner(), LANCE, storage_options=server.options)
    dataset.create_scalar_index("uuid", "BLOOMFILTER")


def _record(path: Path) -> TableRecord:
    fields = [
        {"name": field.name, "type": _TYPES[str(field.type)], "nullable": True, "metadata": {}}
        for field in pq.read_schema(path)
    ]
    return TableRecord(
        format="parquet", locations=(TABLE,), schema_json=json.dumps({"type": "struct", "fields": fields})
    )


class _Builder:
    """Builds in this process: a Spark that reads S3 needs jars."""

    def __init__(self, catalog: Catalog, options: dict[str, str]) -> None:
        self._catalog, self._options = catalog, options

    def table(self, source: TableRecord) -> CurrentTable:
        return CurrentTable(source)

    def list_files(self, table: CurrentTable) -> list[TableFile]:
        return list_files(table.locations, self._options)

    def parallelism(self) -> int:
        return 1

    def build(self, plan: BuildPlan, _: TableRecord, groups: Any, progress: Any) -> BuildResult:
        shards: list[Shard] = list(groups)
        return build_here(plan, shards, self._catalog.index(NAME).storage)


def _opened(server: DistantS3, console: Console) -> dict[str, Ask]:
    makers: dict[str, Callable[[DistantS3], Ask]] = {
        OURS: _lakebloom,
        "DuckDB": _duckdb,
        "DataFusion": _datafusion,
        "Polars": _polars,
        "PyArrow": _pyarrow,
        BLOOM: _lance,
    }
    asks = {}
    for name, make in makers.items():
        try:
            asks[name] = make(server)
        except _MissingError as error:
            console.print(f"[dim]{name} is left out: {error}[/]")
    return asks


class _MissingError(Exception):
    """A method cannot read from the store on this machine."""


def _lakebloom(server: DistantS3) -> Ask:
    lake = Lakebloom(location=INDEXES, options=server.options)
    return lambda key: _rows(lake.lookup(NAME, col("uuid") == key))


def _duckdb(server: DistantS3) -> Ask:
    import duckdb

    connection = duckdb.connect()
    try:
        connection.execute("LOAD httpfs")
    except duckdb.Error:
        raise _MissingError("its extension httpfs is not installed") from None
    options = server.options
    connection.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID 'bench', SECRET 'bench', REGION '{options['region']}', USE_SSL false,"
        f" URL_STYLE 'path', ENDPOINT '{options['endpoint'].removeprefix('http://')}')"
    )
    connection.execute("SET parquet_metadata_cache = true")
    query = f"SELECT * FROM read_parquet('{TABLE}/*.parquet') WHERE uuid = ?"
    return lambda key: sorted((row[0], row[1]) for row in connection.execute(query, [key]).fetchall())


def _datafusion(server: DistantS3) -> Ask:
    from datafusion import SessionConfig, SessionContext
    from datafusion.object_store import AmazonS3

    config = SessionConfig()
    for setting in ("bloom_filter_on_read", "pushdown_filters", "reorder_filters"):
        config = config.set(f"datafusion.execution.parquet.{setting}", "true")
    context = SessionContext(config)
    store = AmazonS3(
        bucket_name=BUCKET,
        region=server.options["region"],
        access_key_id="bench",
        secret_access_key="bench",
        endpoint=server.options["endpoint"],
        allow_http=True,
    )
    context.register_object_store("s3://", store, BUCKET)
    context.register_parquet("t", f"{TABLE}/")

    def ask(key: str) -> list[tuple[str, int]]:
        batches = context.sql(f"SELECT * FROM t WHERE uuid = '{key}'").collect()
        return sorted(row for batch in batches for row in _rows(batch))

    return ask


def _polars(server: DistantS3) -> Ask:
    import polars as pl

    options = {"aws_endpoint_url": server.options["endpoint"], "aws_region": server.options["region"]}
    options |= {"aws_access_key_id": "bench", "aws_secret_access_key": "bench", "aws_allow_http": "true"}
    frame = pl.scan_parquet(f"{TABLE}/*.parquet", storage_options=options)
    return lambda key: sorted((row[0], row[1]) for row in frame.filter(pl.col("uuid") == key).collect().iter_rows())


def _pyarrow(server: DistantS3) -> Ask:
    import pyarrow.dataset as ds

    dataset = ds.dataset(TABLE.removeprefix("s3://"), filesystem=_file_system(server), format="parquet")
    return lambda key: _rows(dataset.to_table(filter=ds.field("uuid") == key))


def _file_system(server: DistantS3) -> Any:
    from pyarrow.fs import S3FileSystem

    return S3FileSystem(
        access_key="bench",
        secret_key="bench",
        region=server.options["region"],
        endpoint_override=server.options["endpoint"].removeprefix("http://"),
        scheme="http",
        request_timeout=60,
    )


def _lance(server: DistantS3) -> Ask:
    import lance

    dataset = lance.dataset(LANCE, storage_options=server.options)
    return lambda key: _rows(dataset.scanner(filter=f"uuid = '{key}'").to_table())


def _rows(table: Any) -> list[tuple[str, int]]:
    return sorted(zip(table["uuid"].to_pylist(), table["amount"].to_pylist(), strict=True))

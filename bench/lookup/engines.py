"""Who looks keys up: each opens a table once and then answers lists of keys with (uuid, amount) rows, sorted.

Nothing is imported before it is used, because whole processes are timed too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    Rows: TypeAlias = list[tuple[str, int]]
    Ask: TypeAlias = Callable[[list[str]], Rows]


def lakebloom(indexes: str, name: str) -> Ask:
    """Our index over plain files."""
    from lakebloom import Lakebloom, col

    lake = Lakebloom(location=indexes)

    def ask(keys: list[str]) -> Rows:
        key = col("uuid")
        return _of_arrow(lake.lookup(name, key == keys[0] if len(keys) == 1 else key.isin(keys)))

    return ask


def duckdb(folder: str, _: str) -> Ask:
    """One connection, a view, and footers that are kept."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET parquet_metadata_cache = true")
    connection.execute(f"CREATE VIEW t AS FROM read_parquet('{folder}/*.parquet')")

    def ask(keys: list[str]) -> Rows:
        found = connection.execute(f"SELECT * FROM t WHERE {_condition(keys)}").fetchall()
        return sorted((row[0], row[1]) for row in found)

    return ask


def datafusion(folder: str, settings: str) -> Ask:
    """One context with a listing table; filters are asked and pushed into the scan, but for the settings "plain"."""
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig()
    for key in ("bloom_filter_on_read", "pushdown_filters", "reorder_filters"):
        config = config.set(f"datafusion.execution.parquet.{key}", str(settings != "plain").lower())
    context = SessionContext(config)
    context.register_parquet("t", folder)

    def ask(keys: list[str]) -> Rows:
        batches = context.sql(f"SELECT * FROM t WHERE {_condition(keys)}").collect()
        return sorted(row for batch in batches for row in _of_arrow(batch))

    return ask


def polars(folder: str, _: str) -> Ask:
    """One lazy frame."""
    import polars as pl

    frame = pl.scan_parquet(f"{folder}/*.parquet")

    def ask(keys: list[str]) -> Rows:
        condition = pl.col("uuid") == keys[0] if len(keys) == 1 else pl.col("uuid").is_in(keys)
        return sorted((row[0], row[1]) for row in frame.filter(condition).collect().iter_rows())

    return ask


def pyarrow(folder: str, _: str) -> Ask:
    """One dataset, which keeps the files' footers."""
    import pyarrow.dataset as ds

    dataset = ds.dataset(folder, format="parquet")

    def ask(keys: list[str]) -> Rows:
        field = ds.field("uuid")
        return _of_arrow(dataset.to_table(filter=field == keys[0] if len(keys) == 1 else field.isin(keys)))

    return ask


def lance(folder: str, version: str) -> Ask:
    """One dataset in the version that has the index."""
    import lance

    dataset = lance.dataset(folder, version=int(version))

    def ask(keys: list[str]) -> Rows:
        return _of_arrow(dataset.scanner(filter=_condition(keys)).to_table())

    return ask


def right_files(homes: Mapping[str, str]) -> Ask:
    """PyArrow, told which files have the keys: the least that any index of files leaves to do."""
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    threads = ThreadPoolExecutor()

    def of_file(path: str, keys: list[str]) -> Rows:
        file = pq.ParquetFile(path, pre_buffer=False)
        found = file.read(columns=["uuid"])
        numbers = pc.indices_nonzero(pc.is_in(found["uuid"], value_set=pa.array(keys)))
        others = file.read(columns=[name for name in file.schema_arrow.names if name != "uuid"])
        return _of_arrow(others.take(numbers).append_column("uuid", found["uuid"].take(numbers)))

    def ask(keys: list[str]) -> Rows:
        if len(keys) == 1:
            return of_file(homes[keys[0]], keys)
        paths: dict[str, list[str]] = {}
        for key in filter(homes.__contains__, keys):
            paths.setdefault(homes[key], []).append(key)
        return sorted(row for rows in threads.map(of_file, paths, paths.values()) for row in rows)

    return ask


def right_row_groups(homes: Mapping[str, str]) -> Ask:
    """PyArrow, told which row groups of large files have the keys, as path and number; it keeps the footers."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    files: dict[str, pq.ParquetFile] = {}

    def of_group(path: str, group: int, keys: list[str]) -> Rows:
        file = files.setdefault(path, pq.ParquetFile(path, pre_buffer=False))
        found = file.read_row_group(group, columns=["uuid"])
        numbers = pc.indices_nonzero(pc.is_in(found["uuid"], value_set=pa.array(keys)))
        others = file.read_row_group(group, columns=[name for name in file.schema_arrow.names if name != "uuid"])
        return _of_arrow(others.take(numbers).append_column("uuid", found["uuid"].take(numbers)))

    def ask(keys: list[str]) -> Rows:
        groups: dict[str, list[str]] = {}
        for key in filter(homes.__contains__, keys):
            groups.setdefault(homes[key], []).append(key)
        places = [(home.rpartition("#"), wanted) for home, wanted in groups.items()]
        return sorted(row for (path, _, group), wanted in places for row in of_group(path, int(group), wanted))

    return ask


def deltalake(folder: str, _: str) -> Ask:
    """deltalake's own engine on a Delta table. A long list is joined: in SQL it takes a second for each file."""
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder, write_deltalake

    table = DeltaTable(folder)

    def ask(keys: list[str]) -> Rows:
        builder = QueryBuilder().register("t", table)
        query = f"SELECT * FROM t WHERE {_condition(keys)}"
        if len(keys) > 1000:
            write_deltalake(f"{folder}-keys", pa.table({"key": keys}), mode="overwrite")
            builder = builder.register("k", DeltaTable(f"{folder}-keys"))
            query = "SELECT t.* FROM t JOIN k ON t.uuid = k.key"
        return _of_arrow(pa.table(builder.execute(query).read_all()))

    return ask


def pyiceberg(metadata: str, _: str) -> Ask:
    """pyiceberg's own scan of a table."""
    from pyiceberg.expressions import EqualTo, In
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(metadata)

    def ask(keys: list[str]) -> Rows:
        condition = EqualTo("uuid", keys[0]) if len(keys) == 1 else In("uuid", keys)
        return _of_arrow(table.scan(row_filter=condition).to_arrow())

    return ask


def clickhouse(folder: str, table: str) -> Ask:
    """A table of ClickHouse's own with a skip index of the kind bloom_filter."""
    opened = clickhouse_session(folder)
    opened.query("SET max_query_size = 1000000000")  # 10,000 keys are more text than it takes otherwise

    def ask(keys: list[str]) -> Rows:
        wanted = ", ".join(f"'{key}'" for key in keys)
        found = opened.query(f"SELECT uuid, amount FROM {table} WHERE uuid IN ({wanted})", "TabSeparated")
        lines = (line.split("\t") for line in str(found).splitlines())
        return sorted((key, int(amount)) for key, amount in lines)

    return ask


def clickhouse_session(folder: str) -> Any:
    """Return ClickHouse's session in a folder. A process has one at a time, and so has the folder."""
    from chdb.session import Session

    return Session(folder)


def lmdb(folder: str, files: str) -> Ask:
    """A map in LMDB from each key to its place, and PyArrow, which reads there."""
    import lmdb

    environment = lmdb.open(f"{folder}/lmdb", readonly=True, lock=False, map_size=1 << 40)
    return _by_map(environment.begin().get, files)


def rocksdb(folder: str, files: str) -> Ask:
    """The same map in RocksDB."""
    from rocksdict import AccessType, Rdict

    return _by_map(Rdict(f"{folder}/rocksdb", rocksdb_options(), access_type=AccessType.read_only()).get, files)


def rocksdb_options() -> Any:
    """Return how RocksDB stores the map: bytes as they are, with ten bits a key in filters of its own."""
    from rocksdict import BlockBasedOptions, Options

    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(10, False)
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    return options


def _by_map(find: Callable[[bytes], bytes | None], files: str) -> Ask:
    """Ask a map from the 16 bytes of a key to the numbers of its file and row group, two bytes each.

    ``files`` is their folder; with a # at its end row groups are read instead of files.
    """
    from pathlib import Path
    from uuid import UUID

    by_group = files.endswith("#")
    paths = sorted(map(str, Path(files.removesuffix("#")).iterdir()))
    homes: dict[str, str] = {}
    read = (right_row_groups if by_group else right_files)(homes)

    def ask(keys: list[str]) -> Rows:
        homes.clear()
        for key in keys:
            place = find(UUID(key).bytes)
            if place is not None:
                path = paths[int.from_bytes(place[:2], "big")]
                homes[key] = f"{path}#{int.from_bytes(place[2:], 'big')}" if by_group else path
        return read(list(homes)) if homes else []

    return ask


ENGINES: dict[str, Callable[[str, str], Ask]] = {
    "lakebloom": lakebloom,
    "duckdb": duckdb,
    "datafusion": datafusion,
    "polars": polars,
    "pyarrow": pyarrow,
    "lance": lance,
    "deltalake": deltalake,
    "pyiceberg": pyiceberg,
    "clickhouse": clickhouse,
    "lmdb": lmdb,
    "rocksdb": rocksdb,
}


def _condition(keys: list[str]) -> str:
    return f"uuid = '{keys[0]}'" if len(keys) == 1 else "uuid IN (" + ", ".join(f"'{key}'" for key in keys) + ")"


def _of_arrow(table: Any) -> Rows:
    return sorted(zip(table["uuid"].to_pylist(), table["amount"].to_pylist(), strict=True))

"""Random tables, every writer that can be had from Python, and pages compared with slices of the full read."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebloom.tables.parquet.footer import read_arrow_footer
from lakebloom.tables.parquet.pages.file_pages import FilePages, UnpagedError, Wanted
from lakebloom.tables.parquet.pages.local_bytes import LocalBytes
from lakebloom.tables.parquet.pages.row_ranges import RowRanges

if TYPE_CHECKING:
    from pathlib import Path

EPOCH = datetime.datetime(2020, 1, 1)
SECOND = datetime.timedelta(seconds=1)

FLAT: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "flag": (pa.bool_(), lambda rng: rng.random() < 0.5),
    "small": (pa.int8(), lambda rng: rng.randrange(-128, 128)),
    "number": (pa.int64(), lambda rng: rng.getrandbits(40)),
    "few": (pa.int32(), lambda rng: rng.randrange(5)),
    "measure": (pa.float64(), lambda rng: rng.random()),
    "text": (pa.string(), lambda rng: "x" * rng.randrange(30) + str(rng.getrandbits(30))),
    "label": (pa.string(), lambda rng: f"label-{rng.randrange(9)}"),
    "raw": (pa.binary(), lambda rng: rng.randbytes(rng.randrange(20))),
    "moment": (pa.timestamp("us", "UTC"), lambda rng: EPOCH + rng.randrange(10**9) * SECOND),
    "price": (pa.decimal128(12, 2), lambda rng: Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-2)),
    "wide": (pa.decimal128(30, 4), lambda rng: Decimal(rng.getrandbits(80)).scaleb(-4)),
}
NESTED: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "s": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        lambda rng: {"a": rng.choice([None, rng.getrandbits(20)]), "b": f"b{rng.randrange(1000)}"},
    ),
    "list": (pa.list_(pa.int64()), lambda rng: [rng.getrandbits(9) for _ in range(rng.randrange(4))]),
    "map": (
        pa.map_(pa.string(), pa.int32()),
        lambda rng: [(f"k{n}", rng.randrange(99)) for n in range(rng.randrange(3))],
    ),
    "deep": (
        pa.list_(pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
        lambda rng: [
            {"x": rng.randrange(9), "y": [str(rng.randrange(99))] * rng.randrange(3)} for _ in range(rng.randrange(3))
        ],
    ),
}
ARROW_ONLY: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "large": (pa.large_string(), lambda rng: f"large-{rng.getrandbits(20)}"),
    "fixed": (pa.binary(7), lambda rng: rng.randbytes(7)),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), lambda rng: f"d{rng.randrange(6)}"),
    "duration": (pa.duration("us"), lambda rng: rng.randrange(10**6) * SECOND),
    "time": (pa.time64("us"), lambda rng: (EPOCH + rng.randrange(86_400) * SECOND).time()),
    "half": (pa.float16(), lambda rng: float(rng.randrange(100))),
    "nanos": (pa.timestamp("ns"), lambda rng: EPOCH + rng.randrange(10**9) * SECOND),
    "vector": (pa.list_(pa.float32(), 3), lambda rng: [rng.random() for _ in range(3)]),
    "nothing": (pa.null(), lambda rng: None),
}


def random_table(
    rng: random.Random, num_rows: int, kinds: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]]
) -> pa.Table:
    """Return some of the columns, some of them with NULLs, and some that repeat one value for long."""
    chosen = sorted(rng.sample(sorted(kinds), rng.randint(1, min(6, len(kinds)))))
    columns = {}
    for name in chosen:
        kind, make = kinds[name]
        nulls = rng.choice([0, 0, 0.1, 0.9, 1])
        values = [None if rng.random() < nulls else make(rng) for _ in range(num_rows)]
        if rng.random() < 0.2 and num_rows:
            values = [values[number - number % 50] for number in range(num_rows)]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


def by_pyarrow(rng: random.Random, table: pa.Table, path: Path) -> None:
    """Pages of a few bytes or rows, both versions, every codec, dictionaries that fall back, checksums."""
    plain = [name for name in table.column_names if pa.types.is_primitive(table.schema.field(name).type)]
    encodings = {}
    for name in plain:
        kind = table.schema.field(name).type
        if pa.types.is_integer(kind) and rng.random() < 0.3:
            encodings[name] = rng.choice(["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "PLAIN"])
    has_encodings = bool(encodings)
    options: dict[str, Any] = {
        "compression": rng.choice(["NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"]),
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "data_page_size": rng.choice([1, 40, 300, 4000, 1 << 20]),
        "max_rows_per_page": rng.choice([1, 7, 100, 20_000]),
        "write_batch_size": rng.choice([1, 3, 50, 1024]),
        "row_group_size": rng.choice([17, 200, 100_000]),
        "write_page_index": rng.random() < 0.6,
        "write_page_checksum": rng.random() < 0.3,
        "use_dictionary": False if has_encodings else rng.random() < 0.7,
        "dictionary_pagesize_limit": rng.choice([1, 200, 1 << 20]),
        "column_encoding": encodings or None,
        "store_schema": rng.random() < 0.7,
        "use_deprecated_int96_timestamps": rng.random() < 0.1,
        "store_decimal_as_integer": rng.random() < 0.3,
        "write_statistics": rng.random() < 0.8,
    }
    pq.write_table(table, path, **options)


def by_duckdb(rng: random.Random, table: pa.Table, path: Path) -> None:
    import duckdb

    version, codec = rng.choice(["V1", "V2"]), rng.choice(["snappy", "zstd", "gzip", "lz4_raw", "uncompressed"])
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("given", table)
        connection.execute(
            f"COPY given TO '{path}' (FORMAT parquet, PARQUET_VERSION {version}, COMPRESSION {codec}, "
            f"ROW_GROUP_SIZE {rng.choice([2048, 100_000])})"
        )


def by_polars(rng: random.Random, table: pa.Table, path: Path) -> None:
    import polars as pl

    pl.from_arrow(table).write_parquet(  # type: ignore[union-attr]
        path,
        compression=rng.choice(["uncompressed", "snappy", "zstd", "lz4", "gzip"]),
        data_page_size=rng.choice([50, 1000, 1 << 20]),
        row_group_size=rng.choice([100, 100_000]),
    )


def by_datafusion(rng: random.Random, table: pa.Table, path: Path) -> None:
    from datafusion import ParquetWriterOptions, SessionContext

    options = ParquetWriterOptions(
        data_pagesize_limit=rng.choice([50, 1000, 1 << 20]),
        data_page_row_count_limit=rng.choice([1, 50, 20_000]),
        write_batch_size=rng.choice([1, 20, 1024]),
        writer_version=rng.choice(["1.0", "2.0"]),
        dictionary_enabled=rng.random() < 0.6,
        dictionary_page_size_limit=rng.choice([1, 300, 1 << 20]),
        max_row_group_size=rng.choice([50, 1000, 1 << 20]),
        compression=rng.choice(["uncompressed", "snappy", "zstd(3)", "lz4_raw", "gzip(6)"]),
    )
    folder = path.with_suffix("")  # a name with a suffix is that of one file
    SessionContext().from_arrow(table).write_parquet_with_options(str(folder), options)
    (written,) = folder.glob("*.parquet")
    written.rename(path)


WRITERS: dict[str, Callable[[random.Random, pa.Table, Path], None]] = {
    "pyarrow": by_pyarrow,
    "duckdb": by_duckdb,
    "polars": by_polars,
    "datafusion": by_datafusion,
}
KINDS = {"pyarrow": FLAT | NESTED | ARROW_ONLY} | dict.fromkeys(("duckdb", "polars", "datafusion"), FLAT | NESTED)


def random_ranges(rng: random.Random, num_rows: int) -> RowRanges:
    """Return up to a few ranges: single rows, long ones, all rows."""
    cuts = [sorted(rng.choices(range(num_rows + 1), k=2)) for _ in range(rng.choice([1, 1, 2, 5, 40]))]
    if rng.random() < 0.5:
        cuts = [[start, min(start + 1, num_rows)] for start, _ in cuts]
    return RowRanges.of((start, stop) for start, stop in cuts)


def compare_pages(path: Path, rng: random.Random, rounds: int = 4) -> tuple[int, list[str]]:
    """Compare pages with slices of the full read; return how often they were read, and why they were not."""
    read, reasons = 0, []
    with pa.OSFile(str(path)) as source:
        footer = read_arrow_footer(str(path), source)
        file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us", pre_buffer=False)
        pages = FilePages(footer, file.schema_arrow)
        local = LocalBytes(source.fileno())
        for group in range(min(3, footer.metadata.num_row_groups)):
            try:
                whole = file.read_row_group(group)
            except pa.ArrowInvalid:  # some versions do not read what they wrote
                reasons.append("Arrow does not read it")
                continue
            for _ in range(rounds):
                rows = random_ranges(rng, whole.num_rows)
                columns = rng.sample(range(whole.num_columns), rng.randint(1, whole.num_columns))
                for asked in (columns, *([column] for column in columns)):
                    try:
                        (found,) = pages.read(local, [Wanted(group, rows)], asked)
                    except UnpagedError as error:
                        reasons.append(error.reason)
                        continue
                    read += 1
                    for column, array in zip(asked, found, strict=True):
                        slices = [whole.column(column).slice(start, stop - start) for start, stop in rows.pairs()]
                        chunks = [chunk for each in slices for chunk in each.chunks]
                        expected = pa.chunked_array(chunks, whole.schema.field(column).type)
                        assert array.type == expected.type, (path, whole.schema.field(column))
                        array.validate(full=True)
                        assert same(array, expected), (path, group, rows.pairs(), whole.schema.field(column))
    return read, reasons


def same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Compare by value: Arrow may give the same dictionary values under other numbers."""
    return bool(one.equals(other)) or one.to_pylist() == other.to_pylist()

"""Tables on object stores: the same rules, through obstore."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.errors import DataFileError, NotFoundError, StorageError
from lakebloom.tables.access import TableAccess
from lakebloom.tables.listing import objects
from lakebloom.tables.listing.listing import list_files, stat_file
from lakebloom.tables.parquet.columns import ColumnSpec, ParquetColumns
from tests.storage.conftest import BUCKET
from tests.tables.listing.test_listing import GLOBBED, TABLES

Bucket = tuple[str, dict[str, str]]


@pytest.fixture(params=["memory", "s3"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    name = uuid.uuid4().hex
    if request.param == "memory":
        return f"memory://{name}", {}
    return f"s3://{BUCKET}/{name}", request.getfixturevalue("s3_options")


@pytest.fixture
def put(bucket: Bucket) -> Callable[[str, bytes], str]:
    def store(path: str, data: bytes) -> str:
        uri = f"{bucket[0]}/{path}"
        client, key = objects.client_and_key(uri, bucket[1])
        obstore.put(client, key, data)
        return uri

    return store


def listed(bucket: Bucket, *paths: str) -> list[str]:
    base, options = bucket
    return [file.uri.removeprefix(f"{base}/") for file in list_files([f"{base}/{path}" for path in paths], options)]


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_prefixes(name: str, bucket: Bucket, put: Callable[[str, bytes], str]) -> None:
    names, expected = TABLES[name]
    for path in names:
        put(f"t/{path.removesuffix('!')}", b"" if path.endswith("!") else b"x")
    put("t2/other", b"x")
    assert listed(bucket, "t") == [f"t/{path}" for path in sorted(expected)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*", ["a b/i", "k/h", "k=1/a", "k=2/b", "k=3/a", "top", "x.y/f", "[k]/g", "_hid/d"]),
        ("k=[12]", ["k=1/a", "k=2/b"]),
        ("k=*/a", ["k=1/a", "k=3/a"]),
        ("{k=1/a,k=2/s*}", ["k=1/a", "k=2/sub/c"]),
        (r"\[k\]", ["[k]/g"]),
        ("a ?", ["a b/i"]),
    ],
)
def test_globs(pattern: str, expected: list[str], bucket: Bucket, put: Callable[[str, bytes], str]) -> None:
    for path in GLOBBED:
        put(f"t/{path}", b"x")
    assert listed(bucket, f"t/{pattern}") == sorted(f"t/{path}" for path in expected)


def test_single_objects(bucket: Bucket, put: Callable[[str, bytes], str]) -> None:
    uri = put("t/a%20b c", b"x")
    (file,) = list_files([uri], bucket[1])
    assert file.uri == uri
    assert stat_file(uri, bucket[1]) == file
    assert list_files([f"{bucket[0]}/t"], bucket[1]) == [file]


def test_what_is_not_there(bucket: Bucket, put: Callable[[str, bytes], str]) -> None:
    put("t/a", b"x")
    for path in ("no", "t/b", "t/a/b", "n*", "t/*/x"):
        with pytest.raises(NotFoundError):
            listed(bucket, path)
        assert stat_file(f"{bucket[0]}/{path}", bucket[1]) is None
    with pytest.raises(NotFoundError):
        ParquetColumns(f"{bucket[0]}/t/b", [ColumnSpec(("x",), "bigint")], TableAccess(bucket[1]))


def parquet(rows: int) -> bytes:
    data = io.BytesIO()
    table = pa.table({"id": [f"id-{i}" for i in range(rows)], "n": range(rows), "wide": ["x" * 50] * rows})
    pq.write_table(table, data, row_group_size=max(1, rows // 3), use_dictionary=False, compression="none")
    return data.getvalue()


@pytest.mark.parametrize("rows", [0, 10, 40_000])
def test_columns_of_an_object(rows: int, bucket: Bucket, put: Callable[[str, bytes], str]) -> None:
    uri = put("t/a b%20.parquet", parquet(rows))
    specs = [ColumnSpec(("n",), "bigint"), ColumnSpec(("id",), "string")]
    read: list[tuple[int, str]] = []
    with ParquetColumns(uri, specs, TableAccess(bucket[1])) as columns:
        for row_group in range(len(columns.row_groups)):
            for first_row, (numbers, ids) in columns.batches(row_group):
                assert first_row == len(read)
                read += zip(numbers.to_pylist(), ids.to_pylist(), strict=True)
    assert read == [(i, f"id-{i}") for i in range(rows)]


def test_only_the_needed_ranges_are_fetched(bucket: Bucket, put: Callable[[str, bytes], str]) -> None:
    """The footer in one request, then one for each column chunk of up to 8 MiB."""
    data = parquet(39_999)
    uri = put("t/a.parquet", data)
    fetched: list[int] = []

    def counting(*args: object, **arguments: object) -> obstore.GetResult:
        result = get(*args, **arguments)  # type: ignore[arg-type]
        fetched.append(result.range[1] - result.range[0])
        return result

    get = obstore.get
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(obstore, "get", counting)
        with ParquetColumns(uri, [ColumnSpec(("n",), "bigint")], TableAccess(bucket[1])) as columns:
            for row_group in range(len(columns.row_groups)):
                list(columns.batches(row_group))
    assert len(fetched) == 1 + len(columns.row_groups)
    assert sum(fetched) < len(data) / 4


def test_a_replaced_object_is_not_mixed_with_its_successor(bucket: Bucket, put: Callable[[str, bytes], str]) -> None:
    uri = put("t/a.parquet", parquet(40_000))
    with ParquetColumns(uri, [ColumnSpec(("id",), "string")], TableAccess(bucket[1])) as columns:
        put("t/a.parquet", parquet(40_001))
        with pytest.raises(StorageError, match="replaced while it was read"):
            list(columns.batches(0))


@pytest.mark.parametrize("data", [b"PAR1", b"nothing like it" * 9_000])
def test_an_object_that_is_no_parquet_file(data: bytes, bucket: Bucket, put: Callable[[str, bytes], str]) -> None:
    with pytest.raises(DataFileError, match="Parquet"):
        ParquetColumns(put("t/a.parquet", data), [ColumnSpec(("x",), "bigint")], TableAccess(bucket[1]))

"""Create checks everything before it writes anything: each mistake is its own error, and leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.index.build.create import create_index, price_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.build.run import Workshop
from lakebloom.index.maintain.lifecycle import delete_index
from lakebloom.index.settings import Settings
from lakebloom.storage import open_storage
from lakebloom.store.records import TableRecord
from lakebloom.tables.schema import TableSchema
from lakebloom.tables.spark_schema import ArrayType, Field, MapType, Metadata, StructType
from tests.index.lake import NAME, Lake, assert_answers, questions
from tests.index.local_builder import LocalBuilder, source_of, workshop
from tests.index.meddling import Meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakebloom.index.catalog import Catalog


def assert_nothing_there(lake: Lake) -> None:
    assert list(open_storage(lake.location).list("")) == []
    assert list(open_storage(lake.location).temporaries("")) == []


COLLATED = Metadata(collations={"c": "spark.UTF8_LCASE"})


def create(lake: Lake, columns: list[str], **source: Any) -> None:
    record = source_of(lake.table, lake.types)
    changed = TableRecord(**{**{name: getattr(record, name) for name in record.__struct_fields__}, **source})
    create_index(workshop(lake.catalog()), changed, BloomIndexConfig(NAME, columns))


# The configuration by itself


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/a", "a\\b", "../a", ".hidden", "-x", "a b", "é", "a\n", "x" * 129, "s3://b", None, 7],
)
def test_a_name_is_never_a_path(name: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="an index name"):
        BloomIndexConfig(name, ["k"])


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "0", "_x", "x" * 128, "a..b"])
def test_legal_names(lake: Lake, name: str) -> None:
    lake.fill([0])
    lake.create(BloomIndexConfig(name, ["k"]))
    assert [record.name for record in lake.open().indexes()] == [name]


@pytest.mark.parametrize("fpp", [0, 0.0, 1, 1.0, -0.1, 2, float("nan"), "0.01", "Auto", None, True])
def test_a_rate_out_of_range(fpp: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="fpp"):
        BloomIndexConfig(NAME, ["k"], fpp=fpp)


@pytest.mark.parametrize("count", [0, -1, 1.5, "many", True])
def test_too_few_expected_items(count: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="expected_items must be"):
        BloomIndexConfig(NAME, ["k"], expected_items=count)


@pytest.mark.parametrize("granularity", [0, -5, True, False, "rows", "FILE", 2.5, None, ""])
def test_no_such_granularity(granularity: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="granularity must be"):
        BloomIndexConfig(NAME, ["k"], granularity=granularity)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "at least one column"),
        ("", "a column name"),
        (["a", "a"], "a more than once"),
        (["a.b", "`a`.b"], "more than once"),
        (["a", ""], "a column name"),
        (["a."], "a column name"),
        (["`a"], "a column name"),
        ([7], "must be a list of column names"),
        ([None], "must be a list of column names"),
    ],
)
def test_columns_that_are_none(columns: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        BloomIndexConfig(NAME, columns)


def test_other_arguments() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="global_filter"):
        BloomIndexConfig(NAME, ["k"], global_filter="yes")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        BloomIndexConfig(NAME, ["k"], fp=0.01)  # type: ignore[call-arg]
    assert BloomIndexConfig(NAME, "k").columns == ("k",)


def test_numbers_from_numpy_are_numbers(lake: Lake) -> None:
    lake.fill([0])
    config = BloomIndexConfig(
        NAME, ["k"], fpp=np.float64(0.02), expected_items=np.int64(50), granularity=np.int32(10)  # type: ignore[arg-type]
    )  # fmt: skip
    lake.create(config)
    stored = lake.entry().config
    assert (stored.fpp, stored.expected_items, stored.granularity) == (0.02, 50, 10)


# Against the table


def test_an_unknown_column(lake: Lake) -> None:
    lake.types = {"user_id": "bigint", "event": "string"}
    lake.write("a", {"user_id": pa.array([1], pa.int64()), "event": ["x"]})
    with pytest.raises(
        errors.ColumnNotFoundError, match=r"no column userid; found columns user_id, event.*did you mean user_id\?"
    ):
        create(lake, ["userid"])
    with pytest.raises(errors.ColumnNotFoundError, match="name one of these"):
        create(lake, ["zzz"])
    assert_nothing_there(lake)


@pytest.mark.parametrize(
    ("field", "kind", "reason"),
    [
        (Field("c", "boolean"), "boolean", "at most 256 values"),
        (Field("c", "byte"), "tinyint", "at most 256 values"),
        (Field("c", "string", metadata=COLLATED), "string collate UTF8_LCASE", "collation"),
        (Field("c", "string", metadata=Metadata(char_varchar="char(5)")), "char(5)", "pads"),
        (Field("c", "string", metadata=Metadata(char_varchar="varchar(5)")), "varchar(5)", "pads"),
        (Field("c", ArrayType("long")), "array<...>", "plain values"),
        (Field("c", MapType("long", "long")), "map<...>", "plain values"),
        (Field("c", StructType(())), "struct<...>", r"a struct's leaf can be named as a\.b"),
        (Field("c", "interval day to second"), "interval day to second", "no hash"),
        (Field("c", "variant"), "variant", "no hash"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_types_that_cannot_be_indexed(lake: Lake, field: Field, kind: str, reason: str) -> None:
    lake.fill([0])
    schema = TableSchema(StructType((field,)))
    assert schema.types == {("c",): kind}
    with pytest.raises(errors.UnsupportedTypeError, match=reason):
        create(lake, ["c"], schema_json=schema.json)
    assert_nothing_there(lake)


def test_a_partition_column(lake: Lake) -> None:
    lake.fill([0])
    for name in ("n", "N"):
        with pytest.raises(errors.InvalidArgumentError, match="is a partition column"):
            create(lake, ["k", name], partition_columns=("n",))
    assert_nothing_there(lake)


def test_the_same_column_in_another_case(lake: Lake) -> None:
    lake.fill([0])
    with pytest.raises(errors.InvalidArgumentError, match="k more than once"):
        create(lake, ["k", "K"])
    with pytest.raises(errors.ColumnNotFoundError):
        create(lake, ["k", "K"], case_sensitive=True)
    assert_nothing_there(lake)


def test_a_name_that_fits_two_columns(lake: Lake) -> None:
    lake.types = {"a": "bigint", "A": "bigint"}
    lake.write("f", {"a": pa.array([1], pa.int64()), "A": pa.array([2], pa.int64())})
    with pytest.raises(errors.ColumnNotFoundError, match="several columns a; found a, A"):
        create(lake, ["a"])
    assert_nothing_there(lake)
    create(lake, ["a", "A"], case_sensitive=True)
    assert lake.entry().segments[0].num_rows == 1
    assert lake.kept(col("a") == 1) == {("f", 0)}
    assert lake.kept(col("a") == 2) == set()
    report = lake.open().verify_index(NAME)
    assert (report.values_checked, report.unreadable) == (2, ())


def test_an_index_that_exists(lake: Lake) -> None:
    lake.fill([0])
    lake.create()
    files = lake.stored()
    with pytest.raises(errors.IndexExistsError, match="active, at version 1"):
        lake.create()
    delete_index(lake.catalog(), NAME)
    with pytest.raises(errors.IndexExistsError, match="deleted, at version 2"):
        lake.create()
    assert (lake.stored(), lake.entry().version) == (files, 2)


def test_an_index_that_another_writer_creates_meanwhile(lake: Lake) -> None:
    lake.fill(range(2))
    with pytest.raises(errors.IndexExistsError, match="by another writer meanwhile"):
        lake.create(
            BloomIndexConfig(NAME, ["s"], global_filter=True),
            catalog=lake.catalog(Meanwhile(lake.create)),
        )
    assert not lake.orphans()
    assert_answers(lake, questions([5, 25]))


def test_a_table_without_files(lake: Lake) -> None:
    with pytest.raises(errors.NoFilesError, match="nothing to index"):
        lake.create()
    lake.table.mkdir()
    with pytest.raises(errors.NoFilesError, match="no files in file://"):
        lake.create()
    assert_nothing_there(lake)


@pytest.mark.parametrize("granularity", ["row_group", 1000])
def test_row_positions_need_parquet(lake: Lake, granularity: Any) -> None:
    lake.fill([0])
    record = source_of(lake.table, lake.types)
    orc = TableRecord(format="orc", locations=record.locations)
    with pytest.raises(errors.InvalidArgumentError, match="orc files have no row positions"):
        create_index(workshop(lake.catalog()), orc, BloomIndexConfig(NAME, ["k"], granularity=granularity))
    assert_nothing_there(lake)


def unreadable(lake: Lake, number: int) -> None:
    (lake.table / f"f{number}.parquet").write_bytes(b"rubbish")


def of_another_type(lake: Lake, number: int) -> None:
    lake.write(f"f{number}", {"k": ["text"]})


@pytest.mark.parametrize(
    ("spoil", "error"), [(unreadable, errors.DataFileError), (of_another_type, errors.UnsupportedTypeError)]
)
def test_files_that_cannot_be_read(
    lake: Lake, spoil: Callable[[Lake, int], None], error: type[errors.LakebloomError]
) -> None:
    lake.fill(range(3))
    for number in range(3):
        spoil(lake, number)
    with pytest.raises(error):
        lake.create(BloomIndexConfig(NAME, ["k"]))
    assert_nothing_there(lake)


def test_files_that_may_not_be_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a store says it: whoever runs the tests as root may read everything on a disk."""

    def refuse(uri: str, *args: object, **kwargs: object) -> None:
        raise errors.AccessDeniedError(f"could not read {uri}", found="403")

    monkeypatch.setattr("lakebloom.index.units.ParquetColumns", refuse)
    lake.fill(range(3))
    with pytest.raises(errors.AccessDeniedError, match=r"f0\.parquet"):
        lake.create(BloomIndexConfig(NAME, ["k"]))
    assert_nothing_there(lake)


# Places


class _NoJob(LocalBuilder):
    """Says what it cannot do, and must not be asked to do anything."""

    def __init__(self, catalog: Catalog, error: errors.LakebloomError | None = None) -> None:
        super().__init__(catalog)
        self._error = error

    def require_buildable(self, *_: object) -> None:
        if self._error is not None:
            raise self._error

    def build(self, *_: object) -> NoReturn:  # type: ignore[override]
        raise AssertionError("a job was started")


def test_a_place_that_is_a_file_is_refused_before_the_job(lake: Lake, tmp_path: Path) -> None:
    lake.fill(range(2))
    (tmp_path / "indexes").write_text("a file")
    shop = Workshop(lake.catalog(), _NoJob(lake.catalog()), Settings())
    with pytest.raises(errors.LocationNotWritableError, match="a file where a directory should be"):
        create_index(shop, source_of(lake.table, lake.types), BloomIndexConfig(NAME, ["k"]))
    assert (tmp_path / "indexes").read_text() == "a file"


@pytest.mark.usefixtures("unprivileged")
@pytest.mark.parametrize("mode", ["quick", "full"])
def test_a_refresh_of_an_index_of_somebody_else_is_refused_before_the_job(
    lake: Lake, tmp_path: Path, mode: Literal["quick", "full"]
) -> None:
    lake.fill(range(2))
    lake.create()
    lake.fill([2])
    (tmp_path / "indexes" / NAME).chmod(0o555)
    shop = Workshop(lake.catalog(), _NoJob(lake.catalog()), Settings())
    with pytest.raises(errors.LocationNotWritableError, match="Permission denied"):
        refresh_index(shop, NAME, mode)
    (tmp_path / "indexes" / NAME).chmod(0o755)
    lake.refresh()
    assert_answers(lake, questions([1, 45]))


def test_what_a_builder_cannot_do_is_refused_before_anything_is_written(lake: Lake, tmp_path: Path) -> None:
    lake.fill(range(2))
    builder = _NoJob(lake.catalog(), errors.InvalidArgumentError("no positions"))
    shop = Workshop(lake.catalog(), builder, Settings())
    for verb in (create_index, price_index):
        with pytest.raises(errors.InvalidArgumentError, match="no positions"):
            verb(shop, source_of(lake.table, lake.types), BloomIndexConfig(NAME, ["k"]))
    assert not (tmp_path / "indexes").exists()


# Sizes


def test_an_index_that_would_be_too_large(lake: Lake) -> None:
    lake.fill(range(4), rows=5000)
    with pytest.raises(errors.IndexTooLargeError) as caught:
        lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.01), max_index_bytes=10_000)
    assert "10,000 bytes allowed" in str(caught.value)
    assert "about 26," in str(caught.value), "20,000 values at 10.5 bits"
    assert "higher fpp" in caught.value.hint
    assert_nothing_there(lake)
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.01), max_index_bytes=40_000)


def test_expected_items_count_for_the_size(lake: Lake) -> None:
    lake.fill(range(4), rows=10)
    config = BloomIndexConfig(NAME, ["k"], fpp=0.01, expected_items=10_000_000)
    with pytest.raises(errors.IndexTooLargeError, match="16,777,216 bytes allowed"):
        lake.create(config)
    with pytest.raises(errors.InvalidArgumentError, match="blocks"):
        lake.create(BloomIndexConfig(NAME, ["k"], expected_items=10**15))
    assert_nothing_there(lake)


def test_an_index_that_turns_out_too_large_is_taken_back(lake: Lake) -> None:
    """The estimate is from a sample of footers. Here it misses the one file that is large."""
    lake.fill([0], rows=2)
    for number in range(1, 40):
        lake.fill([number], rows=2)
    lake.fill([37], rows=20_000)  # not among every second file
    with pytest.raises(errors.IndexTooLargeError):
        lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.01), max_index_bytes=12_000)
    assert_nothing_there(lake)


# Keys of the session


def test_keys_of_the_session() -> None:
    parsed = Settings.parse(
        {
            "spark.lakebloom.location": "/indexes",
            "spark.lakebloom.maxIndexBytes": "1000",
            "spark.lakebloom.global.maxBytes": "2000",
            "spark.lakebloom.vacuum.retentionMs": "0",
            "spark.lakebloom.vacuum.graceMs": "5",
            "spark.sql.shuffle.partitions": "4",
        }
    )
    expected = Settings(
        location="/indexes", max_index_bytes=1000, global_max_bytes=2000, vacuum_retention_ms=0, vacuum_grace_ms=5
    )
    assert parsed == expected
    assert Settings.parse({}) == Settings()


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("spark.lakebloom.maxIndexByte", r"did you mean spark\.lakebloom\.maxIndexBytes\?"),
        ("spark.lakebloom.maxindexbytes", r"did you mean spark\.lakebloom\.maxIndexBytes\?"),
        ("spark.lakebloom.vacuum.graceSeconds", r"did you mean spark\.lakebloom\.vacuum\.graceMs\?"),
        ("spark.lakebloom.", "spark.lakebloom"),
    ],
)
def test_unknown_keys_are_errors(key: str, hint: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=hint):
        Settings.parse({key: "1"})

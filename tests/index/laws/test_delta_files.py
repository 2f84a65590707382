"""Which files and rows of a Delta table count: its log says so, never the directory or the disk."""

from __future__ import annotations

import shutil
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import (
    DataFileError,
    IndexStateError,
    InvalidArgumentError,
    NotFoundError,
    UnsupportedSourceError,
)
from lakebloom.index.lookup.lookup import Lookups
from tests.index.delta_lake import DeltaIndexes, Model, found_keys, keys, plain_table
from tests.index.logged_lake import NAME
from tests.tables.formats.delta.hand_table import HandTable, field

if TYPE_CHECKING:
    from pathlib import Path


def test_removed_files_that_stay_in_the_directory_do_not_count(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    first, second = table.add("a.parquet", keys(1, 2)), table.add("b.parquet", keys(2, 3))
    table.commit(first, second)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.remove(first))
    (tmp_path / "t" / "stray.parquet").write_bytes((tmp_path / "t" / "a.parquet").read_bytes())
    lake = indexes.open()
    assert found_keys(lake, 2) == [2]
    assert found_keys(lake, 1) == []
    assert found_keys(lake, 1, version=1) == [1]
    assert found_keys(lake, 1, unindexed="skip") == []
    assert [row["path"] for row in lake.candidates(NAME, "k = 2").to_pylist()] == [str(tmp_path / "t" / "b.parquet")]


def test_an_index_is_over_all_rows_also_deleted_ones(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    added = table.add("a.parquet", keys(1, 2, 3, 4))
    hidden = table.again(added, table.inline([0, 1]))
    table.commit(hidden)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    assert [found_keys(lake, key) for key in (1, 2, 3)] == [[], [], [3]]
    table.commit(table.remove(hidden), added)  # as RESTORE does it
    assert [found_keys(lake, key) for key in (1, 2, 3)] == [[1], [2], [3]]
    assert [found_keys(lake, key, unindexed="error") for key in (1, 2, 3)] == [[1], [2], [3]]
    assert indexes.refresh().committed
    assert indexes.entry().segments == DeltaIndexes(tmp_path, tmp_path / "t").entry().segments
    assert len(indexes.entry().segments) == 1


def test_a_vector_shorter_than_its_file_keeps_the_rest(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    added = table.add("a.parquet", keys(*range(10_000)))
    table.commit(table.again(added, table.stored([0])[0]))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    assert found_keys(indexes.open(), 9_999) == [9_999]
    assert found_keys(indexes.open(), 0) == []


def test_a_damaged_vector_is_an_error_and_never_a_deleted_row(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    added = table.add("a.parquet", keys(1, 2))
    table.commit(table.again(added, table.stored([0])[0]))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    (vector,) = (tmp_path / "t").glob("deletion_vector_*.bin")
    whole = vector.read_bytes()
    vector.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(DataFileError, match="deletion vector"):
        found_keys(indexes.open(), 1)
    vector.unlink()
    with pytest.raises(NotFoundError, match="deletion vector"):
        found_keys(indexes.open(), 1)


def test_a_lost_file_is_told_beside_a_busy_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new version has the lost file, too: to look into the next one, and the next, would never end."""
    table = plain_table(tmp_path / "t")
    table.commit(table.add("a.parquet", keys(1)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    (tmp_path / "t" / "a.parquet").unlink()
    look, versions = Lookups._rows, []

    def busy(self: Lookups, *arguments: Any) -> pa.Table:
        versions.append(table.commit(table.add(f"b{len(versions)}.parquet", keys(7))))
        assert len(versions) < 20
        return look(self, *arguments)

    monkeypatch.setattr(Lookups, "_rows", busy)
    with pytest.raises(NotFoundError, match=r"a\.parquet"):
        found_keys(indexes.open(), 1)


def test_partition_values_come_from_the_log_and_not_from_directories(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t", [field("k", "long"), field("p", "date")], partitions=["p"])
    rows = pa.table({"k": pa.array([1], pa.int64())})
    table.commit(
        table.add("p=1999-01-01/a.parquet", rows, {"p": "2024-05-06"}), table.add("b.parquet", rows, {"p": ""})
    )
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    found = indexes.open().lookup(NAME, "k = 1").to_pylist()
    assert sorted(str(row["p"]) for row in found) == ["2024-05-06", "None"]
    assert indexes.open().lookup(NAME, "k = 1 and p = date '2024-05-06'").num_rows == 1
    with pytest.raises(InvalidArgumentError, match="partition column"):
        DeltaIndexes(tmp_path / "other", tmp_path / "t").create("p")


def test_refresh_reads_only_new_files_and_records_the_version(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    table.commit(*(table.add(f"{number}.parquet", keys(number)) for number in range(10)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    assert indexes.entry().table.snapshot is not None
    assert indexes.entry().table.snapshot.version == 1
    table.commit(table.add("new.parquet", keys(99)))
    assert indexes.refresh().files == 1
    assert indexes.entry().table.snapshot.version == 2  # type: ignore[union-attr]
    assert not indexes.refresh().committed
    (status,) = indexes.open().status(NAME)
    assert status.coverage == 1.0


def test_a_table_that_lost_its_files_in_the_log_lost_them_on_purpose(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    added = [table.add(f"{number}.parquet", keys(number)) for number in range(10)]
    table.commit(*added)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(*map(table.remove, added[1:]))
    indexes.refresh()
    assert found_keys(indexes.open(), 0) == [0]
    assert found_keys(indexes.open(), 5) == []
    shutil.rmtree(tmp_path / "t" / "_delta_log")
    with pytest.raises(NotFoundError):
        indexes.refresh()
    with pytest.raises(NotFoundError):
        found_keys(indexes.open(), 0)


def test_files_that_are_vacuumed_under_a_lookup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = plain_table(tmp_path / "t")
    added = table.add("a.parquet", keys(1))
    table.commit(added)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    assert found_keys(lake, 1) == [1]
    from lakebloom.index.lookup import lookup as module

    whole, vacuumed = module._Search.run, []

    def run(self: Any, reads: Any) -> Any:
        if not vacuumed:
            vacuumed.append(True)
            table.commit(table.remove(added), table.add("b.parquet", keys(1, 2)))
            (tmp_path / "t" / "a.parquet").unlink()
        return whole(self, reads)

    monkeypatch.setattr(module._Search, "run", run)
    assert found_keys(lake, 1) == [1]
    with pytest.raises(NotFoundError):
        found_keys(lake, 1, version=1)


def test_versions_and_times(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t", configuration={"delta.enableInCommitTimestamps": "true"})
    for number in range(3):
        table.commit(table.add(f"{number}.parquet", keys(7)), info={"inCommitTimestamp": 1_000_000 * (number + 1)})
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    lake = indexes.open()
    assert [len(found_keys(lake, 7, version=version)) for version in (1, 2, 3)] == [1, 2, 3]
    assert len(found_keys(lake, 7, timestamp="1970-01-01T00:33:20Z")) == 2
    assert len(found_keys(lake, 7, timestamp=datetime(1970, 1, 1, 0, 20, tzinfo=timezone.utc))) == 1
    for wrong in ({"version": 9}, {"timestamp": "1960-01-01T00:00:00Z"}):
        with pytest.raises(NotFoundError):
            found_keys(lake, 7, **wrong)
    for wrong in ({"version": -1}, {"version": "x"}, {"timestamp": "yesterday"}, {"timestamp": "2024-01-01"}):
        with pytest.raises(InvalidArgumentError):
            found_keys(lake, 7, **wrong)
    with pytest.raises(InvalidArgumentError, match="not both"):
        found_keys(lake, 7, version=1, timestamp="2024-01-01T00:00:00Z")


def test_a_directory_has_no_versions(tmp_path: Path) -> None:
    from tests.index.lake import Lake

    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(2))
    lake.create()
    with pytest.raises(UnsupportedSourceError, match="versions"):
        lake.open().lookup("i", col("k") == 1, version=0)


def test_unindexed_says_what_is_new(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    table.commit(table.add("a.parquet", keys(1)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    table.commit(table.add("b.parquet", keys(1)))
    lake = indexes.open()
    assert len(found_keys(lake, 1)) == 2
    assert len(found_keys(lake, 1, unindexed="skip")) == 1
    with pytest.raises(IndexStateError, match="unindexed"):
        found_keys(lake, 1, unindexed="error")


def test_a_table_in_a_strange_place(tmp_path: Path) -> None:
    root = tmp_path / "a b%20c[1]{x}ü"
    table = plain_table(root)
    table.commit(table.add("d e%2F/ü%.parquet", keys(1)))
    indexes = DeltaIndexes(tmp_path, root)
    indexes.create("k")
    assert found_keys(indexes.open(), 1) == [1]
    assert indexes.open().verify_index(NAME).false_negatives == 0


def test_advice_price_and_report_of_a_delta_table(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    for number in range(4):
        model.append([{"k": 10 * number + key, "s": "x"} for key in range(10)])
    model.columns[0].name = "key"
    model.alter()
    model.drop_file(model.files[0])
    lake = Lakebloom(location=str(tmp_path / "indexes"))
    advice = {row.column: row for row in lake.advise(str(tmp_path / "t"))}
    assert set(advice) == {"key", "s", "p"}
    assert lake.price_index(str(tmp_path / "t"), BloomIndexConfig("n", ["key"])).files == 3
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("key")
    page = indexes.open().report(NAME, tmp_path / "page.html", "key = 21").read_text()
    assert "key" in page


@pytest.mark.parametrize("granularity", ["file", "row_group", 7])
def test_rows_in_batches_leave_out_deleted_ones(tmp_path: Path, granularity: Any) -> None:
    """What the data source reads: whole files, row groups, some rows, and no columns at all."""
    from lakebloom.index.current_table import logged_table
    from lakebloom.index.lookup.file_reads import batches_of, reads_of, unindexed_reads
    from lakebloom.tables.parquet.rows import TableRows

    table = plain_table(tmp_path / "t")
    deleted = {0, 3, 10, 55, 99}
    table.commit(table.again(table.add("a.parquet", keys(*range(100))), table.inline(deleted)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", granularity=granularity)
    snapshot = indexes.open()._reader(NAME).snapshot()
    current = logged_table(snapshot.commit.table, {})
    record, listed = current.record, current.list_files({})
    rows = TableRows(record.locations, record.schema, (), {}, logged=current.logged)

    def read(reads: Any, names: list[str]) -> list[pa.RecordBatch]:
        return [batch for each in reads for batch in batches_of(rows, each, rows.schema_of(names), {})]

    live = [key for key in range(100) if key not in deleted]
    whole = read(unindexed_reads(listed), ["k"])
    assert [key for batch in whole for key in batch["k"].to_pylist()] == live
    assert sum(batch.num_rows for batch in read(unindexed_reads(listed), [])) == len(live)
    for key in (10, 11):
        some = read(reads_of(snapshot, col("k") == key, listed, table=record), ["k"])
        found = [value for batch in some for value in batch["k"].to_pylist()]
        assert (key in found) == (key not in deleted)
        assert set(found) <= set(live)


def test_a_file_that_is_gone_is_rejected_by_a_build_and_an_error_for_a_lookup(tmp_path: Path) -> None:
    """A vacuum that went too far: rows are missing, and nobody says that they never were."""
    table = plain_table(tmp_path / "t")
    table.commit(table.add("a.parquet", keys(1)), table.add("b.parquet", keys(2)))
    (tmp_path / "t" / "b.parquet").unlink()
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    assert [rejected.code for rejected in indexes.create("k").skipped] == ["NOT_FOUND"]
    for key in (1, 2):
        with pytest.raises(NotFoundError):
            found_keys(indexes.open(), key)


def test_the_time_of_the_disk_does_not_matter(tmp_path: Path) -> None:
    import os

    table = plain_table(tmp_path / "t")
    table.commit(table.add("a.parquet", keys(1)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    os.utime(tmp_path / "t" / "a.parquet", (1, 1))  # a copy of the table, or a restored backup
    assert found_keys(indexes.open(), 1, unindexed="error") == [1]
    assert not indexes.refresh().committed


def test_a_file_that_is_added_again_with_another_time_is_another_file(tmp_path: Path) -> None:
    table = plain_table(tmp_path / "t")
    added = table.add("a.parquet", keys(1))
    table.commit(added)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    other = table.add("a.parquet", keys(7))
    other["add"]["modificationTime"] += 5
    table.commit(table.remove(added))
    table.commit(other)
    assert found_keys(indexes.open(), 7) == [7]
    with pytest.raises(IndexStateError):
        found_keys(indexes.open(), 7, unindexed="error")
    indexes.refresh()
    assert found_keys(indexes.open(), 7, unindexed="error") == [7]


def test_a_table_in_an_object_store_costs_one_request_where_nothing_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import uuid

    from lakebloom.index.build.create import create_index
    from lakebloom.index.current_table import delta_record
    from lakebloom.storage import open_storage
    from lakebloom.tables.listing import objects

    table = plain_table(tmp_path / "t", features=("deletionVectors", "v2Checkpoint"))
    for number in range(5):
        table.commit(table.again(table.add(f"{number}.parquet", keys(number, 9)), table.stored([0])[0]))
    table.checkpoint_v2("json")
    uri = f"memory://{uuid.uuid4().hex}/lake/t"
    storage = open_storage(uri)

    def copy() -> None:
        for path in (tmp_path / "t").rglob("*"):
            if path.is_file():
                storage.write(str(path.relative_to(tmp_path / "t")), path.read_bytes())

    copy()
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    create_index(indexes._shop(), delta_record(uri, {}), BloomIndexConfig(NAME, ["k"]))
    lake = indexes.open()
    assert found_keys(lake, 9) == [9] * 5
    assert found_keys(lake, 2) == []
    requests: list[str] = []
    for name in ("stat_file", "find_below", "names_after", "first_below"):
        whole = getattr(objects, name)
        monkeypatch.setattr(
            objects, name, lambda uri, *rest, whole=whole, **more: (requests.append(uri), whole(uri, *rest, **more))[1]
        )
    assert found_keys(lake, 1234) == []
    assert requests == [f"{uri}/_delta_log/{6:020}.json"]
    table.commit(table.add("new.parquet", keys(1234)))
    copy()
    assert found_keys(lake, 1234) == [1234]

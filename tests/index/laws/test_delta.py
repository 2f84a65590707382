"""Delta tables: a lookup in any version is what a scan of that version gives, whatever happened to the table."""

from __future__ import annotations

import random
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
    LakebloomError,
    NotFoundError,
    UnsupportedSourceError,
)
from tests.index.delta_lake import NAME, Column, DeltaIndexes, Model, ordered
from tests.tables.formats.delta.hand_table import HandTable, field, mapped
from tests.tables.formats.delta.judge import judged_rows

if TYPE_CHECKING:
    from pathlib import Path


class History:
    """A random history of a table."""

    def __init__(self, root: Path, seed: int, mode: str) -> None:
        self.model, self.random = Model(root, mode=mode), random.Random(seed)
        self.next = 0
        self.numbers = 3
        self.append()

    def _rows(self) -> list[dict[str, Any]]:
        count = self.random.randint(1, 12)
        self.next += count
        stored = [column for column in self.model.columns if column.physical != "p"]
        return [
            {column.physical: self._value(column, key) for column in stored}
            for key in range(self.next - count, self.next)
        ]

    def _value(self, column: Column, key: int) -> Any:
        if column.kind == "integer":
            return key % 100
        if column.kind == "long":
            return key % 100 + (1 << 40) * (key % 2)
        return None if key % 7 == 0 else f"{column.number}-{key % 20}"

    def append(self) -> None:
        self.model.append(self._rows(), self.random.choice(["a", "b c", None, "100%"]))

    def delete(self) -> None:
        if self.model.files:
            file = self.random.choice(self.model.files)
            rows = {number for number in range(len(file.rows)) if self.random.random() < 0.4}
            self.model.delete(file, rows, inline=self.random.random() < 0.5)

    def drop_file(self) -> None:
        if len(self.model.files) > 1:
            self.model.drop_file(self.random.choice(self.model.files))

    def restore(self) -> None:
        self.model.restore(self.random.randrange(len(self.model.versions)))

    def rename(self) -> None:
        column = self.random.choice(self.model.columns)
        taken = {other.name for other in self.model.columns}
        column.name = self.random.choice([name for name in ("k", "s", "p", "x", "y", "z") if name not in taken])
        self.model.alter()

    def drop_and_add(self) -> None:
        """Give the name of a column to another one: values that it had before must not come back."""
        dropped = self.random.choice([column for column in self.model.columns if column.physical != "p"])
        self.numbers += 1
        self.model.columns.remove(dropped)
        added = Column(dropped.name, f"col-{self.numbers}", self.numbers, self.random.choice(["integer", "string"]))
        self.model.columns.append(added)
        self.model.alter()

    def widen(self) -> None:
        for column in self.model.columns:
            if column.kind == "integer":
                column.kind = "long"
                self.model.alter()
                return

    def checkpoint(self) -> None:
        self.model.hand.checkpoint(self.random.choice([0, 2]))

    def step(self) -> None:
        usual = [self.append, self.append, self.append, self.delete, self.delete, self.drop_file, self.restore]
        self.random.choice([*usual, self.rename, self.drop_and_add, self.widen, self.checkpoint])()


def compare(lake: Lakebloom, history: History, version: int | None) -> None:
    """Ask for a value of every column, and compare with the model."""
    number = len(history.model.versions) - 1 if version is None else version
    columns, rows = history.model.versions[number][0], history.model.rows(number)
    for column in columns:
        values = [row[column.name] for row in rows if row[column.name] is not None]
        for value in {*history.random.sample(values, min(2, len(values))), history._value(column, 1) or "?"}:
            if column.kind in ("integer", "long") != isinstance(value, int):
                continue
            found = lake.lookup(NAME, col(column.name) == value, version=version)
            expected = [row for row in rows if row[column.name] == value]
            assert ordered(found.to_pylist()) == ordered(expected), (number, column, value)


@pytest.mark.parametrize(("seed", "mode"), [(1, "name"), (2, "name"), (3, "name"), (4, "id"), (5, "id")])
def test_a_random_history_equals_its_model_at_every_version(tmp_path: Path, seed: int, mode: str) -> None:
    history = History(tmp_path / "t", seed, mode)
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", "s", granularity=history.random.choice(["file", "row_group"]))
    lake = indexes.open()
    for number in range(40):
        history.step()
        if number % 4 == 0:
            indexes.refresh(history.random.choice(["quick", "quick", "full"]))
        compare(lake, history, None)
        compare(lake, history, history.random.randrange(len(history.model.versions)))
    assert indexes.open().verify_index(NAME).false_negatives == 0


@pytest.mark.parametrize("seed", [11, 12])
def test_the_model_is_right_about_what_deltalake_reads(tmp_path: Path, seed: int) -> None:
    """deltalake does not widen types and has no ids; everything else of the model it judges."""
    history = History(tmp_path / "t", seed, "name")
    history.model.hand.protocol["protocol"]["readerFeatures"].remove("typeWidening")
    history.model.hand.protocol["protocol"]["writerFeatures"].remove("typeWidening")
    history.model.commit(history.model.hand.protocol)
    history.widen = lambda: None  # type: ignore[method-assign]
    for _ in range(25):
        history.step()
        assert ordered(judged_rows(tmp_path / "t")) == ordered(history.model.rows(len(history.model.versions) - 1))


def plain_table(root: Path, **options: Any) -> HandTable:
    return HandTable(root, [field("k", "long"), field("s", "string")], **options)


def keys(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64()), "s": pa.array([f"s{value}" for value in values])})


def found_keys(lake: Lakebloom, value: int, **options: Any) -> list[int]:
    return sorted(lake.lookup(NAME, col("k") == value, **options)["k"].to_pylist())


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


def test_a_dropped_column_does_not_answer_for_a_new_one_of_its_name(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([{"k": 1, "s": "old"}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", "s")
    lake = indexes.open()
    model.columns[1] = Column("s", "col-9", 9, "string")
    model.alter()
    model.append([{"k": 2, "col-9": "new"}])
    for refresh in (False, True):
        if refresh:
            indexes.refresh()
        assert lake.lookup(NAME, col("s") == "old").num_rows == 0
        assert lake.lookup(NAME, col("s") == "new")["k"].to_pylist() == [2]
        assert lake.lookup(NAME, "s is null")["k"].to_pylist() == [1]
        assert lake.lookup(NAME, col("s") == "old", version=1)["k"].to_pylist() == [1]


def test_a_renamed_column_keeps_its_index(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    for number in range(8):
        model.append([{"k": number, "s": f"s{number}"}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    model.columns[0].name = "Key of it"
    model.alter()
    lake = indexes.open()
    assert lake.candidates(NAME, col("`Key of it`") == 3).num_rows == 1
    assert lake.lookup(NAME, "`Key of it` = 3")["s"].to_pylist() == ["s3"]
    assert lake.lookup(NAME, "k = 3", version=3).num_rows == 0
    assert lake.lookup(NAME, "k = 3", version=4).num_rows == 1
    with pytest.raises(LakebloomError, match="no column k"):
        lake.lookup(NAME, col("k") == 3)
    report = lake.explain(NAME, "`Key of it` = 3")
    assert report.scans[0].files_kept == 1


def test_widened_values_are_never_cut(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    model.append([{"k": 5, "s": "small"}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    model.columns[0].kind = "long"
    model.alter()
    large = 5 + (1 << 32)
    model.append([{"k": large, "s": "large"}, {"k": 5, "s": "small too"}])
    lake = indexes.open()
    for refresh in (False, True):
        if refresh:
            assert indexes.refresh().files == 1
        assert lake.lookup(NAME, col("k") == large)["s"].to_pylist() == ["large"]
        assert sorted(lake.lookup(NAME, col("k") == 5)["s"].to_pylist()) == ["small", "small too"]
        assert lake.lookup(NAME, col("k") == 5, version=1)["s"].to_pylist() == ["small"]
    assert {segment.types for segment in indexes.entry().segments} == {("int",), ("bigint",)}
    assert lake.candidates(NAME, col("k") == 6).num_rows == 0


def test_nested_columns_are_found_by_physical_names_and_ids(tmp_path: Path) -> None:
    for mode in ("name", "id"):
        root = tmp_path / mode
        inner = [
            {"name": "now", "type": "long", "nullable": True,
             "metadata": {"delta.columnMapping.physicalName": "was", "delta.columnMapping.id": 3}},
            {"name": "was", "type": "string", "nullable": True,
             "metadata": {"delta.columnMapping.physicalName": "col-4", "delta.columnMapping.id": 4}},
        ]  # fmt: skip
        struct = {"type": "struct", "fields": inner}
        array = {"type": "array", "elementType": struct, "containsNull": True}
        mapping = {"delta.columnMapping.mode": mode}
        keys_of = [("s", struct, "p1", 1), ("a", array, "p2", 2)]
        schema = [
            {"name": name, "type": kind, "nullable": True,
             "metadata": {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}}
            for name, kind, physical, number in keys_of
        ]  # fmt: skip
        table = HandTable(root / "t", schema, features=["columnMapping"], configuration=mapping)
        names = {"p1": "p1", "p2": "p2", "was": "was", "col-4": "col-4"} if mode == "name" else {
            "p1": "x", "p2": "y", "was": "col-4", "col-4": "was"
        }  # fmt: skip
        stored = pa.struct(
            [
                pa.field(names["was"], pa.int64(), metadata={"PARQUET:field_id": "3"}),
                pa.field(names["col-4"], pa.string(), metadata={"PARQUET:field_id": "4"}),
            ]
        )
        file_schema = pa.schema(
            [
                pa.field(names["p1"], stored, metadata={"PARQUET:field_id": "1"}),
                pa.field(names["p2"], pa.list_(stored), metadata={"PARQUET:field_id": "2"}),
            ]
        )
        value = {names["was"]: 7, names["col-4"]: "seven"}
        table.commit(table.add("f.parquet", pa.table([[value, None], [[value], []]], schema=file_schema)))
        indexes = DeltaIndexes(root, root / "t")
        indexes.create("s.now")
        expected = {"now": 7, "was": "seven"}
        found = indexes.open().lookup(NAME, col("s.now") == 7).to_pylist()
        assert found == [{"s": expected, "a": [expected]}], mode
        assert indexes.open().lookup(NAME, "s.was = 'seven'").num_rows == 1
        assert indexes.open().candidates(NAME, col("s.now") == 8).num_rows == 0


def test_files_without_ids_are_refused_where_ids_decide(tmp_path: Path) -> None:
    model = Model(tmp_path / "t", mode="id")
    model.append([{"k": 1}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    bare = model.hand.add("bare.parquet", pa.table({"k": pa.array([1], pa.int32()), "s": ["x"]}), {"p": "a"})
    model.hand.commit(bare)
    with pytest.raises(DataFileError, match="no ids"):
        indexes.open().lookup(NAME, col("k") == 1)
    assert ["no ids" in str(rejected) for rejected in indexes.refresh().skipped] == [True]


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


def test_a_global_filter_is_that_of_the_column_that_is_meant_now(tmp_path: Path) -> None:
    from lakebloom.errors import ColumnNotFoundError, StaleIndexError
    from lakebloom.index.current_table import logged_table
    from lakebloom.index.query.join_filters import JoinFilters
    from lakebloom.index.settings import Settings

    model = Model(tmp_path / "t")
    model.append([{"k": 1, "s": "old"}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", "s", global_filter=True)
    model.columns[0].name = "key"
    model.columns[1] = Column("s", "col-9", 9, "string")
    model.alter()
    model.append([{"k": 2, "col-9": "new"}])
    indexes.refresh()
    snapshot = indexes.open()._reader(NAME).snapshot()

    def filter_of(column: str) -> Any:
        table = logged_table(snapshot.commit.table, {})
        return JoinFilters({}).of(snapshot, (column,), table.list_files({}), Settings(), table.record)

    assert filter_of("key").filter.might_contain(pa.array([1, 2], pa.int32())).all()
    with pytest.raises(ColumnNotFoundError):
        filter_of("s")
    model.columns[0].kind = "long"
    model.alter()
    with pytest.raises(StaleIndexError, match="bigint"):
        filter_of("key")


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


def test_a_table_that_begins_to_map_its_columns_keeps_its_index(tmp_path: Path) -> None:
    """From then on files call the old columns by their old names, whatever they are called in the table."""
    table = HandTable(tmp_path / "t", [field("k", "long"), field("s", "string")], features=["columnMapping"])
    table.commit(*(table.add(f"{number}.parquet", keys(number)) for number in range(4)))
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k", "s")
    lake = indexes.open()
    table._configuration = {"delta.columnMapping.mode": "name"}
    table.commit(table.schema([mapped("k", "long", "k", 1), mapped("s", "string", "s", 2)]))
    assert lake.candidates(NAME, col("k") == 2).num_rows == 1
    table.commit(table.schema([mapped("s", "long", "k", 1), mapped("k", "string", "s", 2)]))  # they change names
    for refresh in (False, True):
        if refresh:
            indexes.refresh()
        assert lake.lookup(NAME, col("s") == 2).to_pylist() == [{"s": 2, "k": "s2"}]
        assert lake.lookup(NAME, col("k") == "s3").to_pylist() == [{"s": 3, "k": "s3"}]
        assert lake.candidates(NAME, (col("s") == 2) & (col("k") == "s2")).num_rows == 1
        assert lake.lookup(NAME, "k = 2 and s = 's2'", version=1).num_rows == 1
    assert indexes.refresh("full").version
    assert lake.verify_index(NAME).false_negatives == 0

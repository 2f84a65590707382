"""Lookups return what a full scan returns, whatever has happened to the table since it was indexed."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.predicate.prune import row_groups, shorten
from lakebloom.tables.parquet import rows as rows_module
from tests.examples import most
from tests.index.lake import NAME, Lake, Question, assert_answers, columns_of, questions

if TYPE_CHECKING:
    from pathlib import Path

QUESTIONS = questions([5, 25, 45, 65, 999])

needs_filters_of_arrow = pytest.mark.skipif(
    "bloom_filter_options" not in inspect.signature(pq.write_table).parameters, reason="this PyArrow writes no filters"
)


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["file", "row_group", 7])
def test_through_every_change_of_the_table(lake: Lake, granularity: str | int) -> None:
    lake.fill(range(3))
    lake.create(BloomIndexConfig(NAME, ["k", "s"], granularity=granularity))
    reader = lake.open()
    assert_answers(lake, QUESTIONS, reader)
    lake.fill([3])
    assert_answers(lake, QUESTIONS, reader)
    lake.write("f1", columns_of([5, 999, 25]))
    assert_answers(lake, QUESTIONS, reader)
    (lake.table / "f2.parquet").rename(lake.table / "moved.parquet")
    assert_answers(lake, QUESTIONS, reader)
    lake.refresh()
    assert_answers(lake, QUESTIONS, reader)
    shutil.copy2(lake.table / "f3.parquet", lake.table / "copy.parquet")
    assert_answers(lake, QUESTIONS, reader)


def test_files_that_the_index_does_not_know(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    lake.fill([2])
    lake.write("f1", columns_of([25, 45]))
    reader = lake.open()
    asked = col("k").isin([5, 25, 45])
    assert sorted(reader.lookup(NAME, asked)["k"].to_pylist()) == [5, 25, 45, 45]
    assert reader.lookup(NAME, asked, unindexed="skip")["k"].to_pylist() == [5]
    with pytest.raises(errors.IndexStateError, match="2 files of the table are unindexed"):
        reader.lookup(NAME, asked, unindexed="error")
    with pytest.raises(errors.InvalidArgumentError, match="unindexed must be"):
        reader.lookup(NAME, asked, unindexed="ignore")  # type: ignore[arg-type]
    lake.refresh()
    assert sorted(reader.lookup(NAME, asked, unindexed="error")["k"].to_pylist()) == [5, 25, 45, 45]


def test_columns_and_limits(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    reader = lake.open()
    assert reader.lookup(NAME, col("k") == 25).schema.names == ["k", "s", "n"]
    assert reader.lookup(NAME, col("k") == 25, ["s"]).to_pylist() == [{"s": "s25"}]
    assert reader.lookup(NAME, col("k") == 999, ["s", "k"]).schema.names == ["s", "k"]
    assert reader.lookup(NAME, col("n").is_null(), limit=3).num_rows == 3
    assert reader.lookup(NAME, col("n").is_null(), limit=0).num_rows == 0
    assert reader.lookup(NAME, col("n").is_null(), limit=1000).num_rows == 12
    with pytest.raises(errors.InvalidArgumentError, match="limit"):
        reader.lookup(NAME, col("k") == 25, limit=-1)
    with pytest.raises(errors.ColumnNotFoundError, match="no column nope"):
        reader.lookup(NAME, col("k") == 25, ["nope"])
    with pytest.raises(errors.InvalidArgumentError, match="whole columns"):
        reader.lookup(NAME, col("k") == 25, ["a.b"])


def test_a_table_that_is_gone(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    shutil.rmtree(lake.table)
    with pytest.raises(errors.NotFoundError):
        lake.open().lookup(NAME, col("k") == 5)


def test_other_formats_have_candidates_but_no_lookup(lake: Lake) -> None:
    import msgspec

    lake.fill(range(2))
    lake.create()
    log = lake.catalog().index(NAME).log
    log.commit(lambda base: msgspec.structs.replace(base, table=msgspec.structs.replace(base.table, format="orc")))
    assert lake.kept(col("k") == 25) == {("f1", 0)}
    with pytest.raises(errors.UnsupportedSourceError, match="Parquet files only; found a orc table"):
        lake.open().lookup(NAME, col("k") == 25)


VALUES = st.one_of(st.none(), st.integers(-3, 12))
FILES = st.lists(st.lists(VALUES, max_size=12), min_size=1, max_size=4).filter(lambda files: any(files))


@pytest.mark.slow
@settings(max_examples=most(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=FILES,
    after=FILES,
    granularity=st.one_of(st.sampled_from(["file", "row_group"]), st.integers(1, 5)),
    row_group_size=st.integers(1, 5),
    fpp=st.sampled_from([0.5, 0.01, 1e-5]),
    mode=st.sampled_from([None, "quick", "full"]),
    asked=st.lists(st.integers(-4, 13), min_size=1, max_size=4),
)
def test_any_table(
    tmp_path: Path,
    before: list[list[int | None]],
    after: list[list[int | None]],
    granularity: Any,
    row_group_size: int,
    fpp: float,
    mode: Any,
    asked: list[int],
) -> None:
    """Even with filters that are wrong half the time."""
    home = tmp_path / str(len(list(tmp_path.iterdir())))
    lake = Lake(home, {"k": "bigint"})
    for number, values in enumerate(before):
        lake.write(f"f{number}", {"k": pa.array(values, pa.int64())}, row_group_size=row_group_size)
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=fpp, granularity=granularity))
    for number, values in enumerate(after, start=len(before) // 2):
        lake.write(f"f{number}", {"k": pa.array(values, pa.int64())}, row_group_size=row_group_size)
    if mode is not None:
        lake.refresh(mode)
    chosen = set(asked)
    assert_answers(
        lake,
        [
            Question(col("k") == asked[0], lambda row: row["k"] == asked[0]),
            Question(col("k").isin(asked), lambda row: row["k"] in chosen),
            Question(col("k").is_null(), lambda row: row["k"] is None),
            Question(~(col("k") == asked[0]), lambda row: row["k"] is not None and row["k"] != asked[0]),
        ],
    )


def test_a_table_is_listed_once_while_nothing_changes(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.fill(range(3))
    lake.create()
    reader = lake.open()
    assert reader.lookup(NAME, col("k") == 25).num_rows == 1
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listed.append(str(path)), scandir(path))[1])
    assert reader.lookup(NAME, col("k") == 5).num_rows == 1
    assert reader.lookup(NAME, col("k") == 999).num_rows == 0
    assert listed == []
    lake.write("f9", columns_of([999]))
    assert reader.lookup(NAME, col("k") == 999).num_rows == 1
    assert listed != []
    assert lake.open().lookup(NAME, col("k") == 5, unindexed="skip").num_rows == 1
    assert all("indexes" in path or path == str(lake.table) for path in listed)


def test_only_candidates_are_opened_and_only_matches_are_read_whole(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.fill(range(3))
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=1e-6))
    reader = lake.open()
    opened: list[str] = []
    taken: list[list[str]] = []
    open_source, take = rows_module.open_source, rows_module.OpenFile.take
    monkeypatch.setattr(rows_module, "open_source", lambda uri, *rest: (opened.append(uri), open_source(uri, *rest))[1])

    def watched(self: Any, group: int, numbers: Any, schema: pa.Schema, **options: bool) -> pa.Table:
        taken.append(schema.names)
        return take(self, group, numbers, schema, **options)

    monkeypatch.setattr(rows_module.OpenFile, "take", watched)
    assert reader.lookup(NAME, col("k") == 25).num_rows == 1
    assert [uri.rpartition("/")[2] for uri in opened] == ["f1.parquet"]
    assert len(taken) == 1
    assert "k" not in taken[0]
    opened.clear()
    assert reader.lookup(NAME, (col("k") == 25) & (col("s") == "nothing")).num_rows == 0
    assert len(opened) == 1
    assert len(taken) == 1  # no row matched: the other columns stay where they are


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["file", "row_group", 7])
def test_long_lists_are_asked_of_each_file_in_part(
    lake: Lake, granularity: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists are cut down for each file; what they find must not change, in any place of a predicate."""
    monkeypatch.setattr(shorten, "SHORTENED_PAIRS", 200)
    lake.fill(range(5))
    lake.create(BloomIndexConfig(NAME, ["k", "s"], granularity=granularity, fpp=0.2))
    reader = lake.open()
    k, n, many, others = col("k"), col("n"), list(range(3, 400, 4)), list(range(0, 90, 7))
    names = [f"s{number}" for number in others]
    in_many, in_others = (lambda row: row["k"] in many), (lambda row: row["k"] in others)
    asked = [
        Question(k.isin(many), in_many),
        Question(k.isin([*many, None]), in_many),
        Question(k.isin([float(value) for value in many]), in_many),
        Question(k.isin(many) & k.isin(others), lambda row: in_many(row) and in_others(row)),
        Question(k.isin(many) & col("s").isin(names), lambda row: in_many(row) and row["s"] in names),
        Question(k.isin(many) | k.isin(others), lambda row: in_many(row) or in_others(row)),
        Question(k.isin(many) & ~k.isin(others), lambda row: in_many(row) and not in_others(row)),
        Question(~k.isin(many), lambda row: not in_many(row)),
        Question(~(k.isin(many) | n.is_null()), lambda row: not in_many(row) and row["n"] is not None),
        Question(k.isin(many) | n.is_null(), lambda row: in_many(row) or row["n"] is None),
        Question(n.isin(range(1, 20)) & k.isin(many), lambda row: row["n"] in range(1, 20) and in_many(row)),
        Question(~n.isin(range(1, 20)), lambda row: row["n"] == 0),
    ]
    assert_answers(lake, asked, reader)
    lake.write("f1", columns_of(range(0, 90, 3)))
    assert_answers(lake, asked, reader)


@pytest.mark.slow
@needs_filters_of_arrow
def test_filters_inside_new_files_are_asked_before_their_pages(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "EMBEDDED_FILE_BYTES", 0)
    lake.fill(range(2))
    lake.create()
    options = {"k": {"ndv": 10, "fpp": 1e-4}, "s": {"ndv": 10, "fpp": 1e-4}}
    lake.write("new", columns_of(range(100, 140)), row_group_size=10, bloom_filter_options=options)
    reader = lake.open()
    read: list[list[int]] = []
    original = rows_module.OpenFile.read

    def watched(self: Any, groups: list[int], *rest: Any, **options: bool) -> pa.Table:
        if self.file.uri.endswith("/new.parquet"):
            read.append(groups)
        return original(self, groups, *rest, **options)

    monkeypatch.setattr(rows_module.OpenFile, "read", watched)
    asked = {
        col("k") == 125: [[2]],
        col("k").isin([100, 139, 7]): [[0], [3]],
        (col("k") == 125) & (col("s") == "s125"): [[2]],
        (col("k") == 125) & (col("s") == "s101"): [],
        (col("k") == 125) | (col("s") == "s101"): [[0], [1], [2], [3]],
        col("n") == 1: [[0], [1], [2], [3]],
        col("k") == 125.5: [[0], [1], [2], [3]],
    }
    for predicate, groups in asked.items():
        read.clear()
        reader.lookup(NAME, predicate)
        assert read == groups, predicate
    assert_answers(lake, questions([5, 105, 125, 139, 999]), reader)


@needs_filters_of_arrow
def test_filters_over_nanoseconds_are_not_asked_for_microseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads a timestamp of 7001 ns as one of 7 us."""
    monkeypatch.setattr(row_groups, "EMBEDDED_FILE_BYTES", 0)
    lake = Lake(tmp_path, {"t": "timestamp"})
    lake.write("old", {"t": pa.array([1], pa.timestamp("us", "UTC"))})
    lake.create(BloomIndexConfig(NAME, ["t"]))
    times = pa.array([7001], pa.timestamp("ns", "UTC"))
    lake.write("new", {"t": times}, use_deprecated_int96_timestamps=True, bloom_filter_options={"t": True})
    seven = pa.scalar(7, pa.timestamp("us", "UTC")).as_py()
    assert lake.open().lookup(NAME, col("t") == seven).num_rows == 1


@pytest.mark.slow
def test_a_process_that_looks_one_key_up_loads_little(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    script = f"""
import sys
from lakebloom import Lakebloom, col
lake = Lakebloom(location={lake.location!r})
assert lake.lookup({NAME!r}, col("k") == 25)["s"].to_pylist() == ["s25"]
assert lake.lookup({NAME!r}, col("s") == "s25").num_rows == 1
assert lake.lookup({NAME!r}, col("k") == -1).num_rows == 0
heavy = ("numba", "pandas", "pyspark", "rich", "obstore", "IPython", "lakebloom.index.build.plan")
heavy += ("pyarrow.compute", "pyarrow.parquet", "pyarrow.fs", "ssl")
# Thrift's decoder in C finds encrypted columns; it loads what it needs, and the codec in Python is not part of that.
needed = ("Thrift", "protocol", "protocol.TBase", "protocol.fastbinary", "transport", "transport.TTransport")
thrift = {{name for name in sys.modules if name.startswith("thrift.")}} - {{f"thrift.{{part}}" for part in needed}}
print([*(name for name in heavy if name in sys.modules), *thrift])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["file", "row_group"])
def test_rows_without_columns(lake: Lake, granularity: str) -> None:
    lake.fill(range(3))
    lake.create(BloomIndexConfig(NAME, ["k"], granularity=granularity))
    lake.fill([3])  # not in the index
    reader = lake.open()
    for predicate in (col("k").isin([1, 25, 26, 61]), col("k") >= 0, col("k") == -1, ~(col("k") == 5)):
        whole = reader.lookup(NAME, predicate)
        for limit in (None, 0, 2, whole.num_rows, whole.num_rows + 3):
            empty = reader.lookup(NAME, predicate, columns=[], limit=limit)
            assert empty.num_columns == 0
            assert empty.num_rows == reader.lookup(NAME, predicate, limit=limit).num_rows


def test_columns_in_another_case_and_twice(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create(BloomIndexConfig(NAME, ["k"]))
    reader = lake.open()
    assert reader.lookup(NAME, col("K") == 1, columns=["K"]).column_names == ["k"]
    assert reader.lookup(NAME, "K = 1").num_rows == 1
    assert reader.candidates(NAME, col("K") == 1).num_rows == 1
    for twice in (["k", "k"], ["k", "K"], ["K", "s", "`k`"]):
        with pytest.raises(errors.InvalidArgumentError, match="column k is named twice"):
            reader.lookup(NAME, col("k") == 1, columns=twice)
    for wrong in (col("kk") == 1, col("k.x") == 1):
        with pytest.raises(errors.ColumnNotFoundError, match="has no column"):
            reader.lookup(NAME, wrong)
        with pytest.raises(errors.ColumnNotFoundError, match="has no column"):
            reader.candidates(NAME, wrong)


def test_a_cast_that_fails_says_why(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create(BloomIndexConfig(NAME, ["k"]))
    with pytest.raises(errors.UnsupportedTypeError, match=r"column k, of type bigint, with 'abc' .*type string"):
        lake.open().lookup(NAME, col("k") == "abc")
    lake.write("other", {"k": pa.array(["1"])})
    with pytest.raises(errors.UnsupportedTypeError, match=r"column k of the file .*other\.parquet; found BYTE_ARRAY"):
        lake.open().lookup(NAME, col("k") == 1)

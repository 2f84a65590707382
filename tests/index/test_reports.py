"""What operations return prints as tables: golden text, and escaped HTML."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.display.tables import RecordTable
from lakebloom.errors import InvalidArgumentError, StorageError
from lakebloom.index.build.plan import RejectedFile
from lakebloom.index.build.report import BuildReport
from lakebloom.index.maintain.lifecycle import delete_index, restore_index
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.index.maintain.vacuum import VacuumReport
from lakebloom.index.reports import IndexRecord, VersionRecord
from tests.index.lake import NAME, Lake

GOLDEN = Path(__file__).parent / "golden"
NEW_YEAR_MS = 1_704_067_200_000


@pytest.fixture
def aged(lake: Lake) -> Lake:
    """An index that has been through everything."""
    lake.fill(range(4))
    lake.create(BloomIndexConfig(NAME, ["k", "s"], granularity="row_group"))
    lake.fill([4, 5])
    (lake.table / "f0.parquet").unlink()
    lake.refresh()
    optimize_index(lake.catalog(), NAME)
    lake.refresh("full")
    delete_index(lake.catalog(), NAME)
    restore_index(lake.catalog(), NAME)
    return lake


def same_every_time(record: VersionRecord) -> VersionRecord:
    summary = {key: 1234 if key == "bytes_read" else value for key, value in record.summary.items()}
    return replace(record, timestamp_ms=NEW_YEAR_MS + 1000 * record.version, summary=summary)


def assert_prints(text: str, golden: str) -> None:
    assert f"{text}\n" == (GOLDEN / golden).read_text()


def test_history_prints_as_a_table(aged: Lake) -> None:
    history = aged.open().history(NAME)
    assert_prints(str(RecordTable([same_every_time(record) for record in history])), "history.txt")


def index_record(lake: Lake) -> IndexRecord:
    record = lake.open().index(NAME)
    assert record.source_bytes > 0
    assert record.size_bytes > 0
    return replace(
        record, timestamp_ms=NEW_YEAR_MS, source="file:///table", size_bytes=1_234_567, source_bytes=9_876_543
    )


def test_an_index_prints_its_fields(aged: Lake) -> None:
    assert_prints(str(index_record(aged)), "index.txt")


def test_indexes_print_as_a_table(aged: Lake) -> None:
    record = index_record(aged)
    other = replace(record, name="by_user", state="deleted", columns=("user_id", "s.country"), fpp=1e-6)
    table = RecordTable([record, other])
    assert_prints(str(table), "indexes.txt")
    assert repr(table) == str(table)
    assert str(RecordTable[IndexRecord]([])) == "(none)"


def test_a_build_prints_what_it_skipped() -> None:
    skipped = RejectedFile("file:///table/a.parquet", "DATA_FILE", "[DATA_FILE] could not read it")
    report = BuildReport("i", 3, True, 7, 14, 7000, 1e-5, 123_456, 7890, (skipped,), {"list": 0.25, "build": 12.345})
    assert_prints(str(report), "build.txt")


def test_what_notebooks_show_is_escaped() -> None:
    skipped = RejectedFile("file:///<b>.parquet", "DATA_FILE", "<script>alert(1)</script> & more")
    report = BuildReport("<i>", 1, True, 1, 1, 1, 0.01, 1, 1, (skipped,), {"list & plan": 0.5})
    shown = report._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in shown
    assert "list &amp; plan 0.5" in shown
    table = RecordTable([VacuumReport("<i>", 1, 2), VacuumReport("b&c", 3, 4)])
    assert table._repr_html_().endswith(
        '<table><thead><tr><th scope="col">name</th><th scope="col" class="number">versions removed</th>'
        '<th scope="col" class="number">files removed</th></tr></thead><tbody>'
        '<tr><td>&lt;i&gt;</td><td class="number">1</td><td class="number">2</td></tr>'
        '<tr><td>b&amp;c</td><td class="number">3</td><td class="number">4</td></tr></tbody></table></div>'
    )
    assert "(none)" in RecordTable[VacuumReport]([])._repr_html_()


def test_records_are_a_sequence(aged: Lake) -> None:
    history = aged.open().history(NAME)
    assert [record.version for record in history] == [6, 5, 4, 3, 2, 1]
    assert (len(history), history[0].operation, history[-1].operation) == (6, "restore", "create")


def test_records_become_arrow_and_pandas(aged: Lake) -> None:
    lake = aged.open()
    history = lake.history(NAME).to_arrow()
    assert history["version"].to_pylist() == [record.version for record in lake.history(NAME)]
    indexes = RecordTable([lake.index(NAME), replace(lake.index(NAME), granularity=8192)])
    assert indexes.to_arrow()["granularity"].to_pylist() == ["row_group", "8,192"]  # one type for the whole column
    assert list(indexes.to_pandas()["name"]) == [NAME, NAME]
    assert RecordTable[IndexRecord]([]).to_arrow().num_rows == 0


def test_a_lake_prints_where_it_is_and_what_it_has(aged: Lake) -> None:
    assert repr(aged.open()) == f"Lakebloom at {aged.open().location}, without Spark; indexes: {NAME}"


def test_a_report_is_written_from_python(aged: Lake, tmp_path: Path) -> None:
    page = aged.open().report(NAME, tmp_path / "page.html", "k = 5")
    assert "k = 5" in page.read_text()
    with pytest.raises(StorageError, match="cannot write"):
        aged.open().report(NAME, tmp_path / "nowhere" / "page.html")


@pytest.mark.parametrize("first", ["orders", 5, BloomIndexConfig("i", ["k"])])
def test_what_is_no_session_is_named(first: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"the first argument must be a Spark session; found .*create_index"):
        Lakebloom(first)  # type: ignore[arg-type]


def test_a_condition_may_be_text_wherever_it_may_be_a_tree(aged: Lake) -> None:
    lake = aged.open()
    assert lake.lookup(NAME, "k = 45 AND s IS NOT NULL").equals(
        lake.lookup(NAME, (col("k") == 45) & col("s").is_not_null())
    )
    assert lake.candidates(NAME, "k = 45").equals(lake.candidates(NAME, col("k") == 45))
    with pytest.raises(InvalidArgumentError, match="or be SQL text"):
        lake.lookup(NAME, 45)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="nothing"):
        lake.candidates(NAME, "nothing = 45")


def test_sizes_are_shown_to_the_byte_and_as_people_say_them(lake: Lake) -> None:
    lake.fill(range(40))
    report, opened = lake.create(), lake.open()
    records = [report, opened.index(NAME), opened.history(NAME)[0], opened.status(NAME)[0], opened.verify_index(NAME)]
    shown = "\n".join(str(record) for record in records)
    assert len(re.findall(r"bytes.* \([\d.]+ [kM]B\)", shown)) >= 5, shown
    assert not re.search(r"bytes\D{0,10}\d{1,3},\d{3}(?! bytes|,| \()", shown), shown
    assert "kB)" in opened.indexes()._repr_html_()
    assert opened.indexes().to_arrow()["size_bytes"].to_pylist() == [opened.index(NAME).size_bytes]

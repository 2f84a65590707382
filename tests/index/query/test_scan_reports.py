"""What explain and last_query print: golden text, escaped HTML, and figures that fit together."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from lakebloom.index.query.query_reports import JoinFigures, LastQuery, QueryReport, ScanFigures
from lakebloom.index.query.scan_reports import FileState, IndexReport, PartReport, ScanReport, Use
from lakebloom.predicate.reasons import Reason

GOLDEN = Path(__file__).parents[1] / "golden"
KEPT, SKIPPED, UNINDEXED = FileState.KEPT, FileState.SKIPPED, FileState.UNINDEXED

FULL = ScanReport(
    table="lake.events",
    use=Use.FULL,
    predicate="user_id = 'x'",
    indexes=(IndexReport("by_user", 3, 4, 250, 5_120),),
    parts=(PartReport("user_id = 'x'", "by_user", "user_id", None, 250, 249, 0.0025),),
    states=(*(SKIPPED,) * 120, KEPT, *(SKIPPED,) * 129),
    sizes=(24_000,) * 250,
)
PARTIAL = ScanReport(
    table="/lake/events",
    use=Use.PARTIAL,
    predicate="a = 1 AND b > 5",
    indexes=(
        IndexReport("by_a", 1, 1, 2, 900),
        IndexReport("by_b", reason=Reason.INDEX_UNREADABLE, message="[CORRUPT_INDEX] cannot read <it>"),
    ),
    parts=(
        PartReport("a = 1", "by_a", "a", None, 2, 1, 0.0),
        PartReport("b > 5", None, "b", Reason.NOT_SUPPORTED),
        PartReport("c = 2", None, "c", Reason.NO_INDEX),
    ),
    reasons=(Reason.STALE_FILES,),
    states=(KEPT, SKIPPED, UNINDEXED, UNINDEXED),
    sizes=(1, 2, 3, 4),
    files_stale=1,
)
DISABLED = ScanReport(
    table="t",
    use=Use.UNUSED,
    predicate="a = 1 OR b = 2",
    indexes=(IndexReport("by_a", 1, 1, 1, 10), IndexReport("by_b", 1, 1, 1, 10), IndexReport("by_a + by_b", 0, 0, 1)),
    parts=(PartReport("a = 1", "by_a + by_b", "a", None, 1, 1, 0.1),),
    reasons=(Reason.DISABLED,),
    states=(SKIPPED,),
    sizes=(1_234_567,),
)
NOTHING_SKIPPED = ScanReport(
    table="events",
    use=Use.FULL,
    predicate="user_id IN ('a', 'b', 'c') AND day = DATE '2024-01-01'",
    indexes=(IndexReport("by_user", 3, 1, 300, 5_120),),
    parts=(
        PartReport("user_id IN ('a', 'b', 'c')", "by_user", "user_id", None, 4, 0, 0.5, "row group"),
        PartReport("amount > 5", "by_user", "amount", None, 4, 3, dropped_by_bounds=3),
        PartReport("amount IN (7, 9)", "by_user", "amount", None, 1_234, 1_200, 0.5, dropped_by_bounds=1_100),
        PartReport("day = DATE '2024-01-01'", None, None, Reason.PARTITIONS),
    ),
    partition_predicate="day = DATE '2024-01-01'",
    files_of_table=300,
    states=(KEPT, KEPT),
    sizes=(1000, 1000),
)
UNUSED = ScanReport("u", Use.UNUSED, reasons=(Reason.NO_MATCHING_INDEX,), states=(KEPT,) * 3, sizes=(1,) * 3)
CACHED = ScanReport("Spark's cache", Use.UNUSED, reasons=(Reason.CACHED,))


def test_a_report_prints_as_text() -> None:
    report = QueryReport((FULL, PARTIAL, NOTHING_SKIPPED, DISABLED, UNUSED, CACHED))
    assert f"{report}\n" == (GOLDEN / "explain.txt").read_text()


def test_a_query_without_files() -> None:
    assert str(QueryReport(())) == "this query reads no files"


def test_html_is_escaped() -> None:
    page = QueryReport((PARTIAL,))._repr_html_()
    assert page.startswith('<div class="lakebloom">')
    assert "&lt;it&gt;" in page
    assert "<it>" not in page


def test_notebooks_show_what_terminals_show() -> None:
    page = PARTIAL._repr_html_()
    words = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for said in (PARTIAL.summary, *(part.text for part in PARTIAL.parts)):
        assert said in words
    assert page.count('<rect class="skipped"') == PARTIAL.states.count(FileState.SKIPPED)
    assert page.count('<rect class="unindexed"') == PARTIAL.files_not_covered
    last = LastQuery("collect", 1.5, [ScanFigures("<t>", 1, 2, 3, 10, 1)], [JoinFigures("i", "k", 10, 4)])
    assert "&lt;t&gt;" in last._repr_html_()
    assert ">6</td>" in last._repr_html_()
    assert "this query reads no files" in QueryReport(())._repr_html_()


def test_an_answer_that_skips_nothing_is_not_taken_for_a_full_scan() -> None:
    answered, unused = NOTHING_SKIPPED.summary, UNUSED.summary
    assert "answered the whole condition" in answered
    assert "no index was used" in unused
    for text in (str(QueryReport((NOTHING_SKIPPED, UNUSED))), NOTHING_SKIPPED._repr_html_(), UNUSED._repr_html_()):
        assert not re.search(r"\b(FULL|UNUSED|NOT_SUPPORTED)\b", text)


def test_partitions_are_told_once() -> None:
    for text in (str(QueryReport((NOTHING_SKIPPED,))), NOTHING_SKIPPED._repr_html_()):
        words = html.unescape(text)
        assert words.count("partitions answer day = DATE '2024-01-01': 2 of the table's 300 files left") == 1
        assert words.count("300") == 1


def test_figures_fit_together() -> None:
    assert (PARTIAL.files, PARTIAL.files_kept, PARTIAL.files_not_covered) == (4, 3, 2)
    assert (PARTIAL.bytes, PARTIAL.bytes_kept) == (10, 8)


@pytest.mark.parametrize(
    ("files", "each", "lines"), [(1, 1, 1), (100, 1, 1), (1000, 1, 10), (1001, 2, 6), (10**5, 100, 10)]
)
def test_the_map_has_at_most_ten_lines(files: int, each: int, lines: int) -> None:
    scan = ScanReport("t", Use.FULL, states=(*(SKIPPED,) * (files - 1), KEPT), sizes=(1,) * files)
    assert scan.files_for_each_character == each
    assert len(scan.skip_map) == lines
    text = "".join(scan.skip_map)
    assert len(text) == -(-files // each)
    assert text.rstrip("#") == "." * (len(text) - 1)


def test_a_character_of_several_files_shows_the_one_that_is_read() -> None:
    states = (UNINDEXED, SKIPPED, KEPT, UNINDEXED, *(SKIPPED,) * 1996)
    assert ScanReport("t", Use.FULL, states=states, sizes=(1,) * 2000).skip_map[0].startswith("?#.")


def test_the_last_query_prints_as_text() -> None:
    query = LastQuery("count", 0.1234, (ScanFigures("t", 1, 23_573, 2_500, 40, 1),))
    assert str(query) == "count took 0.123 s\n  t: 39 of 40 files skipped; read 1 file, 23.6 kB, 2,500 rows"

"""The pages that `make bench` writes, and when a bar counts as reached."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import msgspec
import pytest
from bench.plot import latency_svg
from bench.report import page
from bench.results import Matrix, Outcome, Point, Result, Unit, read_outcome
from bench.s3 import BUCKET, counting_s3
from bench.words import in_words

from lakebloom.storage import open_storage

FASTER = Result("present key", 2.0, "ms", "DuckDB", 100.0, 40, "at least")
SMALLER = Result("size", 3.0, "bytes", "Lance", 4.0, 0.7)
ALONE = Result("probe", 14.0, "ms", bar=15.0)
INFORMS = Result("memory", 346.0, "MB")


@pytest.mark.parametrize(
    ("result", "ratio", "verdict"),
    [(FASTER, 50, "met"), (SMALLER, 0.75, "missed"), (ALONE, 14, "met"), (INFORMS, 346, "")],
)
def test_a_bar_is_for_the_ratio_or_for_our_own_figure(result: Result, ratio: float, verdict: str) -> None:
    assert result.ratio == ratio
    assert result.verdict == verdict


def test_a_figure_that_was_not_measured_is_missed() -> None:
    assert not Result("x", float("nan"), "ms", "y", 1.0, 2.0).met
    assert not Result("x", 1.0, "ms", "y", float("nan"), 2.0, "at least").met


def test_outcomes_are_read_as_they_were_kept(tmp_path: Path) -> None:
    outcome = Outcome([FASTER, INFORMS], [Point("lakebloom", 100, 1.5)], 12.0)
    (tmp_path / "kept.json").write_bytes(msgspec.json.encode(outcome))
    assert read_outcome(tmp_path / "kept.json") == outcome


def test_the_page_counts_bars_and_names_what_was_missed() -> None:
    text = page({"lookup": Outcome([FASTER, INFORMS], elapsed_s=60), "size": Outcome([SMALLER], elapsed_s=60)})
    assert "1 of 2 bars are met." in text
    assert "| present key | 2 ms | 100 ms | DuckDB | 50 | >= 40 | met |" in text
    assert "| size | 3 bytes | 4 bytes | Lance | 0.75 | <= 0.7 | **missed** |" in text
    assert "| memory | 346 MB |  |  |  |  |  |" in text


def test_a_bench_that_failed_is_named_and_keeps_its_last_figures() -> None:
    failed = Outcome([FASTER], elapsed_s=60, date="2026-01-01", commit="abc", failure="exit status 1, 2026-01-02")
    text = page({"lookup": failed, "size": Outcome([], failure="stopped after 9 s")})
    assert "**lookup failed**: exit status 1, 2026-01-02." in text
    assert "`make bench-lookup`, 60 s, 2026-01-01, commit abc. **The last run failed**" in text
    assert "| present key | 2 ms | 100 ms |" in text
    assert "`make bench-size`. **The last run failed**: stopped after 9 s. There are no figures." in text


def test_the_first_paragraph_names_who_is_slower_and_who_is_better() -> None:
    headings = ("ms, median", "present key", "absent key", "needs")
    few = Matrix("few files", headings, (("lakebloom", "5", "1", "an index"), ("DuckDB", "50", "2,000", "nothing"),
                                         ("LMDB", "4", "0.5", "a map"), ("limit: x", "1", "", "")))  # fmt: skip
    many = Matrix("many files", headings, (("lakebloom", "6", "1", "an index"), ("DuckDB", "600", "1", "nothing"),
                                           ("LMDB", "7", "0.25", "a map")))  # fmt: skip
    limited = Result("large files, present key", 6.0, "ms", limited_by="of 6.0 ms, pages 4.5")
    text = " ".join(
        in_words({"board": Outcome([], matrices=[few, many]), "lookup": Outcome([limited, SMALLER])}).split()
    )
    assert "a present key in 5 ms in few files, 6 ms in many files." in text
    assert "faster in each of these lakes than DuckDB (10 to 100 times)." in text
    better = "*present key*: LMDB (1.2 times, in 1 lake); *absent key*: LMDB (2 to 4 times, in 2 lakes)."
    assert f"Others are better: {better}" in text
    assert "What limits it: large files, present key, of 6.0 ms, pages 4.5." in text
    assert "Of 1 bars 1 are missed (lookup 1)" in text


def test_the_store_of_the_benches_answers_ranges_of_what_was_written_last() -> None:
    with counting_s3() as (options, traffic):
        storage = open_storage(f"s3://{BUCKET}/folder", options)
        for data in (b"0123456789", b"abcdefghijklm"):
            storage.write("x", [data])
            found = storage.read_ranges("x", [(2, 3), (8, 2)])
            assert [bytes(each) for each in found] == [data[2:5], data[8:10]]
        assert traffic.requests["GET 206"] >= 2


def test_the_plot_has_a_line_and_a_name_for_each_series() -> None:
    points = [Point(name, files, ms) for name in ("lakebloom", "A & B") for files, ms in ((100, 1.5), (4000, 800.0))]
    root = ElementTree.fromstring(latency_svg(points))
    assert len(root.findall("{*}polyline")) == 2
    assert {"lakebloom", "A & B"} <= {text.text for text in root.findall("{*}text")}
    assert len(root.findall("{*}circle")) == 4


def test_names_in_the_plot_do_not_cover_each_other() -> None:
    points = [Point(f"series {number}", 100, 1.0 + number / 1000) for number in range(16)]
    root = ElementTree.fromstring(latency_svg(points))
    ys = sorted(float(text.get("y", "")) for text in root.findall("{*}text") if "series" in (text.text or ""))
    assert all(below - above >= 15 for above, below in pairwise(ys))
    assert ys[0] > 0
    assert ys[-1] < 520


def test_every_unit_of_a_result_can_be_read_again() -> None:
    """A bench that ran for minutes must not fail when what it found is read."""
    folder = Path(read_outcome.__code__.co_filename).parent
    calls = [node for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    units = {
        call.args[2].value
        for call in calls
        if isinstance(call, ast.Call)
        and getattr(call.func, "id", "") == "Result"
        and len(call.args) > 2
        and isinstance(call.args[2], ast.Constant)
    }
    assert units
    assert units <= set(get_args(Unit))

"""The pages that `make bench` writes, and when a bar counts as reached."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import msgspec
import pytest
from bench.plot import latency_svg
from bench.report import page
from bench.results import Outcome, Point, Result, Unit, read_outcome

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


def test_the_plot_has_a_line_and_a_name_for_each_series() -> None:
    points = [Point(name, files, ms) for name in ("lakebloom", "A & B") for files, ms in ((100, 1.5), (4000, 800.0))]
    root = ElementTree.fromstring(latency_svg(points))
    assert len(root.findall("{*}polyline")) == 2
    assert {"lakebloom", "A & B"} <= {text.text for text in root.findall("{*}text")}
    assert len(root.findall("{*}circle")) == 4


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

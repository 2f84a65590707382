"""The page about an erasure in a real browser: no errors, no network, nothing cut off, and nothing of the data runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakebloom.errors import StorageError
from lakebloom.report.erasure_page import render_erasure
from tests.index.delta_lake import DeltaIndexes
from tests.index.logged_lake import NAME
from tests.report.test_page import CONTRASTS, CUT_OFF, SIZES
from tests.tables.formats.delta.hand_table import HandTable, field

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom import Lakebloom
    from tests.report.browser import Browser

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lakebloom:
    home = tmp_path_factory.mktemp("erasure")
    table = HandTable(home / "a <b>table", [field("k", "string")])
    first = table.add(f"{'long' * 30}.parquet", pa.table({"k": [HOSTILE, "x", "y"]}))
    second = table.add("b.parquet", pa.table({"k": ["x"]}))
    table.commit(first, second)
    indexes = DeltaIndexes(home, home / "a <b>table")
    indexes.create("k")
    table.commit(table.remove(first), table.again(first, table.inline([0])), table.remove(second))
    return indexes.open()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), SIZES)
def test_the_pages_look_whole(chromium: Browser, lake: Lakebloom, tmp_path: Path, width: int, dark: bool) -> None:
    plan = lake.erasure_plan(NAME, [HOSTILE, "x"])
    for name, report in (("plan", plan), ("check", plan.check()), ("nothing", lake.erasure_plan(NAME, ["z"]).check())):
        page = lake.report_erasure(report, tmp_path / f"{name}.html")
        with chromium.page(page.as_uri(), width, dark=dark) as shown:
            assert shown.complaints == []
            assert shown.requests == [page.as_uri()]
            assert shown.evaluate("document.documentElement.scrollWidth") == width
            assert shown.evaluate(CUT_OFF) == []
            assert shown.evaluate(CONTRASTS) == []


def test_the_page_has_the_numbers_of_the_plan_and_runs_nothing(lake: Lakebloom, tmp_path: Path) -> None:
    plan = lake.erasure_plan(NAME, [HOSTILE, "x"])
    text = render_erasure(plan)
    facts = dict(re.findall(r'data-fact="([^"]+)" data-value="([^"]+)"', text))
    assert facts["Rows"] == str(plan.rows) == "1"
    assert facts["Deleted rows still in files"] == str(plan.rows_hidden) == "1"
    assert facts["Versions holding keys"] == str(plan.versions_holding) == "2"
    assert "<script" not in text
    assert "Nothing." in render_erasure(lake.erasure_plan(NAME, ["z"]).check())
    with pytest.raises(StorageError, match="cannot write"):
        lake.report_erasure(plan, tmp_path / "none" / "page.html")


def test_a_notebook_shows_the_same(lake: Lakebloom) -> None:
    plan = lake.erasure_plan(NAME, [HOSTILE, "x"])
    assert "<script" not in plan._repr_html_()
    assert plan.verdict() in plan._repr_html_()
    assert plan.held_by.to_arrow().num_rows == 2
    assert len(plan.snapshots) == 2

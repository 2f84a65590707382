"""The page in a real browser: no errors, no network, nothing cut off, numbers of the API, usable by keyboard."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, col
from lakebloom.index.query.scan_reports import FileState
from lakebloom.report import gather, render
from tests.index.lake import Lake

if TYPE_CHECKING:
    from lakebloom.report import Facts
    from tests.report.browser import Browser

SIZES = [(width, dark) for width in (400, 1400) for dark in (False, True)]
FACTS = (
    """Object.fromEntries([...document.querySelectorAll("[data-fact]")].map(e => [e.dataset.fact, e.dataset.value]))"""
)
CUT_OFF = """[...document.querySelectorAll("body *")].filter(e => {
  const box = e.getBoundingClientRect();
  return box.right > innerWidth + 1 && !e.closest(".scroll, .unseen, .skip");
}).map(e => e.outerHTML.slice(0, 80))"""
CONTRASTS = """(() => {
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = color => { const [r, g, b] = rgb(color).map(v => { v /= 255;
    return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!c.endsWith(", 0)") && c !== "transparent") return c; } return "rgb(255, 255, 255)"; };
  return [...document.querySelectorAll("body *")]
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && !e.closest("svg"))
    .map(e => { const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
      return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.outerHTML.slice(0, 60)]; })
    .filter(([ratio]) => ratio < 4.5);
})()"""


@pytest.fixture(scope="module")
def page(facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(facts))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), SIZES)
def test_the_page_looks_whole(chromium: Browser, page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    with chromium.page(page.as_uri(), width, dark=dark) as shown:
        assert shown.complaints == []
        assert shown.requests == [page.as_uri()]
        assert shown.evaluate("document.documentElement.scrollWidth") == width
        assert shown.evaluate(CUT_OFF) == []
        assert shown.evaluate(CONTRASTS) == []
        shown.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000


@pytest.mark.slow
def test_numbers_are_those_of_the_api(chromium: Browser, page: Path, aged: Lake, facts: Facts) -> None:
    with chromium.page(page.as_uri(), 1000) as shown:
        said = shown.evaluate(FACTS)
        text = shown.evaluate("document.body.innerText")
    index = aged.open().index("i")
    for name in ("size_bytes", "source_bytes", "units", "rows", "files", "segments"):
        assert int(said[name]) == getattr(index, name)
    verified = aged.open().verify_index("i", 0)
    found = (int(said["new"]), int(said["stale"]), int(said["missing"]), int(said["files_current"]))
    assert found == (len(verified.not_indexed), len(verified.stale), len(verified.missing), len(aged.indexed()))
    candidates = aged.open().candidates("i", (col("k") == 1234) | (col("s") == "s11999"))
    assert int(said["units_kept"]) == candidates.num_rows
    assert int(said["files_kept"]) + int(said["files_skipped"]) == int(said["files_listed"]) == 32
    assert float(said["fpp_measured"]) == facts.fpp_measured
    assert int(said["filters:k"]) == facts.columns[0].size_bytes
    assert f"{index.rows:,}" in text
    assert "1 in 100" in text


def test_it_can_be_used_by_keyboard(chromium: Browser, page: Path) -> None:
    where = "document.activeElement.getAttribute('aria-labelledby') || document.activeElement.tagName"
    with chromium.page(page.as_uri(), 400) as shown:
        stops = []
        for _ in range(9):
            shown.press_tab()
            stops.append(shown.evaluate(where))
    assert stops[:8] == ["A", "sizes", "fill", "SUMMARY", "SUMMARY", "SUMMARY", "history", "BODY"]


@pytest.mark.slow
def test_it_speaks_to_screen_readers(chromium: Browser, page: Path) -> None:
    with chromium.page(page.as_uri(), 1000) as shown:
        shown.call("Accessibility.enable")
        nodes = shown.call("Accessibility.getFullAXTree")["nodes"]
    seen = [(node["role"]["value"], node.get("name", {}).get("value")) for node in nodes if not node.get("ignored")]
    names: dict[str, list[Any]] = {}
    for role, name in seen:
        names.setdefault(role, []).append(name)
    headings = ["i", "What to do next", "Skip map", "Filters against data and dictionaries"]
    assert names["heading"] == [*headings, "Fill of each segment", "Files that differ from the index", "History"]
    (drawing,) = [name for role in ("image", "img") for name in names.get(role, [])]
    assert re.fullmatch(r"\d+ files read because they can match, 5 read because .*, \d+ skipped", drawing)
    assert {"main", "banner", "contentinfo", "table"} <= set(names)


def test_what_comes_from_data_is_escaped(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"<b>k</b>": "bigint"})
    for name in ("a", "<img src=x onerror=alert(1)>"):
        lake.write(name.replace("/", ""), {"<b>k</b>": pa.array(range(5), pa.int64())})
    lake.create(BloomIndexConfig("i", ["<b>k</b>"]))
    shown = render(gather(lake.catalog(), "i", col("<b>k</b>") == 3))
    assert "<b>k" not in shown
    assert "<img" not in shown
    assert "&lt;img src=x" in shown


def test_very_many_files_share_squares(facts: Facts) -> None:
    assert facts.skip_map is not None
    states = (FileState.SKIPPED,) * 4000 + (FileState.KEPT,)
    scan = replace(facts.skip_map.scan, states=states, sizes=(1,) * 4001)
    many = replace(facts.skip_map, scan=scan, files=facts.skip_map.files[:1] * 4001)
    shown = render(replace(facts, skip_map=many))
    assert "a square is 3 files" in shown
    assert shown.count("<title>") == 1 + 1334
    assert shown.count('<rect class="read"') == 2  # the last square, and that of the legend


def test_parts_that_no_filter_answers_are_said(aged: Lake) -> None:
    asked = (col("k") == 1) & (col("n") == 2) & (col("s") != "x")
    shown = render(gather(aged.catalog(), "i", asked))
    assert re.findall(r'data-fact="unanswered" data-value="(\w+)"', shown) == ["NO_INDEX", "NEGATED"]
    assert "<code>n = 2</code>" in shown
    assert 'data-fact="unanswered"' not in render(gather(aged.catalog(), "i", col("k") == 1))


def test_a_table_that_cannot_be_listed_is_said(facts: Facts) -> None:
    shown = render(replace(facts, freshness=None, problem="hdfs:// can only be reached through Spark"))
    assert "hdfs:// can only be reached through Spark" in shown
    assert "Files that differ from the index" not in shown


def test_the_page_has_no_address_in_it(page: Path) -> None:
    assert re.findall(r"https?://", page.read_text()) == []
    assert json.dumps(page.read_text()).count("<script") == 0

"""Records in a notebook: a card each, in the look of the page."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

import pytest

import lakebloom
from lakebloom.display.tables import Printable
from lakebloom.index.query.query_reports import LastQuery, QueryReport
from tests.index.query import test_scan_reports as examples
from tests.report.test_page import CONTRASTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakebloom.report import Facts
    from tests.index.lake import Lake
    from tests.report.browser import Browser


def subclasses(kind: type) -> Iterator[type]:
    for found in kind.__subclasses__():
        yield found
        yield from subclasses(found)


def test_every_report_and_record_is_printable() -> None:
    for module in pkgutil.walk_packages(lakebloom.__path__, "lakebloom."):
        importlib.import_module(module.name)
    shown = {kind.__name__ for kind in subclasses(Printable)} | {
        "QueryReport",
        "LastQuery",
        "ScanReport",
        "RecordTable",
    }
    made = {
        name
        for module in pkgutil.walk_packages(lakebloom.__path__, "lakebloom.")
        for name, value in vars(importlib.import_module(module.name)).items()
        if isinstance(value, type) and name.endswith("Report") and not name.startswith("_")
    }
    assert made <= shown
    assert {"IndexRecord", "VersionRecord", "FilterRecord", "PriceTag", "EmbeddedFilter"} <= shown


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_cards(chromium: Browser, aged: Lake, facts: Facts, tmp_path: Path, dark: bool) -> None:
    api = aged.open()
    assert facts.skip_map is not None
    query = QueryReport((examples.FULL, examples.PARTIAL))
    last = LastQuery("collect", 1.5, [examples.ScanFigures("events", 1, 2000, 3, 10, 1)])
    shown = [api.index("i"), api.history("i"), api.indexes(), facts.columns[0], query, last, examples.PARTIAL]
    page = tmp_path / "cells.html"
    cells = "".join(f"<div>{record._repr_html_()}</div>" for record in shown)
    page.write_text(f'<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><body>{cells}')
    with chromium.page(page.as_uri(), 700, dark=dark) as drawn:
        assert drawn.complaints == []
        assert drawn.evaluate("document.documentElement.scrollWidth") == 700
        assert drawn.evaluate("document.querySelectorAll('.lakebloom').length") == len(shown)
        assert drawn.evaluate(CONTRASTS) == []
        drawn.screenshot(tmp_path / "cells.png")

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, col
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.report import Facts, gather
from tests.index.lake import Lake
from tests.report import browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebloom.predicate.tree import Predicate

CONDITION = (col("k") == 1234) | (col("s") == "s11999")


@pytest.fixture(scope="module")
def aged(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """An index with a history over 30 files, two of them changed, one gone and three new since."""
    lake = Lake(tmp_path_factory.mktemp("lake"), {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(20), rows=400)
    lake.create(BloomIndexConfig("i", ["k", "s"], fpp=0.01))
    lake.fill(range(20, 30), rows=400)
    lake.refresh()
    optimize_index(lake.catalog(), "i")
    lake.fill(range(30, 33), rows=400)
    for number in (3, 4):
        os.utime(lake.table / f"f{number}.parquet", (1_700_000_000, 1_700_000_000))
    (lake.table / "f5.parquet").unlink()
    return lake


@pytest.fixture(scope="module")
def predicate() -> Predicate:
    return CONDITION


@pytest.fixture(scope="module")
def facts(aged: Lake, predicate: Predicate) -> Facts:
    return gather(aged.catalog(), "i", predicate)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium: install it (as root: apt-get install chromium) or set CHROMIUM")
    with browser.running(program, tmp_path_factory.mktemp("chromium")) as running:
        yield running

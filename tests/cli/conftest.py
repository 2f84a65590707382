from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig
from tests.cli.running import Cli
from tests.index.lake import Lake

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of three files with sixty rows, and the index ``i`` over it; each file of its own keys."""
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(3))
    lake.create(BloomIndexConfig("i", ["k", "s"], fpp=1e-4, granularity="row_group"))
    return lake


@pytest.fixture
def cli(lake: Lake, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line over its indexes."""
    return Cli(lake.location, capsys)

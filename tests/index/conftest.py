"""What the tests of indexes share: a lake on local disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom.storage.local import durable
from tests.index.lake import Lake

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crashes are simulated here and the machine stays up, so nothing has to reach the disk."""
    monkeypatch.setattr(durable.os, "fsync", lambda descriptor: None)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table with a number, a text and a column that is often NULL."""
    return Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})

"""How far a build is, and what it reports in the end."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.display.progress import Progress
from tests.spark.support import keys

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("in_tasks")]


def assert_monotone(seen: list[Progress]) -> None:
    for earlier, later in pairwise(seen):
        for name in ("files_done", "bytes_done", "rows_done"):
            assert getattr(earlier, name) <= getattr(later, name)
        assert (earlier.files, earlier.bytes) == (later.files, later.bytes)


def test_progress(lake: Lakebloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakebloom.spark.build import progress

    monkeypatch.setattr(progress, "PROGRESS_INTERVAL_S", 0.01)
    table = keys(tmp_path / "t", *(range(i, i + 100) for i in range(0, 800, 100)))
    size_bytes = sum(file.stat().st_size for file in table.iterdir())
    seen: list[Progress] = []
    report = lake.create_index(table, BloomIndexConfig("x", ["k"]), progress=seen.append)
    assert seen[0] == Progress(files_done=0, files=8, bytes_done=0, bytes=size_bytes, rows_done=0)
    assert seen[-1] == Progress(files_done=8, files=8, bytes_done=size_bytes, bytes=size_bytes, rows_done=800)
    assert_monotone(seen)

    assert set(report.seconds) == {"check", "list", "build", "commit"}
    assert all(seconds >= 0 for seconds in report.seconds.values())
    assert 0 < report.bytes_read <= size_bytes
    segments = tmp_path / "indexes/x/segments"
    assert report.bytes_written == sum(file.stat().st_size for file in segments.rglob("*.*"))
    assert (report.files, report.units, report.rows, report.skipped) == (8, 8, 800, ())

    keys(table, range(1000, 1100), first=8)
    seen.clear()
    report = lake.refresh_index("x", progress=seen.append)
    assert (seen[0].files_done, seen[-1].files_done, seen[-1].files, seen[-1].rows_done) == (0, 1, 1, 100)
    assert {"list", "plan", "build", "commit"} <= set(report.seconds)


def test_nothing_to_do_reports_nothing(lake: Lakebloom, tmp_path: Path) -> None:
    table = keys(tmp_path / "t", range(100))
    lake.create_index(table, BloomIndexConfig("x", ["k"]))
    seen: list[Progress] = []
    report = lake.refresh_index("x", progress=seen.append)
    assert (report.committed, report.version, seen) == (False, 1, [])

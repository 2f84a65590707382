"""The bar of a running build, as a terminal shows it."""

from __future__ import annotations

import io

from rich.console import Console

from lakebloom.cli.progress_bar import bar
from lakebloom.display.progress import Progress


def test_the_bar_tells_files_and_pace() -> None:
    screen = io.StringIO()
    with bar(Console(file=screen, force_terminal=True, width=120, color_system=None), "building") as update:
        update(Progress(0, 8, 0, 8_000_000, 0))
        update(Progress(4, 8, 4_000_000, 8_000_000, 100))
        half = screen.getvalue()
        update(Progress(8, 8, 8_000_000, 8_000_000, 200))
    assert "left" not in half.rpartition("4 of 8")[0]
    assert "8 of 8 files" in screen.getvalue()
    assert "/s" in screen.getvalue()

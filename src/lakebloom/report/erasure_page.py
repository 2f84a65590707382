"""The page about a plan to erase keys, or about its check, in the style of the report page."""

from __future__ import annotations

import datetime
import pathlib
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

from lakebloom import __version__
from lakebloom.display import html
from lakebloom.errors import StorageError
from lakebloom.index.erasure.records import ErasureCheck
from lakebloom.report.page import environment

if TYPE_CHECKING:
    import os

    from lakebloom.index.erasure.records import ErasureReport

__all__ = ["render_erasure", "write_erasure_page"]

_MOST_ROWS = 500
_NUMBERS = frozenset({"rows", "rows hidden", "keys", "files"})


def render_erasure(report: ErasureReport, now: datetime.datetime | None = None) -> str:
    """Return the page."""
    folder = resources.files("lakebloom.report")
    template = environment().from_string((folder / "erasure.html.jinja").read_text())
    made = now or datetime.datetime.now(datetime.timezone.utc)
    return template.render(
        report=report,
        kicker="Erasure, checked" if isinstance(report, ErasureCheck) else "Erasure, planned",
        style=Markup("\n".join([html.colours(":root"), (folder / "page.css").read_text()])),
        numbers=_NUMBERS,
        most=_MOST_ROWS,
        made=made.strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
    )


def write_erasure_page(report: ErasureReport, path: str | os.PathLike[str]) -> pathlib.Path:
    """Write the page, and return its path. Raises StorageError."""
    target = pathlib.Path(path)
    page = render_erasure(report).encode()
    try:
        target.write_bytes(page)
    except OSError as error:
        raise StorageError(f"cannot write {target}", found=str(error), hint="choose another path") from error
    return target

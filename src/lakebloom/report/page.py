"""Turns facts into an HTML page. The template engine escapes everything that comes from data."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import jinja2
from markupsafe import Markup

from lakebloom import __version__
from lakebloom.display import html
from lakebloom.display.tables import amount, text_of
from lakebloom.display.visible import visible_lines

if TYPE_CHECKING:
    from lakebloom.report.facts import Facts, SkipMap

__all__ = ["environment", "render"]


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    note: str
    size_bytes: int
    share: float
    kind: str


def environment() -> jinja2.Environment:
    """Return the template engine of all pages."""
    made = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible_lines(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        amount=amount,
        percent=_percent,
        rate=_rate,
        time=_time,
        text=lambda value: text_of("", value),
        name=_file_name,
        place=lambda uri: uri.removeprefix("file://"),
    )
    return made


def render(facts: Facts, now: datetime.datetime | None = None) -> str:
    """Return the page."""
    folder = resources.files("lakebloom.report")
    template = environment().from_string((folder / "page.html.jinja").read_text())
    moment = now or datetime.datetime.now(datetime.timezone.utc)
    return template.render(
        facts=facts,
        style=Markup("\n".join([html.colours(":root"), (folder / "page.css").read_text(), html.MAP_STYLE])),
        skip_map=None if facts.skip_map is None else _map(facts.skip_map),
        files_for_each=1 if facts.skip_map is None else html.for_each_square(facts.skip_map.scan.files),
        square=lambda kind: Markup(html.square(kind)),
        bars=_bars(facts),
        made=moment.strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
    )


def _map(skip_map: SkipMap) -> Markup:
    scan = skip_map.scan
    label = (
        f"{scan.files_kept - scan.files_not_covered} files read because they can match, {scan.files_not_covered} read "
        f"because they are unindexed, {scan.files - scan.files_kept} skipped"
    )
    kinds = [state.word for state in scan.states]
    return Markup(html.squares(kinds, [_file_name(file.uri) for file in skip_map.files], label))


def _bars(facts: Facts) -> list[_Bar]:
    stored = {column.column: column for column in facts.stored}
    rows = [("data", "all files", facts.index.source_bytes, "data")]
    for column in facts.columns:
        if column.column in stored:
            known = stored[column.column]
            rows.append((column.column, "column as stored", known.column_bytes, "column"))
            note = "its dictionaries" if known.dictionary_chunks else "it has no dictionaries"
            rows.append((column.column, note, known.dictionary_bytes, "dictionary"))
        rows.append((column.column, "its filters", column.size_bytes, "filters"))
    largest = max(1, *(size for _, _, size, _ in rows))
    return [_Bar(label, note, size, size / largest, kind) for label, note, size, kind in rows]


def _percent(share: float) -> str:
    """Return a fraction in percent, with enough digits to differ from 0 % and 100 %.

    >>> _percent(0.5), _percent(0.9996), _percent(1), _percent(0.00012)
    ('50.0 %', '99.96 %', '100 %', '0.01 %')
    """
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    digits = 1 if 0.01 <= share <= 0.99 else 2
    return f"{100 * share:.{digits}f} %"


def _rate(rate: float) -> str:
    """Return a rate as "1 in N".

    >>> _rate(0.01), _rate(0.0004), _rate(0)
    ('1 in 100', '1 in 2,500', 'none')
    """
    return f"1 in {float(f'{1 / rate:.3g}'):,.0f}" if rate > 0 else "none"


def _time(timestamp_ms: int) -> str:
    return text_of("timestamp_ms", timestamp_ms)[:16]


def _file_name(uri: str) -> str:
    """Return the last part of a URI, and the directory above it where that is a partition.

    >>> _file_name("file:///t/day=1/a.parquet"), _file_name("s3://b/t/a.parquet")
    ('day=1/a.parquet', 'a.parquet')
    """
    path = PurePosixPath(urlsplit(uri.replace("?", "%3F").replace("#", "%23")).path)
    return "/".join([part for part in path.parts[:-1] if "=" in part] + [path.name])

"""HTML for notebooks and the report page: colours for light and dark themes, tables, and maps of squares.

Everything that comes from data is escaped here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from lakebloom.display.visible import visible_lines

__all__ = ["card", "colours", "pairs", "squares", "table"]

_LIGHT = (
    "--paper:#fcfcfa;--card:#fff;--ink:#1b2226;--quiet:#59646b;--line:#e2e5e3;--faint:#f1f3f1;--code:#f1f3f1;"
    "--read:#0f6b72;--skipped:#cfd8d6;--unindexed:#b3610a;"
    "--data:#9aa5a8;--column:#6f8f94;--dictionary:#b48a3c;--filters:#0f6b72"
)
_DARK = (
    "--paper:#12171a;--card:#192024;--ink:#e7ebe9;--quiet:#9eabb0;--line:#2c363b;--faint:#20292e;--code:#20292e;"
    "--read:#4cc3c4;--skipped:#3a474c;--unindexed:#f0a24a;"
    "--data:#6d7a80;--column:#5d8288;--dictionary:#d0a95c;--filters:#4cc3c4"
)
_NUMBER = re.compile(r"-?[\d,]+(\.\d+)?(e-?\d+)?( \([\d.]+ [kMGTP]B\))?")
_COLUMNS, _MOST_SQUARES = 50, 1500
_FEW_COLUMNS, _FEW_SQUARES = 30, 300
"""Few squares are drawn larger, for small screens."""
_SIDE = 12
MAP_STYLE = """
.read { fill: var(--read); }
.skipped { fill: var(--skipped); }
.unindexed { fill: none; stroke: var(--unindexed); stroke-width: 2; }
"""
_CARD_STYLE = """
.lakebloom { display: inline-block; max-width: 100%; overflow-x: auto; box-sizing: border-box; padding: .75em 1em;
  background: var(--card); color: var(--ink); border: 1px solid var(--line); border-radius: 10px;
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.lakebloom h4 { margin: 0 0 .25em; font-size: 1em; font-weight: 620; color: inherit; }
.lakebloom h4:not(:first-of-type) { margin-top: 1.25em; }
.lakebloom p { margin: .25em 0; } .lakebloom .quiet { color: var(--quiet); }
.lakebloom code { font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--code);
  color: inherit; padding: .1em .35em; border-radius: 4px; }
.lakebloom table { border-collapse: collapse; margin: .25em 0; border: 0; font-variant-numeric: tabular-nums; }
.lakebloom tr, .lakebloom tbody tr:nth-child(odd), .lakebloom tr:hover { background: none; }
.lakebloom th, .lakebloom td { padding: .3em 1.25em .3em 0; text-align: left; vertical-align: baseline; border: 0;
  color: inherit; background: none; max-width: 40em; overflow-wrap: break-word; }
.lakebloom th { color: var(--quiet); font-weight: 500; white-space: nowrap; }
.lakebloom tr + tr > * { border-top: 1px solid var(--faint); }
.lakebloom .number { text-align: right; }
.lakebloom svg { display: block; width: 100%; max-width: 36em; height: auto; margin: .5em 0; }
"""


def colours(selector: str) -> str:
    """Return the CSS rules for the colours of the reader's theme, or of the notebook."""
    rules = [f"{selector}{{{_LIGHT}}}", f"@media (prefers-color-scheme:dark){{{selector}{{{_DARK}}}}}"]
    if selector != ":root":
        rules += [f"[data-jp-theme-light=true] {selector}{{{_LIGHT}}}", f".vscode-light {selector}{{{_LIGHT}}}"]
        rules += [f"[data-jp-theme-light=false] {selector}{{{_DARK}}}", f".vscode-dark {selector}{{{_DARK}}}"]
    return "\n".join(rules)


def card(*parts: str) -> str:
    """Return parts of HTML as one card for a notebook, with its style, because each output is shown alone."""
    style = colours(".lakebloom") + _CARD_STYLE + MAP_STYLE.replace("\n.", "\n.lakebloom .")
    return f'<div class="lakebloom"><style>{style}</style>{"".join(parts)}</div>'


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and values, one line for each."""
    lines = "".join(f'<tr><th scope="row">{escaped(name)}</th><td>{escaped(value)}</td></tr>' for name, value in rows)
    return f"<table>{lines}</table>"


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a header; numbers are aligned to the right, and empty columns are left out."""
    kept = [i for i in range(len(names)) if any(row[i] for row in rows)]
    names, rows = [names[i] for i in kept], [[row[i] for i in kept] for row in rows]
    kinds = [' class="number"' if _are_numbers(row[i] for row in rows) else "" for i in range(len(names))]
    head = "".join(f'<th scope="col"{kind}>{escaped(name)}</th>' for name, kind in zip(names, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{escaped(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _are_numbers(cells: Iterable[str]) -> bool:
    return all(_NUMBER.fullmatch(cell) for cell in cells)


def escaped(text: str) -> str:
    """Return a text as HTML."""
    return html.escape(visible_lines(text))


def for_each_square(count: int) -> int:
    """Return how many items one square represents."""
    return max(1, -(-count // _MOST_SQUARES))


def squares(kinds: Sequence[str], titles: Sequence[str], label: str) -> str:
    """Return a map with one square for each item, or for several if there are very many.

    Kinds are "read", "skipped" and "unindexed"; a square for several items shows the most expensive kind. Kinds differ
    in shape as well as colour.
    """
    each = for_each_square(len(kinds))
    across = _FEW_COLUMNS if len(kinds) <= _FEW_SQUARES else _COLUMNS
    drawn = []
    for number, start in enumerate(range(0, len(kinds), each)):
        group = kinds[start : start + each]
        kind = next(kind for kind in ("read", "unindexed", "skipped") if kind in group)
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        drawn.append(square(kind, number % across, number // across, f"{titles[start]}{more}: {kind}"))
    width, height = across * _SIDE, max(1, -(-len(drawn) // across)) * _SIDE
    head = f'<svg viewBox="0 0 {width} {height}" style="max-width:{1.75 * width:.0f}px" role="img"'
    return f'{head} aria-label="{escaped(label)}">{"".join(drawn)}</svg>'


def square(kind: str, column: int = 0, line: int = 0, title: str = "") -> str:
    """Return one square of a map."""
    inset, side, radius = (2, 8, 1.5) if kind == "unindexed" else (1, 10, 2)
    inside = f"<title>{escaped(title)}</title>" if title else ""
    place = f'x="{column * _SIDE + inset}" y="{line * _SIDE + inset}" width="{side}" height="{side}" rx="{radius}"'
    return f'<rect class="{kind.replace(" ", "-")}" {place}>{inside}</rect>'

"""docs/latency.svg: the time for one present key, against the size and the number of files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from bench.results import Point

_WIDTH, _HEIGHT = 860, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 270, 40, 50
_OURS = "#0b6e4f"
_OTHERS = (
    *("#c44536", "#e08e45", "#7768ae", "#3b8ea5", "#8a817c", "#b5838d"),
    *("#577590", "#9c6644", "#1d3557", "#a7a02b", "#d264b6", "#4f772d"),
)
_LINE_HEIGHT = 15


def latency_svg(points: Sequence[Point]) -> str:
    """Return the plot: a column for each kind of lake, ordered by the size of its files and then by their number."""
    lakes = sorted({_lake(point) for point in points})
    ys = _decades([point.ms for point in points])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">One present key: milliseconds in lakes of small and of large files'
        "</text>",
        *_axes(lakes, ys),
    ]
    series: dict[str, list[Point]] = {}
    last = {(point.series, _lake(point)): point for point in points}  # two benches may have measured the same
    for point in sorted(last.values(), key=_lake):
        series.setdefault(point.series, []).append(point)
    by_end = sorted(series.items(), key=lambda item: -item[1][-1].ms)
    labels = _label_ys([_y(its_points[-1].ms, ys) + 4 for _, its_points in by_end])
    others = 0
    for (name, its_points), label_y in zip(by_end, labels, strict=True):
        is_ours = "lakebloom" in name
        colour = _OURS if is_ours else _OTHERS[others % len(_OTHERS)]
        others += not is_ours
        width = 3 if is_ours else 1.5
        for size in sorted({point.rows_per_file for point in its_points}):
            alike = [point for point in its_points if point.rows_per_file == size]
            placed = [(_x(lakes.index(_lake(point)), len(lakes)), _y(point.ms, ys)) for point in alike]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
            parts.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{width + 1.5}" fill="{colour}"/>' for x, y in placed)
        x = _WIDTH - _RIGHT + 12
        parts.append(f'<text x="{x}" y="{label_y:.1f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _label_ys(wanted: Sequence[float]) -> list[float]:
    """Return where labels go, from top to bottom, so that none covers another and none is below the plot."""
    placed: list[float] = []
    for y in wanted:
        placed.append(max(y, placed[-1] + _LINE_HEIGHT) if placed else y)
    lowest = _HEIGHT - _BOTTOM + _LINE_HEIGHT
    for number in reversed(range(len(placed))):
        placed[number] = min(placed[number], lowest)
        lowest = placed[number] - _LINE_HEIGHT
    return placed


def _lake(point: Point) -> tuple[int, int]:
    return point.rows_per_file, point.files


def _decades(values: Sequence[float]) -> tuple[int, int]:
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def _x(column: int, columns: int) -> float:
    return _LEFT + (column + 0.5) * (_WIDTH - _LEFT - _RIGHT) / columns


def _y(ms: float, decades: tuple[int, int]) -> float:
    return _HEIGHT - _BOTTOM - _share(ms, decades) * (_HEIGHT - _TOP - _BOTTOM)


def _share(value: float, decades: tuple[int, int]) -> float:
    return (math.log10(value) - decades[0]) / max(1, decades[1] - decades[0])


def _axes(lakes: Sequence[tuple[int, int]], ys: tuple[int, int]) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for column, (rows, files) in enumerate(lakes):
        x = _x(column, len(lakes))
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>')
        for line, text in enumerate((f"{files:,} files", f"of {rows:,} rows")):
            parts.append(f'<text x="{x:.1f}" y="{bottom + 18 + 15 * line}" text-anchor="middle">{text}</text>')
    for decade in range(ys[0], ys[1] + 1):
        y = _y(10.0**decade, ys)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**decade:g} ms</text>')
    return parts

"""docs/latency.svg: the time for one present key against the number of files, both in powers of ten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from bench.results import Point

_WIDTH, _HEIGHT = 860, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 270, 40, 50
_OURS = "#0b6e4f"
_OTHERS = (
    *("#c44536", "#e08e45", "#7768ae", "#3b8ea5", "#8a817c", "#b5838d"),
    *("#577590", "#9c6644", "#1d3557", "#a7a02b", "#d264b6", "#4f772d"),
)
_LINE_HEIGHT = 15


def latency_svg(points: Sequence[Point]) -> str:
    """Return the plot."""
    xs, ys = _decades([point.files for point in points]), _decades([point.ms for point in points])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">One present key: milliseconds against the number of files</text>',
        *_axes(xs, ys),
    ]
    series: dict[str, list[Point]] = {}
    for point in points:
        series.setdefault(point.series, []).append(point)
    by_end = sorted(series.items(), key=lambda item: -max(item[1], key=lambda point: point.files).ms)
    label_y = -math.inf
    others = 0
    for name, its_points in by_end:
        is_ours = "lakebloom" in name
        colour = _OURS if is_ours else _OTHERS[others % len(_OTHERS)]
        others += not is_ours
        placed = [(_x(p.files, xs), _y(p.ms, ys)) for p in sorted(its_points, key=lambda p: p.files)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        width = 3 if is_ours else 1.5
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed)
        label_y = max(placed[-1][1] + 4, label_y + _LINE_HEIGHT)
        x = _WIDTH - _RIGHT + 12
        parts.append(f'<text x="{x}" y="{label_y:.1f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def _x(files: float, decades: tuple[int, int]) -> float:
    return _LEFT + _share(files, decades) * (_WIDTH - _LEFT - _RIGHT)


def _y(ms: float, decades: tuple[int, int]) -> float:
    return _HEIGHT - _BOTTOM - _share(ms, decades) * (_HEIGHT - _TOP - _BOTTOM)


def _share(value: float, decades: tuple[int, int]) -> float:
    return (math.log10(value) - decades[0]) / max(1, decades[1] - decades[0])


def _axes(xs: tuple[int, int], ys: tuple[int, int]) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for decade in range(xs[0], xs[1] + 1):
        x = _x(10**decade, xs)
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{10**decade:,} files</text>')
    for decade in range(ys[0], ys[1] + 1):
        y = _y(10.0**decade, ys)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**decade:g} ms</text>')
    return parts

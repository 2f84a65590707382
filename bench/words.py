"""The paragraph that opens docs/BENCHMARKS.md: where lakebloom wins, where it loses, and what limits it.

It is made of what the benches found, so it changes with them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from bench.results import Matrix, Outcome, figure

OURS = "lakebloom"
_NOT_COMPARED = ("needs", "requests", "MB")
"""Columns of the board that have words, or that only explain the times."""


def in_words(outcomes: Mapping[str, Outcome]) -> str:
    """Return the paragraph; nothing where the board was not measured."""
    board = outcomes.get("board")
    if board is None or not board.matrices:
        return ""
    said = [_present(board.matrices), *_slower(board.matrices), *_better(board.matrices), *_limits(outcomes)]
    return textwrap.fill(" ".join(said), 120) + "\n"


def _column(matrix: Matrix, number: int) -> dict[str, float]:
    """Return the figures of a column, by method."""
    return {row[0]: float(row[number].replace(",", "")) for row in matrix.rows if row[number]}


def _present(matrices: list[Matrix]) -> str:
    times = [f"{figure(_column(matrix, 1)[OURS], 'ms')} in {matrix.title}" for matrix in matrices]
    return f"lakebloom returns the row of a present key in {', '.join(times)}."


def _slower(matrices: list[Matrix]) -> list[str]:
    """Say who needs more time for a present key in every lake, and how many times as much."""
    ratios: dict[str, list[float]] = {}
    for matrix in matrices:
        times = _column(matrix, 1)
        for name, ms in times.items():
            ratios.setdefault(name, []).append(ms / times[OURS])
    won = {name: each for name, each in ratios.items() if not _is_ours(name) and min(each) > 1}
    named = [f"{name} ({_span(each)})" for name, each in sorted(won.items(), key=lambda item: -max(item[1]))]
    return [f"It is faster in each of these lakes than {', '.join(named)}."] if named else []


def _is_ours(name: str) -> bool:
    """Tell whether a row is of lakebloom itself, or what no index could do better."""
    return name.startswith((OURS, "limit", "PyArrow, told"))


def _span(ratios: list[float]) -> str:
    least, most = (f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}" for ratio in (min(ratios), max(ratios)))
    return f"{least} times" if least == most else f"{least} to {most} times"


def _better(matrices: list[Matrix]) -> list[str]:
    """Say for each kind of question, and for each cost, who is better in most lakes, and how many others are."""
    found: dict[str, dict[str, list[float]]] = {}
    for matrix in matrices:
        for number, heading in enumerate(matrix.headings[1:], 1):
            figures = {} if heading.endswith(_NOT_COMPARED) else _column(matrix, number)
            ours = figures.pop(OURS, 0.0)
            for name, value in figures.items():
                if 0 < value < ours and not _is_ours(name):
                    found.setdefault(heading.removesuffix(", ms"), {}).setdefault(name, []).append(ours / value)
    said = []
    for heading, peers in found.items():
        name, ratios = max(peers.items(), key=lambda item: (len(item[1]), max(item[1])))
        lakes = "1 lake" if len(ratios) == 1 else f"{len(ratios)} lakes"
        others = f", and {len(peers) - 1} more in some" if len(peers) > 1 else ""
        said.append(f"*{heading}*: {name} ({_span(ratios)}, in {lakes}){others}")
    return [f"Others are better: {'; '.join(said)}."] if said else []


def _limits(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Say what the time of a present key goes into, as it was measured, and how many bars are missed."""
    results = [result for outcome in outcomes.values() for result in outcome.results]
    measured = dict.fromkeys(
        f"{result.name}, {result.limited_by}"
        for result in outcomes.get("lookup", Outcome([])).results
        if result.limited_by and "present key" in result.name
    )
    said = [f"What limits it: {'; '.join(measured)}."] if measured else []
    missed = {
        name: count for name, outcome in outcomes.items() if (count := sum(not each.met for each in outcome.results))
    }
    if missed:
        bars = sum(result.bar is not None for result in results)
        where = ", ".join(f"{name} {count}" for name, count in missed.items())
        said.append(f"Of {bars} bars {sum(missed.values())} are missed ({where}); the tables below name them.")
    return said

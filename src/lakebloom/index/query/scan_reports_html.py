"""The reports of queries in a notebook, in the look of all records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.display import html
from lakebloom.display.tables import amount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebloom.index.query.query_reports import LastQuery, QueryReport
    from lakebloom.index.query.scan_reports import ScanReport
    from lakebloom.predicate.reasons import Reason

__all__ = ["last_query_html", "query_html", "scan_html"]


def query_html(report: QueryReport) -> str:
    """Return what ``explain`` says: each scan with its skip map, then the joins."""
    parts = [part for scan in report.scans for part in _scan(scan)] or ["<p>this query reads no files</p>"]
    joins = [f"<p>{html.escaped(join.line())}</p>" for join in report.joins]
    return html.card(*parts, *joins)


def scan_html(scan: ScanReport) -> str:
    """Return one scan."""
    return html.card(*_scan(scan))


def last_query_html(report: LastQuery) -> str:
    """Return what the last query counted, a line for each scan and each filtered join."""
    parts = [f"<h4>{html.escaped(report.action)} {report.end}</h4>"]
    if report.scans:
        names = ("table", "files", "skipped", "read", "bytes read", "rows read")
        rows = [
            (
                scan.table,
                *map(_counted, (scan.files, scan.files_skipped, scan.files_read, scan.bytes_read, scan.rows_read)),
            )
            for scan in report.scans
        ]
        parts.append(html.table(names, rows))
    if report.joins:
        filtered = [
            (f"{join.index}.{join.column}", f"{join.rows:,}", f"{join.rows_dropped:,}") for join in report.joins
        ]
        parts.append(html.table(("join filter", "rows", "dropped before the shuffle"), filtered))
    return html.card(*parts)


def _counted(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _scan(scan: ScanReport) -> Iterator[str]:
    yield f"<h4>{html.escaped(scan.table)}</h4>"
    yield f"<p>{html.escaped(scan.summary)}</p>"
    if scan.units_summary:
        yield f"<p>{html.escaped(scan.units_summary)}</p>"
    if scan.predicate:
        yield f'<p class="quiet">where <code>{html.escaped(scan.predicate)}</code></p>'
    if scan.partition_predicate:
        yield f'<p class="quiet">{html.escaped(scan.partition_summary)}</p>'
    if scan.indexes:
        rows = [
            (
                index.name,
                str(index.version or ""),
                amount(index.bytes_read) if index.reason is None else "",
                index.message if index.reason is None else _told(index.reason, index.message),
            )
            for index in scan.indexes
        ]
        yield html.table(("index", "version", "read of it", "why not"), rows)
    answered = [part for part in scan.parts if part.reason is None]
    if answered or scan.unanswered:
        told = [(part, part.effect) for part in answered] + [(part, _told(why)) for part, why in scan.unanswered]
        cells = [(part.text, part.column or "", text) for part, text in told]
        yield html.table(("condition", "column", "what the index did, or why not"), cells)
    if scan.joins:
        joins = [(*join.place, _told(join.reason, join.message)) for join in scan.joins]
        yield html.table(("join", "on", "why it skips nothing"), joins)
    yield from (f"<p>{html.escaped(_told(reason))}</p>" for reason in scan.other_reasons)
    kinds = [state.word for state in scan.states]
    if "skipped" in kinds:
        titles = [f"file {number:,}" for number in range(1, len(kinds) + 1)]
        yield html.squares(kinds, titles, f"{scan.files_skipped:,} of {scan.files:,} files skipped")


def _told(reason: Reason, message: str = "") -> str:
    more = f" ({message})" if message else ""
    return f"{reason.value}: {reason.meaning}. Remedy: {reason.remedy}{more}"

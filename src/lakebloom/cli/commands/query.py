"""list, show, history, candidates, lookup and explain: commands that read. Only ``explain`` of SQL starts Spark."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebloom.cli.app import Session, verb
from lakebloom.cli.output import plain
from lakebloom.display.tables import amount, text_of

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebloom.index.query.query_reports import QueryReport
    from lakebloom.index.query.scan_reports import ScanReport

__all__ = ["add_to"]

Name = Annotated[str, typer.Argument(help="The name of the index.")]
Condition = Annotated[
    str, typer.Argument(help="A condition such as: user_id = 42 AND country IN ('de', 'fr') AND day IS NOT NULL")
]


class Unindexed(str, enum.Enum):
    """What a lookup does with unindexed files."""

    SCAN = "scan"
    SKIP = "skip"
    ERROR = "error"


def add_to(app: typer.Typer) -> None:
    """Add the verbs."""
    verb(app, "list", examples="lakebloom list --location /data/indexes\nlakebloom list --output json")(list_indexes)
    verb(app, examples="lakebloom show events_by_user")(show)
    verb(app, examples="lakebloom history events_by_user")(history)
    verb(app, examples=_CANDIDATES_EXAMPLES)(candidates)
    verb(app, examples=_LOOKUP_EXAMPLES)(lookup)
    verb(app, spark=True, examples=_EXPLAIN_EXAMPLES)(explain)


_CANDIDATES_EXAMPLES = """lakebloom candidates events_by_user "user_id = 42" """
_LOOKUP_EXAMPLES = """
lakebloom lookup events_by_user "user_id = 42"
lakebloom lookup events_by_user "user_id IN (1, 2) AND day >= '2024-01-01'" --columns user_id,amount --output json
"""
_EXPLAIN_EXAMPLES = """
lakebloom explain events_by_user "user_id = 42"
lakebloom explain "SELECT * FROM parquet.`/data/events` WHERE user_id = 42"
"""


def list_indexes(session: Session) -> None:
    """List all indexes, deleted ones included."""
    records = session.lake().indexes()
    columns = ("name", "~columns", "per", ">files", ">rows", ">size", ">of data", "changed", "state")
    rows = [
        (
            record.name,
            ", ".join(record.columns),
            str(record.granularity).replace("_", " "),
            f"{record.files:,}",
            f"{record.rows:,}",
            amount(record.size_bytes),
            f"{record.size_bytes / max(1, record.source_bytes):.1%}",
            text_of("timestamp_ms", record.timestamp_ms)[:10],
            record.state,
        )
        for record in records
    ]
    session.output.table(columns, rows, [plain(record) for record in records], empty="no indexes at this location")


def show(session: Session, name: Name) -> None:
    """Show one index as it is now."""
    session.output.record(session.lake().index(name))


def history(session: Session, name: Name) -> None:
    """Show the versions of an index, the newest first."""
    records = session.lake().history(name)
    columns = (">version", "when", "operation", "state", ">segments", ">units", "~summary")
    rows = [[text[:19] if name == "timestamp" else text for name, text in record.shown()] for record in records]
    session.output.table(columns, rows, [plain(record) for record in records])


def candidates(session: Session, name: Name, condition: Condition) -> None:
    """List the files and row groups that can match. Reads only the index."""
    lake = session.lake()
    found = lake.candidates(name, condition)
    units = lake.index(name).units
    rows = [
        (row["path"], f"{row['row_start']:,}", f"{row['row_count']:,}", ", ".join(map(str, row["row_groups"])))
        for row in found.to_pylist()
    ]
    data = {"units": units, "candidates": found.to_pylist()}
    session.output.table(("~path", ">first row", ">rows", "~row groups"), rows, data, empty="no file can match")
    session.output.note(f"{len(rows):,} of {units:,} units can match")


def lookup(
    session: Session,
    name: Name,
    condition: Condition,
    columns: Annotated[str | None, typer.Option(help="Columns to return, separated by commas.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of rows to return.")] = 100,
    unindexed: Annotated[Unindexed, typer.Option(help="What to do with unindexed files (new or changed).")] = (
        Unindexed.SCAN
    ),
    version: Annotated[
        int | None,
        typer.Option(help="Version of a Delta table, or snapshot of an Iceberg table."),
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option(help="Time at which the version was the newest, such as 2024-05-01T12:00:00Z.")
    ] = None,
) -> None:
    """Print the rows that match a condition, without Spark."""
    lake = session.lake()
    wanted = None if columns is None else [column.strip() for column in columns.split(",")]
    found = lake.lookup(
        name, condition, wanted, limit + 1, unindexed=unindexed.value, version=version, timestamp=timestamp
    )
    limited = found.num_rows > limit
    rows = found.slice(0, limit)
    session.output.table(
        [f"~{name}" for name in rows.schema.names],
        _cells(rows),
        {"rows": rows.to_pylist(), "num_rows": rows.num_rows, "limited": limited},
        empty="no rows",
    )
    if limited:
        session.output.note(f"more than {limit:,} rows; see --limit")


def _cells(table: pa.Table) -> list[list[str]]:
    return [["NULL" if value is None else str(value) for value in row.values()] for row in table.to_pylist()]


def explain(
    session: Session,
    query: Annotated[
        str, typer.Argument(help="A SQL query, where parquet.`/path` is a table; or the name of an index.")
    ],
    condition: Annotated[
        str | None, typer.Argument(help="With the name of an index: a condition such as user_id = 42. Needs no Spark.")
    ] = None,
) -> None:
    """Show which files a query skips, by which index, and why not more.

    Spark plans a SQL query but does not run it. A condition on an index needs no Spark.
    """
    lake = session.lake()
    if condition is not None or query in lake.catalog.names():
        report = lake.explain(query, condition)
    else:
        with session.spark_lake() as (_, enabled):
            enabled.enable()
            try:
                report = enabled.explain(query)
            finally:
                enabled.disable()
    session.output.text(str(report), _query_data(report))


def _query_data(report: QueryReport) -> dict[str, Any]:
    return {"scans": [_scan_data(scan) for scan in report.scans], "joins": [plain(join) for join in report.joins]}


def _scan_data(scan: ScanReport) -> dict[str, Any]:
    return {
        "table": scan.table,
        "use": scan.use.value,
        "predicate": scan.predicate,
        "files": scan.files,
        "files_kept": scan.files_kept,
        "files_not_covered": scan.files_not_covered,
        "files_stale": scan.files_stale,
        "files_of_table": scan.files_of_table,
        "partition_predicate": scan.partition_predicate,
        "units": scan.units,
        "units_kept": scan.units_kept,
        "bytes": scan.bytes,
        "bytes_kept": scan.bytes_kept,
        "reasons": [reason.value for reason in scan.reasons],
        "indexes": [plain(index) for index in scan.indexes],
        "parts": [plain(part) for part in scan.parts],
    }

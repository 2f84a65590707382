"""inspect and embed: filters inside Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakebloom.cli.app import Session, verb
from lakebloom.cli.output import plain
from lakebloom.display.tables import amount

if TYPE_CHECKING:
    from lakebloom.parquet.inspection import FilterRecord

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the verbs."""
    verb(app, examples="lakebloom inspect part-00000.parquet\nlakebloom inspect s3://lake/t/a.parquet -c user_id")(
        inspect
    )
    verb(app, spark=True, examples=_EMBED_EXAMPLES)(embed)


_EMBED_EXAMPLES = """
lakebloom embed part-00000.parquet --column user_id
lakebloom embed part-00000.parquet -c user_id --target with-filters.parquet --fpp 0.001
lakebloom embed /data/events -c user_id
"""


def inspect(
    session: Session,
    file: Annotated[str, typer.Argument(help="A Parquet file: a path or an object-store URI.")],
    column: Annotated[list[str] | None, typer.Option("--column", "-c", help="Only these columns; repeatable.")] = None,
) -> None:
    """Show the filters inside a Parquet file: size, fill, false-positive rate, distinct values, dictionary size."""
    from lakebloom.parquet.inspection import inspect_file

    found = inspect_file(file, column)
    sizes = (">filter", ">fill", ">rate", ">distinct", ">dictionary", ">filter/dictionary")
    columns = ("~column", ">row group", ">values", *sizes, "problem")
    session.output.table(
        columns,
        map(_cells, found.filters),
        {
            "file": found.file,
            "rows": found.rows,
            "row_groups": found.row_groups,
            "created_by": found.created_by,
            "filters": [plain(record) for record in found.filters],
            "columns_without_filter": found.columns_without_filter,
        },
        empty="no filters",
    )
    total = sum(record.filter_bytes for record in found.filters)
    session.output.note(f"{found.file}: {found.rows:,} rows in {found.row_groups} row groups, by {found.created_by}")
    session.output.note(f"{len(found.filters)} filters, {amount(total)}")
    if found.columns_without_filter:
        session.output.note(f"without a filter: {', '.join(found.columns_without_filter)}")


def _cells(record: FilterRecord) -> list[str]:
    known = record.problem is None
    dictionary = record.dictionary_bytes
    return [
        record.column,
        str(record.row_group),
        f"{record.values:,}",
        amount(record.filter_bytes),
        f"{record.fill:.1%}" if known else "",
        f"{record.fpp:.3%}" if known else "",
        f"{record.ndv:,.0f}" if known else "",
        "none" if dictionary is None else amount(dictionary),
        f"{record.filter_bytes / dictionary:.0%}" if dictionary else "",
        record.problem or "",
    ]


def embed(
    session: Session,
    path: Annotated[str, typer.Argument(help="A Parquet file; or a directory or a glob pattern, which starts Spark.")],
    column: Annotated[list[str], typer.Option("--column", "-c", help="A column to build filters for; repeatable.")],
    target: Annotated[str | None, typer.Option(help="Write to this file, and leave the original unchanged.")] = None,
    fpp: Annotated[float, typer.Option(help="False-positive rate of a filter.")] = 0.01,
    force: Annotated[bool, typer.Option("--force", help="Allow FLOAT and DOUBLE columns too.")] = False,
) -> None:
    """Add Bloom filters to Parquet files without rewriting their pages."""
    if target is None and _is_many(path):
        from lakebloom.spark.embed import embed_lake

        with session.spark() as spark, session.output.progress("embedding") as update:
            lake_report = embed_lake(
                spark, path, column, fpp, force=force, options=session.store_options, progress=update
            )
        session.output.record(lake_report)
        return
    from lakebloom.parquet import embed as embed_file

    report = embed_file(path, target, column, fpp, force=force, options=session.store_options)
    session.output.record(report, bytes_added=report.bytes_added)


def _is_many(path: str) -> bool:
    """Return whether a path is a directory or a pattern; in an object store, its suffix decides."""
    if Path(path).is_dir() or (any(sign in path for sign in "*?{[") and not Path(path).exists()):
        return True
    return "://" in path and not path.startswith("file:") and not path.endswith((".parquet", ".parq"))

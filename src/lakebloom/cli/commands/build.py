"""create, refresh and advise: the commands that run Spark jobs."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebloom.cli.app import Session, verb
from lakebloom.cli.error_message import ErrorMessage
from lakebloom.cli.exit_codes import code_of
from lakebloom.cli.output import plain
from lakebloom.errors import LakebloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebloom import Lakebloom
    from lakebloom.index.build.price import PriceTag
    from lakebloom.index.build.report import BuildReport

__all__ = ["add_to"]

Source = Annotated[str, typer.Argument(help="The table: a path, a glob pattern, or a name that Spark knows.")]
Format = Annotated[str, typer.Option("--format", help="The format of the files at a path.")]


class Mode(str, enum.Enum):
    """What a refresh updates."""

    QUICK = "quick"
    FULL = "full"


def add_to(app: typer.Typer) -> None:
    """Add the verbs."""
    verb(app, spark=True, examples=_CREATE_EXAMPLES)(create)
    verb(app, spark=True, examples=_REFRESH_EXAMPLES)(refresh)
    verb(app, spark=True, examples="lakebloom advise /data/events\nlakebloom advise /data/events -c user_id")(advise)


_CREATE_EXAMPLES = """
lakebloom create events_by_user /data/events --column user_id --dry-run
lakebloom create events_by_user /data/events -c user_id -c country --granularity row_group
lakebloom create events_by_user /data/events -c user_id --fpp 1e-4 --replace
lakebloom create by_key s3://lake/t -c key --fpp 1e-5 --store-option region=eu-west-1
"""
_REFRESH_EXAMPLES = """
lakebloom refresh events_by_user
lakebloom refresh events_by_user --mode full
lakebloom refresh --all
"""


def create(
    session: Session,
    name: Annotated[str, typer.Argument(help="The name of the index.")],
    source: Source,
    column: Annotated[list[str], typer.Option("--column", "-c", help="A column to index; repeatable.")],
    fpp: Annotated[str, typer.Option(help="False-positive rate of a filter; auto depends on the number of units.")] = (
        "auto"
    ),
    granularity: Annotated[
        str, typer.Option(help="What one filter covers: auto, file, row_group, page, or a number of rows.")
    ] = "auto",
    expected_items: Annotated[
        int | None, typer.Option(help="Distinct values per unit, to size filters (default: counted).")
    ] = None,
    global_filter: Annotated[
        bool, typer.Option("--global-filter", help="Also build one filter over each whole column, for joins.")
    ] = False,
    allow_plaintext_filters: Annotated[
        bool,
        typer.Option("--allow-plaintext-filters", help="Allow unencrypted filters of encrypted columns."),
    ] = False,
    format: Format = "parquet",
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace the index of this name; queries use it until the new one is ready."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the estimated cost, and build nothing.")] = False,
) -> None:
    """Build an index over a table. Prints the estimated cost first."""
    from lakebloom import BloomIndexConfig

    config = BloomIndexConfig(
        name=name,
        columns=column,
        fpp=_rate(fpp),
        expected_items=expected_items,
        granularity=_granularity(granularity),  # type: ignore[arg-type]
        global_filter=global_filter,
        allow_plaintext_filters=allow_plaintext_filters,
    )
    if dry_run and _needs_no_spark(source, format):
        session.output.record(session.lake().price_index(source, config, replace=replace))
        return
    with session.spark_lake() as (spark, lake):
        table = _table(spark, source, format)
        if dry_run:
            session.output.record(lake.price_index(table, config, replace=replace))
            return
        price: list[PriceTag] = []

        def quoted(tag: PriceTag) -> None:
            price.append(tag)
            session.output.note(str(tag))

        with session.output.progress("building") as update:
            report = lake.create_index(table, config, replace=replace, progress=update, quoted=quoted)
        report = report.with_seconds({"start": session.started_s, **report.seconds})
        session.output.record(report, price=plain(price[0]))
        _warn_skipped(session, report)


def refresh(
    session: Session,
    name: Annotated[str | None, typer.Argument(help="The name of the index.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Refresh all indexes of the location, one after the other.")
    ] = False,
    mode: Annotated[Mode, typer.Option(help="quick adds new and changed files; full also drops deleted files.")] = (
        Mode.QUICK
    ),
    allow_shrink: Annotated[
        bool, typer.Option("--allow-shrink", help="Refresh even if the table lost more than half of its files.")
    ] = False,
) -> None:
    """Index new and changed files. With --all, a failed index does not stop the others; its exit code is returned."""
    if (name is None) != everything:
        raise typer.BadParameter("name an index, or pass --all")
    with session.spark_lake() as (_, lake):
        if name is not None:
            report = _refreshed(session, lake, name, mode, allow_shrink=allow_shrink)
            session.output.record(report)
            _warn_skipped(session, report)
        else:
            _refresh_all(session, lake, mode, allow_shrink=allow_shrink)


def _refreshed(session: Session, lake: Lakebloom, name: str, mode: Mode, *, allow_shrink: bool) -> BuildReport:
    with session.output.progress(f"refreshing {name}") as update:
        return lake.refresh_index(name, mode.value, allow_shrink=allow_shrink, progress=update)


def _refresh_all(session: Session, lake: Lakebloom, mode: Mode, *, allow_shrink: bool) -> None:
    """Refresh all indexes that are not deleted. At the end, raises typer.Exit with the code of the first failure."""
    rows: list[tuple[str, ...]] = []
    data: list[dict[str, Any]] = []
    reports: list[BuildReport] = []
    failed: list[LakebloomError] = []
    for index in lake.indexes():
        if index.state == "deleted":
            continue
        try:
            report = _refreshed(session, lake, index.name, mode, allow_shrink=allow_shrink)
        except LakebloomError as error:
            failed.append(error)
            rows.append((index.name, f"{index.version:,}", "", "", f"failed: {error.code}"))
            data.append({"name": index.name, "version": index.version, **ErrorMessage.of(error).as_json()})
        else:
            reports.append(report)
            rows.append((report.name, f"{report.version:,}", f"{report.files:,}", f"{report.rows:,}", report.result))
            data.append(plain(report))
    session.output.table(
        ("name", ">version", ">files", ">rows", "~result"), rows, data, empty="no indexes at this location"
    )
    for report in reports:
        _warn_skipped(session, report)
    for message in map(ErrorMessage.of, failed):
        session.output.error(message)
    if failed:
        raise typer.Exit(code_of(failed[0]))


def advise(
    session: Session,
    source: Source,
    column: Annotated[list[str] | None, typer.Option("--column", "-c", help="Only these columns; repeatable.")] = None,
    format: Format = "parquet",
) -> None:
    """Sample a table and say which columns are worth an index, and why."""
    if _needs_no_spark(source, format):
        from lakebloom.index.build.advise import advise_on_path

        with session.output.status("sampling the table"):
            found = advise_on_path(source, column, session.store_options)
    else:
        with session.spark() as spark, session.output.status("sampling the table"):
            from lakebloom.spark.column_sampling import advise as advise_on

            found = advise_on(spark, _table(spark, source, format), column, session.store_options)
    numbers = {"one key skips", "min/max skip", "distinct in a file", "fpp", "size"}
    names = [name for name, _ in found[0].shown()]
    session.output.table(
        [f">{name}" if name in numbers else f"~{name}" if name in ("column", "why") else name for name in names],
        [[text for _, text in advice.shown()] for advice in found],
        [plain(advice) for advice in found],
    )
    good = [advice for advice in found if advice.verdict == "yes"]
    if good:
        columns = " ".join(f"-c {advice.column}" for advice in good)
        session.output.note(f"next: lakebloom create NAME {source} {columns} --dry-run")


def _needs_no_spark(source: str, format: str) -> bool:
    """Return whether the table is Parquet files on a local disk: these can be read without Spark."""
    return format == "parquet" and Path(source).exists()


def _warn_skipped(session: Session, report: BuildReport) -> None:
    if report.skipped:
        session.output.note(f"{len(report.skipped):,} files could not be indexed; queries read them in full")


def _table(spark: SparkSession, source: str, format: str) -> Any:
    from lakebloom.spark.sources.resolve import load

    return source if format == "parquet" else load(spark, source, format)


def _rate(text: str) -> Any:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise typer.BadParameter(f"fpp must be auto or a number between 0 and 1, not {text!r}") from None


def _granularity(text: str) -> str | int:
    return int(text) if text.isdigit() else text

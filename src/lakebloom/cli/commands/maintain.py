"""optimize, delete, restore, vacuum, status, verify and repair. Only ``repair`` starts Spark."""

from __future__ import annotations

import datetime
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from lakebloom.cli.app import Session, verb
from lakebloom.cli.exit_codes import ExitCode
from lakebloom.cli.output import plain
from lakebloom.display.tables import amount, text_of

if TYPE_CHECKING:
    from lakebloom.index.maintain.verify import VerifyReport

__all__ = ["add_to"]

Name = Annotated[str, typer.Argument(help="The name of the index.")]


def add_to(app: typer.Typer) -> None:
    """Add the verbs."""
    verb(app, examples="lakebloom optimize events_by_user")(optimize)
    verb(app, examples="lakebloom delete events_by_user\nlakebloom delete events_by_user --force")(delete)
    verb(app, examples="lakebloom restore events_by_user")(restore)
    verb(app, examples="lakebloom vacuum events_by_user --retention-hours 0")(vacuum)
    verb(app, examples="lakebloom status\nlakebloom status events_by_user --fail-if-stale --max-lag 10")(status)
    verb(app, examples="lakebloom verify events_by_user\nlakebloom verify events_by_user --sample 0.01")(verify)
    verb(app, spark=True, examples="lakebloom repair events_by_user\nlakebloom repair events_by_user --without-spark")(
        repair
    )


def optimize(session: Session, name: Name) -> None:
    """Merge small segments. Reads no data files."""
    with session.output.progress(f"optimizing {name}") as update:
        report = session.lake().optimize_index(name, progress=update)
    session.output.record(report)


def delete(
    session: Session,
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Remove the index permanently, even if it is damaged.")
    ] = False,
) -> None:
    """Stop using an index. Until it is vacuumed, `restore` brings it back."""
    session.output.record(session.lake().delete_index(name, force=force))


def restore(session: Session, name: Name) -> None:
    """Bring a deleted index back."""
    session.output.record(session.lake().restore_index(name))


def vacuum(
    session: Session,
    name: Name,
    retention_hours: Annotated[
        float | None, typer.Option(min=0, help="How long replaced versions stay readable.", show_default="7 days")
    ] = None,
) -> None:
    """Remove old versions and unused files; of a deleted index, everything."""
    retention = None if retention_hours is None else datetime.timedelta(hours=retention_hours)
    with session.output.progress(f"vacuuming {name}") as update:
        report = session.lake().vacuum_index(name, retention, progress=update)
    session.output.record(report)


def status(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(help="The name of the index (default: all that are not deleted).")
    ] = None,
    fail_if_stale: Annotated[
        bool, typer.Option("--fail-if-stale", help="Exit with code 4 if a refresh is due, for monitoring.")
    ] = False,
    max_lag: Annotated[int, typer.Option(min=0, help="Number of new or changed files before a refresh is due.")] = 0,
) -> None:
    """Compare indexes with their tables: coverage, lag, size and rate. Reads no data."""
    found = session.lake().status(name)
    files = (">coverage", ">files", ">new", ">changed", ">gone")
    columns = ("name", "state", *files, ">segments", ">size", ">measured rate", "refreshed", "~problem")
    rows = [
        (
            each.name,
            each.state,
            f"{each.coverage:.1%}",
            f"{each.files:,}",
            f"{each.files_new:,}",
            f"{each.files_changed:,}",
            f"{each.files_gone:,}",
            f"{each.segments:,}",
            amount(each.size_bytes),
            f"{each.fpp_measured:.2g}",
            "" if each.refreshed_ms is None else text_of("timestamp_ms", each.refreshed_ms),
            each.problem,
        )
        for each in found
    ]
    data = [plain(each, lag=each.lag, stale=each.is_stale(max_lag)) for each in found]
    session.output.table(columns, rows, data, empty="no indexes at this location")
    stale = [each.name for each in found if each.is_stale(max_lag)]
    if stale:
        session.output.note(f"a refresh is due: {', '.join(stale)}")
        if fail_if_stale:
            raise typer.Exit(ExitCode.STATE)


def verify(
    session: Session,
    name: Name,
    sample: Annotated[
        float | None, typer.Option(min=0, max=1, help="Fraction of data files to re-read (default: all).")
    ] = None,
) -> None:
    """Check all checksums, and prove that no value is missing from its filter. Exits with code 5 if one is."""
    with session.output.progress(f"verifying {name}") as update:
        report = session.lake().verify_index(name, sample, progress=update)
    session.output.record(report, ok=report.ok)
    session.output.note(_verdict(report))
    if not report.ok:
        raise typer.Exit(ExitCode.DAMAGED)


def repair(
    session: Session,
    name: Name,
    without_spark: Annotated[
        bool, typer.Option("--without-spark", help="Only drop damaged parts; rebuild nothing.")
    ] = False,
) -> None:
    """Drop damaged parts, and rebuild them from the table."""
    with ExitStack() as stack:
        lake = session.lake() if without_spark else stack.enter_context(session.spark_lake())[1]
        update = stack.enter_context(session.output.progress(f"repairing {name}"))
        report = lake.repair_index(name, progress=update)
    session.output.record(report)
    if not report.done:
        session.output.note("nothing is damaged")
    for left in report.left:
        session.output.note(left)


def _verdict(report: VerifyReport) -> str:
    if report.corrupt:
        return f"damaged: run `lakebloom repair {report.name}`; until then queries read all files"
    if not report.proven:
        return "unknown: some files of the index could not be read; check the store, and verify again"
    if report.false_negatives:
        return "wrong: values are missing from their filters; delete the index, and report this bug"
    changed = len(report.stale) + len(report.not_indexed)
    todo = f"; {changed:,} files are unindexed, `lakebloom refresh {report.name}` adds them" if changed else ""
    return f"ok: no value of the checked files is missing{todo}"

"""report and demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakebloom.cli.app import Session, verb
from lakebloom.display.tables import amount

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the verbs."""
    verb(app, examples=_REPORT_EXAMPLES)(report)
    verb(app, examples="lakebloom demo")(demo)


_REPORT_EXAMPLES = """
lakebloom report events_by_user -o report.html
lakebloom report events_by_user -o report.html --where "user_id = 42"
"""


def report(
    session: Session,
    name: Annotated[str, typer.Argument(help="The name of the index.")],
    to: Annotated[Path, typer.Option("--to", "-o", help="The HTML file to write.")] = Path("report.html"),
    where: Annotated[str | None, typer.Option(help="A condition to draw a skip map for, such as: user_id = 42")] = None,
) -> None:
    """Write an HTML page about an index: coverage, sizes, rates, a skip map, and what to do next."""
    size_bytes = session.lake().report(name, to, where).stat().st_size
    session.output.text(f"{to}: {amount(size_bytes)}", {"file": str(to), "size_bytes": size_bytes})


def demo(session: Session) -> None:
    """Show what lakebloom does, on a temporary lake of 400 files."""
    from lakebloom.cli.commands.demo import main

    main()

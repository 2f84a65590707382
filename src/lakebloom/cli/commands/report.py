"""report and demo: things to look at."""

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
    name: Annotated[str, typer.Argument(help="The index's name.")],
    to: Annotated[Path, typer.Option("--to", "-o", help="Where to write the page.")] = Path("report.html"),
    where: Annotated[str | None, typer.Option(help="A condition whose skip map to draw, such as: user_id = 42")] = None,
) -> None:
    """Write a page about an index: coverage, sizes, rates, a skip map, and what to do next."""
    size_bytes = session.lake().report(name, to, where).stat().st_size
    session.output.text(f"{to}: {amount(size_bytes)}", {"file": str(to), "size_bytes": size_bytes})


def demo(session: Session) -> None:
    """Show what lakebloom does, over a lake that it makes for the purpose and removes again."""
    from lakebloom.cli.commands.demo import main

    main()

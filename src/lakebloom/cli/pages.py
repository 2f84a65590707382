"""report and demo: things to look at."""

from __future__ import annotations

import typer

from lakebloom.cli.verbs import Session, verb

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Add the verbs."""
    verb(app, examples="lakebloom demo")(demo)


def demo(session: Session) -> None:
    """Show what lakebloom does, over a lake that it makes for the purpose and removes again."""
    from lakebloom.cli.demo import main

    main()

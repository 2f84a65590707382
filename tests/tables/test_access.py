"""How the files of a table are reached, and what of it is shown."""

from __future__ import annotations

from rich.pretty import pretty_repr

from lakebloom.tables.access import TableAccess


def test_options_are_not_shown() -> None:
    access = TableAccess({"aws_secret_access_key": "hunter2"}, case_sensitive=True)
    for shown in (repr(access), str(access), pretty_repr(access), pretty_repr([access])):
        assert "hunter2" not in shown
        assert "case_sensitive=True" in shown

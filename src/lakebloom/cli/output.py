"""What ``--output text`` and ``--output json`` print: results to stdout, everything else to stderr.

A command passes both forms, and does not know which one is printed.
"""

from __future__ import annotations

import abc
import enum
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from lakebloom.display.visible import visible, visible_json, visible_lines

if TYPE_CHECKING:
    from lakebloom.cli.error_message import ErrorMessage
    from lakebloom.display.progress import Progress
    from lakebloom.display.tables import Printable

__all__ = ["JsonOutput", "Output", "OutputKind", "TextOutput", "plain"]

_UNWRAPPED = 1000
"""The width where stdout is not a terminal: piped lines must not be folded."""


class OutputKind(str, enum.Enum):
    """The forms."""

    TEXT = "text"
    JSON = "json"


def plain(record: Any, **more: Any) -> dict[str, Any]:
    """Return a record's fields for JSON, with ``more`` added."""
    return {**asdict(record), **more}


class Output(abc.ABC):
    """Prints the results of a command."""

    @abc.abstractmethod
    def record(self, record: Printable, **more: Any) -> None:
        """Show one record: a line for each field, or an object. ``more`` is for programs only."""

    @abc.abstractmethod
    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], data: Any, *, empty: str = "none") -> None:
        """Show a table. A name with ``>`` in front is a column of numbers, with ``~`` a column that may be folded."""

    @abc.abstractmethod
    def text(self, text: str, data: Any) -> None:
        """Show a text, or the same content as data."""

    @abc.abstractmethod
    def note(self, text: str) -> None:
        """Show a remark next to the result; programs do not get it."""

    @abc.abstractmethod
    def status(self, text: str) -> AbstractContextManager[object]:
        """Show what the command waits for, while the block runs."""

    @abc.abstractmethod
    def error(self, message: ErrorMessage) -> None:
        """Show an error."""

    @abc.abstractmethod
    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[[Progress], None] | bool]:
        """Show the progress of a job while the block runs, and yield a value for ``progress=``."""


class TextOutput(Output):
    """For people: tables on stdout, a progress bar on stderr if that is a terminal."""

    def __init__(self) -> None:
        self._out = _console(sys.stdout)
        # stderr=True looks sys.stderr up at each print: lines printed while a bar is drawn go above it.
        self._err = Console(stderr=True, highlight=False) if sys.stderr.isatty() else _console(sys.stderr)

    def record(self, record: Printable, **more: Any) -> None:
        """See Output."""
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in record.shown():
            table.add_row(Text(visible(name)), Text(visible(value)))
        self._print(table)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], data: Any, *, empty: str = "none") -> None:
        """See Output."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        for column in columns:
            justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
            folded = column.startswith("~")
            table.add_column(Text(visible(column.lstrip(">~"))), justify=justify, no_wrap=not folded, overflow="fold")
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        if table.row_count:
            self._print(table)
        else:
            self._out.print(f"({empty})", highlight=False)

    def text(self, text: str, data: Any) -> None:
        """See Output."""
        self._out.print(Text(visible_lines(text)), soft_wrap=True)

    def note(self, text: str) -> None:
        """See Output."""
        self._err.print(Text(visible_lines(text), style="dim"), soft_wrap=True)

    def status(self, text: str) -> AbstractContextManager[object]:
        """See Output."""
        return self._err.status(escape(visible(text))) if self._err.is_terminal else nullcontext()

    def error(self, message: ErrorMessage) -> None:
        """See Output."""
        head, rest = visible_lines(message.paragraph()).split(":", 1)
        self._err.print(Text.assemble((head, "bold red"), f":{rest}"), soft_wrap=not self._err.is_terminal)

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[[Progress], None] | bool]:
        """See Output."""
        from lakebloom.display.progress import shown

        with shown(title, console=self._err) as update:
            yield False if update is None else update

    def _print(self, table: Table) -> None:
        with self._out.capture() as captured:
            self._out.print(table)
        # rich pads the last column too.
        lines = captured.get().splitlines()
        self._out.file.write("\n".join(line.rstrip() for line in lines) + "\n")


class JsonOutput(Output):
    """For programs: one JSON value on stdout, errors as JSON on stderr."""

    def record(self, record: Printable, **more: Any) -> None:
        """See Output."""
        _write_json(plain(record, **more))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], data: Any, *, empty: str = "none") -> None:
        """See Output."""
        _write_json(data)

    def text(self, text: str, data: Any) -> None:
        """See Output."""
        _write_json(data)

    def note(self, text: str) -> None:
        """See Output."""

    def status(self, text: str) -> AbstractContextManager[object]:
        """See Output."""
        return nullcontext()

    def error(self, message: ErrorMessage) -> None:
        """See Output."""
        sys.stderr.write(_json(message.as_json(), indent=0) + "\n")

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[[Progress], None] | bool]:
        """See Output."""
        yield False


def _write_json(data: Any) -> None:
    sys.stdout.write(_json(data, indent=2) + "\n")


def _json(data: Any, *, indent: int) -> str:
    try:
        encoded = msgspec.json.encode(data, enc_hook=str)
    except UnicodeEncodeError:  # a name that is not UTF-8
        return json.dumps(msgspec.to_builtins(data, enc_hook=str), indent=indent or None)
    return visible_json((msgspec.json.format(encoded, indent=indent) if indent else encoded).decode())


def _console(stream: Any) -> Console:
    console = Console(file=stream, highlight=False)
    return console if console.is_terminal else Console(file=stream, highlight=False, width=_UNWRAPPED)

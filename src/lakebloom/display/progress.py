"""Shows the progress of an operation on a terminal or in a notebook.

Nothing is shown in the first ``AFTER_S`` seconds, so quick operations show nothing. At the end the display is removed,
also after an error. Nothing is drawn in a pipe, in cron or in a background thread. A function from the caller replaces
the display; ``progress=False`` turns it off. The command line uses this module too.
"""

from __future__ import annotations

import contextvars
import html
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lakebloom.display.tables import amount
from lakebloom.display.visible import visible
from lakebloom.locks import new_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

__all__ = ["AFTER_S", "Progress", "pace", "shown"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a build."""

    files_done: int
    files: int
    bytes_done: int
    bytes: int
    rows_done: int


if TYPE_CHECKING:
    Report: TypeAlias = Callable[[Progress], None]
    ProgressOption: TypeAlias = Report | bool | None


AFTER_S = 2.0
"""Shorter operations show nothing."""
_EVERY_S = 0.5
_TICK_S = 0.2

_active: contextvars.ContextVar[_Display | None] = contextvars.ContextVar("lakebloom_progress", default=None)


@contextmanager
def shown(
    title: str,
    progress: ProgressOption = None,
    console: Console | None = None,
    quieten: Callable[[], None] | None = None,
) -> Iterator[Report | None]:
    """Show the progress of the block, and yield the function that reports it; None if nothing is shown.

    ``progress`` is the caller's argument: a function, False, or None or True to show it on a terminal or notebook.
    An operation inside another one reports to the outer one. ``quieten`` is called regularly: it keeps others, such as
    Spark, from drawing on the same line.
    """
    if callable(progress):
        yield progress
        return
    outer = _active.get()
    if outer is not None and progress is not False:
        yield outer.update
        return
    screen = None if progress is False else _screen(title, console)
    if screen is None:
        yield None
        return
    display = _Display(screen, quieten)
    token = _active.set(display)
    try:
        with display:
            yield display.update
    finally:
        _active.reset(token)


def _screen(title: str, console: Console | None) -> _Screen | None:
    """Return the screen to draw on; None if there is none."""
    if threading.current_thread() is not threading.main_thread():
        return None  # a background thread must not draw over what the user types
    display = _notebook_display()
    if display is not None:
        return _Notebook(title, display)
    stream = sys.stderr if console is None else console.file
    try:
        is_terminal = stream is not None and stream.isatty()
    except ValueError:  # stderr is closed
        is_terminal = False
    return _Terminal(title, console) if is_terminal else None


class _Screen(Protocol):
    def draw(self, done: Progress | None, elapsed_s: float) -> None:
        """Show the progress; None before the first file is done."""

    def erase(self) -> None:
        """Remove the display."""


class _Display:
    """Draws regularly, in a thread that ends with the block."""

    def __init__(self, screen: _Screen, quieten: Callable[[], None] | None = None) -> None:
        self._screen, self._quieten = screen, quieten
        self._lock = new_lock()
        self._over = threading.Event()
        self._started_s = time.monotonic()
        self._latest: Progress | None = None
        self._drawn = False
        context = contextvars.copy_context()  # the notebook finds the cell by this context
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="lakebloom-display", daemon=True)

    def __enter__(self) -> _Display:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        with self._lock:
            if self._drawn:
                with suppress(Exception):
                    self._screen.erase()

    def update(self, done: Progress) -> None:
        """Record the progress, and show it if it is time."""
        with self._lock:
            self._latest = done
            if self._drawn or time.monotonic() - self._started_s >= AFTER_S:
                self._draw()

    def _run(self) -> None:
        next_s = self._started_s + AFTER_S
        while not self._over.wait(_TICK_S):
            if self._quieten is not None:
                with suppress(Exception):
                    self._quieten()
            if time.monotonic() >= next_s:
                with self._lock:
                    self._draw()
                next_s = time.monotonic() + _EVERY_S

    def _draw(self) -> None:
        if self._over.is_set():
            return
        self._drawn = True
        # An error of the display must not fail the operation.
        with suppress(Exception):
            self._screen.draw(self._latest, time.monotonic() - self._started_s)


class _Terminal:
    """A bar on stderr; other output appears above it."""

    def __init__(self, title: str, console: Console | None) -> None:
        self._title, self._console = title, console
        self._stack = ExitStack()
        self._update: Report | None = None
        self._told: Progress | None = None

    def draw(self, done: Progress | None, elapsed_s: float) -> None:
        """See _Screen."""
        if self._update is None:
            from rich.console import Console
            from rich.markup import escape

            from lakebloom.display.progress_bar import bar

            console = self._console or Console(stderr=True)
            self._update = self._stack.enter_context(bar(console, escape(visible(self._title)), transient=True))
        if done is not None and done is not self._told:
            self._told = done
            self._update(done)

    def erase(self) -> None:
        """See _Screen."""
        self._stack.close()


class _Notebook:
    """One line in the output of a cell, which is updated."""

    def __init__(self, title: str, display: Any) -> None:
        self._title, self._display = title, display
        self._handle: Any = None
        self._job_at_s: float | None = None

    def draw(self, done: Progress | None, elapsed_s: float) -> None:
        """See _Screen."""
        if done is not None and self._job_at_s is None:
            self._job_at_s = elapsed_s
        self._show(_Line(line(self._title, done, elapsed_s, self._job_at_s or 0.0)))

    def erase(self) -> None:
        """See _Screen."""
        self._show(_Line(""))

    def _show(self, shown: _Line) -> None:
        if self._handle is None:
            self._handle = self._display(shown, display_id=True)
        else:
            self._handle.update(shown)


class _Line:
    """A text for a notebook."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        style = "margin: 0; font-variant-numeric: tabular-nums"
        return f'<pre style="{style}">{html.escape(self._text)}</pre>' if self._text else ""


def _notebook_display() -> Any:
    """Return the display function of IPython if this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = getattr(ipython, "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    import importlib

    return importlib.import_module("IPython.display").display


def line(title: str, done: Progress | None, elapsed_s: float, job_at_s: float = 0.0) -> str:
    """Return the progress of an operation as one line of text.

    >>> line("building by_user", Progress(12, 40, 30_000_000, 100_000_000, 5), 8, 2)
    'building by_user  ██████░░░░░░░░░░░░░░  12 of 40 files  8 s  5 MB/s, about 14 s left'
    >>> line("optimizing by_user", None, 3)
    'optimizing by_user  3 s'
    """
    words = [visible(title)]
    if done is not None and done.files:
        share = done.bytes_done / done.bytes if done.bytes else done.files_done / done.files
        full = round(20 * min(1.0, share))
        words += ["█" * full + "░" * (20 - full), f"{done.files_done:,} of {done.files:,} files"]
    words.append(_duration(elapsed_s))
    if done is not None:
        words.append(pace(done.bytes_done, done.bytes, elapsed_s - job_at_s, elapsed_s - job_at_s))
    return "  ".join(filter(None, words))


def pace(done: float, total: float, elapsed_at_s: float, now_s: float) -> str:
    """Return the speed and the remaining time, if ``done`` of ``total`` bytes were done after some seconds.

    Jobs report in steps of several files, so the speed is that of the whole time, not of the last step.

    >>> pace(0, 100e6, 0, 5), pace(50e6, 100e6, 10, 12), pace(100e6, 100e6, 20, 20)
    ('', '5 MB/s, about 8 s left', '5 MB/s')
    """
    if not done or not elapsed_at_s:
        return ""
    rate = done / elapsed_at_s
    left_s = (total - done) / rate - (now_s - elapsed_at_s)
    if done >= total:
        return f"{amount(rate)}/s"
    return f"{amount(rate)}/s, about {_duration(max(1.0, left_s))} left"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

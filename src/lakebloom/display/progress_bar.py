"""A progress bar: files, bytes, speed and remaining time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from lakebloom.display.progress import pace

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Task

    from lakebloom.display.progress import Progress as Done

__all__ = ["bar"]


class _Pace(ProgressColumn):
    def render(self, task: Task) -> Text:
        """See ProgressColumn."""
        return Text(pace(task.completed, task.total or 0, task.fields["at_s"], task.elapsed or 0), style="dim")


@contextmanager
def bar(console: Console, title: str, *, transient: bool = False) -> Iterator[Callable[[Done], None]]:
    """Draw a bar until the block ends, and yield the function that moves it. It shows the bytes of finished files."""
    columns = (
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[files]}"),
        TimeElapsedColumn(),
        _Pace(),
    )
    with Progress(*columns, console=console, transient=transient) as progress:
        task = progress.add_task(title, total=None, files="", at_s=0.0)

        def update(done: Done) -> None:
            files = f"{done.files_done:,} of {done.files:,} files"
            if not progress.tasks[0].total:  # the job begins, after listing and planning
                progress.reset(task, total=done.bytes or done.files)
            at_s = progress.tasks[0].elapsed or 0.0
            moved, total = (done.bytes_done, done.bytes) if done.bytes else (done.files_done, done.files)
            progress.update(task, completed=moved, total=total, files=files, at_s=at_s if done.bytes else 0.0)

        yield update

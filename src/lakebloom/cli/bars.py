"""A bar for a running job: files, bytes, rate and the time that is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from lakebloom.printing import amount

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Task

    from lakebloom.index.plan import Progress as Done

__all__ = ["bar", "pace"]


def pace(done: float, total: float, elapsed_at_s: float, now_s: float) -> str:
    """Return the rate and the time left, when ``done`` of ``total`` bytes were done after some seconds.

    Jobs report in steps, a group of files each, so the rate is that of the whole time and not of the last step.

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


class _Pace(ProgressColumn):
    def render(self, task: Task) -> Text:
        """See ProgressColumn."""
        return Text(pace(task.completed, task.total or 0, task.fields["at_s"], task.elapsed or 0), style="dim")


@contextmanager
def bar(console: Console, title: str) -> Iterator[Callable[[Done], None]]:
    """Draw a bar until the block ends, and yield what moves it on. It moves by the bytes of files that are done."""
    columns = (
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[files]}"),
        TimeElapsedColumn(),
        _Pace(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=None, files="", at_s=0.0)

        def update(done: Done) -> None:
            files = f"{done.files_done:,} of {done.files:,} files"
            if not progress.tasks[0].total:  # the job begins; listing and planning are over
                progress.reset(task, total=done.bytes)
            at_s = progress.tasks[0].elapsed or 0.0
            progress.update(task, completed=done.bytes_done, total=done.bytes, files=files, at_s=at_s)

        yield update

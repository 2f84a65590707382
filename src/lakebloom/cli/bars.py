"""A bar for a running job: files, bytes, rate and the time that is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lakebloom.index.plan import Progress as Done

__all__ = ["bar"]


@contextmanager
def bar(console: Console, title: str) -> Iterator[Callable[[Done], None]]:
    """Draw a bar until the block ends, and yield what moves it on. It moves by the bytes of files that are done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[files]}"),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=False) as progress:
        task = progress.add_task(title, total=None, files="")

        def update(done: Done) -> None:
            files = f"{done.files_done:,}/{done.files:,} files"
            progress.update(task, completed=done.bytes_done, total=done.bytes, files=files)

        yield update

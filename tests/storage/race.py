"""Does put_if_absent let exactly one writer through?

`assert_single_winner` is the check; it is itself tested with a storage that lets two through.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lakebloom.errors import AlreadyExistsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakebloom.storage import Storage

__all__ = ["assert_single_winner", "content_of", "race_threads", "run_writer"]


def content_of(writer: int) -> bytes:
    """What only this writer stores; long enough that a torn write would show."""
    return f"{writer}|".encode() * 5_000


def run_writer(storage: Storage, writer: int, names: Sequence[str]) -> set[str]:
    """The names that this writer got, trying each once, in order."""
    won = set()
    for name in names:
        try:
            storage.put_if_absent(name, content_of(writer))
        except AlreadyExistsError:
            continue
        won.add(name)
    return won


def race_threads(reopen: Callable[[], Storage], writers: int, names: Sequence[str]) -> dict[int, set[str]]:
    """What each of several threads won. They begin together and take the names in the same order."""
    start = threading.Barrier(writers)

    def run(writer: int) -> set[str]:
        storage = reopen()
        start.wait(timeout=60)
        return run_writer(storage, writer, names)

    with ThreadPoolExecutor(writers) as pool:
        return dict(enumerate(pool.map(run, range(writers))))


def assert_single_winner(storage: Storage, won: Mapping[int, set[str]], names: Sequence[str]) -> None:
    """Each name has one winner, and what is stored there is whole and the winner's."""
    for name in names:
        winners = [writer for writer, taken in won.items() if name in taken]
        assert len(winners) == 1, f"{name} has {len(winners)} winners: {winners}"
        assert bytes(storage.read(name)) == content_of(winners[0])
    assert sorted(file.path for file in storage.list("")) == sorted(names)

"""Refreshes indexes in the background after writes to their tables.

One refresh runs at a time. It lists the table when it begins, so it covers all earlier writes; writes during a refresh
cause one more. There is a thread only while there is something to do. Nothing here raises or waits, except ``wait``: a
write must not be delayed or fail.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import msgspec

from lakebloom.errors import IndexNotFoundError, IndexStateError, LakebloomError
from lakebloom.index.current_table import places_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lakebloom.store.records import Commit

__all__ = ["AutoRefresh", "Written", "indexes_over"]

_LOG = logging.getLogger("lakebloom")
_NAME = "lakebloom-auto-refresh"


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A write of a session: its places."""

    paths: tuple[str, ...] = ()
    """URIs, canonical."""
    tables: tuple[tuple[str, ...], ...] = ()
    """Database and name."""


class AutoRefresh:
    """Calls ``refresh`` for the indexes that ``find`` names."""

    def __init__(
        self,
        find: Callable[[Iterable[Written]], Iterable[str]],
        refresh: Callable[[str], object],
        *,
        running: bool = True,
    ) -> None:
        self._find = find
        self._refresh = refresh
        self._changed = threading.Condition()
        self._written: list[Written] = []
        self._due: dict[str, None] = {}
        self._is_busy = False
        self._problems: dict[str, str] = {}
        self.running = False

    def problem(self, name: str) -> str:
        """Return why the last refresh of an index failed; "" if it did not."""
        return self._problems.get(name, "")

    def wrote(self, written: Written) -> None:
        """Note a write. The refresh happens in another thread."""
        with self._changed:
            if not self.running:
                return
            self._written.append(written)
            if not self._is_busy:
                self._is_busy = True
                threading.Thread(target=self._work, name=_NAME, daemon=True).start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is left to do; return False after the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_busy, timeout_s)

    def start(self) -> None:
        """Handle writes from now on."""
        with self._changed:
            self.running = True

    def stop(self) -> None:
        """Start no more refreshes. A running one finishes."""
        with self._changed:
            self.running = False

    def _work(self) -> None:
        while (name := self._next()) is not None:
            try:
                self._refresh(name)
            except (IndexNotFoundError, IndexStateError):
                self._problems.pop(name, None)  # the index is gone: nothing to refresh
            except Exception as error:
                self._failed(name, str(error) if isinstance(error, LakebloomError) else repr(error))
            else:
                self._problems.pop(name, None)

    def _next(self) -> str | None:
        """Return the next index to refresh; None if there is none, and then the thread ends."""
        while True:
            with self._changed:
                written, self._written = self._written, []
                if not self.running or not (written or self._due):
                    self._due.clear()
                    self._is_busy = False
                    self._changed.notify_all()
                    return None
                if not written:
                    name = next(iter(self._due))
                    del self._due[name]
                    return name
            try:
                self._due.update(dict.fromkeys(self._find(written)))
            except Exception as error:
                self._failed("", repr(error))

    def _failed(self, name: str, problem: str) -> None:
        if self.running and self._problems.get(name) != problem:  # log it once, and not when a session ends
            self._problems[name] = problem
            what = f"of index {name!r} " if name else ""
            _LOG.warning("an automatic refresh %sfailed, and is tried again after the next write: %s", what, problem)


def indexes_over(commits: Mapping[str, Commit | Exception], written: Iterable[Written]) -> list[str]:
    """Return the names of the active indexes whose tables overlap the written places."""
    paths = {path.rstrip("/") for each in written for path in each.paths}
    tables = {_folded(table) for each in written for table in each.tables}
    return [
        name
        for name, commit in commits.items()
        if not isinstance(commit, Exception) and commit.state == "active" and _is_over(commit, paths, tables)
    ]


def _is_over(commit: Commit, paths: set[str], tables: set[tuple[str, ...]]) -> bool:
    catalog = commit.table.catalog
    if catalog is not None and _folded(catalog.name) in tables:
        return True
    places = [place.rstrip("/") for place in places_of(commit.table)]
    return any(_meet(place, path) for place in places for path in paths)


def _meet(place: str, path: str) -> bool:
    """Tell whether two directories are equal or one contains the other."""
    return place == path or place.startswith(f"{path}/") or path.startswith(f"{place}/")


def _folded(name: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in name)

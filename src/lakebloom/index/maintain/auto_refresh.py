"""Refreshing indexes in the background after their tables were written to.

One refresh runs at a time. It lists the table when it begins, so all writes that came before are done by it: writes
that come while it runs cause one more. There is a thread only while there is something to do. Nothing here raises or
waits, except ``wait``: who reports a write must not notice.
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

    from lakebloom.store.records import Entry

__all__ = ["AutoRefresh", "Written", "indexes_over"]

_LOG = logging.getLogger("lakebloom")
_NAME = "lakebloom-auto-refresh"


class Written(msgspec.Struct, frozen=True):
    """Where a session wrote."""

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
        """Return why the last refresh of an index failed; "" where it did not."""
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
        """Wait until nothing is left to do, and tell whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_busy, timeout_s)

    def start(self) -> None:
        """Take notice of writes from now on."""
        with self._changed:
            self.running = True

    def stop(self) -> None:
        """Begin no other refresh. One that runs comes to its end."""
        with self._changed:
            self.running = False

    def _work(self) -> None:
        while (name := self._next()) is not None:
            try:
                self._refresh(name)
            except (IndexNotFoundError, IndexStateError):
                self._problems.pop(name, None)  # it is gone: nothing has to be refreshed
            except Exception as error:
                self._failed(name, str(error) if isinstance(error, LakebloomError) else repr(error))
            else:
                self._problems.pop(name, None)

    def _next(self) -> str | None:
        """Return the index whose turn it is; None, and the thread ends, where there is none."""
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
        if self.running and self._problems.get(name) != problem:  # once, and not when a session ends
            self._problems[name] = problem
            what = f"of index {name!r} " if name else ""
            _LOG.warning("an automatic refresh %sfailed, and is tried again after the next write: %s", what, problem)


def indexes_over(entries: Mapping[str, Entry | Exception], written: Iterable[Written]) -> list[str]:
    """Return the names of the indexes in use whose tables lie where something was written."""
    paths = {path.rstrip("/") for each in written for path in each.paths}
    tables = {_folded(table) for each in written for table in each.tables}
    return [
        name
        for name, entry in entries.items()
        if not isinstance(entry, Exception) and entry.state == "active" and _is_over(entry, paths, tables)
    ]


def _is_over(entry: Entry, paths: set[str], tables: set[tuple[str, ...]]) -> bool:
    catalog = entry.source.catalog
    if catalog is not None and _folded(catalog.name) in tables:
        return True
    places = [place.rstrip("/") for place in places_of(entry.source)]
    return any(_meet(place, path) for place in places for path in paths)


def _meet(place: str, path: str) -> bool:
    """Tell whether one of two directories lies in the other, or is the other."""
    return place == path or place.startswith(f"{path}/") or path.startswith(f"{place}/")


def _folded(name: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in name)

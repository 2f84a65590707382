"""The files of a table as they are now, listed again only when something may have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from lakebloom.locks import new_lock
from lakebloom.tables.listing.inotify import Watch
from lakebloom.tables.listing.listing import list_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebloom.tables.file_identity import TableFile

__all__ = ["Inventory", "Lister"]


class Lister(Protocol):
    """Lists a table under a watch."""

    def __call__(
        self, options: Mapping[str, str], watch: Watch | None = None, *, look_above: bool = True
    ) -> Sequence[TableFile]:
        """Return the files, sorted by URI."""


class Inventory:
    """The files at some locations. On local disk they are watched between questions; elsewhere each question lists."""

    def __init__(self, locations: Sequence[str], options: Mapping[str, str], lister: Lister | None = None) -> None:
        """``lister`` lists a table that is not simply all that lies at its locations."""
        self._locations, self._options = tuple(locations), options
        self._lister = lister
        self._lock = new_lock()
        self._is_plain = False
        self._listed: tuple[Watch, Sequence[TableFile]] | None = None

    def files(self) -> Sequence[TableFile]:
        """Return the files, sorted by URI; the same list for as long as nothing changed.

        Whoever finds that something may have changed lists for itself. A list that another began earlier may lack a
        file that is there by now, and a store that does not answer one must not hold all.
        """
        with self._lock:
            if self._listed is not None and self._listed[0].is_quiet():
                return self._listed[1]
            self._listed = None  # whatever is raised below, what was known is not
        watch = Watch()
        # Above an object store's table is looked once: each lookup would ask for what hardly ever comes.
        look_above = not self._is_plain
        if self._lister is None:
            files: Sequence[TableFile] = list_files(self._locations, self._options, watch, look_above=look_above)
        else:
            files = self._lister(self._options, watch, look_above=look_above)
        with self._lock:
            self._is_plain = True
            self._listed = watch, files
        return files

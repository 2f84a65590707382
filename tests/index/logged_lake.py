"""An index on local disk of a table whose files a log lists, of Delta or of Iceberg."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import RefreshMode, refresh_index
from lakebloom.index.build.run import Workshop
from lakebloom.index.catalog import Catalog
from lakebloom.index.settings import Settings
from tests.index.local_builder import LocalBuilder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakebloom.index.build.report import BuildReport
    from lakebloom.storage import Storage
    from lakebloom.store.records import Commit, TableRecord

NAME = "i"


class LoggedIndexes(ABC):
    """The indexes of a table."""

    def __init__(self, home: Path, wrap: Callable[[Storage], Storage] = lambda storage: storage) -> None:
        """``wrap`` is what writers of the index do to its storage."""
        self.location, self.wrap = str(home / "indexes"), wrap

    @abstractmethod
    def record(self) -> TableRecord:
        """Return what an index notes of the table as it is now."""

    def _shop(self) -> Workshop:
        catalog = Catalog(self.location, wrap=self.wrap)
        return Workshop(catalog, LocalBuilder(catalog), Settings(global_max_bytes=1 << 16))

    def create(self, *columns: str, replace: bool = False, **config: Any) -> BuildReport:
        chosen = BloomIndexConfig(NAME, list(columns), **config)
        return create_index(self._shop(), self.record(), chosen, replace=replace)

    def refresh(self, mode: RefreshMode = "quick") -> BuildReport:
        return refresh_index(self._shop(), NAME, mode)

    def entry(self) -> Commit:
        return Catalog(self.location).index(NAME).log.newest()

    def open(self) -> Lakebloom:
        return Lakebloom(location=self.location)


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)

"""Small tables of Delta and Iceberg that a writer changes at any moment of what a reader does.

Key 1 is in two files, so that a reader who mixes two versions is found out.
"""

from __future__ import annotations

import sys
import threading
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lakebloom import col
from lakebloom.storage.local.storage import LocalStorage
from lakebloom.tables.formats.iceberg.locate import folder_state, newest_metadata
from lakebloom.tables.listing.listing import look_again, stat_file
from lakebloom.tables.parquet.open import open_source
from tests.index import delta_lake, iceberg_lake
from tests.index.logged_lake import NAME, ordered

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from lakebloom import Lakebloom
    from tests.index.logged_lake import LoggedIndexes

    _Indexes = TypeVar("_Indexes", bound=LoggedIndexes)

KEYS = (0, 1, 7)
"""A row of the first is deleted, the second is in both files, and the last one is new."""


class ChangingTable(ABC):
    """A table with an index, and what writers do to it."""

    indexes: LoggedIndexes
    before: int
    """The version that the table had first."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows that the table should have now."""

    @abstractmethod
    def append(self) -> None:
        """Add rows of a key that is there, and of a new one."""

    @abstractmethod
    def update(self) -> None:
        """Replace the rows of key 1 in both files at once: their old versions are deleted, new ones are added."""

    def update_and_clean(self) -> None:
        """Update, write all rows as one file, and remove all files that the newest version does not need."""
        self.update()
        self._compact()
        self._clean()

    @abstractmethod
    def _compact(self) -> None: ...

    @abstractmethod
    def _clean(self) -> None: ...


CHANGES = ("append", "update", "update_and_clean")
"""The names of the methods that change a table."""


class DeltaTable(ChangingTable):
    """One of Delta, with a deletion vector."""

    def __init__(self, home: Path) -> None:
        self.model = delta_lake.Model(home / "t")
        for first in (0, 4):
            self.model.append([{"k": key % 4, "s": f"s{key}"} for key in range(first, first + 4)])
        self.model.delete(self.model.files[0], {0}, inline=False)
        self.indexes = in_memory(delta_lake.DeltaIndexes(home, home / "t"))
        self.before, self._forgotten = self.model.hand.version, 0

    def rows(self) -> list[dict[str, Any]]:
        return self.model.rows(len(self.model.versions) - 1)

    def append(self) -> None:
        self.model.append([{"k": 1, "s": "more"}, {"k": 7, "s": "new"}])

    def update(self) -> None:
        hand, actions = self.model.hand, []
        for file in self.model.files:
            actions.append(hand.remove(file.added))
            file.deleted |= {at for at, row in enumerate(file.rows) if row["k"] == 1}
            file.added = hand.again(file.added, hand.stored(file.deleted)[0])
            actions.append(file.added)
        self.model.commit(*actions, self.model.write([{"k": 1, "s": "updated"}, {"k": 1, "s": "too"}], "a"))

    def _compact(self) -> None:
        live = [row for file in self.model.files for at, row in enumerate(file.rows) if at not in file.deleted]
        removed = [self.model.hand.remove(file.added) for file in self.model.files]
        self.model.files.clear()
        self.model.commit(*removed, self.model.write(live, "a"))

    def _clean(self) -> None:
        for path in self.model.hand.root.iterdir():
            if path.is_file() and path.name != f"f {self.model.count}%.parquet":
                path.unlink()
        self.model.hand.checkpoint()
        self.model.hand.forget(*range(self._forgotten, self.model.hand.version))
        self._forgotten = self.model.hand.version


class IcebergTable(ChangingTable):
    """One of Iceberg, with position deletes and equality deletes."""

    def __init__(self, home: Path) -> None:
        self.model = iceberg_lake.Model(home / "t")
        for first in (0, 4):
            self.model.append([{1: key % 4, 2: f"s{key}", 3: "a"} for key in range(first, first + 4)])
        self.model.delete_positions([(self.model.files[0], {0})], alone=False)
        self.model.delete_equal([2], [("s7",)], None)
        self.indexes = in_memory(iceberg_lake.IcebergIndexes(home, home / "t"))
        self.before = self.model.hand.current

    def rows(self) -> list[dict[str, Any]]:
        return self.model.rows()

    def append(self) -> None:
        self.model.append([{1: 1, 2: "more", 3: "a"}, {1: 7, 2: "new", 3: "a"}])

    def update(self) -> None:
        model, chosen = self.model, {}
        for file in model.files:
            numbers = {at for at, row in enumerate(file.rows) if row[1] == 1}
            file.deleted |= numbers
            chosen[file.entry.path] = sorted(numbers)
        deletes = model.hand.positions(chosen, model.files[0].entry)
        model.deletes.append(deletes)
        added = model.write([{1: 1, 2: "updated", 3: "a"}, {1: 1, 2: "too", 3: "a"}])
        model.hand.commit(deletes, added)
        model.remember()

    def _compact(self) -> None:
        self.model.rewrite()

    def _clean(self) -> None:
        model = self.model
        model.expire(set())
        kept = {file.entry.path for file in model.files} | {manifest.path for manifest in model.hand.manifests}
        kept |= {str(model.hand.metadata_file), f"{model.hand.root}/metadata/snap-{model.hand.current}.avro"}
        kept.add(f"{model.hand.root}/metadata/version-hint.text")
        for folder in ("data", "metadata"):
            for path in (model.hand.root / folder).iterdir():
                if str(path) not in kept:
                    path.unlink()


def in_memory(indexes: _Indexes) -> _Indexes:
    """Create an index in memory, where nothing is written to disk and moments are those of the table alone."""
    indexes.location = f"memory://{uuid.uuid4().hex}"
    indexes.create("k", "s")
    return indexes


TABLES: dict[str, Callable[[Path], ChangingTable]] = {"delta": DeltaTable, "iceberg": IcebergTable}


class Moment:
    """Lets a writer act before the nth time that a reader looks at a file of the table, lists, reads or opens one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> None:
        self._number, self._act = number, act
        self._count, self._lock = 0, threading.Lock()
        self.reached = self._over = False
        for name in ("read", "read_ranges", "list"):
            monkeypatch.setattr(LocalStorage, name, self._before(getattr(LocalStorage, name)))
        for function in (open_source, stat_file, look_again, folder_state, newest_metadata):
            for module in list(sys.modules.values()):
                if module.__name__.startswith("lakebloom.") and getattr(module, function.__name__, None) is function:
                    monkeypatch.setattr(module, function.__name__, self._before(function))

    def pass_by(self) -> None:
        """Do not act any more."""
        self._over = True

    def _before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            with self._lock:
                self._count += not self._over
                acts = not self._over and self._count == self._number
                self.reached |= acts
            if acts:
                self._act()
            return function(*args, **options)

        return called


def found(lake: Lakebloom) -> dict[int, list[str]]:
    """Return the rows of every key, by lookups."""
    return {key: ordered(lake.lookup(NAME, col("k") == key).to_pylist()) for key in KEYS}


def expected(rows: list[dict[str, Any]]) -> dict[int, list[str]]:
    """Return the same from all rows."""
    return {key: ordered([row for row in rows if row["k"] == key]) for key in KEYS}

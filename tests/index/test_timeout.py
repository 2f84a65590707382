"""Waiting has an end, and what is asked at the same time does not wait for each other."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, col
from lakebloom.index.catalog import Catalog
from lakebloom.index.query.reader import Reader
from lakebloom.index.query.scans import PrunedFiles, Reading, ScanPruner, Unanswered
from lakebloom.predicate.reasons import Reason
from lakebloom.tables.listing import inventory
from lakebloom.tables.listing.inventory import Inventory
from lakebloom.timeout import side_by_side, within
from tests.index.lake import Lake
from tests.spark.support import write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakebloom.storage import Storage

LONG_S = 600.0


def test_within() -> None:
    assert within(LONG_S, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(LONG_S, lambda: 1 // 0)
    never = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.0 s"):
        within(0.0, never.wait)
    never.set()


def test_side_by_side_each_has_the_whole_time() -> None:
    first, second = threading.Event(), threading.Event()

    def meet(mine: threading.Event, other: threading.Event) -> bool:
        mine.set()
        return other.wait(LONG_S)  # each waits for the other to have begun

    assert side_by_side(LONG_S, {"a": lambda: meet(first, second), "b": lambda: meet(second, first)}) == {
        "a": True,
        "b": True,
    }
    never = threading.Event()
    (found,) = side_by_side(0.0, {"hung": never.wait}).values()
    assert isinstance(found, TimeoutError)
    never.set()


class Meeting:
    """A storage whose first read waits until the other one's has begun."""

    def __init__(self, inner: Storage, begun: dict[str, threading.Event]) -> None:
        self._inner, self._begun = inner, begun

    def __getattr__(self, name: str) -> Any:
        own = self._inner.uri.rsplit("/", 1)[1]
        self._begun[own].set()
        for event in self._begun.values():
            assert event.wait(LONG_S)
        return getattr(self._inner, name)


READING = Reading(
    "parquet",
    '{"type": "struct", "fields": [{"name": "k", "type": "long", "nullable": true, "metadata": {}}]}',
    {},
    {},
    col("k") == 3,
)


@pytest.fixture
def location(lake: Lake) -> str:
    """Two indexes, x and y."""
    lake.fill(range(3))
    for name in ("x", "y"):
        lake.create(BloomIndexConfig(name, ["k"], fpp=1e-7))
    return lake.location


def test_indexes_are_asked_side_by_side(location: str) -> None:
    begun = {name: threading.Event() for name in ("x", "y")}
    catalog = Catalog(location, wrap=lambda storage: Meeting(storage, begun))  # type: ignore[arg-type,return-value]
    entries = catalog.newest_commits(LONG_S)
    assert sorted(entries) == ["x", "y"]
    scan_pruner = ScanPruner(lambda name: Reader(catalog.index(name)))
    answers = scan_pruner.prune(["x", "y"], READING, LONG_S)
    assert [type(answer) for answer in answers] == [PrunedFiles, PrunedFiles]


def test_only_what_was_given_its_time_rests(location: str) -> None:
    catalog = Catalog(location)
    never = threading.Event()

    def reader(name: str) -> Reader:
        if name == "x":
            never.wait()
        return Reader(catalog.index(name))

    scan_pruner = ScanPruner(reader)
    (hung,) = scan_pruner.prune(["x"], READING, 0.01)
    assert isinstance(hung, Unanswered)
    assert hung.reason is Reason.TIMED_OUT
    assert scan_pruner.is_resting("x")
    resting, healthy = scan_pruner.prune(["x", "y"], READING, LONG_S)  # does not wait for the one that rests
    assert isinstance(resting, Unanswered)
    assert isinstance(healthy, PrunedFiles)
    assert not scan_pruner.is_resting("y")
    never.set()


def test_a_listing_that_hangs_holds_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "t/0.parquet", {"k": pa.array([1])})
    table = Inventory([f"file://{tmp_path}/t"], {})
    listing = inventory.list_files
    hung, released = threading.Event(), threading.Event()

    def slow(*arguments: Any, **options: Any) -> Sequence[Any]:
        if threading.current_thread().name == "slow":
            hung.set()
            assert released.wait(LONG_S)
        return listing(*arguments, **options)

    monkeypatch.setattr(inventory, "list_files", slow)
    thread = threading.Thread(target=table.files, name="slow")
    thread.start()
    assert hung.wait(LONG_S)
    assert len(table.files()) == 1
    released.set()
    thread.join()
    assert len(table.files()) == 1

"""Indexes that are damaged in several ways, and what it means that one is whole again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom import BloomIndexConfig
from lakebloom.index.build.create import create_index
from lakebloom.index.config import config_of
from lakebloom.index.maintain.repair import Rebuild, Salvage, remove_index, repair_index
from tests.index.lake import NAME, SMALL, Lake, assert_answers, questions
from tests.index.local_builder import source_of, workshop

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.index.build.report import BuildReport
    from lakebloom.index.maintain.repair import RepairReport
    from lakebloom.storage import Storage

QUESTIONS = questions([5, 45])
OTHER = "healthy"


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


WAYS: dict[str, Callable[[bytes], bytes | None]] = {
    "flipped": flipped,
    "cut": lambda data: data[: len(data) // 3],
    "emptied": lambda data: b"",
    "gone": lambda data: None,
    "rubbish": lambda data: b"\xff\x00" * (len(data) // 2),
}


def storage_of(lake: Lake) -> Storage:
    return lake.catalog().index(NAME).storage


def damage(lake: Lake, path: str, way: str) -> None:
    storage = storage_of(lake)
    data = WAYS[way](bytes(storage.read(path)))
    if data is None:
        storage.delete(path)
    else:
        storage.write(path, data)


def made(lake: Lake, *, global_filter: bool = False) -> None:
    """An index in two versions, with several segments, beside one that nothing happens to."""
    lake.fill(range(3))
    config = BloomIndexConfig(NAME, ["k", "s"], fpp=1e-4, global_filter=global_filter)
    lake.create(config)
    lake.create(BloomIndexConfig(OTHER, ["k"]))
    lake.fill([3])
    lake.refresh()


def repaired(lake: Lake, *, with_builder: bool = True) -> RepairReport:
    def created(found: Salvage) -> BuildReport:
        remove_index(lake.catalog(), NAME)
        shop = workshop(lake.catalog(), **SMALL)
        return create_index(shop, source_of(lake.table, lake.types), config_of(found.config))

    rebuild = Rebuild(refresh=lambda mode: lake.refresh(mode), create=created) if with_builder else None
    return repair_index(lake.catalog(), NAME, rebuild)


def assert_whole(lake: Lake, *, indexed: bool = True) -> None:
    report = lake.open().verify_index(NAME)
    assert (report.ok, report.corrupt) == (True, ())
    if indexed:
        assert lake.indexed() == lake.uris()
    assert_answers(lake, QUESTIONS)

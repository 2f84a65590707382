"""A crash at any I/O leaves the version before or the version after, and answers equal to a full scan."""

from __future__ import annotations

import itertools
import re
import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig
from lakebloom.errors import IndexNotFoundError
from lakebloom.index.maintain.lifecycle import delete_index, restore_index
from lakebloom.index.maintain.optimize import optimize_index
from lakebloom.storage import open_storage
from tests.index.lake import NAME, Lake, assert_answers, questions
from tests.storage.faults import Crash, FaultyStorage, SimulatedCrash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakebloom.index.catalog import Catalog

pytestmark = pytest.mark.slow
QUESTIONS = questions([25])[:3]
PLAIN = BloomIndexConfig(NAME, ["k", "n"], fpp=0.01)
OTHER = BloomIndexConfig(NAME, ["s"], fpp=1e-4, granularity="row_group")
WITH_GLOBAL = BloomIndexConfig(NAME, ["k", "s"], fpp=0.01, global_filter=True)


def change_table(lake: Lake) -> None:
    """One file vanishes, one is rewritten, two come."""
    (lake.table / "f0.parquet").unlink()
    lake.fill([3, 4])
    shutil.copy(lake.table / "f4.parquet", lake.table / "f1.parquet")


def nothing(lake: Lake) -> None:
    return


def created(lake: Lake, config: BloomIndexConfig = PLAIN) -> None:
    lake.create(config)


def created_then_changed(lake: Lake) -> None:
    created(lake)
    change_table(lake)


def created_with_global_then_changed(lake: Lake) -> None:
    created(lake, WITH_GLOBAL)
    change_table(lake)


def refreshed(lake: Lake) -> None:
    created_then_changed(lake)
    lake.refresh()


def refreshed_with_global(lake: Lake) -> None:
    created_with_global_then_changed(lake)
    lake.refresh()


def deleted(lake: Lake) -> None:
    refreshed(lake)
    delete_index(lake.catalog(), NAME)


def littered(lake: Lake) -> None:
    """Old versions, their files, and what a build left behind."""
    refreshed(lake)
    optimize_index(lake.catalog(), NAME)
    storage = lake.catalog().index(NAME).storage
    storage.write("segments/left-over/units.arrow", b"half a segment")


@dataclass(frozen=True)
class Case:
    prepare: Callable[[Lake], None]
    act: Callable[[Lake, Catalog], object]


CASES = {
    "create": Case(nothing, lambda lake, catalog: lake.create(PLAIN, catalog=catalog)),
    "create with global filters": Case(nothing, lambda lake, catalog: lake.create(WITH_GLOBAL, catalog=catalog)),
    "quick refresh": Case(created_then_changed, lambda lake, catalog: lake.refresh("quick", catalog=catalog, tasks=1)),
    "quick refresh with global filters": Case(
        created_with_global_then_changed,
        lambda lake, catalog: lake.refresh("quick", catalog=catalog, tasks=1),
    ),
    "full refresh": Case(created_then_changed, lambda lake, catalog: lake.refresh("full", catalog=catalog, tasks=1)),
    "full refresh with global filters": Case(
        created_with_global_then_changed,
        lambda lake, catalog: lake.refresh("full", catalog=catalog, tasks=1),
    ),
    "optimize": Case(refreshed, lambda lake, catalog: optimize_index(catalog, NAME)),
    "optimize with global filters": Case(refreshed_with_global, lambda lake, catalog: optimize_index(catalog, NAME)),
    "replace": Case(refreshed, lambda lake, catalog: lake.create(OTHER, catalog=catalog, tasks=1, replace=True)),
    "replace with global filters": Case(
        refreshed_with_global, lambda lake, catalog: lake.create(PLAIN, catalog=catalog, tasks=1, replace=True)
    ),
    "replace of a deleted index": Case(
        deleted, lambda lake, catalog: lake.create(WITH_GLOBAL, catalog=catalog, tasks=1, replace=True)
    ),
    "delete": Case(refreshed, lambda lake, catalog: delete_index(catalog, NAME)),
    "restore": Case(deleted, lambda lake, catalog: restore_index(catalog, NAME)),
    "vacuum": Case(littered, lambda lake, catalog: lake.vacuum(catalog=catalog)),
    "vacuum of a deleted index": Case(deleted, lambda lake, catalog: lake.vacuum(catalog=catalog)),
}


def version_of(lake: Lake) -> int:
    """The newest version, 0 where there is no index."""
    try:
        return lake.entry().version
    except IndexNotFoundError:
        return 0


def copy_of(lake: Lake, location: str) -> Lake:
    """The same table, and the same indexes elsewhere."""
    source, target = open_storage(lake.location), open_storage(location)
    for file in source.list(""):
        target.write(file.path, source.read(file.path))
    return Lake(lake.table.parent, lake.types, location)


def crash(lake: Lake, case: Case, crash_at: int, mode: Crash) -> bool:
    """Act on a storage that dies; whether it did."""
    catalog = lake.catalog(lambda storage: FaultyStorage(storage, crash_at=crash_at, mode=mode))
    try:
        case.act(lake, catalog)
    except SimulatedCrash:
        return True
    return False


def check_and_go_on(lake: Lake) -> None:
    """Whatever state the crash left: it answers, it can be worked with, and vacuum finds every orphan."""
    if version_of(lake) == 0:
        lake.create(PLAIN)
    if lake.entry().state == "deleted":
        restore_index(lake.catalog(), NAME)
    assert_answers(lake, QUESTIONS)
    lake.refresh()
    assert lake.indexed() == lake.uris()
    lake.vacuum()
    assert not lake.orphans()
    assert lake.catalog().index(NAME).log.versions() == [lake.entry().version]
    assert lake.open().verify_index(NAME).ok
    assert_answers(lake, QUESTIONS[:1])


_RANDOM = re.compile(r"(?<!log/)\b[0-9a-f]{8,}")


def state_of(lake: Lake) -> tuple[tuple[str, int], ...]:
    """What is stored, but for the random part of names: crashes that leave the same are checked once."""
    files = open_storage(f"{lake.location}/{NAME}").list("")
    return tuple(sorted((_RANDOM.sub("*", file.path), file.size_bytes) for file in files))


@pytest.mark.parametrize("name", CASES)
def test_every_crash_leaves_one_version_or_the_other(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    # In memory, because thousands of files are written: what counts is the order of operations.
    home = f"memory://{uuid.uuid4().hex}"
    prepared = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"}, f"{home}/prepared")
    prepared.fill(range(3))
    case.prepare(prepared)
    before = version_of(prepared)
    versions, states = set(), set()
    for mode in Crash:
        for crash_at in itertools.count(1):
            lake = copy_of(prepared, f"{home}/{mode.value}{crash_at}")
            crashed = crash(lake, case, crash_at, mode)
            version, state = version_of(lake), state_of(lake)
            if state not in states:
                states.add(state)
                check_and_go_on(lake)
            if not crashed:
                break
            versions.add(version)
        assert crash_at > 3, "there was something to crash"
        if name == "vacuum of a deleted index":
            assert version == 0
            assert versions <= {before, before + 1, 0}, "as it was, marked as empty, or gone"
        else:
            assert version == before + (name != "vacuum")
            assert versions <= {before, version}

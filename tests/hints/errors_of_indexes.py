"""Indexes that are missing, stale, damaged, too large, or changed by someone else meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.index.query.join_filters import JoinFilters
from lakebloom.index.settings import Settings
from lakebloom.spark.build.job import failures_named
from lakebloom.store.commits import entry_path
from lakebloom.store.log import Log
from lakebloom.tables.listing.listing import list_files
from tests.hints.registry import Met, assert_well, error_case
from tests.index.lake import NAME, Lake

if TYPE_CHECKING:
    from lakebloom.store.records import Commit


@error_case("INDEX_NOT_FOUND")
def _(lake: Lake, met: Met) -> None:
    lake.create(BloomIndexConfig("by_user", ["k"]))
    with met("did you mean 'by_user'?"):
        lake.open().lookup("By_User", col("k") == 5)
    assert lake.open().lookup("by_user", col("k") == 5).num_rows == 1
    with pytest.raises(errors.IndexNotFoundError, match=r"see lake\.indexes\(\)"):
        lake.open().lookup("quite_another", col("k") == 5)
    (known,) = lake.open().indexes()
    assert lake.open().lookup(known.name, col("k") == 5).num_rows == 1


@error_case("INDEX_EXISTS")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    with met("refresh_index"):
        lake.create()
    assert not lake.refresh().committed
    lake.open().delete_index(NAME, force=True)
    lake.create()
    assert_well(lake)


@error_case("INDEX_STATE")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    lake.open().delete_index(NAME)
    with met("restore_index"):
        lake.refresh()
    lake.open().restore_index(NAME)
    lake.refresh()
    assert_well(lake)


@error_case("INDEX_TOO_LARGE")
def _(lake: Lake, met: Met) -> None:
    with met("higher fpp"):
        lake.create(BloomIndexConfig(NAME, ["k", "s"], fpp=1e-6), max_index_bytes=400)
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.3), max_index_bytes=400)
    lake.open().delete_index(NAME, force=True)
    lake.create(BloomIndexConfig(NAME, ["k", "s"], fpp=1e-6), max_index_bytes=1 << 20)  # or more is allowed


@error_case("STALE_INDEX")
def _(lake: Lake, met: Met) -> None:
    lake.create(BloomIndexConfig(NAME, ["k"], global_filter=True))
    lake.fill([7])
    few, many = (Settings(join_merge_max_bytes=size) for size in (1, 1 << 20))
    with met("refresh_index"):
        JoinFilters({}).of(lake.snapshot(), ("k",), list_files([f"file://{lake.table}"]), few)
    assert JoinFilters({}).of(lake.snapshot(), ("k",), list_files([f"file://{lake.table}"]), many)
    lake.refresh()
    assert JoinFilters({}).of(lake.snapshot(), ("k",), list_files([f"file://{lake.table}"]), few)


@error_case("TABLE_SHRUNK")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    lake.table.rename(lake.table.parent / "unmounted")
    with met("check the table"):
        lake.refresh()
    (lake.table.parent / "unmounted").rename(lake.table)  # it was not all there
    lake.refresh()
    shutil.rmtree(lake.table)
    lake.fill([0])
    with met("allow_shrink=True"):
        lake.refresh()
    lake.refresh(allow_shrink=True)
    assert_well(lake)


@error_case("BUILD_FAILED")
def _(lake: Lake, met: Met) -> None:
    """As a worker without lakebloom fails; the message names what to install, and nothing was committed."""
    with met("install lakebloom in the Python of Spark's workers"), failures_named("the job failed"):
        raise ModuleNotFoundError("No module named 'lakebloom'")
    lake.create()
    assert_well(lake)


@error_case("COMMIT_CONFLICT")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    lake.fill([7])
    lake.refresh()
    index = lake.catalog().index(NAME)
    commit, others = Log.commit, [lambda: lake.refresh("full")]

    def overtaken(self: Log, change: object) -> Commit | None:
        if others:
            others.pop()()
        return commit(self, change)  # type: ignore[arg-type]

    Log.commit = overtaken  # type: ignore[method-assign]
    try:
        with met("run it again"):
            lake.open().optimize_index(NAME)
    finally:
        Log.commit = commit  # type: ignore[method-assign]
    lake.open().optimize_index(NAME)
    assert index is not None
    assert_well(lake)


@error_case("CORRUPT_INDEX")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    units = next(path for path in sorted(lake.stored()) if path.endswith("units.arrow"))
    (Path(lake.location) / NAME / units).write_bytes(b"damage")
    with met("repair"):
        lake.open().lookup(NAME, col("k") == 5)
    assert any(units in found for found in lake.open().verify_index(NAME).corrupt)
    lake.open().repair_index(NAME)
    lake.refresh()
    assert lake.open().verify_index(NAME).ok
    assert_well(lake)
    (Path(lake.location) / NAME / lake.entry().segments[0].units.path).write_bytes(b"damage")
    lake.open().delete_index(NAME, force=True)
    lake.create()
    assert_well(lake)


@error_case("UNKNOWN_FORMAT_VERSION")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    path = Path(lake.location) / NAME / entry_path(1)
    now = path.read_bytes()
    path.write_bytes(now.replace(b'{"lakebloom":2', b'{"lakebloom":999', 1))
    with met("upgrade lakebloom"):
        lake.open().lookup(NAME, col("k") == 5)
    path.write_bytes(now.replace(b'{"lakebloom":2', b'{"lakebloom":1', 1))
    with met("create it again"):
        lake.open().lookup(NAME, col("k") == 5)
    path.write_bytes(now)  # as the version of lakebloom that wrote it sees it
    assert_well(lake)

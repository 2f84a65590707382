"""Tables and stores: what cannot be found, read, written or indexed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lakebloom.parquet
from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.storage import open_storage
from tests.hints.registry import Met, assert_well, error_case
from tests.index.lake import NAME, Lake
from tests.parquet.sealing import KEYS, Sealing


@error_case("STORAGE_FAILED")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    (lake.table.parent / "elsewhere").mkdir()
    log = Path(lake.location) / NAME / "log"
    log.rename(lake.table.parent / "elsewhere/log")
    log.symlink_to(lake.table.parent / "elsewhere/log")
    with met("move the files there"):
        open_storage(Path(lake.location) / NAME).write("log/x", b"")
    log.unlink()
    (lake.table.parent / "elsewhere/log").rename(log)
    assert_well(lake)


@error_case("NOT_FOUND")
def _(lake: Lake, met: Met) -> None:
    with met("check"):
        lakebloom.parquet.filters(lake.table / "f9.parquet")
    lakebloom.parquet.filters(lake.table / "f0.parquet")


@error_case("ALREADY_EXISTS")
def _(lake: Lake, met: Met) -> None:
    storage = open_storage(lake.location)
    storage.put_if_absent("log/1", b"first")
    with met("read what the other writer stored"):
        storage.put_if_absent("log/1", b"second")
    assert bytes(storage.read("log/1")) == b"first"
    storage.put_if_absent("log/2", b"second")


@error_case("ACCESS_DENIED")
def _(lake: Lake, met: Met) -> None:
    path = lake.table / "f0.parquet"
    with _Nobody(lake.table.parent):
        path.chmod(0)
        with met("owner and mode"):
            open_storage(lake.table).read(path.name)
        path.chmod(0o644)
        assert open_storage(lake.table).read(path.name)


@error_case("LOCATION_NOT_WRITABLE")
def _(lake: Lake, met: Met) -> None:
    Path(lake.location).write_text("a file")
    with met("choose another location, or move that file"):
        lake.create()
    Path(lake.location).rename(lake.table.parent / "moved")
    lake.create()
    assert_well(lake)


@error_case("NO_FILES")
def _(lake: Lake, met: Met) -> None:
    there = lake.table
    lake.table = there.parent / "typo"
    lake.table.mkdir()
    with met("check the path"):
        lake.create()
    lake.table = there
    lake.create()


@error_case("UNKNOWN_COLUMN")
def _(lake: Lake, met: Met) -> None:
    with met("did you mean k?"):
        lake.create(BloomIndexConfig(NAME, ["kk"]))
    lake.create(BloomIndexConfig(NAME, ["k"]))


@error_case("DATA_FILE")
def _(lake: Lake, met: Met) -> None:
    lake.create(BloomIndexConfig(NAME, ["k"], global_filter=True))
    good = {path: path.read_bytes() for path in lake.table.iterdir()}
    for path in good:
        path.write_bytes(b"rubbish")
    with met("check the files"):
        lake.refresh("full")
    for path, data in good.items():
        path.write_bytes(data)
    lake.refresh("full")
    assert_well(lake)


@error_case("NOT_PARQUET")
def _(lake: Lake, met: Met) -> None:
    (lake.table / "notes.txt").write_text("no Parquet at all, but long enough to have a trailer")
    with met():
        lakebloom.parquet.filters(lake.table / "notes.txt")
    (lake.table / "notes.txt").unlink()
    lake.create()
    assert_well(lake)


@error_case("CORRUPT_FOOTER")
def _(lake: Lake, met: Met) -> None:
    path = lake.table / "f0.parquet"
    good = path.read_bytes()
    footer = int.from_bytes(good[-8:-4], "little")
    path.write_bytes(good[: -8 - footer] + b"\xff" * footer + good[-8:])
    with met():
        lakebloom.parquet.filters(path)
    path.write_bytes(good)
    assert lakebloom.parquet.filters(path) is not None


@error_case("ENCRYPTED_FILE")
def _(lake: Lake, met: Met) -> None:
    path = lake.table / "sealed.parquet"
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), path)
    lakebloom.parquet.embed(path, columns=["id", "name"])
    path.write_bytes(Sealing().seal(path.read_bytes()))
    with met("key_retriever"):
        lakebloom.parquet.might_contain(path, "id", [1])
    found = lakebloom.parquet.might_contain(path, "id", [1], key_retriever=KEYS.__getitem__)
    assert found is not None


@error_case("UNSUPPORTED_SOURCE")
def _(lake: Lake, met: Met) -> None:
    (lake.table / ".hoodie").mkdir()
    (lake.table / ".hoodie/hoodie.properties").write_text("")
    with met():
        lake.open().advise(lake.table)
    shutil.rmtree(lake.table / ".hoodie")  # it was none
    assert len(lake.open().advise(lake.table)) == 3


@error_case("UNSUPPORTED_SESSION")
def _(lake: Lake, met: Met) -> None:
    with met("Lakebloom(spark, location=...)"):
        Lakebloom(location=lake.location).sql("SHOW BLOOM INDEXES")
    assert len(Lakebloom(location=lake.location).indexes()) == 0  # what needs no session


class _Nobody:
    """Not root, to whom nothing is forbidden."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def __enter__(self) -> None:
        if os.geteuid() == 0:
            for directory in (self._home, *self._home.parents):
                if directory.stat().st_mode & 0o011 != 0o011:
                    directory.chmod(directory.stat().st_mode | 0o011)
            for path in (self._home, *self._home.rglob("*")):
                os.chown(path, 65534, -1)
            os.seteuid(65534)

    def __exit__(self, *_: object) -> None:
        if os.getuid() == 0:
            os.seteuid(0)

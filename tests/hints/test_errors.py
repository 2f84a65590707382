"""Each hint of docs/ERRORS.md is followed: into the state, along the hint, and out of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebloom.parquet
from lakebloom import BloomIndexConfig, Lakebloom, Sbbf, col, errors
from lakebloom.index.query.join_filters import JoinFilters
from lakebloom.index.settings import Settings
from lakebloom.spark.build.job import failures_named
from lakebloom.storage import open_storage
from lakebloom.store.entries import entry_path
from lakebloom.store.log import Log
from lakebloom.tables.listing.listing import list_files
from tests.hints.registry import Met, Registry
from tests.index.lake import NAME, Lake, assert_answers, questions
from tests.parquet.sealing import KEYS, Sealing

if TYPE_CHECKING:
    from lakebloom.store.records import Entry

EXPLAINED = {
    "FILTER_FORMAT": "the base of CORRUPT_FILTER and UNSUPPORTED_FILTER: to be caught, and never raised by itself",
    "SOURCE": "the base of what is wrong with a table: to be caught, and never raised by itself",
    "INDEX": "the base of what is wrong with an index: to be caught, and never raised by itself",
    "INDEX_FORMAT": "the base of CORRUPT_INDEX and UNKNOWN_FORMAT_VERSION; by itself only for a bug of lakebloom",
}
case = Registry(EXPLAINED)
ASKED = questions([3, 25])


def assert_well(lake: Lake) -> None:
    assert_answers(lake, ASKED)


@case("INVALID_ARGUMENT")
def _(lake: Lake, met: Met) -> None:
    with met("fpp=0.1"):
        BloomIndexConfig(NAME, ["k"], fpp=10)
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.1))


@case("WRONG_CALL")
def _(lake: Lake, met: Met) -> None:
    with met("did you mean granularity?"):
        BloomIndexConfig(NAME, ["k"], granularty="row_group")
    lake.create(BloomIndexConfig(NAME, ["k"], granularity="row_group"))


@case("PREDICATE_SYNTAX")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    with met():
        lake.open().lookup(NAME, "k = 5 AND AND s = 's5'")
    assert lake.open().lookup(NAME, "k = 5 AND s = 's5'").num_rows == 1


@case("UNSUPPORTED_TYPE")
def _(lake: Lake, met: Met) -> None:
    lake.write("f0", {"k": pa.array([1]), "flag": pa.array([True])})
    lake.types = {"k": "bigint", "flag": "boolean"}
    with met():
        lake.create(BloomIndexConfig(NAME, ["flag"]))
    lake.create(BloomIndexConfig(NAME, ["k"]))  # another column


@case("VALUE_NOT_CONVERTIBLE")
def _(lake: Lake, met: Met) -> None:
    with met():
        Sbbf(8).insert([1, "one"])
    f = Sbbf(8)
    f.insert([1, 2])
    assert 1 in f


@case("FILTER_MISMATCH")
def _(lake: Lake, met: Met) -> None:
    large, small = Sbbf(8), Sbbf(4)
    large.insert([1])
    with met("fold"):
        large | small
    assert 1 in large.fold(4) | small


@case("CORRUPT_FILTER")
def _(lake: Lake, met: Met) -> None:
    f = Sbbf(8)
    f.insert([1])
    whole = f.to_parquet()
    with met():
        Sbbf.from_parquet(whole[:-7])
    assert 1 in Sbbf.from_parquet(whole)


@case("UNSUPPORTED_FILTER")
def _(lake: Lake, met: Met) -> None:
    """A filter of another hash is left alone: everything is read, and nothing fails."""
    from thrift.protocol.TCompactProtocol import TCompactProtocol
    from thrift.transport.TTransport import TMemoryBuffer

    header = TCompactProtocol(TMemoryBuffer())
    header.writeStructBegin("")
    other_hash = 2
    for number, choice in ((1, None), (2, 1), (3, other_hash), (4, 1)):
        if choice is None:
            header.writeFieldBegin("numBytes", 8, number)
            header.writeI32(32)
        else:
            header.writeFieldBegin("", 12, number)
            header.writeStructBegin("")
            header.writeFieldBegin("", 12, choice)
            header.writeStructBegin("")
            header.writeFieldStop()
            header.writeStructEnd()
            header.writeFieldEnd()
            header.writeFieldStop()
            header.writeStructEnd()
        header.writeFieldEnd()
    header.writeFieldStop()
    with met():
        Sbbf.from_parquet(header.trans.getvalue() + bytes(32))


@case("STORAGE_FAILED")
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


@case("NOT_FOUND")
def _(lake: Lake, met: Met) -> None:
    with met("check"):
        lakebloom.parquet.filters(lake.table / "f9.parquet")
    lakebloom.parquet.filters(lake.table / "f0.parquet")


@case("ALREADY_EXISTS")
def _(lake: Lake, met: Met) -> None:
    storage = open_storage(lake.location)
    storage.put_if_absent("log/1", b"first")
    with met("read what the other writer stored"):
        storage.put_if_absent("log/1", b"second")
    assert bytes(storage.read("log/1")) == b"first"
    storage.put_if_absent("log/2", b"second")


@case("ACCESS_DENIED")
def _(lake: Lake, met: Met) -> None:
    path = lake.table / "f0.parquet"
    with _Nobody(lake.table.parent):
        path.chmod(0)
        with met("owner and mode"):
            open_storage(lake.table).read(path.name)
        path.chmod(0o644)
        assert open_storage(lake.table).read(path.name)


@case("LOCATION_NOT_WRITABLE")
def _(lake: Lake, met: Met) -> None:
    Path(lake.location).write_text("a file")
    with met("choose another location, or move that file"):
        lake.create()
    Path(lake.location).rename(lake.table.parent / "moved")
    lake.create()
    assert_well(lake)


@case("NO_FILES")
def _(lake: Lake, met: Met) -> None:
    there = lake.table
    lake.table = there.parent / "typo"
    lake.table.mkdir()
    with met("check the path"):
        lake.create()
    lake.table = there
    lake.create()


@case("UNKNOWN_COLUMN")
def _(lake: Lake, met: Met) -> None:
    with met("did you mean k?"):
        lake.create(BloomIndexConfig(NAME, ["kk"]))
    lake.create(BloomIndexConfig(NAME, ["k"]))


@case("DATA_FILE")
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


@case("NOT_PARQUET")
def _(lake: Lake, met: Met) -> None:
    (lake.table / "notes.txt").write_text("no Parquet at all, but long enough to have a trailer")
    with met():
        lakebloom.parquet.filters(lake.table / "notes.txt")
    (lake.table / "notes.txt").unlink()
    lake.create()
    assert_well(lake)


@case("CORRUPT_FOOTER")
def _(lake: Lake, met: Met) -> None:
    path = lake.table / "f0.parquet"
    good = path.read_bytes()
    footer = int.from_bytes(good[-8:-4], "little")
    path.write_bytes(good[: -8 - footer] + b"\xff" * footer + good[-8:])
    with met():
        lakebloom.parquet.filters(path)
    path.write_bytes(good)
    assert lakebloom.parquet.filters(path) is not None


@case("ENCRYPTED_FILE")
def _(lake: Lake, met: Met) -> None:
    path = lake.table / "sealed.parquet"
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), path)
    lakebloom.parquet.embed(path, columns=["id", "name"])
    path.write_bytes(Sealing().seal(path.read_bytes()))
    with met("key_retriever"):
        lakebloom.parquet.might_contain(path, "id", [1])
    found = lakebloom.parquet.might_contain(path, "id", [1], key_retriever=KEYS.__getitem__)
    assert found is not None


@case("UNSUPPORTED_SOURCE")
def _(lake: Lake, met: Met) -> None:
    (lake.table / "_delta_log").mkdir()
    (lake.table / "_delta_log" / f"{0:020d}.json").write_text("{}")
    with met():
        lake.open().advise(lake.table)
    shutil.rmtree(lake.table / "_delta_log")  # it was none
    assert len(lake.open().advise(lake.table)) == 3


@case("UNSUPPORTED_SESSION")
def _(lake: Lake, met: Met) -> None:
    with met("Lakebloom(spark, location=...)"):
        Lakebloom(location=lake.location).sql("SHOW BLOOM INDEXES")
    assert len(Lakebloom(location=lake.location).indexes()) == 0  # what needs no session


@case("INDEX_NOT_FOUND")
def _(lake: Lake, met: Met) -> None:
    lake.create(BloomIndexConfig("by_user", ["k"]))
    with met("did you mean 'by_user'?"):
        lake.open().lookup("By_User", col("k") == 5)
    assert lake.open().lookup("by_user", col("k") == 5).num_rows == 1
    with pytest.raises(errors.IndexNotFoundError, match=r"see lake\.indexes\(\)"):
        lake.open().lookup("quite_another", col("k") == 5)
    (known,) = lake.open().indexes()
    assert lake.open().lookup(known.name, col("k") == 5).num_rows == 1


@case("INDEX_EXISTS")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    with met("refresh_index"):
        lake.create()
    assert not lake.refresh().committed
    lake.open().delete_index(NAME, force=True)
    lake.create()
    assert_well(lake)


@case("INDEX_STATE")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    lake.open().delete_index(NAME)
    with met("restore_index"):
        lake.refresh()
    lake.open().restore_index(NAME)
    lake.refresh()
    assert_well(lake)


@case("INDEX_TOO_LARGE")
def _(lake: Lake, met: Met) -> None:
    with met("higher fpp"):
        lake.create(BloomIndexConfig(NAME, ["k", "s"], fpp=1e-6), max_index_bytes=400)
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.3), max_index_bytes=400)
    lake.open().delete_index(NAME, force=True)
    lake.create(BloomIndexConfig(NAME, ["k", "s"], fpp=1e-6), max_index_bytes=1 << 20)  # or more is allowed


@case("STALE_INDEX")
def _(lake: Lake, met: Met) -> None:
    lake.create(BloomIndexConfig(NAME, ["k"], global_filter=True))
    lake.fill([7])
    few, many = (Settings(join_merge_max_bytes=size) for size in (1, 1 << 20))
    with met("refresh_index"):
        JoinFilters({}).of(lake.snapshot(), ("k",), list_files([f"file://{lake.table}"]), few)
    assert JoinFilters({}).of(lake.snapshot(), ("k",), list_files([f"file://{lake.table}"]), many)
    lake.refresh()
    assert JoinFilters({}).of(lake.snapshot(), ("k",), list_files([f"file://{lake.table}"]), few)


@case("TABLE_SHRUNK")
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


@case("BUILD_FAILED")
def _(lake: Lake, met: Met) -> None:
    """As a worker without lakebloom fails; the message names what to install, and nothing was committed."""
    with met("install lakebloom in the Python of Spark's workers"), failures_named("the job failed"):
        raise ModuleNotFoundError("No module named 'lakebloom'")
    lake.create()
    assert_well(lake)


@case("COMMIT_CONFLICT")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    lake.fill([7])
    lake.refresh()
    index = lake.catalog().index(NAME)
    commit, others = Log.commit, [lambda: lake.refresh("full")]

    def overtaken(self: Log, change: object) -> Entry | None:
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


@case("CORRUPT_INDEX")
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


@case("UNKNOWN_FORMAT_VERSION")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    path = Path(lake.location) / NAME / entry_path(1)
    now = path.read_bytes()
    path.write_bytes(now.replace(b'{"lakebloom":1', b'{"lakebloom":999', 1))
    with met("upgrade lakebloom"):
        lake.open().lookup(NAME, col("k") == 5)
    path.write_bytes(now)  # as the version of lakebloom that wrote it sees it
    assert_well(lake)


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


@pytest.mark.parametrize("code", sorted(case.cases))
def test_the_hint_leads_out(code: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(3))
    met = Met(code)
    case.cases[code](lake, met)
    assert met.times, "the case never met the state that it is about"


def test_every_code_has_a_case() -> None:
    codes = {getattr(errors, name).code for name in errors.__all__} - {errors.LakebloomError.code}
    case.require_complete(codes, "docs/ERRORS.md")

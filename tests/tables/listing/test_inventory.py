"""A table is listed again whenever its files may have changed, and only then."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lakebloom.tables.listing.inotify import Watch
from lakebloom.tables.listing.inventory import Inventory
from lakebloom.tables.listing.listing import list_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells about changes")


def _touch(path: Path) -> None:
    os.utime(path, ns=(1, 1_000_000_000))


def _mapped_write(path: Path) -> None:
    import mmap

    with path.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as pages:
        pages[0:1] = b"y"


CHANGES: dict[str, Callable[[Path], object]] = {
    "a new file": lambda t: (t / "new.parquet").write_bytes(b"x"),
    "a file written in place": lambda t: (t / "a.parquet").write_bytes(b"longer"),
    "a byte written in place": lambda t: os.pwrite(os.open(t / "a.parquet", os.O_WRONLY), b"y", 0),
    "a byte written through a map": lambda t: _mapped_write(t / "a.parquet"),
    "another time": lambda t: _touch(t / "a.parquet"),
    "a deleted file": lambda t: (t / "a.parquet").unlink(),
    "a renamed file": lambda t: (t / "a.parquet").rename(t / "b.parquet"),
    "a file that came from elsewhere": lambda t: (t.parent / "elsewhere").rename(t / "c.parquet"),
    "a file below": lambda t: (t / "k=1/new.parquet").write_bytes(b"x"),
    "a directory below": lambda t: (t / "k=2").mkdir(),
    "a directory exchanged": lambda t: (t.rename(t.parent / "old"), shutil.copytree(t.parent / "old", t)),
    "the directory above exchanged": lambda t: (
        t.parent.rename(t.parent.parent / "old"),
        shutil.copytree(t.parent.parent / "old", t.parent),
    ),
    "a hard link": lambda t: os.link(t / "a.parquet", t / "d.parquet"),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    table = tmp_path / "above/t"
    (table / "k=1").mkdir(parents=True)
    (table / "a.parquet").write_bytes(b"x")
    (table / "k=1/a.parquet").write_bytes(b"x")
    (tmp_path / "above/elsewhere").write_bytes(b"x")
    return table


def test_nothing_is_listed_while_nothing_changes(table: Path) -> None:
    inventory = Inventory([str(table)], {})
    first = inventory.files()
    assert first == list_files([str(table)])
    assert inventory.files() is first
    (table / "a.parquet").read_bytes()
    assert inventory.files() is first


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed(table: Path, change: str) -> None:
    inventory = Inventory([str(table)], {})
    before = inventory.files()
    CHANGES[change](table)
    after = inventory.files()
    assert after is not before
    assert after == list_files([str(table)])
    assert inventory.files() == after


def test_links_to_other_places_are_not_watched(table: Path, tmp_path: Path) -> None:
    """A file that is changed under another name gives no sign of it."""
    os.link(table / "k=1/a.parquet", tmp_path / "other name")
    inventory = Inventory([str(table)], {})
    before = inventory.files()
    (tmp_path / "other name").write_bytes(b"longer")
    assert inventory.files() != before
    (tmp_path / "other name").unlink()
    (table / "k=1/link.parquet").symlink_to(tmp_path / "above/elsewhere")
    before = inventory.files()
    (tmp_path / "above/elsewhere").write_bytes(b"longer")
    assert inventory.files() != before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons warn of forks beside threads
def test_a_fork_does_not_take_its_parents_news(table: Path) -> None:
    inventory = Inventory([str(table)], {})
    before = inventory.files()
    (table / "k=1/new.parquet").write_bytes(b"x")
    child = os.fork()
    if child == 0:
        os._exit(0 if len(inventory.files()) == len(before) + 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert inventory.files() != before


def test_a_vanished_table_is_an_error_and_comes_back(table: Path, tmp_path: Path) -> None:
    inventory = Inventory([str(table)], {})
    before = inventory.files()
    table.rename(tmp_path / "away")
    with pytest.raises(FileNotFoundError):
        inventory.files()
    (tmp_path / "away").rename(table)
    assert inventory.files() == before


def test_other_places_are_listed_each_time(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for locations in ([f"{table.parent}/*"], [str(table / "a.parquet")]):
        inventory = Inventory(locations, {})
        assert inventory.files() is not inventory.files()
    monkeypatch.setattr("lakebloom.tables.listing.inotify._OWN_FILE_SYSTEMS", frozenset())
    inventory = Inventory([str(table)], {})
    assert inventory.files() is not inventory.files()


def test_a_watch_leaves_no_descriptor_behind(table: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        watch = Watch()
        watch.enter(str(table), is_root=True)
        assert watch.is_quiet()
        del watch
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    watch = Watch()
    watch.enter(str(table), is_root=True)
    watch.give_up()
    assert not watch.is_quiet()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


@pytest.mark.slow
def test_watches_leave_room_for_other_programs(table: Path) -> None:
    """A user has 128 in all. The one that was not used for longest gives way."""
    watches = []
    for _ in range(100):
        watches.append(Watch())
        watches[-1].enter(str(table), is_root=True)
        assert watches[0].is_quiet(), "it is used all the time"
    assert 1 < sum(watch.is_quiet() for watch in watches) <= 32, "fewer where other programs have taken theirs"
    assert not watches[1].is_quiet()

"""Whatever happens to a file, a recheck says so from then on, whether its directory is watched or not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakebloom.tables.file_columns import FileColumns
from lakebloom.tables.file_identity import TableFile
from lakebloom.tables.listing import recheck
from lakebloom.tables.listing.inotify import Watch
from lakebloom.tables.listing.listing import list_files
from lakebloom.tables.listing.recheck import Recheck

Change = Callable[[Path], object]


def _same_times(path: Path, change: Change) -> None:
    before = path.stat()
    change(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _copied_over(path: Path) -> None:
    fresh = path.parent.parent / "fresh"
    fresh.write_bytes(b"y")
    shutil.copystat(path, fresh)
    shutil.copy2(fresh, path)


def _moved_over(path: Path) -> None:
    fresh = path.parent.parent / "fresh"
    fresh.write_bytes(b"y")
    shutil.copystat(path, fresh)
    fresh.replace(path)


def _mapped(path: Path) -> None:
    import mmap

    with path.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as pages:
        pages[0:1] = b"y"


def _directory_exchanged(path: Path) -> None:
    path.parent.rename(path.parent.with_name("old"))
    shutil.copytree(path.parent.with_name("old"), path.parent)


def _above_exchanged(path: Path) -> None:
    above = path.parent.parent
    above.rename(above.with_name("old"))
    shutil.copytree(above.with_name("old"), above)


CHANGES: dict[str, Change] = {
    "longer": lambda path: path.write_bytes(b"longer"),
    "written in place": lambda path: _same_times(path, lambda path: path.write_bytes(b"y")),
    "written through a map": lambda path: _same_times(path, _mapped),
    "copied over": _copied_over,
    "moved over": _moved_over,
    "gone": lambda path: path.unlink(),
    "moved away": lambda path: path.rename(path.with_name("elsewhere")),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "its directory exchanged": _directory_exchanged,
    "the directory above exchanged": _above_exchanged,
    "its directory gone": lambda path: shutil.rmtree(path.parent),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    table = tmp_path / "above/t"
    for number in range(3):
        (table / f"k={number}").mkdir(parents=True)
        (table / f"k={number}/a.parquet").write_bytes(b"x")
        os.utime(table / f"k={number}/a.parquet", ns=(1, 10**18 + 7))
    return table


@pytest.fixture(params=["watched by name", "watched from above", "not watched", "reached by a link"])
def root(request: pytest.FixtureRequest, table: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    if request.param == "watched from above":
        monkeypatch.setattr(recheck, "FEW_DIRECTORIES", 1)
    if request.param == "not watched":
        monkeypatch.setattr(Watch, "is_quiet", lambda self: False)
    if request.param == "reached by a link":
        (table.parent.parent / "link").symlink_to(table)
        yield table.parent.parent / "link"
        return
    yield table


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("questions_before", [0, 1, 3])
def test_what_changes_is_found(root: Path, change: str, questions_before: int) -> None:
    files = list_files([str(root)])
    asked = Recheck(FileColumns.of(files))
    for _ in range(questions_before):
        assert asked.changed().tolist() == [False] * 3
    CHANGES[change](root.resolve() / "k=1/a.parquet")
    for _ in range(2):
        assert asked.changed()[1]
        whole_table = change == "the directory above exchanged"  # then all files are copies
        assert asked.changed().tolist() == [whole_table, True, whole_table]


def test_nothing_is_looked_at_twice_without_a_reason(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Recheck(FileColumns.of(list_files([str(table)])))
    first = asked.changed()
    if not asked._known[0].is_quiet():  # type: ignore[index]
        pytest.skip("this file system cannot be watched")
    monkeypatch.setattr(os, "scandir", lambda path: pytest.fail("scanned again"))
    assert asked.changed() is first


def test_files_that_nobody_here_can_look_at_count_as_unchanged(table: Path) -> None:
    local = list_files([str(table)])
    remote = [TableFile("s3://b/t/a", 1, 1, "e"), TableFile("hdfs://n/t/a", 1, 1)]
    asked = Recheck(FileColumns.of([remote[0], *local, remote[1]]))
    assert asked.changed().tolist() == [False] * 5
    shutil.rmtree(table)
    assert asked.changed().tolist() == [False, True, True, True, False]
    assert Recheck(FileColumns.of([])).changed().tolist() == []


def test_a_file_with_another_name_is_looked_at_each_time(table: Path) -> None:
    """Nobody tells about a change under the other name."""
    other = table.parent / "other"
    os.link(table / "k=1/a.parquet", other)
    asked = Recheck(FileColumns.of(list_files([str(table)])))
    assert asked.changed().tolist() == [False] * 3
    other.write_bytes(b"y")
    assert asked.changed().tolist() == [False, True, False]

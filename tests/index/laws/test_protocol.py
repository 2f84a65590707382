"""The log's protocol, proven by going through all of it: any three of commit, vacuum, delete, restore and create, in
every order of their storage calls. Nothing that was acknowledged is lost, no number is given twice, no file is missing.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from lakebloom.errors import AlreadyExistsError, IndexNotFoundError
from lakebloom.index.build.create import _newest, _replaced
from lakebloom.index.catalog import Index, require_active
from lakebloom.index.maintain.lifecycle import delete_index, restore_index
from lakebloom.index.maintain.repair import remove_index
from lakebloom.index.maintain.vacuum import removal_of, vacuum_index
from lakebloom.index.operation import require_stored
from lakebloom.store import log as log_module
from lakebloom.store.commits import decode_commit, entry_path
from lakebloom.store.log import HINT, Log
from lakebloom.store.records import Commit, SegmentRecord
from tests.index.interleaving import Explorer, Failed, Files, Played, perform
from tests.store.examples import entry as first_entry
from tests.store.examples import unit_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.index.interleaving import Actor

NAME = "i"
_BYTES = 1000
THOROUGH = "LAKEBLOOM_FUZZ" in os.environ
SLEEPERS = [
    ("active", ("add", "twice", "vacuum"), None),
    *([("active", ("add", "twice", "vacuum"), 1)] if THOROUGH else []),
    ("active", ("delete", "twice", "vacuum"), None),
    ("none", ("create", "found", "vacuum"), None),
]


class _Clock:
    """Time stands still: nothing here may depend on it."""

    time = staticmethod(lambda: 1_800_000_000.0)
    monotonic = staticmethod(lambda: 0.0)
    sleep = staticmethod(lambda seconds: None)


class _Catalog:
    """A catalog of one index."""

    def __init__(self, storage: Any) -> None:
        self._index = Index(NAME, storage)

    def index(self, name: str) -> Index:
        return self._index


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "time", _Clock)


def segment(name: str) -> SegmentRecord:
    return SegmentRecord(name, ("bigint",), 0.01, 1, 1, 1, 1, ("a", "a"), *unit_tables(name, _BYTES), ())


# What an actor does. ``who`` makes its files and its commits its own.


def built(index: Index, who: str, with_files: bool) -> tuple[SegmentRecord, ...]:
    if not with_files:
        return ()
    made = segment(who)
    for table in made.tables:
        index.storage.write(table.path, who.encode().ljust(_BYTES))
    return (made,)


def add(index: Index, who: str, with_files: bool) -> Commit | None:
    """As a quick refresh commits."""
    made = built(index, who, with_files)

    def change(base: Commit) -> Commit:
        require_active(base)
        return require_stored(index, msgspec.structs.replace(base, segments=base.segments + made), base)

    return index.log.commit(change)


def twice(index: Index, who: str, with_files: bool) -> Commit | None:
    """Two commits, one after the other: what it takes to make a number vacuumable that another is about to take."""
    add(index, who, with_files)
    return add(index, f"{who}again", with_files)


def found(index: Index, who: str, with_files: bool) -> Commit | None:
    create(index, who, with_files)
    return add(index, f"{who}again", with_files)


def replace(index: Index, who: str, with_files: bool) -> Commit | None:
    """As optimize commits."""
    made = built(index, who, with_files)

    def change(base: Commit) -> Commit:
        require_active(base)
        return require_stored(index, msgspec.structs.replace(base, segments=made), base)

    return index.log.commit(change)


def create(index: Index, who: str, with_files: bool) -> Commit:
    made = built(index, who, with_files)
    return index.log.create(require_stored(index, msgspec.structs.replace(first_entry(), segments=made)))


def put_in_place(index: Index, who: str, with_files: bool) -> Commit:
    """As ``create_index(..., replace=True)`` commits, by its own code."""
    found = _newest(index)
    made = built(index, who, with_files)
    return _replaced(index, msgspec.structs.replace(first_entry(), segments=made), found)


def remove(index: Index, who: str, with_files: bool) -> None:
    """As ``delete_index(name, force=True)``, which deletes every file that it finds."""
    remove_index(index.catalog, NAME)  # type: ignore[attr-defined]


def vacuum(index: Index, who: str, with_files: bool) -> None:
    # Without files nothing has to be spared, and log entries go at once. With files a build needs its grace.
    vacuum_index(index.catalog, NAME, 0, 1 if with_files else 0)  # type: ignore[attr-defined]


def delete(index: Index, who: str, with_files: bool) -> int:
    return delete_index(index.catalog, NAME).version  # type: ignore[attr-defined]


def restore(index: Index, who: str, with_files: bool) -> int:
    return restore_index(index.catalog, NAME).version  # type: ignore[attr-defined]


KINDS: dict[str, Callable[[Index, str, bool], Any]] = {
    "add": add, "twice": twice, "found": found, "replace": replace,
    "create": create, "vacuum": vacuum, "delete": delete, "restore": restore,
    "put in place": put_in_place, "remove": remove,
}  # fmt: skip


def actor(kind: str, who: str, with_files: bool, monkeypatch: pytest.MonkeyPatch) -> Actor:
    def run(storage: Played) -> tuple[str, ...]:
        """Return the ids of what was acknowledged."""
        ids = (f"{who}{number}" for number in itertools.count())
        monkeypatch.setattr(log_module, "new_id", lambda: next(ids))
        catalog = _Catalog(storage)
        index = catalog.index(NAME)
        index.catalog = catalog  # type: ignore[attr-defined]
        KINDS[kind](index, who, with_files)
        # What the log knows after a success is what it has written; a vacuum of a removed index knows nothing.
        return () if kind in ("vacuum", "remove") else (index.log._newest.id,)  # type: ignore[union-attr]

    return run


# Where it begins


class Stored:
    """A storage that keeps everything in a dictionary."""

    def __init__(self) -> None:
        self.files: Files = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name == "file":  # nothing of it is in the operating system
            raise AttributeError(name)

        def call(path: str, *data: Any) -> Any:
            if name == "temporaries":
                return []
            self.files, answer = perform(self.files, (name, path, *map(bytes, data)))
            if isinstance(answer, Failed):
                raise answer.error(answer.text)
            return answer

        return call


def start(state: str, with_files: bool, hint: int | None, monkeypatch: pytest.MonkeyPatch) -> Files:
    ids = (f"start{number}" for number in itertools.count())
    monkeypatch.setattr(log_module, "new_id", lambda: next(ids))
    storage = Stored()
    index = Index(NAME, storage)  # type: ignore[arg-type]
    if state != "none":
        create(index, "first", with_files)
        add(index, "second", with_files)
    if state in ("deleted", "removed"):
        index.log.commit(lambda base: msgspec.structs.replace(base, state="deleted"))
    if state == "removed":
        index.log.commit(removal_of)
        for file in [*storage.list("segments"), *(f for f in storage.list("log") if f.path < entry_path(4))]:
            storage.delete(file.path)
    if hint is not None:
        storage.write(HINT, str(hint).encode())
    return storage.files


# What always holds


def newest_of(files: Files) -> Commit | None:
    entries = [path for path, _ in files if path.startswith("log/0")]
    return decode_commit(dict(files)[max(entries)], max(entries)) if entries else None


def check(files: Files, outcomes: list[Any]) -> None:
    newest = newest_of(files)
    paths = {path for path, _ in files}
    acknowledged = [commit_id for outcome in outcomes if isinstance(outcome, tuple) for commit_id in outcome]
    if newest is None:
        assert acknowledged == []
        return
    assert newest.paths <= paths, "all files of the newest version are there"
    history = (newest.id, *newest.lineage)
    assert set(acknowledged) <= set(history), "what was acknowledged is part of the newest version's history"
    assert len(set(history)) == len(history)
    if None in outcomes:
        return
    storage = Stored()
    storage.files = files
    numbers = [int(path[4:24]) for path in paths if path.startswith("log/0")]
    assert sorted(numbers) == list(range(min(numbers), newest.version + 1)), "nothing is left that came too late"
    try:
        assert Log(storage, NAME).newest() == newest  # type: ignore[arg-type]
    except IndexNotFoundError:
        assert newest.state == "removed"


def explored(
    groups: list[tuple[str, ...]],
    state: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    with_files: bool = False,
    hint: int | None = None,
) -> int:
    """Go through all interleavings of these groups of actors, and return how many states there were."""
    states = 0
    for group in groups:
        if state in ("none", "removed") and not {"create", "found", "put in place"} & set(group):
            continue  # nothing happens
        actors = [actor(kind, f"{kind}{n}-", with_files, monkeypatch) for n, kind in enumerate(group)]
        explorer = Explorer(actors, check)
        explorer.explore(start(state, with_files, hint, monkeypatch))
        states += explorer.states
    return states


def groups_of(*kinds: str, vacuums: int = 1) -> list[tuple[str, ...]]:
    """Return all groups of three. More than one vacuum makes the most states."""
    return [g for g in itertools.combinations_with_replacement(kinds, 3) if g.count("vacuum") <= vacuums]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["none", "active", "deleted"])
def test_log_entries_that_are_vacuumed_at_once(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any grace. A second vacuum would take the last trace of a removed index, which only grace protects."""
    groups = groups_of("add", "create", "vacuum", "delete", "restore")
    if THOROUGH:
        groups = groups_of("add", "twice", "create", "found", "vacuum", "delete", "restore")
    assert explored(groups, state, monkeypatch) > 1000


@pytest.mark.slow
@pytest.mark.parametrize(("state", "group", "hint"), SLEEPERS)
def test_writers_that_sleep_while_their_number_goes(
    state: str, group: tuple[str, ...], hint: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explored([group], state, monkeypatch, hint=hint) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("state", ["none", "active", "deleted", "removed"])
def test_files_are_there_as_long_as_they_are_named(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = groups_of("replace", "create", "vacuum", "delete", "restore")
    if THOROUGH:
        groups = groups_of("add", "replace", "create", "vacuum", "delete", "restore", vacuums=3)
    assert explored(groups, state, monkeypatch, with_files=True) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("state", ["none", "active", "deleted", "removed"])
def test_an_index_that_is_put_in_the_place_of_another(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = ("add", "create", "vacuum", "delete", "restore", "put in place", "remove")
    groups: list[tuple[str, ...]] = [("put in place", other) for other in others]
    if THOROUGH:
        groups = [("put in place", *pair) for pair in itertools.combinations_with_replacement(others, 2)]
    assert explored(groups, state, monkeypatch, with_files=True) > 300


@pytest.mark.slow
def test_two_vacuums_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert explored([("replace", "vacuum", "vacuum")], "active", monkeypatch, with_files=True) > 1000


@pytest.mark.parametrize(("state", "group", "hint"), [SLEEPERS[0], SLEEPERS[-1]])
def test_the_checker_finds_what_is_wrong(
    state: str, group: tuple[str, ...], hint: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the look after the put, a writer that slept takes a number a second time."""
    monkeypatch.setattr(Log, "_stands", lambda self, entry: True)
    with pytest.raises(AssertionError, match="acknowledged"):
        explored([group], state, monkeypatch, hint=hint)


def test_one_creator_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    won: set[int] = set()

    def count(files: Files, outcomes: list[Any]) -> None:
        if None not in outcomes:
            won.add(sum(isinstance(outcome, tuple) for outcome in outcomes))
            lost = [outcome.error for outcome in outcomes if isinstance(outcome, Failed)]
            assert set(lost) <= {AlreadyExistsError}

    Explorer([actor("create", f"c{n}-", True, monkeypatch) for n in range(3)], count).explore(frozenset())
    assert won == {1}

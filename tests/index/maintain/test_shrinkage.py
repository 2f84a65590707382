"""A table that lost most of its files is an error until somebody says that it should be so."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom.errors import TableShrunkError
from lakebloom.index.current_table import recorded_table
from lakebloom.index.maintain.shrinkage import is_mostly_gone, shrinkage
from tests.examples import most
from tests.index.lake import NAME, Lake, assert_answers, columns_of, questions

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.index.snapshot import Snapshot

QUESTIONS = questions([3, 25, 47, 88, 205])
MODES = ["quick", "full"]
Mode = Literal["quick", "full"]


def remove(lake: Lake, files: range) -> None:
    for number in files:
        (lake.table / f"f{number}.parquet").unlink()


def replaced(lake: Lake, gone: range, new: range, rows: int = 20) -> None:
    remove(lake, gone)
    for number in new:
        lake.write(f"n{number}", columns_of(range(200 + number * rows, 200 + (number + 1) * rows)))


# What was done to a table of ten files with twenty rows each, and whether it has shrunk.
CASES: dict[str, tuple[Callable[[Lake], Any], bool]] = {
    "the directory is gone": (lambda lake: shutil.rmtree(lake.table), True),
    "it is empty": (lambda lake: remove(lake, range(10)), True),
    "six are gone": (lambda lake: remove(lake, range(6)), True),
    "all but one are gone": (lambda lake: remove(lake, range(9)), True),
    "nine are gone, and a small one came": (lambda lake: replaced(lake, range(9), range(1), rows=2), True),
    "five are gone": (lambda lake: remove(lake, range(5)), False),
    "one is gone": (lambda lake: remove(lake, range(1)), False),
    "it was written anew": (lambda lake: replaced(lake, range(10), range(10)), False),
    "it was written anew, in fewer files": (lambda lake: replaced(lake, range(10), range(5)), False),
    "ten became one with all rows": (lambda lake: replaced(lake, range(10), range(1), rows=200), False),
    "ten became one with as many bytes": (lambda lake: replaced(lake, range(10), range(1), rows=5000), False),
    "all were changed in place": (lambda lake: lake.fill(range(10), rows=3), False),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_what_counts_as_lost(lake: Lake, case: str, mode: Mode) -> None:
    change, has_shrunk = CASES[case]
    lake.fill(range(10))
    lake.create()
    before = lake.entry()
    change(lake)
    (status,) = lake.open().status(NAME)
    assert bool(status.problem) == has_shrunk
    if has_shrunk:
        with pytest.raises(TableShrunkError, match=r"check the table.*allow_shrink=True") as refusal:
            lake.refresh(mode)
        assert lake.entry() == before, "nothing was committed"
        assert status.problem in refusal.value.found
        assert status.is_stale(10**9)
    lake.refresh(mode, allow_shrink=has_shrunk)
    assert lake.uris() <= {file.uri for file in lake.snapshot().files}
    (status,) = lake.open().status(NAME)
    assert (status.problem, status.lag) == ("", 0)
    assert not lake.refresh(mode).committed, "and it is settled"
    if lake.table.exists():
        assert lake.indexed() == lake.uris()
        assert_answers(lake, QUESTIONS)


def test_rows_decide_where_bytes_do_not(lake: Lake) -> None:
    """A file of one row is nearly all header: forty of them are larger than one file with their rows."""
    lake.fill(range(40), rows=1)
    lake.create()
    remove(lake, range(40))
    path = lake.write("all", columns_of(range(40)))
    assert 2 * path.stat().st_size < sum(file.size_bytes for file in lake.snapshot().files)
    assert lake.refresh().files == 1
    assert {file.uri for file in lake.snapshot().files} == lake.uris(), "what is gone went with it"


@pytest.mark.slow
def test_a_new_table_is_not_held_against_what_went_long_ago(lake: Lake) -> None:
    """Day after day some files come and some go, with quick refreshes only."""
    lake.fill(range(4))
    lake.create()
    for day in range(12):
        remove(lake, range(day, day + 1))
        lake.fill([4 + day])
        assert lake.refresh().files == 1
        assert_answers(lake, QUESTIONS[:2])
    assert 2 * len(lake.uris()) >= lake.snapshot().files.num_current


@pytest.mark.parametrize("global_filter", [False, True])
def test_what_went_is_dropped_in_a_commit_of_its_own(lake: Lake, global_filter: bool) -> None:
    from lakebloom import BloomIndexConfig

    lake.fill(range(6))
    lake.create(BloomIndexConfig(NAME, ["k"], global_filter=global_filter))
    replaced(lake, range(4), range(3))
    before = lake.entry().version
    report = lake.refresh()
    assert (report.files, report.version) == (3, before + 2)
    assert lake.indexed() == lake.uris() == {file.uri for file in lake.snapshot().files}
    assert_answers(lake, QUESTIONS)


@settings(max_examples=most(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.integers(0, 9)), st.integers(0, 12))
def test_the_rule(snapshot: Snapshot, gone: set[int], came: int) -> None:
    """By number: it is an error exactly where more than half are gone, and fewer than half of them came."""
    files = list(snapshot.files)
    new = [files[0]._replace(uri=f"file:///new/{number}", size_bytes=0) for number in range(came)]
    listed = [file for number, file in enumerate(files) if number not in gone] + new
    found = shrinkage(snapshot, recorded_table(snapshot), listed, {})
    assert is_mostly_gone(snapshot, listed) == (len(gone) > 5)
    assert (found is not None) == (len(gone) > 5 and 2 * came < len(gone))
    if found is not None:
        assert (found.known, found.gone, found.came) == (10, len(gone), came)


@pytest.fixture
def snapshot(lake: Lake) -> Snapshot:
    lake.fill(range(10))
    lake.create()
    return lake.snapshot()


def test_nothing_to_do_is_said_so(lake: Lake) -> None:
    lake.fill(range(2))
    lake.create()
    lake.refresh("full")
    for mode in MODES:
        report = lake.refresh(mode)  # type: ignore[arg-type]
        assert not report.committed
        for text in (str(report), repr(report), report._repr_html_()):
            assert "nothing to do" in text
            assert "False" not in text
    done = lake.open().optimize_index(NAME)
    if not done.committed:
        assert "nothing to do" in repr(done)
    lake.write("f0", {"k": pa.array([1], pa.int64())})
    (lake.table / "f0.parquet").write_bytes(b"no Parquet")
    report = lake.refresh()
    assert "none of 1 new files could be read" in str(report)

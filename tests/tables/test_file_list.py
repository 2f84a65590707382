"""Lists of files made from another: the same as those that are made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.tables.file_columns import FileColumns
from lakebloom.tables.file_identity import TableFile
from lakebloom.tables.file_list import FileList, total_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

NUMBERS = st.sets(st.integers(0, 119))
PLACES = ("file:///t/", "file:///t/é/", "s3://日/", "file:///t/\udce4/")


def named(number: int, size: int = 0) -> TableFile:
    return TableFile(f"{PLACES[number % len(PLACES)]}{number:03d}", size or number, number % 7, "log")


def require_equal(found: FileList, files: Iterable[TableFile]) -> None:
    expected = sorted(files)
    assert found == expected
    rebuilt = FileColumns.of(expected)
    assert found.columns.files() == rebuilt.files()
    assert found.size_bytes == total_bytes(expected) == total_bytes(found)


@given(NUMBERS, NUMBERS, NUMBERS, st.sets(st.integers(0, 119), max_size=3), st.booleans())
def test_of_files_that_came_went_and_changed(
    kept: set[int], gone: set[int], came: set[int], changed: set[int], with_columns: bool
) -> None:
    before = FileList.of(map(named, kept))
    if with_columns:
        assert before.columns.num_rows == len(before)
    removed = {named(number) for number in (gone | changed) & kept}
    added = {named(number) for number in came - kept} | {named(number, 1000) for number in changed & kept}
    require_equal(before.changed(added, removed), ({*before} - removed) | added)
    require_equal(before, map(named, kept))  # it is still itself


@pytest.mark.parametrize("with_columns", [False, True])
def test_of_a_few_changes_in_many_files(with_columns: bool) -> None:
    """They are taken over from the list before: at both ends, side by side, and in the place of others."""
    before = FileList.of(named(number) for number in range(0, 2000, 2))
    if with_columns:
        assert before.columns.num_rows == len(before)
    removed = {before[0], before[-1], before[500], before[501], named(1000)}
    added = {named(number) for number in (1, 3, 5, 999, 1001, 1999)} | {named(1000, 5), TableFile("a:/", 1, 1)}
    found = before.changed(added, removed)
    assert ("columns" in vars(found)) == with_columns
    require_equal(found, ({*before} - removed) | added)


def test_a_file_that_is_not_there_is_not_removed() -> None:
    before = FileList.of(named(number) for number in range(100))
    with pytest.raises(ValueError, match="is not in the list"):
        before.changed((), [named(5, 7)])

"""Files compared in columns: the same as comparing them one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.tables.file_columns import FileColumns
from lakebloom.tables.file_identity import TableFile, is_same
from lakebloom.tables.file_matching import ABSENT, Listing

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = [f"file:///t/{folder}{name}" for folder in ("", "a/", "b/", "é/") for name in ("x", "y", "z", "x\ty", "日")]
FILES = st.builds(
    TableFile,
    st.sampled_from(NAMES),
    st.integers(0, 2),
    st.sampled_from([0, 1, 2**40]),
    st.sampled_from(["", "t", "u"]),
)
UNIQUE = st.lists(FILES, max_size=20, unique_by=lambda file: file.uri)


def runs(files: list[TableFile], length: int) -> Iterator[FileColumns]:
    for start in range(0, len(files), length):
        yield FileColumns.of(files[start : start + length])


@given(known=st.lists(FILES, max_size=30), listed=UNIQUE, length=st.integers(1, 8), in_order=st.booleans())
def test_as_files_are_compared_one_by_one(
    known: list[TableFile], listed: list[TableFile], length: int, in_order: bool
) -> None:
    """Also if files are known several times, and whatever the order is."""
    if in_order:
        known, listed = sorted(known), sorted(listed)
    places, same = Listing.of(listed).match(runs(known, length), len(known))
    by_uri = {file.uri: number for number, file in enumerate(listed)}
    assert places.tolist() == [by_uri.get(file.uri, ABSENT) for file in known]
    assert same.tolist() == [is_same(file, listed[by_uri[file.uri]] if file.uri in by_uri else None) for file in known]


@given(UNIQUE, st.sets(st.integers(0, 19)), UNIQUE)
def test_a_listing_that_lost_and_got_some_files(known: list[TableFile], gone: set[int], came: list[TableFile]) -> None:
    known = sorted(known)
    left = [file for number, file in enumerate(known) if number not in gone]
    listed = sorted({file.uri: file for file in [*came, *left]}.values())
    same = Listing.of(listed).match(runs(known, 4), len(known)).same
    now = {file.uri: file for file in listed}
    assert same.tolist() == [is_same(file, now.get(file.uri)) for file in known]


@given(st.lists(FILES, max_size=10))
def test_columns_come_back_as_files(files: list[TableFile]) -> None:
    columns = FileColumns.of(files)
    assert columns.files() == files
    assert FileColumns.concat([columns, columns]).files() == files + files
    rows = np.arange(len(files))[::2]
    assert columns.take(rows).files() == files[::2]


@pytest.mark.parametrize("others", [[], ["file:///t/a"], ["file:///t/\udcff", "file:///t/b"]])
def test_a_name_that_is_not_unicode_is_never_known(others: list[str]) -> None:
    """Local disks have such names; an index cannot."""
    listed = [TableFile(uri, 1, 1) for uri in ["file:///t/\udcfe", *others]]
    known = [TableFile("file:///t/a", 1, 1)]
    places, same = Listing.of(listed).match(runs(known, 1), 1)
    assert same.tolist() == ["file:///t/a" in others]
    assert places.tolist() == ([1] if "file:///t/a" in others else [ABSENT])


def test_many_files_in_every_order() -> None:
    files = [TableFile(f"s3://b/day={i // 100}/part-{i:05d}", i, 1000 * i, f"e{i}") for i in range(5000)]
    listed = sorted(files)
    shuffled = [files[i] for i in np.random.default_rng(1).permutation(len(files))]
    changed = [file._replace(tag="other") if number % 7 == 0 else file for number, file in enumerate(shuffled)]
    for given_files in (files, listed, shuffled):
        places, same = Listing.of(listed).match(runs(given_files, 512), len(files))
        assert same.all()
        assert [listed[place] for place in places.tolist()] == given_files
    assert Listing.of(listed).match(runs(changed, 512), len(files)).same.tolist() == [i % 7 != 0 for i in range(5000)]
    assert Listing.of(shuffled).match(runs(changed, 512), len(files)).same.sum() == sum(i % 7 != 0 for i in range(5000))

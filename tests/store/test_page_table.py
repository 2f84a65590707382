"""Recorded locations of pages: what is added comes back, in parts, and what was exchanged or altered is found out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom.errors import CorruptIndexError
from lakebloom.storage import open_storage
from lakebloom.store import page_table
from lakebloom.store.page_table import PageTable, PageTableWriter, read_recorded
from tests.examples import most
from tests.store.examples import write_segment

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Storage
    from lakebloom.store.records import PagesRecord, SegmentRecord

FOLDER = "segments/x"


def written(storage: Storage, blobs: dict[int, bytes], num_files: int) -> PagesRecord | None:
    writer = PageTableWriter(storage, FOLDER)
    for file, data in blobs.items():
        writer.add(file, data)
    return writer.finish(num_files)


def segment_of(storage: Storage, num_files: int, pages: PagesRecord) -> SegmentRecord:
    record = write_segment(storage, "y", {2: 2})
    return msgspec.structs.replace(record, num_files=num_files, num_units=num_files, pages=pages)


@settings(max_examples=most(30), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(blobs=st.dictionaries(st.integers(0, 40), st.binary(min_size=1, max_size=50), min_size=1, max_size=30))
def test_what_is_added_comes_back(tmp_path_factory: pytest.TempPathFactory, blobs: dict[int, bytes]) -> None:
    storage = open_storage(tmp_path_factory.mktemp("index"))
    blobs = dict(sorted(blobs.items()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_table, "RECORDED_PART_BYTES", 100)
        record = written(storage, blobs, 41)
    assert record is not None
    assert len(record.parts) >= sum(map(len, blobs.values())) / 150
    table = PageTable(storage, segment_of(storage, 41, record), record)
    found = table.at(np.arange(41))
    read = {at.file: read_recorded(storage, at) for at in found if at is not None}
    assert read == blobs
    assert {file: data for file in range(41) if (data := table.copy(file)) is not None} == blobs
    table.examine()


def test_nothing_and_too_much_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(tmp_path)
    assert written(storage, {}, 3) is None
    monkeypatch.setattr(page_table, "MAX_RECORDED_BYTES", 5)
    assert written(storage, {1: b"abcdef"}, 3) is None


def test_exchanged_and_altered_locations_are_found_out(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    record = written(storage, {0: b"aaaa", 1: b"bbbb"}, 2)
    assert record is not None
    part = record.parts[0]
    table = PageTable(storage, segment_of(storage, 2, record), record)
    first, second = table.at(np.arange(2))
    assert first is not None
    assert second is not None
    for data in (b"bbbbaaaa", b"aaaabbbc", b"aaaabbb"):
        storage.write(part.path, data)
        with pytest.raises(Exception, match=r"checksum|ends"):
            read_recorded(storage, second)
        with pytest.raises(CorruptIndexError):
            PageTable(storage, segment_of(storage, 2, record), record).examine()


def test_a_table_that_points_outside_is_refused(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    record = written(storage, {0: b"aaaa", 1: b"bbbb"}, 2)
    assert record is not None
    short = msgspec.structs.replace(record.parts[0], size_bytes=6)
    for parts in ((), (short,)):
        told = msgspec.structs.replace(record, parts=parts)
        with pytest.raises(CorruptIndexError):
            PageTable(storage, segment_of(storage, 2, told), told).at(np.arange(2))


def test_an_abandoned_segment_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_table, "RECORDED_PART_BYTES", 4)
    storage = open_storage(tmp_path)
    writer = PageTableWriter(storage, FOLDER)
    for file in range(3):
        writer.add(file, b"abcd")
    assert list(storage.list("segments"))
    writer.abandon()
    assert not list(storage.list("segments"))

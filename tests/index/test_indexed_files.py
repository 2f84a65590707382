"""The files of a version across segments: which rows are current, and which numbers they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom.index.indexed_files import _overlapping
from lakebloom.index.snapshot import Compared, Snapshot
from lakebloom.storage import open_storage
from lakebloom.store.segments import SegmentWriter
from lakebloom.store.unit_columns import ColumnFacts, Unit
from lakebloom.tables.file_identity import TableFile, is_same
from tests.examples import most
from tests.store.examples import entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

RANGES = st.lists(st.tuples(st.text("abc", max_size=2), st.text("abc", max_size=2)).map(lambda r: (min(r), max(r))))


@given(RANGES)
def test_ranges_that_share_a_value(ranges: list[tuple[str, str]]) -> None:
    sharing = {
        i
        for i, (low, high) in enumerate(ranges)
        for j, (other_low, other_high) in enumerate(ranges)
        if i != j and low <= other_high and other_low <= high
    }
    found = _overlapping(ranges)
    assert found == sorted(found)
    assert sharing <= set(found) <= set(range(len(ranges)))
    assert not found or sharing


FILES = st.builds(TableFile, st.sampled_from([f"s3://b/{name}" for name in "abcdefgh"]), st.integers(0, 1), st.just(0))
SEGMENTS = st.lists(st.lists(FILES, min_size=1, max_size=4, unique_by=lambda file: file.uri), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=most(60))
@given(SEGMENTS, st.lists(FILES, max_size=6, unique_by=lambda file: file.uri), st.integers(1, 2))
def test_the_last_segment_of_a_file_counts(
    tmp_path_factory: pytest.TempPathFactory,
    segments: list[list[TableFile]],
    listed: list[TableFile],
    units: int,
) -> None:
    snapshot = _snapshot(tmp_path_factory, segments, units)
    rows = [file for files in segments for file in files]
    last = {file.uri: number for number, file in enumerate(rows)}
    files = snapshot.files
    assert files.num_rows == len(rows)
    assert files.current.tolist() == [last[file.uri] == number for number, file in enumerate(rows)]
    assert list(files) == [file for number, file in enumerate(rows) if last[file.uri] == number]
    known = {file.uri: file for file in rows}
    compared = Compared(files, listed)
    unknown = [file for file in listed if not is_same(known.get(file.uri), file)]
    assert compared.unknown == unknown
    assert compared.named.tolist() == [file.uri in known for file in listed]
    assert [snapshot.is_listed(file, listed) for file in known.values()] == [
        any(is_same(file, other) for other in listed) for file in known.values()
    ]
    by_units = [mask.tolist() for mask in snapshot.listed(listed)]
    now = {file.uri: file for file in listed}
    number = 0
    for of_segment, mask in zip(segments, by_units, strict=True):
        expected = []
        for file in of_segment:
            expected += [last[file.uri] == number and is_same(file, now.get(file.uri))] * units
            number += 1
        assert mask == expected


def test_versions_that_begin_alike_number_files_alike(tmp_path_factory: pytest.TempPathFactory) -> None:
    a, b, c, d = (TableFile(f"s3://b/{name}", 1, 0) for name in "abcd")
    first = _snapshot(tmp_path_factory, [[a, b], [c]], 1)
    second = _snapshot(tmp_path_factory, [[a, b], [c], [b, d]], 1)
    assert second.fingerprints[: len(first.fingerprints)] == first.fingerprints
    assert first.fingerprint != second.fingerprint
    assert second.files.starts == [0, 2, 3, 5]
    assert [file.uri for run in second.files.chunks(2) for file in run.files()] == [b.uri, d.uri]
    assert second.files.current.tolist() == [True, False, True, True, True]


def _snapshot(
    tmp_path_factory: pytest.TempPathFactory, segments: Sequence[Sequence[TableFile]], units: int
) -> Snapshot:
    storage = open_storage(tmp_path_factory.mktemp("index"))
    records = tuple(
        SegmentWriter(storage, f"s{number}", [("k",)]).finish(
            [Unit(file, 10 * i, 10, 0, 1, (ColumnFacts(0),)) for file in files for i in range(units)], ["bigint"], 0.01
        )
        for number, files in enumerate(segments)
    )
    return Snapshot(storage, msgspec.structs.replace(entry(), segments=records))

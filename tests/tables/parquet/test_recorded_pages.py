"""What an index records of pages is what the file has, or it is refused. Nothing else, whatever the bytes are."""

from __future__ import annotations

import random
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lakebloom.tables.parquet.footer import read_arrow_footer
from lakebloom.tables.parquet.pages import loading
from lakebloom.tables.parquet.pages.file_pages import FilePages, UnpagedError, Wanted
from lakebloom.tables.parquet.pages.local_bytes import LocalBytes
from lakebloom.tables.parquet.pages.recorded import RecordedPages
from lakebloom.tables.parquet.pages.row_ranges import RowRanges
from tests.examples import most
from tests.tables.parquet.paged import KINDS, WRITERS, random_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakebloom.tables.parquet.pages.chosen import Piece


class _Remote(LocalBytes):
    """A file whose pages are not walked when it is read."""

    is_remote = True  # type: ignore[assignment]


@contextmanager
def opened(path: Path) -> Iterator[tuple[FilePages, _Remote, pq.ParquetFile]]:
    with pa.OSFile(str(path)) as source:
        footer = read_arrow_footer(str(path), source)
        parquet = pq.ParquetFile(source, metadata=footer.metadata)
        yield FilePages(footer, parquet.schema_arrow), _Remote(source.fileno()), parquet


def recorded(path: Path) -> bytes | None:
    with opened(path) as (pages, file, parquet):
        return pages.walk_all(file, range(parquet.metadata.num_row_groups))


@pytest.mark.slow
@settings(max_examples=most(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(seed=st.integers(0, 2**32), writer=st.sampled_from(sorted(WRITERS)))
@example(seed=1853, writer="pyarrow")
def test_rows_by_recorded_pages_are_those_of_the_full_read(tmp_path: Path, seed: int, writer: str) -> None:
    rng = random.Random(seed)
    table = random_table(rng, rng.choice([1, 50, 300]), KINDS[writer])
    path = tmp_path / f"{writer}-{seed}.parquet"
    WRITERS[writer](rng, table, path)
    data = recorded(path)
    changed = None if data is None else bytearray(data)
    if changed:
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    for blob in (data, None if changed is None else bytes(changed), None if data is None else data[: len(data) // 2]):
        with opened(path) as (pages, file, parquet):
            if blob is not None:
                pages.load_recorded = lambda blob=blob: blob  # type: ignore[misc]
            for group in range(min(3, parquet.metadata.num_row_groups)):
                count = parquet.metadata.row_group(group).num_rows
                start = rng.randrange(count)
                rows = RowRanges.of([(start, rng.randint(start + 1, count))])
                for column in range(len(parquet.schema_arrow)):
                    try:
                        ((found,),) = pages.read(file, [Wanted(group, rows)], [column])
                    except UnpagedError:
                        continue
                    whole = parquet.read_row_group(group, columns=[parquet.schema_arrow.names[column]]).column(0)
                    if len(whole) != count:
                        continue  # Arrow loses rows of some repeated columns with pages of one value
                    expected = whole.slice(start, int(rows.stops[0]) - start)
                    assert repr(found.to_pylist()) == repr(expected.to_pylist())
    path.unlink()


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "f.parquet"
    table = pa.table({"k": range(10_000), "few": [n % 7 for n in range(10_000)]})
    pq.write_table(table, path, row_group_size=5000, max_rows_per_page=500, write_batch_size=100)
    return path


def test_pages_of_all_chunks_are_found_side_by_side(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    fill = LocalBytes.fill

    def counted(file: LocalBytes, target: memoryview, pieces: Sequence[Piece]) -> None:
        reads.append(len(pieces))
        fill(file, target, pieces)

    monkeypatch.setattr(LocalBytes, "fill", counted)
    data = recorded(large)
    assert data is not None
    assert len(reads) <= 12
    assert max(reads) == 4
    assert len(data) < 4 * 10 * 8
    with opened(large) as (pages, file, _):
        pages.load_recorded = lambda: data
        ((keys, few),) = pages.read(file, [Wanted(1, RowRanges.of([(1234, 1236)]))], [0, 1])
        assert keys.to_pylist() == [6234, 6235]
        assert few.to_pylist() == [6234 % 7, 6235 % 7]


def test_too_many_pages_are_not_recorded(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MAX_RECORDED_PAGES", 30)
    assert recorded(large) is None


def test_the_first_page_tells_about_how_many_rows_pages_have(large: Path) -> None:
    with opened(large) as (pages, file, _):
        assert pages.first_page_rows(file, 1, 0) == 500


@settings(max_examples=most(200), deadline=None)
@given(data=st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    try:
        found = RecordedPages(data)
        for leaf in range(3):
            pages = found.of(0, leaf, (4, 1000), 100)
            assert pages.first_rows[-1] == 100
            assert pages.offsets[-1] + pages.sizes[-1] <= 1000
    except UnpagedError:
        pass


@pytest.mark.parametrize("data", [b"", b"\x01", b"\xff" * 40, b"\x80\x80\x40\x01", b"\xff\xff\x7f\xff\xff\x7f"])
def test_impossible_numbers(data: bytes) -> None:
    with pytest.raises(UnpagedError):
        RecordedPages(data)

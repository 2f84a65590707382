"""Task retry and speculation: a task that ran twice leaves one truth, and its other attempt is cleared away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import BloomIndexConfig, col
from lakebloom.errors import AccessDeniedError, StorageError
from lakebloom.index.build.create import create_index
from lakebloom.index.build.task import build_segment
from lakebloom.store.tile_layout import layout_of
from tests.index.lake import DAY_MS, NAME, Lake, assert_answers, questions
from tests.index.local_builder import LocalBuilder, source_of, workshop
from tests.index.meddling import Passing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.display.progress import Progress
    from lakebloom.index.build.plan import BuildPlan, BuildResult, Shard
    from lakebloom.index.catalog import Catalog
    from lakebloom.storage import Buffer, Buffers
    from lakebloom.store.records import TableRecord

QUESTIONS = questions([5, 45])


class Speculating(LocalBuilder):
    """Runs every task twice; the second attempt counts, as when the first one's answer got lost."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog)
        self._storage = catalog.index(NAME).storage
        self.lost: list[str] = []

    def build(
        self,
        plan: BuildPlan,
        source: TableRecord,
        groups: Sequence[Shard],
        progress: Callable[[Progress], None] | None,
    ) -> BuildResult:
        for group in groups:
            segment = build_segment(plan, group, self._storage)[0].segment
            assert segment is not None
            self.lost.append(segment.id)
        return super().build(plan, source, groups, progress)


@pytest.mark.slow
def test_two_attempts_leave_one_truth(lake: Lake) -> None:
    lake.fill(range(4))
    catalog = lake.catalog()
    builder = Speculating(catalog)
    shop = workshop(catalog)
    object.__setattr__(shop, "builder", builder)
    report = create_index(shop, source_of(lake.table, lake.types), BloomIndexConfig(NAME, ["k", "s"]))
    assert report.units == 4
    committed = {segment.id for segment in lake.entry().segments}
    assert len(builder.lost) == len(committed) == 4
    assert committed.isdisjoint(builder.lost)
    assert {path.split("/")[1] for path in lake.orphans()} == set(builder.lost)
    assert lake.kept(col("k") == 45) == {("f2", 0)}
    assert_answers(lake, QUESTIONS)
    lake.vacuum(0, DAY_MS)
    assert lake.orphans(), "another attempt may still be running"
    lake.vacuum(0, 0)
    assert lake.stored() == lake.entry().paths
    assert_answers(lake, QUESTIONS)


def test_both_attempts_write_the_same_filters(lake: Lake) -> None:
    lake.fill(range(2))
    builder = Speculating(lake.catalog())
    shop = workshop(lake.catalog())
    object.__setattr__(shop, "builder", builder)
    create_index(shop, source_of(lake.table, lake.types), BloomIndexConfig(NAME, ["k", "s"]))
    storage = lake.catalog().index(NAME).storage
    for segment, other in zip(lake.entry().segments, builder.lost, strict=True):
        assert storage.read(segment.units.path) == storage.read(segment.units.path.replace(segment.id, other))
        for tile in segment.tiles:
            twin = tile.parts[0].file.path.replace(segment.id, other)
            layout = layout_of(tile.num_units)
            rows = [(layout.offset(row), layout.piece_bytes) for row in range(tile.num_blocks)]  # without checksums
            assert storage.read_ranges(tile.parts[0].file.path, rows) == storage.read_ranges(twin, rows)


class Full(Passing):
    """A disk that is full, or that may not be written."""

    error: type[StorageError] = StorageError

    def write(self, path: str, data: Buffers | Buffer) -> None:
        raise self.error(f"could not write {path}")


class Forbidden(Full):
    error = AccessDeniedError


@pytest.mark.parametrize("storage", [Full, Forbidden])
@pytest.mark.parametrize("granularity", ["file", 3])
def test_an_index_that_cannot_be_written_is_no_fault_of_the_data(
    lake: Lake, storage: type[Full], granularity: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even in the middle of a file, when tiles are written before the file ends."""
    monkeypatch.setattr("lakebloom.index.build.tile_builder.PENDING_HASHES", 5)
    monkeypatch.setattr("lakebloom.index.build.tile_builder.PENDING_FILTER_BYTES", 1)
    lake.fill(range(2))
    config = BloomIndexConfig(NAME, ["k"], granularity=granularity)
    with pytest.raises(storage.error, match="could not write segments/"):
        lake.create(config, catalog=lake.catalog(storage))
    assert lake.stored() == set()

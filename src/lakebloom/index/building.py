"""Building segments for some files of a table: what create and refresh have in common."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakebloom.index import estimate
from lakebloom.index.plan import GLOBAL_BLOCK_STEP, BuildPlan, BuildResult, group_files
from lakebloom.sbbf import sizing
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK
from lakebloom.tables.parquet_columns import ColumnSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.index.plan import Builder, Progress
    from lakebloom.index.settings import Settings
    from lakebloom.store.records import ConfigRecord, SourceRecord
    from lakebloom.tables.files import TableFile

PARQUET = "parquet"
_GLOBAL_FPP = 0.01


@dataclass(slots=True)
class Phases:
    """How long each phase of an operation took."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block to a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every operation that builds needs."""

    catalog: Catalog
    builder: Builder
    settings: Settings
    progress: Callable[[Progress], None] | None = None
    case_sensitive: bool = False


def plan_build(
    workshop: Workshop,
    config: ConfigRecord,
    source: SourceRecord,
    files: Sequence[TableFile],
    all_files: Sequence[TableFile],
) -> BuildPlan:
    """Return the plan for indexing some of a table's files, after checking that it is allowed."""
    columns = tuple(ColumnSpec(column.path, column.type) for column in config.columns)
    options = workshop.catalog.options
    if source.format == PARQUET:
        shape = estimate.sample_shape(files, columns, config.granularity, options)
    else:
        shape = estimate.Shape(units=len(files), rows=0)
    share = len(files) / len(all_files)
    fpp = sizing.auto_fpp(round(shape.units / share)) if config.fpp is None else config.fpp
    expected = estimate.filter_bytes(shape, len(columns), fpp, config.expected_items)
    estimate.require_size(round(expected / share), sum(file.size_bytes for file in all_files), workshop.settings)
    return BuildPlan(
        index_uri=workshop.catalog.storage_uri(config.name),
        columns=columns,
        granularity=config.granularity,
        fpp=fpp,
        expected_items=config.expected_items,
        storage_options=options,
        case_sensitive=workshop.case_sensitive,
        global_blocks=_largest_global(workshop.settings) if config.global_filter else None,
    )


def _largest_global(settings: Settings) -> int:
    blocks = settings.global_max_bytes // BYTES_PER_BLOCK
    return max(1, blocks // GLOBAL_BLOCK_STEP) * GLOBAL_BLOCK_STEP


def run_build(
    workshop: Workshop, index: Index, plan: BuildPlan, source: SourceRecord, files: Sequence[TableFile]
) -> BuildResult:
    """Write the segments. Whatever fails, nothing of them is left behind if it can be helped."""
    groups = group_files(files, workshop.builder.parallelism())
    try:
        return workshop.builder.build(plan, source, groups, workshop.progress)
    except Exception:
        discard(index, plan)
        raise


def discard(index: Index, plan: BuildPlan) -> None:
    """Delete the segments of a build that will not be committed."""
    for file in list(index.storage.list("segments")):
        if file.path.startswith(f"segments/{plan.build_id}-"):
            index.storage.delete(file.path)


def resized_globals(result: BuildResult, config: ConfigRecord) -> BuildResult:
    """Fold new global filters to the size that their values need."""
    target = config.fpp if config.fpp is not None else _GLOBAL_FPP
    return replace(result, global_filters=[f.fold_to(max(target, 1e-3)) for f in result.global_filters])

"""Builds segments for some files of a table, for create and refresh."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakebloom.errors import IndexTooLargeError, InvalidArgumentError
from lakebloom.index.build import estimate
from lakebloom.index.build.plan import BuildPlan, BuildResult, shard_files
from lakebloom.index.operation import discard
from lakebloom.index.units import Shape, sample_shape
from lakebloom.sbbf import sizing
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK
from lakebloom.storage import require_writable
from lakebloom.storage.permissions import match_table
from lakebloom.tables.file_identity import is_reachable
from lakebloom.tables.file_list import total_bytes
from lakebloom.tuning import GLOBAL_BLOCK_STEP, GLOBAL_FPP, MOST_GLOBAL_FPP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.display.progress import Progress
    from lakebloom.index.build.plan import Builder
    from lakebloom.index.catalog import Catalog, Index
    from lakebloom.index.settings import Settings
    from lakebloom.store.merge import RunRanges
    from lakebloom.store.records import ConfigRecord, TableRecord
    from lakebloom.tables.column_spec import ColumnSpec
    from lakebloom.tables.file_identity import TableFile

PARQUET = "parquet"
_LOOK_AGAIN_S, _QUIET_S, _LATEST_S = 0.5, 4.0, 20.0
"""Cancelled tasks have ended when they have written nothing for so long: Spark gives their processes two seconds."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every operation that builds needs."""

    catalog: Catalog
    builder: Builder
    settings: Settings
    progress: Callable[[Progress], None] | None = None


def shape_of(
    workshop: Workshop,
    config: ConfigRecord,
    table: TableRecord,
    files: Sequence[TableFile],
    all_files: Sequence[TableFile],
    *,
    from_embedded: bool = False,
) -> Shape:
    """Return the estimated units and rows of some of a table's files.

    Raises the error of the first file if none can be read.
    """
    if config.allow_plaintext_filters or not all(is_reachable(file.uri) for file in files):
        if config.granularity not in ("auto", "file"):
            raise InvalidArgumentError(
                "files that only Spark can read cannot be divided into units",
                found=f"granularity {config.granularity!r} for {files[0].uri}",
                hint='use granularity="file"',
            )
        return Shape(units=len(files), rows=0)
    if table.format != PARQUET:
        return Shape(units=len(files), rows=0)
    granularity = config.granularity
    if granularity == "auto" and (from_embedded or config.expected_items is not None):
        granularity = "file"  # filters of files, and a number of values for each
    shape = sample_shape(files, _specs(config, table), granularity, table.access(workshop.catalog.options))
    if granularity == "auto" and not _is_affordable(workshop, config, files, all_files, shape):
        return by_file(shape, len(files))
    return shape


def by_file(shape: Shape, num_files: int) -> Shape:
    """Return the shape of the same table with files as units."""
    return replace(shape, units=num_files, granularity="file")


def _is_affordable(
    workshop: Workshop,
    config: ConfigRecord,
    files: Sequence[TableFile],
    all_files: Sequence[TableFile],
    shape: Shape,
) -> bool:
    try:
        _rate(workshop, config, files, all_files, shape)
    except IndexTooLargeError:
        return False
    return True


def _rate(
    workshop: Workshop,
    config: ConfigRecord,
    files: Sequence[TableFile],
    all_files: Sequence[TableFile],
    shape: Shape,
) -> float:
    """Return the rate of the filters. Raises IndexTooLargeError."""
    share = len(files) / len(all_files)
    fpp = sizing.auto_fpp(round(shape.units / share)) if config.fpp is None else config.fpp
    expected = estimate.filter_bytes(shape, len(config.columns), fpp, config.expected_items)
    estimate.require_size(round(expected / share), total_bytes(all_files), workshop.settings)
    return fpp


def plan_build(
    workshop: Workshop,
    config: ConfigRecord,
    table: TableRecord,
    files: Sequence[TableFile],
    all_files: Sequence[TableFile],
    shape: Shape,
    *,
    from_embedded: bool = False,
) -> BuildPlan:
    """Return the plan to index some of a table's files. Raises IndexTooLargeError."""
    fpp = _rate(workshop, config, files, all_files, shape)
    return BuildPlan(
        index_uri=workshop.catalog.storage_uri(config.name),
        columns=_specs(config, table),
        granularity=shape.granularity if config.granularity == "auto" else config.granularity,
        fpp=fpp,
        expected_items=config.expected_items,
        access=table.access(workshop.catalog.options),
        global_blocks=_largest_global(workshop.settings) if config.global_filter else None,
        from_embedded=from_embedded,
        allow_plaintext_filters=config.allow_plaintext_filters,
    )


def require_buildable(workshop: Workshop, plan: BuildPlan, table: TableRecord, files: Sequence[TableFile]) -> None:
    """Let the builder refuse these files before anything is written, if it has a check."""
    check = getattr(workshop.builder, "require_buildable", None)
    if check is not None:
        check(plan, table, files)


def merger(workshop: Workshop, index: Index) -> RunRanges | None:
    """Return what the builder merges segments with; None where they are merged here."""
    make = getattr(workshop.builder, "merger", None)
    run: RunRanges | None = None if make is None else make(index)
    return run


def require_importable(config: ConfigRecord, table: TableRecord) -> None:
    """Raise InvalidArgumentError if the filters of the files cannot be imported."""
    found, hint = "", ""
    if table.format != PARQUET or not all(map(is_reachable, table.locations)):
        found, hint = f"{table.format} files in {table.locations[0]}", "Parquet files that Python can open"
    elif config.granularity not in ("auto", "file", "row_group"):
        found, hint = f"granularity {config.granularity!r}", 'granularity="row_group"; files have a filter for each'
    elif config.global_filter:
        found, hint = "global_filter=True", "an index without one; it needs the values themselves"
    elif config.expected_items is not None:
        found, hint = f"expected_items={config.expected_items}", "leaving it out; the files have sized their filters"
    if found:
        raise InvalidArgumentError("from_embedded imports filters from Parquet files", found=found, hint=f"use {hint}")


def _specs(config: ConfigRecord, table: TableRecord) -> tuple[ColumnSpec, ...]:
    """Return how the columns are read. In a table with a log a type may have been widened since: nothing is cut off."""
    if table.snapshot is None:
        return tuple(column.spec for column in config.columns)
    schema = table.schema
    types = {schema.physical[path].path: kind for path, kind in schema.types.items()}
    return tuple(column.spec_as(types.get(column.physical_path, column.type)) for column in config.columns)


def _largest_global(settings: Settings) -> int:
    """Return the largest allowed number of blocks that has many divisors."""
    blocks = max(1, settings.global_max_bytes // BYTES_PER_BLOCK)
    step = next(step for step in (GLOBAL_BLOCK_STEP, 60, 1) if step <= blocks)
    return blocks // step * step


def run_build(
    workshop: Workshop,
    index: Index,
    plan: BuildPlan,
    table: TableRecord,
    files: Sequence[TableFile],
    least_bytes: int = 1,
) -> BuildResult:
    """Write the segments. After an error their files are deleted, if possible. ``least_bytes`` is for ``shard_files``.

    Checks the builder and the location before anything is written.
    """
    require_buildable(workshop, plan, table, files)
    require_writable(index.storage)
    match_table(index.storage.uri, (file.uri for file in files), table.locations)
    shards = shard_files(files, workshop.builder.parallelism(), least_bytes)
    try:
        return workshop.builder.build(plan, table, shards, workshop.progress)
    except KeyboardInterrupt:
        _discard_late(index, plan.build_id)
        raise
    except Exception:
        discard(index, plan.build_id)
        raise


def _discard_late(index: Index, build_id: str) -> None:
    """Delete the files of tasks that were cancelled: they end a moment later, and some finish their segment first."""
    started = found = time.monotonic()
    while (now := time.monotonic()) - found < _QUIET_S and now - started < _LATEST_S:
        if discard(index, build_id):
            found = now
        time.sleep(_LOOK_AGAIN_S)
    discard(index, build_id)


def resized_globals(result: BuildResult, config: ConfigRecord) -> BuildResult:
    """Fold new global filters to the size that their values need."""
    return replace(result, global_filters=[f.fold_to(_global_fpp(config)) for f in result.global_filters])


def grows_at(config: ConfigRecord) -> float:
    """Return the rate above which a global filter is too small, and must be built again from all values."""
    return min(MOST_GLOBAL_FPP, 10 * _global_fpp(config))


def _global_fpp(config: ConfigRecord) -> float:
    return max(config.fpp if config.fpp is not None else GLOBAL_FPP, 1e-3)

"""Creates an index: everything is checked before the first byte is written, and one commit makes it visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from lakebloom.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptIndexError,
    DataFileError,
    IndexExistsError,
    InvalidArgumentError,
    NoFilesError,
    UnsupportedSourceError,
)
from lakebloom.index.build import estimate
from lakebloom.index.build.price import PriceTag
from lakebloom.index.build.report import BuildReport
from lakebloom.index.build.run import (
    PARQUET,
    merger,
    plan_build,
    require_buildable,
    require_importable,
    resized_globals,
    run_build,
    shape_of,
)
from lakebloom.index.maintain.optimize import compacted
from lakebloom.index.operation import Phases, discard, discarding, require_stored
from lakebloom.index.snapshot import Snapshot
from lakebloom.store.global_filters import write_global
from lakebloom.store.log import WRITER, now_ms
from lakebloom.store.records import ColumnRecord, Commit, ConfigRecord, GlobalRecord
from lakebloom.tables.columns import ColumnNames, arrow_type, format_name
from lakebloom.tuning import MANY_SEGMENTS, MOST_GLOBAL_FPP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakebloom.index.build.plan import BuildPlan, BuildResult
    from lakebloom.index.build.run import Workshop
    from lakebloom.index.catalog import Index
    from lakebloom.index.config import BloomIndexConfig
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.store.records import SegmentRecord, State, TableRecord
    from lakebloom.tables.columns import ColumnPath
    from lakebloom.tables.file_identity import TableFile


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The facts that are known before the first byte is written."""

    record: ConfigRecord
    table: CurrentTable
    files: Sequence[TableFile]
    plan: BuildPlan
    price: PriceTag
    found: Commit | None
    """The newest commit of the name when it began, that of a removed index too; None where none can be read."""


def price_index(
    workshop: Workshop,
    table: TableRecord,
    config: BloomIndexConfig,
    *,
    replace: bool = False,
) -> PriceTag:
    """Run all checks of ``create_index``, and return what it would cost. Writes nothing."""
    return _prepared(workshop, table, config, Phases(), replace=replace).price


def create_index(
    workshop: Workshop,
    table: TableRecord,
    config: BloomIndexConfig,
    quoted: Callable[[PriceTag], None] | None = None,
    *,
    from_embedded: bool = False,
    replace: bool = False,
    phases: Phases | None = None,
) -> BuildReport:
    """Build an index over a table and commit its first version.

    ``quoted`` gets the price before anything is written; if it raises, nothing is written. With
    ``from_embedded``, filters that the files already have are imported if possible (``embedded_import``). With
    ``replace``, an index of this name is used until the commit, which replaces it. ``phases`` started to count when
    the caller did.
    """
    phases = phases or Phases()
    prepared = _prepared(workshop, table, config, phases, from_embedded=from_embedded, replace=replace)
    if quoted is not None:
        quoted(prepared.price)
    index, files, plan = workshop.catalog.index(config.name), prepared.files, prepared.plan
    with phases.timed("build"):
        result = resized_globals(run_build(workshop, index, plan, table, files), prepared.record)
    with phases.timed("commit"), discarding(index, plan.build_id):
        require_something(result, len(files))
        estimate.require_size(_index_bytes(result), sum(file.size_bytes for file in files), workshop.settings)
        first = Commit(
            version=1,
            timestamp_ms=now_ms(),
            operation="create",
            state="active",
            writer=WRITER,
            config=prepared.record,
            table=prepared.table.stored(index.storage, plan.build_id),
            segments=result.segments,
            summary=summary_of(result),
        )
        segments = _merged(workshop, index, first, plan.build_id)
        global_filters = store_globals(index, plan, result, segments)
        first = msgspec.structs.replace(first, segments=segments, global_filters=global_filters)
        commit = _replaced(index, first, prepared.found) if replace else _created(index, first)
    if segments != result.segments:
        discard(index, plan.build_id, commit)  # what was merged
    return BuildReport.of(commit, result, phases.seconds)


def _merged(workshop: Workshop, index: Index, first: Commit, operation_id: str) -> tuple[SegmentRecord, ...]:
    """Return the segments of a build, merged if there are more than a lookup should read."""
    if len(first.segments) <= MANY_SEGMENTS:
        return first.segments
    snapshot = Snapshot(index.storage, first)
    return compacted(index, snapshot, snapshot.current, operation_id, run=merger(workshop, index))


def _created(index: Index, first: Commit) -> Commit:
    try:
        return index.log.create(require_stored(index, first))
    except AlreadyExistsError as error:
        raise _exists(index.name, "created by another writer meanwhile") from error


def _replaced(index: Index, first: Commit, found: Commit | None) -> Commit:
    """Commit an index in place of the one that has its name by then, in any state.

    Except one that was removed since the build began: removing an index deletes all its files, also those of this
    build.
    """

    def change(base: Commit | None) -> Commit:
        if base is not None and base.state == "removed" and (found is None or base.id != found.id):
            raise CommitConflictError(
                f"cannot replace index {index.name!r}",
                found=f"it was removed in version {base.version}, while the new one was built",
                hint="run it again",
            )
        is_new = base is None or base.state == "removed"
        return require_stored(index, first if is_new else msgspec.structs.replace(first, operation="replace"))

    return index.log.replace(change)


def _prepared(
    workshop: Workshop,
    source: TableRecord,
    config: BloomIndexConfig,
    phases: Phases,
    *,
    from_embedded: bool = False,
    replace: bool = False,
) -> _Prepared:
    with phases.timed("check"):
        found = _newest(workshop.catalog.index(config.name))
        if not replace:
            _require_new(config.name, found)
        record = _resolved(config, source)
        if from_embedded:
            require_importable(record, source)
    with phases.timed("list"):
        table = workshop.builder.table(source)
        files = workshop.builder.list_files(table)
        if not files:
            raise NoFilesError(
                "there is nothing to index", found=f"no files in {', '.join(source.locations)}", hint="check the path"
            )
        shape = shape_of(workshop, record, source, files, files, from_embedded=from_embedded)
        plan = plan_build(workshop, record, source, files, files, shape, from_embedded=from_embedded)
        require_buildable(workshop, plan, source, files)
    return _Prepared(record, table, files, plan, PriceTag.of(record, source, files, shape, plan.fpp), found)


def store_globals(
    index: Index, plan: BuildPlan, result: BuildResult, segments: Sequence[SegmentRecord]
) -> tuple[GlobalRecord, ...]:
    """Write the global filters of a build, which hold the values of these segments, and return their records.

    One that is full even at the largest allowed size is omitted, and the report says so.
    """
    ids = [segment.id for segment in segments]
    return tuple(
        write_global(index.storage, number, f"{number}", f, ids, prefix=f"{plan.build_id}-")
        for number, f in enumerate(result.global_filters)
        if f.fpp <= MOST_GLOBAL_FPP
    )


def summary_of(result: BuildResult) -> dict[str, int | float]:
    """Return the summary of a build, for the commit."""
    return {
        "files_added": sum(segment.num_files for segment in result.segments),
        "units_added": sum(segment.num_units for segment in result.segments),
        "rows_added": sum(segment.num_rows for segment in result.segments),
        "files_rejected": len(result.rejected),
        "bytes_read": sum(shard.bytes_read for shard in result.shards),
    }


def _index_bytes(result: BuildResult) -> int:
    return sum(tile.num_blocks * tile.num_units * 32 for segment in result.segments for tile in segment.tiles)


def _newest(index: Index) -> Commit | None:
    try:
        return index.log.tip()
    except CorruptIndexError:
        return None  # an unreadable one is replaced; vacuum removes its files


def _require_new(name: str, found: Commit | None) -> None:
    if found is not None and found.state != "removed":
        raise _exists(name, f"one that is {found.state}, at version {found.version}", found.state)


def _exists(name: str, found: str, state: State = "active") -> IndexExistsError:
    verb = f"refresh_index({name!r}) brings it up to date"
    if state == "deleted":
        verb = f"restore_index({name!r}) brings it back"
    return IndexExistsError(
        f"cannot create index {name!r}",
        found=found,
        hint=f"{verb}; replace=True (create --replace, CREATE OR REPLACE) replaces it",
    )


def require_something(result: BuildResult, num_files: int) -> None:
    """Raise DataFileError for a build that rejected every file."""
    if result.segments:
        return
    first = result.rejected[0]
    raise DataFileError(
        f"none of {num_files} files could be indexed", found=f"{first.uri}: {first.reason}", hint="check the files"
    )


def _resolved(config: BloomIndexConfig, table: TableRecord) -> ConfigRecord:
    if config.granularity not in ("auto", "file") and table.format != PARQUET:
        raise InvalidArgumentError(
            f"{table.format} files have no row positions", found=f"granularity {config.granularity!r}",
            hint='use granularity="file"',
        )  # fmt: skip
    _require_same_rows(config, table)
    columns = [_find(path, table) for path in config.paths]
    for column in columns:
        arrow_type(column.type)
        if columns.count(column) > 1:
            raise InvalidArgumentError(
                "a column can be indexed only once", found=f"{format_name(column.path)} more than once"
            )
    return ConfigRecord(
        name=config.name,
        columns=tuple(columns),
        fpp=None if config.fpp == "auto" else float(config.fpp),
        expected_items=config.expected_items,
        granularity=config.granularity,
        global_filter=config.global_filter,
        allow_plaintext_filters=config.allow_plaintext_filters,
    )


def _require_same_rows(config: BloomIndexConfig, table: TableRecord) -> None:
    """Refuse several columns of a text format that drops malformed lines: a query of one column drops fewer lines."""
    mode = next((value for key, value in table.options.items() if key.lower() == "mode"), "")
    if mode.upper() == "DROPMALFORMED" and len(config.paths) > 1:
        raise UnsupportedSourceError(
            "which malformed lines Spark drops depends on the columns that it reads",
            found=f"mode {mode} and {len(config.paths)} columns",
            hint="create one index for each column",
        )


def _find(path: ColumnPath, table: TableRecord) -> ColumnRecord:
    partitions = [(name,) for name in table.partition_columns]
    if ColumnNames(partitions, case_sensitive=table.case_sensitive).matches(path):
        raise InvalidArgumentError(
            f"{format_name(path)} is a partition column",
            found="one value for each directory",
            hint="queries on it skip directories already; index another column",
        )
    name, kind = table.schema.column(path)
    physical = table.schema.physical[name]
    return ColumnRecord(name, kind, () if physical.path == name else physical.path, physical.ids)

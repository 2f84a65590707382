"""Prunes the files of one scan of a query: which files it can skip, and why not more.

The caller, for example Spark's optimizer, describes how it reads the files and by which predicate. An index decides
only if it has read them in the same way. The result is about files as they were indexed; the caller skips those that
are unchanged in its own listing. That listing may be older than the files: files on this machine are checked again, and
one that changed is kept.

Nothing raises here: an index that cannot be read, or not in time, skips nothing.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakebloom.errors import IndexNotFoundError, IndexStateError
from lakebloom.index.query.pruning import prune, prune_together, resolver
from lakebloom.index.query.views.combined import Together, helps
from lakebloom.index.query.views.read_schema import TEMPORAL, TEXT_FORMATS, AsRead, ReadSchema
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.spark_types import spark_type
from lakebloom.predicate.tree import Predicate, columns
from lakebloom.storage.metered import Metered
from lakebloom.tables.column_mapping import ColumnMapping
from lakebloom.tables.file_identity import TableFile
from lakebloom.tables.file_matching import ABSENT, Listing
from lakebloom.tables.formats.iceberg.metadata import PartitionSpec, Schema
from lakebloom.tables.formats.iceberg.partition_values import identity_sources
from lakebloom.tables.formats.iceberg.schema import spark_schema
from lakebloom.tables.name_mapping import names_of_ids
from lakebloom.tables.reader_settings import CASE_SENSITIVE, Matters, differing, with_options
from lakebloom.tables.schema import TableSchema
from lakebloom.timeout import side_by_side, within
from lakebloom.tuning import HOPELESS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from lakebloom.index.indexed_files import NumberedFiles
    from lakebloom.index.query.reader import Reader
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.prune.prune import Pruned
    from lakebloom.predicate.prune.unit_filters import BoolArray
    from lakebloom.store.records import SnapshotRecord, TableRecord

__all__ = ["IcebergTable", "PrunedFiles", "Reading", "ScanPruner", "Unanswered", "is_temporal", "why_not"]

LOG = logging.getLogger("lakebloom")
_REST_S = 30.0
"""How long an index is left alone after it did not answer in time."""
_REBASING = ("datetimerebasemode", "int96rebasemode")
"""Options of Parquet and Avro for old dates and timestamps."""
_NOT_ABOUT_VALUES = frozenset({"path", "paths", "basepath", "mergeschema", "serialization.format"})


class IcebergTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The Iceberg table that a scan reads: its id, and in Iceberg's own JSON the columns and all partition specs."""

    id: str
    schema: str
    specs: tuple[str, ...]
    name_mapping: str | None = None


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a query reads files, and its predicate on them, if it has one."""

    format: str
    schema: str
    """As Spark writes it, JSON."""
    options: dict[str, str]
    session: dict[str, str | None]
    predicate: Predicate | None = None
    table_schema: str | None = None
    """The columns of the version that is read, with ids and physical names, for a table with a log."""
    mapping: str | None = None
    """How files of such a table call the columns; None if they are not mapped."""
    iceberg: IcebergTable | None = None

    @property
    def case_sensitive(self) -> bool:
        """Whether the query's column names are case-sensitive."""
        return self.session.get(CASE_SENSITIVE, "false") == "true"

    @property
    def columns(self) -> TableSchema:
        """The columns as the query reads them."""
        return TableSchema.parse(self.schema, case_sensitive=self.case_sensitive)

    @property
    def settings(self) -> dict[str, str | None]:
        """The reader settings of the query."""
        return with_options(self.format.lower(), self.session, self.options)

    @property
    def log(self) -> str | None:
        """The format of a table whose log says which files count; None for a table without one."""
        return "iceberg" if self.iceberg is not None else "delta" if self.table_schema is not None else None

    def table(self, indexed: TableRecord) -> TableRecord | None:
        """Return the version of a table with a log that is read; None for a table without one."""
        if self.iceberg is not None and indexed.snapshot is not None:
            return _iceberg_version(indexed, indexed.snapshot, self.iceberg)
        if self.table_schema is None or indexed.snapshot is None:
            return None
        mapping = ColumnMapping(self.mapping or "none")
        return msgspec.structs.replace(
            indexed,
            schema_json=self.table_schema,
            snapshot=msgspec.structs.replace(indexed.snapshot, mapping=mapping),
        )

    def reads_other_times(self, sources: Sequence[TableRecord]) -> bool:
        """Tell whether dates and timestamps may be read as other values than when these tables were indexed."""
        if self.iceberg is not None:
            return False  # Iceberg has readers of its own, and no settings for them
        return any(
            matters is Matters.TEMPORAL
            for source in sources
            for matters, _, _ in differing(source.format, source.settings, self.settings).values()
        ) or any(_rebasing(source.options) != _rebasing(self.options) for source in sources)

    def read_schema(self, sources: Sequence[TableRecord]) -> ReadSchema:
        """Return the columns as the query reads them, and what may differ from the build of these tables' indexes."""
        temporal = self.reads_other_times(sources)
        return ReadSchema(self.format, self.columns, built=sources, temporal_differs=temporal)


@dataclass(frozen=True, slots=True)
class PrunedFiles:
    """What an index, or several together, decided: for each of their files whether it can match."""

    name: str
    files: NumberedFiles
    fingerprint: str
    """The same for the same files in the same order."""
    kept: BoolArray
    """Files that changed since they were indexed are kept, as far as this process can see."""
    changed: BoolArray
    pruned: tuple[Pruned, ...]
    snapshot: Snapshot | None = None
    """The version; None for several indexes."""
    bytes_read: int = 0
    """How many bytes of the index were read."""

    @property
    def has_effect(self) -> bool:
        """Whether any filter was probed."""
        return any(pruned.used for pruned in self.pruned)

    def units_of(self, uris: Collection[str]) -> list[BoolArray]:
        """Return, for each of ``pruned``, which units belong to these files."""
        listing = Listing.of([TableFile(uri, 0, 0) for uri in sorted(uris)])
        wanted = self.files.current & (self.files.match(listing).places != ABSENT)
        if self.snapshot is None:
            return [wanted]
        units = self.snapshot.units_of(wanted)
        side_by_side = len(self.pruned) == 1 and len(units) != 1
        return [np.concatenate(units)] if side_by_side and units else units


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why an index decided nothing."""

    name: str
    reason: Reason
    message: str = ""


def why_not(table: TableRecord, reading: Reading) -> Reason | None:
    """Return why an index cannot decide about files that are read like this; None if it can."""
    # The files of a table with a log are not what a plain reader takes them for, and the other way round.
    if (None if table.snapshot is None else table.snapshot.format) != reading.log:
        return Reason.READ_DIFFERS
    if reading.iceberg is not None and table.snapshot is not None:
        return None if table.snapshot.table_id.lower() == reading.iceberg.id else Reason.READ_DIFFERS
    if table.format != reading.format.lower() or table.case_sensitive != reading.case_sensitive:
        return Reason.READ_DIFFERS
    if any(
        _concerns(matters, table, reading)
        for matters, _, _ in differing(table.format, table.settings, reading.settings).values()
    ):
        return Reason.READ_DIFFERS
    if table.format == "parquet":
        return None
    if _about_values(table.options) != _about_values(reading.options):
        return Reason.READ_DIFFERS
    if not _same_fields(table, reading):
        return Reason.READ_DIFFERS
    return None


def _differences(table: TableRecord, reading: Reading) -> str:
    """Name the settings that differ between the query and the build, for people."""
    if reading.iceberg is not None:
        return "another table was indexed here: it was created again, or is of another format"
    found = [
        f"{key} was {built} and is {now}"
        for key, (matters, built, now) in differing(table.format, table.settings, reading.settings).items()
        if _concerns(matters, table, reading)
    ]
    if table.case_sensitive != reading.case_sensitive:
        found.append(f"{CASE_SENSITIVE} was {str(table.case_sensitive).lower()}")
    return "; ".join(found)


def _iceberg_version(indexed: TableRecord, known: SnapshotRecord, read: IcebergTable) -> TableRecord:
    """Return the table as a scan of Iceberg reads it, whatever its columns were called when it was indexed."""
    schema = msgspec.json.decode(read.schema, type=Schema)
    specs = {number: msgspec.json.decode(text, type=PartitionSpec) for number, text in enumerate(read.specs)}
    sources = identity_sources(specs)
    return msgspec.structs.replace(
        indexed,
        schema_json=spark_schema(schema, names_of_ids(read.name_mapping)).to_json(),
        partition_columns=tuple(field.name for field in schema.fields if field.id in sources),
        snapshot=msgspec.structs.replace(known, name_mapping=read.name_mapping),
    )


def _concerns(matters: Matters, table: TableRecord, reading: Reading) -> bool:
    """Tell whether a different setting matters for all columns. ReadSchema handles those of some types only."""
    match matters:
        case Matters.FIELD_IDS:
            return reading.columns.has_field_ids
        case Matters.DEFAULTS:
            return bool(table.schema.defaults or reading.columns.defaults)
        case Matters.TEMPORAL:
            return False
        case _:
            return True


def _rebasing(options: dict[str, str]) -> dict[str, str]:
    return {key.lower(): value.lower() for key, value in options.items() if key.lower() in _REBASING}


def _about_values(options: dict[str, str]) -> dict[str, str]:
    lowered = {key.lower(): value for key, value in options.items()}
    return {key: value for key, value in lowered.items() if key not in _NOT_ABOUT_VALUES}


def _same_fields(table: TableRecord, reading: Reading) -> bool:
    """Tell whether lines of text have the same columns, and whether missing columns have the same default values."""
    built, read = table.file_schema, reading.columns
    if built.defaults != read.defaults:
        return False
    return table.format not in TEXT_FORMATS or built.field_types == read.field_types


class ScanPruner:
    """Prunes the files of scans, and remembers which indexes have failed."""

    def __init__(self, reader: Callable[[str], Reader]) -> None:
        self._reader = reader
        self._warned: set[tuple[str, str]] = set()
        self._resting_until_s: dict[str, float] = {}

    def prune(self, names: Iterable[str], reading: Reading, timeout_s: float) -> list[PrunedFiles | Unanswered]:
        """Return what each index keeps, and what they keep together, in about this time.

        All indexes run at the same time: a slow one does not delay the others.
        """
        deadline_s = time.monotonic() + timeout_s
        names = list(names)
        running = {name: self._pruning(name, reading) for name in names if not self.is_resting(name)}
        found = side_by_side(timeout_s, running)
        answers = [self._answer(name, found.get(name)) for name in names]
        snapshots = {answer.name: answer.snapshot for answer in answers if isinstance(answer, PrunedFiles)}
        together = [snapshot for snapshot in snapshots.values() if snapshot is not None]
        if reading.log is None and reading.predicate is not None and helps(reading.predicate, together):
            predicate = reading.predicate
            schema = reading.read_schema([snapshot.commit.table for snapshot in together])
            run = lambda: _pruned_together(" + ".join(snapshots), together, predicate, schema)  # noqa: E731
            answers.append(_in_time(" + ".join(snapshots), run, deadline_s - time.monotonic()))
        for answer in answers:
            self._warn(answer)
        return answers

    def is_resting(self, name: str) -> bool:
        """Tell whether an index did not answer recently, and is left alone."""
        return time.monotonic() < self._resting_until_s.get(name, 0.0)

    def rest(self, name: str) -> None:
        """Leave an index alone after it did not answer in time."""
        self._resting_until_s[name] = time.monotonic() + _REST_S

    def wake(self) -> None:
        """Use all indexes again, also those that did not answer: something may have changed."""
        self._resting_until_s.clear()

    def _pruning(self, name: str, reading: Reading) -> Callable[[], PrunedFiles | Unanswered]:
        run = lambda: self._reader(name).with_newest(lambda snapshot: _pruned_files(name, snapshot, reading))  # noqa: E731
        return lambda: _caught(name, run)

    def _answer(self, name: str, found: PrunedFiles | Unanswered | TimeoutError | None) -> PrunedFiles | Unanswered:
        if found is None:
            message = f"it did not answer before, and is not tried for {_REST_S:.0f} s; enable() tries it at once"
            return Unanswered(name, Reason.TIMED_OUT, message)
        if isinstance(found, TimeoutError):
            self.rest(name)
            return Unanswered(name, Reason.TIMED_OUT, str(found))
        return found

    def _warn(self, answer: PrunedFiles | Unanswered) -> None:
        if isinstance(answer, PrunedFiles) or answer.reason not in (Reason.INDEX_UNREADABLE, Reason.TIMED_OUT):
            return
        if (answer.name, answer.reason.value) not in self._warned:
            self._warned.add((answer.name, answer.reason.value))
            LOG.warning("index %s skips nothing, %s: %s", answer.name, answer.reason.value, answer.message)


def _in_time(name: str, run: Callable[[], PrunedFiles | Unanswered], seconds: float) -> PrunedFiles | Unanswered:
    try:
        return within(seconds, lambda: _caught(name, run))
    except TimeoutError as error:
        return Unanswered(name, Reason.TIMED_OUT, str(error))


def _caught(name: str, run: Callable[[], PrunedFiles | Unanswered]) -> PrunedFiles | Unanswered:
    try:
        return run()
    except IndexStateError as error:
        return Unanswered(name, Reason.DELETED, str(error))
    except IndexNotFoundError as error:
        return Unanswered(name, Reason.NO_MATCHING_INDEX, str(error))
    except Exception as error:
        return Unanswered(name, Reason.INDEX_UNREADABLE, str(error) or repr(error))


def _pruned_files(name: str, snapshot: Snapshot, reading: Reading) -> PrunedFiles | Unanswered:
    reason = why_not(snapshot.commit.table, reading)
    if reason is not None:
        return Unanswered(name, reason, _differences(snapshot.commit.table, reading))
    if reading.predicate is None:
        return Unanswered(name, Reason.NO_USABLE_PREDICATE)
    version = reading.table(snapshot.commit.table)
    if version is not None:
        return _pruned_version(name, snapshot, reading, version)
    before = _bytes_read(snapshot)
    schema = reading.read_schema([snapshot.commit.table])
    segments = [AsRead(segment, schema) for segment in snapshot.segments]
    known = [column for column in map(resolver(snapshot), columns(reading.predicate)) if column is not None]
    if known and segments and not any(segment.column_type(column) for segment in segments for column in known):
        return Unanswered(name, Reason.READ_DIFFERS)
    pruned = prune(snapshot, reading.predicate, schema, hopeless=HOPELESS)
    files = snapshot.files
    changed = snapshot.recheck.changed() & files.current
    bytes_read = _bytes_read(snapshot) - before
    return PrunedFiles(
        name, files, snapshot.fingerprint, pruned.files() | changed, changed, pruned.answers, snapshot, bytes_read
    )


def _pruned_version(name: str, snapshot: Snapshot, reading: Reading, version: TableRecord) -> PrunedFiles | Unanswered:
    """Prune the files of a version of a table with a log: columns are known by what files call them."""
    assert reading.predicate is not None
    found = {column for column in map(resolver(snapshot, version), columns(reading.predicate)) if column is not None}
    if not found:
        return Unanswered(name, Reason.NO_USABLE_PREDICATE)
    temporal = (column.path in found for column in snapshot.commit.config.columns if is_temporal(column.type))
    if any(temporal) and reading.reads_other_times([snapshot.commit.table]):
        return Unanswered(name, Reason.READ_DIFFERS, _differences(snapshot.commit.table, reading))
    before = _bytes_read(snapshot)
    pruned = prune(snapshot, reading.predicate, table=version, hopeless=HOPELESS)
    # The log's files are written once: their time on disk is another, and they are not looked at.
    unchanged = np.zeros(snapshot.files.num_rows, dtype=np.bool_)
    bytes_read = _bytes_read(snapshot) - before
    return PrunedFiles(
        name, snapshot.files, snapshot.fingerprint, pruned.files(), unchanged, pruned.answers, snapshot, bytes_read
    )


def is_temporal(column_type: str) -> bool:
    """Tell whether values of a type are dates or times, which readers may read as other ones."""
    return spark_type(column_type).kind in TEMPORAL


def _bytes_read(snapshot: Snapshot) -> int:
    return snapshot.storage.bytes_read if isinstance(snapshot.storage, Metered) else 0


def _pruned_together(name: str, snapshots: list[Snapshot], predicate: Predicate, schema: ReadSchema) -> PrunedFiles:
    together = Together(snapshots)
    pruned = prune_together(together, predicate, schema, hopeless=HOPELESS)
    fingerprint = " ".join(snapshot.fingerprint for snapshot in snapshots)
    changed = together.changed()
    return PrunedFiles(name, together.files, fingerprint, pruned.keep | changed, changed, (pruned,))

"""What indexes say about one scan of a query: which files it can leave out, and why not more.

The asker, Spark's optimizer for example, describes how it reads the files and what it looks for. An index answers only
if it has read them in the same way. An answer is about files as they were indexed; the asker leaves out those that its
own listing shows unchanged. That listing may be older than the files: those that are on this machine are looked at
again, and one that changed is kept.

Nothing raises here: an index that cannot be read, or not in time, has nothing to say.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakebloom.errors import IndexNotFoundError, IndexStateError
from lakebloom.index.query.pruning import prune, resolver
from lakebloom.index.query.views.combined import Together, helps
from lakebloom.index.query.views.read_schema import TEXT_FORMATS, AsRead, ReadSchema
from lakebloom.index.timeout import side_by_side, within
from lakebloom.predicate.prune.prune import Pruner
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.tree import Predicate, columns
from lakebloom.storage.metered import Metered
from lakebloom.tables.reader_settings import Matters, differing, with_options
from lakebloom.tables.schema import TableSchema
from lakebloom.tables.spark_schema import StructType
from lakebloom.tuning import HOPELESS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from lakebloom.index.query.reader import Reader
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.predicate.prune.prune import Pruned
    from lakebloom.predicate.prune.unit_filters import BoolArray
    from lakebloom.store.records import SourceRecord
    from lakebloom.tables.file_identity import TableFile

__all__ = ["Advice", "Advisor", "Reading", "Unanswered", "why_not"]

LOG = logging.getLogger("lakebloom")
_REST_S = 30.0
"""How long an index that did not answer in time is left alone."""
_CASE_SENSITIVE = "spark.sql.caseSensitive"
_REBASING = ("datetimerebasemode", "int96rebasemode")
"""Options of Parquet and Avro for dates and timestamps of long ago."""
_NOT_ABOUT_VALUES = frozenset({"path", "paths", "basepath", "mergeschema", "serialization.format"})


class Reading(msgspec.Struct, frozen=True):
    """How a query reads files, and the condition on them; None where there is none."""

    format: str
    schema: StructType
    options: dict[str, str]
    session: dict[str, str | None]
    predicate: Predicate | None

    @property
    def case_sensitive(self) -> bool:
        """Whether the query finds names in files with regard to case."""
        return self.session.get(_CASE_SENSITIVE, "false") == "true"

    @property
    def columns(self) -> TableSchema:
        """The columns as the query reads them."""
        return TableSchema(self.schema, case_sensitive=self.case_sensitive)

    @property
    def settings(self) -> dict[str, str | None]:
        """The settings under which the query reads."""
        return with_options(self.format.lower(), self.session, self.options)

    def read_schema(self, sources: Sequence[SourceRecord]) -> ReadSchema:
        """Return the columns as the query reads them, and what may differ from how these tables were read."""
        temporal = any(
            matters is Matters.TEMPORAL
            for source in sources
            for matters, _, _ in differing(source.format, source.settings, self.settings).values()
        ) or any(_rebasing(source.options) != _rebasing(self.options) for source in sources)
        return ReadSchema(self.format, self.columns, built=sources, temporal_differs=temporal)


@dataclass(frozen=True, slots=True)
class Advice:
    """What an index, or several together, said: for each of their files whether it can match."""

    name: str
    files: Sequence[TableFile]
    fingerprint: str
    """The same for the same files in the same order."""
    kept: BoolArray
    """Those that changed since they were indexed are kept, as far as that can be seen here."""
    changed: BoolArray
    pruned: tuple[Pruned, ...]
    snapshot: Snapshot | None = None
    """The version that was asked; None for several indexes."""
    bytes_read: int = 0
    """What was read of the index meanwhile."""

    @property
    def has_effect(self) -> bool:
        """Whether any filter was asked."""
        return any(pruned.used for pruned in self.pruned)

    def units_of(self, uris: Collection[str]) -> list[BoolArray]:
        """Return, for each of ``pruned``, which units belong to these files."""
        wanted = np.fromiter((file.uri in uris for file in self.files), np.bool_, len(self.files))
        if self.snapshot is None:
            return [wanted]
        units = [np.append(wanted, False)[numbers] for numbers in self.snapshot.numbered_files[1]]
        side_by_side = len(self.pruned) == 1 and len(units) != 1
        return [np.concatenate(units)] if side_by_side and units else units


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why an index said nothing."""

    name: str
    reason: Reason
    message: str = ""


def why_not(source: SourceRecord, reading: Reading) -> Reason | None:
    """Tell why an index says nothing about files that are read like this; None: it does."""
    if source.format != reading.format.lower() or source.case_sensitive != reading.case_sensitive:
        return Reason.READ_DIFFERS
    if any(
        _concerns(matters, source, reading)
        for matters, _, _ in differing(source.format, source.settings, reading.settings).values()
    ):
        return Reason.READ_DIFFERS
    if source.format == "parquet":
        return None
    if _about_values(source.options) != _about_values(reading.options):
        return Reason.READ_DIFFERS
    if not _same_fields(source, reading):
        return Reason.READ_DIFFERS
    return None


def _differences(source: SourceRecord, reading: Reading) -> str:
    """Name the settings under which a query reads otherwise than the build, for people."""
    found = [
        f"{key} was {built} and is {asked}"
        for key, (matters, built, asked) in differing(source.format, source.settings, reading.settings).items()
        if _concerns(matters, source, reading)
    ]
    if source.case_sensitive != reading.case_sensitive:
        found.append(f"{_CASE_SENSITIVE} was {str(source.case_sensitive).lower()}")
    return "; ".join(found)


def _concerns(matters: Matters, source: SourceRecord, reading: Reading) -> bool:
    """Tell whether a setting that differs matters for a table at all. Columns of some types only: see ReadSchema."""
    match matters:
        case Matters.FIELD_IDS:
            return reading.columns.has_field_ids
        case Matters.DEFAULTS:
            return bool(source.schema.defaults or reading.columns.defaults)
        case Matters.TEMPORAL:
            return False
        case _:
            return True


def _rebasing(options: dict[str, str]) -> dict[str, str]:
    return {key.lower(): value.lower() for key, value in options.items() if key.lower() in _REBASING}


def _about_values(options: dict[str, str]) -> dict[str, str]:
    lowered = {key.lower(): value for key, value in options.items()}
    return {key: value for key, value in lowered.items() if key not in _NOT_ABOUT_VALUES}


def _same_fields(source: SourceRecord, reading: Reading) -> bool:
    """Tell whether lines of text have the same columns, and whether missing ones are read as the same values."""
    built, read = source.file_schema, reading.columns
    if built.defaults != read.defaults:
        return False
    return source.format not in TEXT_FORMATS or built.field_types == read.field_types


class Advisor:
    """Asks indexes, and remembers which of them have failed."""

    def __init__(self, reader: Callable[[str], Reader]) -> None:
        self._reader = reader
        self._warned: set[tuple[str, str]] = set()
        self._resting_until_s: dict[str, float] = {}

    def ask(self, names: Iterable[str], reading: Reading, timeout_s: float) -> list[Advice | Unanswered]:
        """Return what each index says, and what they say together, in about this time.

        They are asked side by side: one that is slow does not take the time of the others.
        """
        deadline_s = time.monotonic() + timeout_s
        names = list(names)
        asked = {name: self._question(name, reading) for name in names if not self.is_resting(name)}
        found = side_by_side(timeout_s, asked)
        answers = [self._answer(name, found.get(name)) for name in names]
        snapshots = {answer.name: answer.snapshot for answer in answers if isinstance(answer, Advice)}
        together = [snapshot for snapshot in snapshots.values() if snapshot is not None]
        if reading.predicate is not None and helps(reading.predicate, together):
            predicate = reading.predicate
            schema = reading.read_schema([snapshot.entry.source for snapshot in together])
            ask = lambda: _advice_together(" + ".join(snapshots), together, predicate, schema)  # noqa: E731
            answers.append(_in_time(" + ".join(snapshots), ask, deadline_s - time.monotonic()))
        for answer in answers:
            self._warn(answer)
        return answers

    def is_resting(self, name: str) -> bool:
        """Whether an index did not answer a short while ago, and is left alone."""
        return time.monotonic() < self._resting_until_s.get(name, 0.0)

    def rest(self, name: str) -> None:
        """Leave an index alone that was given its time and did not answer."""
        self._resting_until_s[name] = time.monotonic() + _REST_S

    def wake(self) -> None:
        """Ask all indexes again, also those that did not answer: something may have changed."""
        self._resting_until_s.clear()

    def _question(self, name: str, reading: Reading) -> Callable[[], Advice | Unanswered]:
        ask = lambda: self._reader(name).with_newest(lambda snapshot: _advice(name, snapshot, reading))  # noqa: E731
        return lambda: _caught(name, ask)

    def _answer(self, name: str, found: Advice | Unanswered | TimeoutError | None) -> Advice | Unanswered:
        if found is None:
            message = f"it did not answer before, and is not tried for {_REST_S:.0f} s; enable() tries it at once"
            return Unanswered(name, Reason.TIMED_OUT, message)
        if isinstance(found, TimeoutError):
            self.rest(name)
            return Unanswered(name, Reason.TIMED_OUT, str(found))
        return found

    def _warn(self, answer: Advice | Unanswered) -> None:
        if isinstance(answer, Advice) or answer.reason not in (Reason.INDEX_UNREADABLE, Reason.TIMED_OUT):
            return
        if (answer.name, answer.reason.value) not in self._warned:
            self._warned.add((answer.name, answer.reason.value))
            LOG.warning("index %s skips nothing, %s: %s", answer.name, answer.reason.value, answer.message)


def _in_time(name: str, ask: Callable[[], Advice | Unanswered], seconds: float) -> Advice | Unanswered:
    try:
        return within(seconds, lambda: _caught(name, ask))
    except TimeoutError as error:
        return Unanswered(name, Reason.TIMED_OUT, str(error))


def _caught(name: str, ask: Callable[[], Advice | Unanswered]) -> Advice | Unanswered:
    try:
        return ask()
    except IndexStateError as error:
        return Unanswered(name, Reason.DELETED, str(error))
    except IndexNotFoundError as error:
        return Unanswered(name, Reason.NO_MATCHING_INDEX, str(error))
    except Exception as error:
        return Unanswered(name, Reason.INDEX_UNREADABLE, str(error) or repr(error))


def _advice(name: str, snapshot: Snapshot, reading: Reading) -> Advice | Unanswered:
    reason = why_not(snapshot.entry.source, reading)
    if reason is not None:
        return Unanswered(name, reason, _differences(snapshot.entry.source, reading))
    if reading.predicate is None:
        return Unanswered(name, Reason.NO_USABLE_PREDICATE)
    before = _bytes_read(snapshot)
    schema = reading.read_schema([snapshot.entry.source])
    segments = [AsRead(segment, schema) for segment in snapshot.segments]
    known = [column for column in map(resolver(snapshot), columns(reading.predicate)) if column is not None]
    if known and segments and not any(segment.column_type(column) for segment in segments for column in known):
        return Unanswered(name, Reason.READ_DIFFERS)
    pruned = prune(snapshot, reading.predicate, schema, hopeless=HOPELESS)
    files, _ = snapshot.numbered_files
    changed = snapshot.recheck.changed()
    bytes_read = _bytes_read(snapshot) - before
    return Advice(
        name, files, snapshot.fingerprint, pruned.files() | changed, changed, pruned.answers, snapshot, bytes_read
    )


def _bytes_read(snapshot: Snapshot) -> int:
    return snapshot.storage.bytes_read if isinstance(snapshot.storage, Metered) else 0


def _advice_together(name: str, snapshots: list[Snapshot], predicate: Predicate, schema: ReadSchema) -> Advice:
    together = Together(snapshots)
    pruner = Pruner(predicate, resolve=together.resolve, hopeless=HOPELESS)
    pruned = pruner.can_match(AsRead(together, schema))
    fingerprint = " ".join(snapshot.fingerprint for snapshot in snapshots)
    changed = together.changed()
    return Advice(name, together.files, fingerprint, pruned.keep | changed, changed, (pruned,))

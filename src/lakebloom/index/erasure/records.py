"""The reports of an erasure: typed records that print as tables, on a terminal and in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lakebloom.display import html
from lakebloom.display.tables import Printable, RecordTable
from lakebloom.display.visible import visible_lines
from lakebloom.errors import StorageError

if TYPE_CHECKING:
    import os

    import pyarrow as pa

    from lakebloom.index.erasure.search import Evidence

__all__ = ["ErasureCheck", "ErasurePlan", "ErasureReport", "ErasureStep", "KeyFile", "KeyVersions"]

_MOST_LINES = 40


def moment(time_ms: int | None) -> str:
    """Return a time as text; empty where it is not known.

    >>> moment(0)
    '1970-01-01 00:00 UTC'
    """
    if time_ms is None:
        return ""
    try:
        return datetime.fromtimestamp(time_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"


@dataclass(frozen=True, slots=True, repr=False)
class KeyFile(Printable):
    """A file that holds keys."""

    path: str
    state: str
    """"current": part of the newest version. "deletes": a file of its deletes, which holds what it deletes. "old": only
    of older versions. "unreferenced": of no retained version."""
    rows: int
    """Rows that the last version with this file shows."""
    rows_hidden: int
    """Rows that are still in the file, and that no query of this version shows."""
    keys: int
    first_version: int | None
    last_version: int | None
    removable_ms: int | None
    """From when on VACUUM removes the file, or the last snapshot of an Iceberg table that has it expires by the table's
    settings; None if that is not known, or as long as it is current."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        versions = "" if self.first_version is None else _range(self.first_version, self.last_version)
        return [
            ("file", self.path),
            ("state", self.state),
            ("rows", f"{self.rows:,}"),
            ("rows hidden", f"{self.rows_hidden:,}"),
            ("keys", f"{self.keys:,}"),
            ("versions", versions),
            ("removable from", moment(self.removable_ms)),
        ]


@dataclass(frozen=True, slots=True, repr=False)
class KeyVersions(Printable):
    """Versions one after the other that hold the same rows of keys."""

    first_version: int
    last_version: int
    timestamp_ms: int | None
    """When the last of them was committed."""
    is_newest: bool
    files: int
    rows: int
    rows_hidden: int
    removable_ms: int | None
    """From when on VACUUM removes these rows, or the last snapshot of an Iceberg table that has them expires by the
    table's settings; None if that is not known, or as long as a file is current."""
    refs: tuple[str, ...] | None = None
    """Branches and tags of an Iceberg table that keep one of them, but for the main branch; None for other formats."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        state = " (newest)" if self.is_newest else ""
        return [
            ("versions", f"{_range(self.first_version, self.last_version)}{state}"),
            ("committed", moment(self.timestamp_ms)),
            ("files", f"{self.files:,}"),
            ("rows", f"{self.rows:,}"),
            ("rows hidden", f"{self.rows_hidden:,}"),
            ("removable from", moment(self.removable_ms)),
            *([] if self.refs is None else [("kept by", ", ".join(self.refs))]),
        ]


@dataclass(frozen=True, slots=True, repr=False)
class ErasureStep(Printable):
    """One thing to do."""

    title: str
    why: str
    statement: str
    """SQL to run; empty where there is no single statement."""
    not_before_ms: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ErasureReport(Printable, ABC):
    """Where the rows of some keys are."""

    name: str
    table: str
    format: str
    column: str
    keys: int
    """Distinct keys that were looked for."""
    keys_found: int
    """Keys that the newest version shows."""
    version: int | None
    """The newest version; None for a table without versions."""
    files: int
    """Files of the newest version that hold keys."""
    rows: int
    """Rows of the newest version that hold keys."""
    rows_hidden: int
    """Rows with keys that are marked as deleted, and still in files of the newest version."""
    versions: int | None
    """Retained versions."""
    versions_holding: int
    """Retained versions that hold keys, the newest included."""
    files_retained: int
    """Files of all retained versions, and files that no version has, as far as they were looked for."""
    files_read: int
    """Files whose keys were read; the index excluded the others."""
    files_gone: int
    """Files of older versions that are no longer there."""
    problems: tuple[str, ...]
    """What could not be read or compared. Nothing is known about it."""
    steps: tuple[ErasureStep, ...]
    _files: tuple[KeyFile, ...] = field(default=(), repr=False)
    _snapshots: tuple[KeyVersions, ...] = field(default=(), repr=False)

    @property
    def held_by(self) -> RecordTable[KeyFile]:
        """The files that hold keys, in all retained versions."""
        return RecordTable(self._files)

    @property
    def snapshots(self) -> RecordTable[KeyVersions]:
        """The retained versions that hold keys; none for a table without versions."""
        return RecordTable(self._snapshots)

    @property
    def statement(self) -> str:
        """The SQL of all steps, in their order."""
        return "\n".join(step.statement for step in self.steps if step.statement)

    @abstractmethod
    def verdict(self) -> str:
        """Return the result as one sentence."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text); what a table without versions does not have is left out."""
        hidden = {"steps", "problems", *(() if self.version is not None else _OF_VERSIONS)}
        names = {each.name.replace("_", " ") for each in fields(self) if each.name not in hidden}
        return [(name, text) for name, text in Printable.shown(self) if name in names]

    def as_data(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        data = {each.name: getattr(self, each.name) for each in fields(self) if not each.name.startswith("_")}
        data["steps"] = [_plain(step) for step in self.steps]
        data["held_by"] = [_plain(file) for file in self._files]
        data["snapshots"] = [_plain(each) for each in self._snapshots]
        return data

    def __str__(self) -> str:
        parts = [self.verdict(), Printable.__str__(self)]
        if self._files:
            parts.append(_some_lines(self.held_by))
        if self._snapshots:
            parts.append(_some_lines(self.snapshots))
        parts += [f"PROBLEM: {problem}" for problem in self.problems[:_MOST_LINES]]
        for number, step in enumerate(self.steps, 1):
            parts.append(f"{number}. {step.title}\n   {step.why}" + (f"\n{step.statement}" if step.statement else ""))
        return "\n\n".join(visible_lines(part) for part in parts)

    def _repr_html_(self) -> str:
        parts = [f"<h4>{html.escaped(self.verdict())}</h4>", html.pairs(self.shown())]
        for records in (self.held_by, self.snapshots):
            if records:
                rows = [[text for _, text in record.shown()] for record in records[:_MOST_LINES]]
                parts.append(html.table([name for name, _ in records[0].shown()], rows))
        parts += [f"<p>PROBLEM: {html.escaped(problem)}</p>" for problem in self.problems[:_MOST_LINES]]
        for step in self.steps:
            parts.append(f"<h4>{html.escaped(step.title)}</h4><p>{html.escaped(step.why)}</p>")
            parts.append(f"<pre>{html.escaped(step.statement)}</pre>" if step.statement else "")
        return html.card(*parts)


_OF_VERSIONS = ("version", "versions", "versions_holding", "rows_hidden", "files_gone")


@dataclass(frozen=True, slots=True, repr=False)
class ErasurePlan(ErasureReport):
    """Where the rows of some keys are, and what to run to erase them."""

    _keys: pa.Array | None = field(default=None, repr=False)
    _matches: Callable[[], pa.Table] | None = field(default=None, repr=False)
    _check: Callable[[Evidence], ErasureCheck] | None = field(default=None, repr=False)
    _with_keys: Callable[[str], ErasurePlan] | None = field(default=None, repr=False)

    def verdict(self) -> str:
        """Return the result as one sentence."""
        older = self.versions_holding - bool(self.rows or self.rows_hidden)
        hidden = f"; {_count(self.rows_hidden, 'deleted row')} still in files" if self.rows_hidden else ""
        also = f"; {_count(older, 'older version')} also {'holds' if older == 1 else 'hold'} rows" if older else ""
        return (
            f"{_count(self.rows, 'row')} in {_count(self.files, 'file')} hold {self.keys_found:,} of "
            f"{_count(self.keys, 'key')}{hidden}{also}"
        )

    @property
    def matches(self) -> pa.Table:
        """The rows of the newest version that hold a key: ``path``, ``row_number`` in the file from 0 on, ``key``."""
        assert self._matches is not None
        return self._matches()

    def check(self, evidence: Evidence = "data") -> ErasureCheck:
        """Look again, now, and prove whether the keys are gone from all that the table keeps.

        ``evidence`` is "data": the key column of every retained file is read. With "index", files that the index
        knows are read only where its filters cannot exclude the keys.
        """
        assert self._check is not None
        return self._check(evidence)

    def write_keys(self, path: str | os.PathLike[str]) -> ErasurePlan:
        """Write the keys to a Parquet file with one column, ``key``, and return the plan with statements that read it.

        Raises StorageError.
        """
        import pathlib

        import pyarrow as pa
        import pyarrow.parquet as pq

        assert self._keys is not None
        assert self._with_keys is not None
        target = pathlib.Path(path).absolute()
        try:
            pq.write_table(pa.table([self._keys], names=["key"]), target)
        except OSError as error:
            raise StorageError(f"cannot write {target}", found=str(error), hint="choose another path") from error
        return self._with_keys(str(target))


@dataclass(frozen=True, slots=True, repr=False)
class ErasureCheck(ErasureReport):
    """Whether the rows of some keys are gone."""

    erased: bool = False
    """True if every retained version was looked at, and neither they nor other files of the table hold a key."""
    evidence: str = "data"
    """"data": the keys of all files were read. "index": filters excluded some of the files."""
    leftover_files: int = 0
    """Files below the table that no retained version has as data. They were read as well."""

    def verdict(self) -> str:
        """Return the result as one sentence."""
        where = f"{_count(self.files_retained, 'file')}" + (
            "" if self.versions is None else f" of {_count(self.versions, 'retained version')}"
        )
        if self.erased:
            read = "every key column was read" if self.evidence == "data" else f"{self.files_read:,} files were read"
            return f"erased: none of {_count(self.keys, 'key')} is in {where} ({read})"
        if not self._files:
            return f"not proven: {_count(len(self.problems), 'problem')} left, see below"
        return f"not erased: {_count(len(self._files), 'file')} of {where} still hold keys"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _range(first: int, last: int | None) -> str:
    return f"{first}" if last is None or first == last else f"{first} to {last}"


def _some_lines(records: RecordTable[Any]) -> str:
    more = len(records) - _MOST_LINES
    shown = str(RecordTable(records[:_MOST_LINES]))
    return f"{shown}\nand {more:,} more" if more > 0 else shown


def _plain(record: Any) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(record)}

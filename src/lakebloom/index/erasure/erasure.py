"""Plans an erasure, and proves it.

A plan uses the index: its filters tell which units of a file can hold a key, for the very file that they were built
from. A check trusts only the data, unless it is told otherwise: it reads the key column of every file that is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError, NotFoundError, UnsupportedSourceError
from lakebloom.index.erasure.findings import find
from lakebloom.index.erasure.records import ErasureCheck, ErasurePlan
from lakebloom.index.erasure.search import Evidence
from lakebloom.index.erasure.steps import KEYS_PATH, Situation, steps_of, table_name
from lakebloom.index.erasure.summary import Summary, matches_table
from lakebloom.tables.columns import ColumnNames, format_name, parse_name

if TYPE_CHECKING:
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.index.erasure.findings import Findings
    from lakebloom.index.erasure.keys import Keys
    from lakebloom.index.query.reader import Reader
    from lakebloom.index.snapshot import Snapshot
    from lakebloom.store.records import ColumnRecord
    from lakebloom.tables.columns import ColumnPath

__all__ = ["Erasure", "MakeKeys"]

MakeKeys = Callable[["ColumnPath", str], "Keys"]
"""Makes keys of a column and its type."""
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Erasure:
    """The erasure of some keys from the table of an index."""

    name: str
    reader: Reader
    current: Callable[[Snapshot], CurrentTable]
    make_keys: MakeKeys
    column: str | None = None

    def plan(self) -> ErasurePlan:
        """Return where the keys are, and what to run. Raises the errors of ``Lakebloom.erasure_plan``."""
        column, keys, found = self.reader.with_newest(partial(self._find, evidence="index", with_leftovers=False))
        return self._plan(column, keys, found, KEYS_PATH)

    def check(self, evidence: Evidence = "data") -> ErasureCheck:
        """Return whether the keys are gone. Raises the errors of ``plan``."""
        if evidence not in get_args(Evidence):
            raise InvalidArgumentError('evidence must be "data" or "index"', found=evidence)
        column, keys, found = self.reader.with_newest(partial(self._find, evidence=evidence, with_leftovers=True))
        summary = Summary(found)
        files = summary.files()
        return ErasureCheck(
            **self._facts(column, keys, found, summary, KEYS_PATH),
            erased=not files and not found.problems,
            evidence=evidence,
            leftover_files=found.leftover_files,
        )

    def _plan(self, column: ColumnRecord, keys: Keys, found: Findings, keys_path: str) -> ErasurePlan:
        return ErasurePlan(
            **self._facts(column, keys, found, Summary(found), keys_path),
            _keys=keys.values,
            _matches=partial(matches_table, found, keys),
            _check=self.check,
            _with_keys=partial(self._plan, column, keys, found),
        )

    def _find(
        self, snapshot: Snapshot, *, evidence: Evidence, with_leftovers: bool
    ) -> tuple[ColumnRecord, Keys, Findings]:
        column = self._column(snapshot)
        for attempt in range(_ATTEMPTS):
            table = self.current(snapshot)
            if table.record.format != "parquet":
                raise UnsupportedSourceError(
                    "an erasure is planned for Parquet files only",
                    found=f"a {table.record.format} table",
                    hint="query the table with Spark; lake.candidates() names the files that can match",
                )
            kind = _type_now(table, column)
            keys = self.make_keys(column.path, kind)
            # Filters of a directory that has another table now say nothing about it.
            is_usable = evidence == "index" and (table.record.snapshot is not None or kind == column.type)
            try:
                found = find(
                    table,
                    column,
                    keys,
                    self.reader.options,
                    index=snapshot if is_usable else None,
                    with_leftovers=with_leftovers,
                )
            except NotFoundError:  # the next version may no longer have the file
                if attempt == _ATTEMPTS - 1 or table.snapshot is None or self.current(snapshot) == table:
                    raise
            else:
                return column, keys, found
        raise AssertionError("unreachable")

    def _column(self, snapshot: Snapshot) -> ColumnRecord:
        """Return the indexed column that holds the keys. Raises ColumnNotFoundError and InvalidArgumentError."""
        columns = snapshot.commit.config.columns
        names = [format_name(column.path) for column in columns]
        if self.column is None:
            if len(columns) > 1:
                raise InvalidArgumentError(
                    f"the index {self.name!r} has several columns: name the one that holds the keys",
                    found=", ".join(names),
                    hint=f"column={names[0]!r}",
                )
            return columns[0]
        wanted = parse_name(self.column)
        known = ColumnNames([column.path for column in columns], case_sensitive=snapshot.commit.table.case_sensitive)
        found = known.find(wanted)
        if found is None:
            raise ColumnNotFoundError.among(format_name(wanted), names, where=f"the index {self.name!r}")
        return next(column for column in columns if column.path == found)

    def _facts(
        self, column: ColumnRecord, keys: Keys, found: Findings, summary: Summary, keys_path: str
    ) -> dict[str, Any]:
        record = found.table.record
        newest = found.readings[-1]
        versions, files = summary.versions(), summary.files()
        is_logged = record.snapshot is not None
        old = [file for file in files if file.state in ("old", "unreferenced")]
        situation = Situation(
            format=record.format if record.snapshot is None else record.snapshot.format,
            target=table_name(record),
            column=() if newest is None else newest.path,
            kind=keys.kind,
            values=keys.values,
            keys_path=keys_path,
            has_rows=summary.newest_rows > 0,
            has_hidden=summary.newest_hidden > 0,
            has_old=bool(old),
            hides_rows=found.history.hides_rows,
            removable_ms=max((file.removable_ms for file in old if file.removable_ms is not None), default=None),
            has_deletes=any(file.state == "deletes" for file in files),
            has_versions=any(file.state == "old" for file in files),
            orphans_ms=summary.orphans_ms,
            refs=summary.refs,
            now_ms=time.time_ns() // 1_000_000,
            has_catalog=record.catalog is not None
            or (record.snapshot is not None and record.snapshot.catalog is not None),
        )
        return {
            "name": self.name,
            "table": table_name(record),
            "format": situation.format,
            "column": format_name(column.path if newest is None else newest.path),
            "keys": len(keys),
            "keys_found": len(np.unique(summary.newest_keys)),
            "version": found.history.newest.version if is_logged else None,
            "files": summary.newest_files,
            "rows": summary.newest_rows,
            "rows_hidden": summary.newest_hidden,
            "versions": len({each.version for each in found.history.versions}) if is_logged else None,
            "versions_holding": summary.holding,
            "files_retained": found.files + found.leftover_files,
            "files_read": found.files_read,
            "files_gone": found.files_gone,
            "problems": tuple(found.problems),
            "steps": steps_of(situation),
            "_files": tuple(files),
            "_snapshots": tuple(versions) if is_logged else (),
        }


def _type_now(table: CurrentTable, column: ColumnRecord) -> str:
    """Return the type of the column now; that of the index where the table no longer has it."""
    schema = table.record.schema
    if table.record.snapshot is None:
        return schema.types.get(column.path, column.type)
    now = (path for path, found in schema.physical.items() if found.path == column.physical_path)
    path = next(now, None)
    return column.type if path is None else schema.types[path]

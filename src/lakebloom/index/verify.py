"""Proving an index: every checksum fits, and every value of the data is found by its filter."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np

from lakebloom.errors import IndexFormatError, InvalidArgumentError, NotFoundError
from lakebloom.index.freshness import freshness
from lakebloom.index.reports import VerifyReport
from lakebloom.index.snapshot import Snapshot
from lakebloom.index.verify_files import FileCheck
from lakebloom.store.global_filters import read_global
from lakebloom.store.tiles import read_rows, read_tile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakebloom.index.catalog import Index
    from lakebloom.tables.files import TableFile


def verify_index(index: Index, sample: float | None, options: Mapping[str, str]) -> VerifyReport:
    """Check the newest version of an index against itself and against its table."""
    if sample is not None and not 0 <= sample <= 1:
        raise InvalidArgumentError("sample is a share between 0 and 1", found=sample)
    entry = index.active()
    snapshot = Snapshot(index.storage, entry)
    corrupt: list[str] = []
    named = _read_everything(index, snapshot, corrupt)
    if corrupt:
        return VerifyReport(name=index.name, version=entry.version, corrupt=tuple(corrupt))
    fresh = freshness(snapshot, options)
    check = FileCheck(snapshot, options)
    check.files(_sampled(list(fresh.current), sample))
    stored = (file.path for folder in ("segments", "global") for file in index.storage.list(folder))
    return VerifyReport(
        name=index.name,
        version=entry.version,
        files_checked=check.files_checked,
        values_checked=check.values_checked,
        false_negatives=check.false_negatives,
        unreadable=tuple(check.unreadable),
        stale=fresh.stale,
        missing=fresh.missing,
        not_indexed=fresh.new,
        orphaned=tuple(sorted(set(stored) - named)),
    )


def _sampled(files: list[TableFile], sample: float | None) -> list[TableFile]:
    if sample is None or not files:
        return files
    chosen = np.random.default_rng().choice(len(files), size=round(sample * len(files)), replace=False)
    return [files[i] for i in sorted(chosen.tolist())]


def _read_everything(index: Index, snapshot: Snapshot, wrong: list[str]) -> set[str]:
    """Read all files of a version and all log entries, note what is wrong, and return the files that entries name."""
    storage = snapshot.storage
    for segment in snapshot.segments:
        with _noting(wrong):
            _ = segment.units
        for tile in segment.record.tiles:
            with _noting(wrong):
                read_tile(storage, tile)
                read_rows(storage, tile, range(tile.num_blocks))
    for record in snapshot.entry.global_filters:
        with _noting(wrong):
            read_global(storage, record)
    named: set[str] = set()
    for version in index.log.versions():
        with _noting(wrong), suppress(NotFoundError):  # vacuumed meanwhile
            named |= index.log.read(version).paths
    return named


@contextmanager
def _noting(wrong: list[str]) -> Iterator[None]:
    try:
        yield
    except IndexFormatError as error:
        wrong.append(str(error))

"""Commits written segments to a dataset, with Lance's CreateIndex.

The commit is based on the version that was read. Rows that were added since are in fragments that no segment covers,
and Lance reads these; rows that were deleted since only take space in the filters. If rows were moved or changed, Lance
refuses the commit.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lakebloom.errors import BuildFailedError, CommitConflictError, IndexExistsError
from lakebloom.lance.index_file import FILE_NAME
from lakebloom.lance.pylance import lance_failures
from lakebloom.lance.segments import DETAILS, index_directory, leaves

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import Index

    from lakebloom.lance.building import BuiltSegment
    from lakebloom.lance.segments import DatasetColumn

__all__ = ["commit_segments", "existing", "merged", "remove_segments", "require_free", "segment_record"]

_CHANGED = "the dataset changed meanwhile: build the index again"
_INDEX_VERSION = 0
"""The version of all Bloom filter indexes so far."""


def segment_record(dataset: LanceDataset, name: str, column: DatasetColumn, built: BuiltSegment) -> Index:
    """Return Lance's description of a written segment."""
    from lance.dataset import Index, IndexFile

    return Index(
        uuid=built.uuid,
        name=name,
        fields=[column.field_id],
        dataset_version=dataset.version,
        fragment_ids=set(built.fragment_ids),  # type: ignore[arg-type]  # it takes sets, too
        index_version=_INDEX_VERSION,
        created_at=datetime.datetime.now(datetime.timezone.utc),
        files=[IndexFile(FILE_NAME, built.size_bytes)],
        index_details=(DETAILS, b""),
    )


def existing(dataset: LanceDataset, name: str) -> list[Index]:
    """Return the segments of the index with this name, of any kind."""
    from lance.dataset import Index

    return [
        Index(
            uuid=segment.uuid,
            name=name,
            fields=list(index.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
            index_details=(index.type_url, b""),
        )
        for index in dataset.describe_indices()
        if index.name == name
        for segment in index.segments
    ]


def require_free(dataset: LanceDataset, name: str) -> None:
    """Raise IndexExistsError if the dataset has an index of this name."""
    if existing(dataset, name):
        raise IndexExistsError(
            f"the dataset {dataset.uri} has an index {name} already",
            found=name,
            hint="pass replace=True, or another name",
        )


def merged(dataset: LanceDataset, records: Sequence[Index], count: int | None) -> list[Index]:
    """Merge neighbouring segments to ``count``; return them unchanged if it is None or not smaller."""
    if count is None or count >= len(records):
        return list(records)
    bounds = [round(len(records) * part / count) for part in range(count + 1)]
    groups = [records[start:stop] for start, stop in itertools.pairwise(bounds)]
    with lance_failures("Lance could not merge the segments of the index", BuildFailedError, "pass segments=None"):
        return [group[0] if len(group) == 1 else dataset.merge_existing_index_segments(list(group)) for group in groups]


def commit_segments(dataset: LanceDataset, records: Sequence[Index], replaced: Sequence[Index]) -> LanceDataset:
    """Make segments part of a dataset and return its new version. Raises CommitConflictError."""
    import lance

    operation = lance.LanceOperation.CreateIndex(list(records), list(replaced))
    with lance_failures(f"cannot commit the index to {dataset.uri}", CommitConflictError, _CHANGED):
        _require_fields(dataset, {field for record in records for field in record.fields})
        return lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def _require_fields(dataset: LanceDataset, field_ids: set[int]) -> None:
    """Raise CommitConflictError if a column was dropped or rewritten since. Lance does not check that."""
    newest = dataset.checkout_version(dataset.latest_version)
    missing = field_ids - {column.field_id for column in leaves(newest)}
    if missing:
        raise CommitConflictError(
            f"the column is no longer in the newest version of {dataset.uri}",
            found=f"no field {missing}",
            hint=_CHANGED,
        )


def remove_segments(
    dataset: LanceDataset, segments: Collection[str], storage_options: Mapping[str, str] | None = None
) -> None:
    """Delete the files of segments that will not be committed. Lance's cleanup removes what cannot be deleted."""
    from lance.file import LanceFileSession

    options = None if storage_options is None else dict(storage_options)
    for segment in segments:
        directory = index_directory(dataset, segment)
        with contextlib.suppress(OSError):
            LanceFileSession(directory, storage_options=options).delete_file(FILE_NAME)
            if "://" not in directory:  # an object store has no directories
                Path(directory).rmdir()

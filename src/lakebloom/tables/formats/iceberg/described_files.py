"""Data files as manifests describe them: identity, partition, and the values of columns that all rows have.

A manifest never changes, and a table of many files has few new manifests in each version. So what does not depend on
deletes is made once for each manifest, as long as the partition specs and the types of columns stay what they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakebloom.errors import DataFileError
from lakebloom.tables.file_list import FileList
from lakebloom.tables.formats.iceberg.manifests import DATA
from lakebloom.tables.formats.iceberg.partition_values import Partitions
from lakebloom.tables.formats.table_snapshot import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakebloom.tables.file_identity import TableFile
    from lakebloom.tables.formats.iceberg.manifests import ListedFile
    from lakebloom.tables.formats.iceberg.metadata import PartitionSpec
    from lakebloom.tables.formats.iceberg.partition_values import Partition

__all__ = ["DescribedFile", "DescribedFiles", "DescribedManifest", "Meaning"]


class Meaning(NamedTuple):
    """What entries of manifests mean in a version of a table."""

    table_id: str
    specs: Mapping[int, PartitionSpec]
    columns: Mapping[int, str]
    """The types of all columns that the table ever had, by id."""


class DescribedFile(NamedTuple):
    """A data file, as it is if no row of it is deleted."""

    entry: ListedFile
    partition: Partition
    file: DataFile


class DescribedManifest(NamedTuple):
    """The files of a manifest."""

    described: tuple[DescribedFile, ...]
    data_files: dict[str, DataFile]
    """The same by URI: fewer, if one of them is there twice."""
    deletes: tuple[ListedFile, ...]


class DescribedFiles:
    """Describes manifests. Keeps those of the last version. Threads may share it."""

    def __init__(self) -> None:
        self._kept: tuple[Meaning | None, dict[str, DescribedManifest]] = None, {}
        self._listed: tuple[list[DescribedManifest], FileList] = [], FileList()

    def of(self, manifests: Sequence[tuple[str, Sequence[ListedFile]]], meaning: Meaning) -> list[DescribedManifest]:
        """Return the files of manifests, given by URI and entries. Raises DataFileError."""
        of, known = self._kept
        if of != meaning:
            known = {}
        partitions = Partitions(meaning.specs, meaning.columns)
        found = [known.get(uri) or _described(entries, partitions, meaning) for uri, entries in manifests]
        self._kept = meaning, {uri: each for (uri, _), each in zip(manifests, found, strict=True)}
        return found

    def file_list(self, manifests: list[DescribedManifest]) -> FileList:
        """Return the files of manifests that ``of`` returned. Made from the last list, if most of them are the same."""
        before, files = self._listed
        old, new = ({id(manifest) for manifest in some} for some in (before, manifests))
        removed = _identities(manifest for manifest in before if id(manifest) not in new)
        added = _identities(manifest for manifest in manifests if id(manifest) not in old)
        found = files.changed(added - removed, removed - added)
        self._listed = manifests, found
        return found


def _identities(manifests: Iterable[DescribedManifest]) -> set[TableFile]:
    return {file.file for manifest in manifests for file in manifest.data_files.values()}


def _described(entries: Sequence[ListedFile], partitions: Partitions, meaning: Meaning) -> DescribedManifest:
    described = tuple(_file(entry, partitions, meaning) for entry in entries if entry.content == DATA)
    deletes = tuple(entry for entry in entries if entry.content != DATA)
    return DescribedManifest(described, {each.entry.uri: each.file for each in described}, deletes)


def _file(entry: ListedFile, partitions: Partitions, meaning: Meaning) -> DescribedFile:
    if entry.spec_id not in meaning.specs:
        raise DataFileError(
            f"{entry.uri} has an unknown partition spec", found=f"{entry.spec_id}", hint="check the table's metadata"
        )
    partition = partitions.of(entry)
    constants = partitions.constants(entry, partition)
    return DescribedFile(
        entry, partition, DataFile(entry.identity(meaning.table_id), constants=constants, format=entry.format)
    )

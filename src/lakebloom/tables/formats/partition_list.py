"""The partitions of a catalog table: the directory of each, and its values.

A partition consists of the files directly in its directory, wherever that lies, and its values are those of the
catalog, whatever the directory is called. A directory that the catalog does not name is no part of the table.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from lakebloom.errors import NotFoundError, UnsupportedSourceError
from lakebloom.tables.file_identity import TableFile
from lakebloom.tables.formats.recognise import Owners, is_marker, note_above
from lakebloom.tables.listing import local
from lakebloom.tables.listing.listing import is_remote
from lakebloom.tables.listing.membership import is_hidden_directory, is_hidden_file
from lakebloom.tuning import LISTED_PLACES, REQUESTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lakebloom.tables.listing.inotify import Watch
    from lakebloom.tables.listing.membership import Found

__all__ = ["PartitionList", "Values"]

Values: TypeAlias = "tuple[str | None, ...]"
"""One for each partition column, as the catalog writes it; None is NULL."""

_NULL = "__HIVE_DEFAULT_PARTITION__"


class PartitionList:
    """The partitions of one table. Directories are canonical URIs; the order is that of the directories."""

    def __init__(self, base: str, values: Mapping[str, Values]) -> None:
        """``base`` is the table's own location, ``values`` are those of each directory."""
        self.base = base
        self.values: dict[str, Values] = dict(sorted(values.items()))

    @classmethod
    def of(cls, table: str, base: str, partitions: Iterable[tuple[str, Sequence[str | None]]]) -> PartitionList:
        """Return the list for partitions as the catalog of Spark or Hive writes them.

        Raises UnsupportedSourceError where two have the same directory: each of its rows would be there twice.
        """
        values: dict[str, Values] = {}
        for directory, given in partitions:
            if directory in values:
                raise UnsupportedSourceError(
                    f"two partitions of {table} have the same location",
                    found=directory,
                    hint="give each partition its own directory, or drop the wrong partition",
                )
            values[directory] = tuple(None if value == _NULL else value for value in given)
        return cls(base, values)

    def __eq__(self, other: object) -> bool:
        """Tell whether these are the same partitions, at the same places."""
        return isinstance(other, PartitionList) and (self.base, self.values) == (other.base, other.values)

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, uri: str) -> bool:
        """Tell whether a file lies directly in one of the partitions."""
        return uri.rpartition("/")[0] in self.values

    @property
    def places(self) -> tuple[str, ...]:
        """A few directories outside the table's own location in or below which all other partitions lie."""
        places = {directory for directory in self.values if not _is_within(directory, self.base)}
        while len(places) > LISTED_PLACES:
            places = {place.rpartition("/")[0] for place in places}
        return tuple(sorted(places))

    @cached_property
    def _inside(self) -> frozenset[str]:
        """The partitions that are found by listing the table's own location."""
        start = len(self.base) + 1
        return frozenset(
            directory
            for directory in self.values
            if _is_within(directory, self.base)
            and not any(map(is_hidden_directory, directory[start:].split("/") if directory[start:] else ()))
        )

    @property
    def roots(self) -> list[str]:
        """The directories in or below which all partitions lie: the table's own location stands for those in it."""
        outside = [directory for directory in self.values if directory not in self._inside]
        return [self.base, *outside] if self._inside else outside

    def list_files(
        self, options: Mapping[str, str] | None = None, watch: Watch | None = None, *, look_above: bool = True
    ) -> list[TableFile]:
        """Return the files of all partitions, sorted by URI; a directory that is not there has none.

        Arguments and errors are those of ``lakebloom.tables.listing.listing.list_files``.
        """
        owners = Owners()
        listed = self._listed(self.roots, options or {}, watch, owners, look_above=look_above)
        files = [file for root, found in listed for file in self.members(root, found)]
        owners.require_plain(files, ())
        return sorted(files)

    def members(self, root: str, found: Iterable[Found]) -> Iterator[TableFile]:
        """Yield the files of the table, out of all files below one of the roots."""
        directories = self._inside if root == self.base and self._inside else {root}
        for file in found:
            folder, slash, name = file.path.rpartition("/")
            directory = f"{root}/{folder}" if slash else root
            if directory in directories and file.size_bytes and name and not is_hidden_file(name):
                yield TableFile(f"{directory}/{name}", file.size_bytes, file.mtime_ms, file.tag)

    def _listed(
        self, roots: list[str], options: Mapping[str, str], watch: Watch | None, owners: Owners, *, look_above: bool
    ) -> Iterator[tuple[str, list[Found]]]:
        """Yield every directory to list with all files at or below it."""
        remote = [root for root in roots if is_remote(root)]
        for folder in {root.rpartition("/")[0] for root in roots if look_above or not is_remote(root)}:
            note_above(owners, f"{folder}/*", options, watch)
        for root in roots:
            if root not in remote:
                yield root, _local(root, watch, owners)
        if not remote:
            return
        if watch is not None:
            watch.give_up()
        # Here and not above: local tables need neither threads nor obstore.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(len(remote), REQUESTS)) as threads:
            listed = threads.map(lambda root: _remote(root, options), remote)
            for root, found in zip(remote, listed, strict=True):
                for file in found:
                    if is_marker(f"/{file.path}"):
                        owners.note(f"{root}/{file.path}")
                yield root, found


def _is_within(directory: str, base: str) -> bool:
    return directory == base or directory.startswith(f"{base}/")


def _local(root: str, watch: Watch | None, owners: Owners) -> list[Found]:
    try:
        return local.find_below(root, watch, owners)
    except NotFoundError:
        if watch is not None:
            watch.give_up()  # what is not there cannot be watched
        return []


def _remote(root: str, options: Mapping[str, str]) -> list[Found]:
    from lakebloom.tables.listing import objects

    try:
        return objects.find_below(root, options)
    except NotFoundError:
        return []

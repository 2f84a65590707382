"""Reads and probes the Bloom filter index of a Lance dataset."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lakebloom.errors import CorruptIndexError, InvalidArgumentError
from lakebloom.lance.index_file import read_index_file
from lakebloom.lance.pylance import lance_failures, open_dataset
from lakebloom.lance.segments import find_index
from lakebloom.lance.zones import LanceIndex, ZoneFilter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    import pyarrow as pa
    from lance import LanceDataset

    from lakebloom.sbbf.kernels import BoolArray

    Source: TypeAlias = str | os.PathLike[str] | LanceDataset | LanceIndex

__all__ = ["candidates", "filters", "might_contain", "open_index"]


def open_index(
    source: Source, index: str | None = None, *, storage_options: Mapping[str, str] | None = None
) -> LanceIndex:
    """Read an index: ``open_index(dataset, name)``, or ``open_index(path)`` of a ``bloomfilter.lance``.

    ``dataset`` is an open dataset, or its path or URI; ``storage_options`` are those of Lance.

    Raises IndexNotFoundError, IndexFormatError for an index or file of another kind, CorruptIndexError; NotFoundError,
    AccessDeniedError or StorageError; UnsupportedSourceError if it is not a dataset, or if pylance is missing.
    """
    if isinstance(source, LanceIndex):
        return source
    if index is not None:
        return _of_dataset(open_dataset(source, storage_options), index, storage_options)
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidArgumentError(
            "a dataset needs the name of its index", found=source.__class__.__name__, hint="pass index='user_id_idx'"
        )
    path = os.fspath(source)
    content = read_index_file(path, storage_options)
    return LanceIndex(content.zones, content.rows_per_zone, content.fpp, (path,))


def filters(
    source: Source, index: str | None = None, *, storage_options: Mapping[str, str] | None = None
) -> list[ZoneFilter]:
    """Return the filters of an index by fragment and row. Arguments and errors are those of ``open_index``."""
    return list(open_index(source, index, storage_options=storage_options).zones)


def might_contain(
    source: Source,
    values: object,
    index: str | None = None,
    *,
    type: pa.DataType | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> BoolArray:
    """Tell for each zone of an index and each value whether the value may be there; see LanceIndex.might_contain."""
    return open_index(source, index, storage_options=storage_options).might_contain(values, type=type)


def candidates(
    source: Source,
    values: object,
    index: str | None = None,
    *,
    type: pa.DataType | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[ZoneFilter]:
    """Return the zones of an index that may hold any of the values; see LanceIndex.candidates."""
    return open_index(source, index, storage_options=storage_options).candidates(values, type=type)


def _of_dataset(dataset: LanceDataset, name: str, storage_options: Mapping[str, str] | None) -> LanceIndex:
    with lance_failures(f"cannot read the indexes of {dataset.uri}", CorruptIndexError, "check the dataset with Lance"):
        described = find_index(dataset, name)
        fragments = {fragment.fragment_id: fragment.metadata for fragment in dataset.get_fragments()}
    # An overlay changes values of rows without changing the index.
    there = {number for number, fragment in fragments.items() if not fragment.overlays}
    options = storage_options if storage_options is not None else dataset.latest_storage_options()
    contents = [(read_index_file(path, options), covered & there) for path, covered in described.files]
    zones = [zone for content, covered in contents for zone in content.zones if zone.fragment_id in covered]
    zones.sort(key=lambda zone: (zone.fragment_id, zone.zone_start))
    if not contents:
        raise CorruptIndexError(f"the index {name} of {dataset.uri} has no files", hint="build it again")
    return LanceIndex(
        tuple(zones),
        contents[0][0].rows_per_zone,
        contents[0][0].fpp,
        tuple(path for path, _ in described.files),
        name,
        described.column.name,
        described.column.type,
        tuple(sorted(fragments.keys() - {zone.fragment_id for zone in zones})),
    )

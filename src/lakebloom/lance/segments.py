"""The files of a dataset's index, and the fragments that each of them covers.

Lance keeps an index as segments, each a directory ``_indices/<uuid>`` with the fragments that it covers. A fragment
leaves that set if its rows move or its values change; the file does not change. So a zone counts only if its
fragment is both in the segment's set and in the dataset.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakebloom.errors import IndexFormatError, IndexNotFoundError, UnsupportedSourceError
from lakebloom.lance.index_file import FILE_NAME
from lakebloom.tables.columns import ColumnNames, ColumnPath, format_name, parse_name

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

__all__ = ["DETAILS", "DatasetColumn", "DatasetIndex", "find_column", "find_index", "index_directory", "leaves"]

DETAILS = "/lance.index.pb.BloomFilterIndexDetails"
"""The type of Bloom filter indexes in a dataset's manifest."""


@dataclass(frozen=True, slots=True)
class DatasetColumn:
    """A column of a dataset, or a struct's leaf."""

    name: str
    """The name in the convention of Spark and Lance: ``s.k`` is a leaf, backticks quote."""
    field_id: int
    type: pa.DataType

    @property
    def quoted(self) -> str:
        """The name with every part in backticks, which Lance's scanner accepts for any name."""
        return ".".join("`" + part.replace("`", "``") + "`" for part in parse_name(self.name))


@dataclass(frozen=True, slots=True)
class DatasetIndex:
    """A Bloom filter index as the dataset's manifest describes it."""

    name: str
    column: DatasetColumn
    files: tuple[tuple[str, frozenset[int]], ...]
    """The files, each with the fragments that it covers."""


def index_directory(dataset: LanceDataset, segment_uuid: str, base_id: int | None = None) -> str:
    """Return the directory of a segment's files. For a shallow clone it is in the original dataset."""
    root = dataset.uri
    if base_id is not None:
        base: Any = dataset.base_paths().get(base_id)
        if base is None or not base.is_dataset_root:
            raise UnsupportedSourceError(
                "a segment of this index is stored outside the dataset, and the dataset does not say where",
                found=f"base {base_id}",
                hint="build the index again in this dataset",
            )
        root = base.path
    return f"{root.rstrip('/')}/_indices/{segment_uuid}"


def find_index(dataset: LanceDataset, name: str) -> DatasetIndex:
    """Return an index of this name. Raises IndexNotFoundError, and IndexFormatError for one of another kind."""
    described = {index.name: index for index in dataset.describe_indices()}
    index = described.get(name)
    if index is None:
        close = difflib.get_close_matches(name, described, n=1, cutoff=0.5)
        raise IndexNotFoundError(
            f"the dataset {dataset.uri} has no index {name}",
            found=f"indexes {', '.join(sorted(described))}" if described else "no index at all",
            hint=f"did you mean {close[0]}?" if close else "build one with lakebloom.spark.lance.build_index",
        )
    if index.type_url != DETAILS:
        raise IndexFormatError(
            f"the index {name} of {dataset.uri} is not a Bloom filter index",
            found=f"an index of type {index.index_type}",
            hint="name an index of type BloomFilter",
        )
    files = (
        (f"{index_directory(dataset, segment.uuid, segment.base_id)}/{FILE_NAME}", frozenset(segment.fragment_ids))
        for segment in index.segments
    )
    columns = {column.field_id: column for column in leaves(dataset)}
    return DatasetIndex(name, columns[index.fields[0]], tuple(files))


def find_column(dataset: LanceDataset, name: str) -> DatasetColumn:
    """Return a column by its name. Raises ColumnNotFoundError."""
    columns = {parse_name(column.name): column for column in leaves(dataset)}
    names = ColumnNames(columns, case_sensitive=True)
    return columns[names.require(parse_name(name), where=f"the dataset {dataset.uri}")]


def leaves(dataset: LanceDataset) -> Iterator[DatasetColumn]:
    """Yield the columns of a dataset and the fields inside its structs."""
    fields: Any = dataset.lance_schema.fields()
    yield from _below(fields, list(dataset.schema), ())


def _below(fields: list[Any], arrow: list[pa.Field], path: ColumnPath) -> Iterator[DatasetColumn]:
    from pyarrow import types as pt

    for field, shown in zip(fields, arrow, strict=True):
        here = (*path, shown.name)
        yield DatasetColumn(format_name(here), field.id(), shown.type)
        if pt.is_struct(shown.type):
            yield from _below(field.children(), list(shown.type), here)

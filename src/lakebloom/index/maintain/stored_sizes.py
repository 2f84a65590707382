"""The stored sizes of indexed columns and their dictionaries in a Parquet table, from the footers of a few files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.display.tables import Printable
from lakebloom.errors import LakebloomError
from lakebloom.parquet.footer import read_footer
from lakebloom.parquet.inspection import dictionary_bytes
from lakebloom.tables.columns import format_name
from lakebloom.tables.file_identity import is_reachable
from lakebloom.tables.parquet.paths import find_leaf
from lakebloom.tuning import SAMPLED_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakebloom.store.records import Commit
    from lakebloom.tables.file_identity import TableFile

__all__ = ["StoredColumn", "stored_columns"]


@dataclass(frozen=True, slots=True)
class StoredColumn(Printable):
    """The stored size of a column, extrapolated from the sampled files to all files."""

    column: str
    column_bytes: int
    dictionary_bytes: int
    dictionary_chunks: float
    """The share of column chunks that have a dictionary."""
    files_sampled: int


def stored_columns(commit: Commit, files: Sequence[TableFile], options: Mapping[str, str]) -> list[StoredColumn]:
    """Return the size of each indexed column; nothing for a table that is not Parquet, or that only Spark can read."""
    if commit.table.format != "parquet" or not files or not all(is_reachable(file.uri) for file in files):
        return []
    sampled: list[tuple[TableFile, list[tuple[int, int | None]]]] = []
    for file in files[:: -(-len(files) // SAMPLED_FILES)]:
        try:
            sampled.append((file, _chunks(commit, file, options)))
        except LakebloomError:  # damaged, encrypted or gone: use other files
            continue
    if not sampled:
        return []
    scale = sum(file.size_bytes for file in files) / max(1, sum(file.size_bytes for file, _ in sampled))
    found = []
    for number, column in enumerate(commit.config.columns):
        chunks = [chunk for _, chunks in sampled for chunk in chunks[number :: len(commit.config.columns)]]
        dictionaries = [size for _, size in chunks if size is not None]
        found.append(
            StoredColumn(
                column=format_name(column.path),
                column_bytes=round(scale * sum(size for size, _ in chunks)),
                dictionary_bytes=round(scale * sum(dictionaries)),
                dictionary_chunks=len(dictionaries) / max(1, len(chunks)),
                files_sampled=len(sampled),
            )
        )
    return found


def _chunks(commit: Commit, file: TableFile, options: Mapping[str, str]) -> list[tuple[int, int | None]]:
    """The size and the dictionary's size of each chunk, row group by row group, a chunk for each indexed column."""
    footer = read_footer(file.uri, options)
    paths = [leaf.path for leaf in footer.leaves]
    numbers = [
        find_leaf(paths, column.path, case_sensitive=commit.table.case_sensitive) for column in commit.config.columns
    ]
    found: list[tuple[int, int | None]] = []
    for group in footer.row_groups:
        for number in numbers:
            if number is None:
                found.append((0, None))
                continue
            chunk = group.columns[number]
            found.append((chunk.total_compressed_size or 0, dictionary_bytes(chunk)))
    return found

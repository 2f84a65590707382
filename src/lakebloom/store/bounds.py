"""Limits on what a commit may claim. Its numbers must agree with the sizes of the files that it names.

An index may come from an untrusted writer, with valid checksums. Readers of tiles and unit tables allocate memory and
read ranges as the commit tells them to, so every commit is checked before it is used: each file of a tile has exactly
the size of its rows, no count exceeds what a file has room for, and every reference leads to a part that exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.errors import UnsupportedTypeError
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK
from lakebloom.store.tile_layout import layout_of
from lakebloom.tables.spark_schema import parse_struct, type_names

if TYPE_CHECKING:
    from lakebloom.store.records import (
        BatchedRecord,
        Commit,
        ConfigRecord,
        FileRecord,
        GlobalRecord,
        SegmentRecord,
        TileRecord,
    )

__all__ = ["MAX_COMMIT_BYTES", "MAX_SCHEMA_DEPTH", "contradiction"]

MAX_COMMIT_BYTES = 256 << 20
"""A commit has some hundred bytes for each column of each segment."""
MAX_SCHEMA_DEPTH = 200
"""Nesting depth of brackets in a table's schema."""
_MAX_FILE_BYTES = 1 << 48
_MAX_NUMBER = 1 << 62
_MAX_BLOCKS = 1 << 31
_MAX_LAYERS = 16
_MAX_TYPE_NAME = 10_000
_LEAST_BYTES_A_UNIT = 24
"""The columns of fixed width alone take this much in each row of ``units.arrow``."""
_LEAST_BYTES_A_FILE = 32
_MAX_UNITS = 1 << 31
_MAX_URI = 1 << 16


def contradiction(commit: Commit) -> str | None:
    """Return what is impossible in a commit, None if nothing is."""
    if not 0 < commit.version < 10**20 or abs(commit.timestamp_ms) >= _MAX_NUMBER:
        return f"version {commit.version} of {commit.timestamp_ms} ms"
    if commit.table.schema_json and not _is_schema(commit.table.schema_json):
        return f"a schema that Spark cannot have written: {commit.table.schema_json[:80]}"
    if not 0 <= commit.files_gone < _MAX_NUMBER:
        return f"{commit.files_gone} files that are gone"
    if len({segment.id for segment in commit.segments}) != len(commit.segments):
        return "a segment twice"
    columns = len(commit.config.columns)
    of_segments = (_of_segment(segment, columns) for segment in commit.segments)
    of_filters = (_of_global(record, columns) for record in commit.global_filters)
    return next(filter(None, (_of_config(commit.config), *of_segments, *of_filters)), None)


def _of_config(config: ConfigRecord) -> str | None:
    paths = {column.path for column in config.columns}
    if not paths or len(paths) != len(config.columns) or not all(path and all(path) for path in paths):
        return "no columns, a column twice or one without a name"
    if config.fpp is not None and not 0 < config.fpp < 1:
        return f"a rate of {config.fpp}"
    if config.expected_items is not None and not 0 < config.expected_items < _MAX_NUMBER:
        return f"{config.expected_items} expected items"
    if isinstance(config.granularity, int) and not 0 < config.granularity < _MAX_NUMBER:
        return f"units of {config.granularity} rows"
    return None


def _of_segment(segment: SegmentRecord, columns: int) -> str | None:
    units, tiles = segment.num_units, segment.tiles
    name = f"segment {segment.id} with"
    if not all(map(_is_batched, segment.tables)):
        return f"{name} tables {segment.tables}"
    if not len(segment.types) == len(segment.facts) == columns or not 0 <= segment.fpp < 1:
        return f"{name} {len(segment.types)} types of {columns} columns and a rate of {segment.fpp}"
    if not 0 <= segment.num_files <= units <= min(_MAX_UNITS, segment.units.size_bytes // _LEAST_BYTES_A_UNIT):
        return f"{name} {segment.num_files} files and {units} units in {segment.units.size_bytes} bytes"
    if (
        segment.num_files * _LEAST_BYTES_A_FILE > segment.table_files.size_bytes
        or max(map(len, segment.uris)) > _MAX_URI
    ):
        return f"{name} {segment.num_files} files in {segment.table_files.size_bytes} bytes"
    if not 0 <= segment.num_rows < _MAX_NUMBER or not 0 <= segment.data_bytes < _MAX_NUMBER:
        return f"{name} {segment.num_rows} rows and {segment.data_bytes} bytes"
    pages = segment.pages
    if pages is not None and not (_is_batched(pages.table) and pages.parts and all(map(_is_file, pages.parts))):
        return f"{name} pages {pages}"
    if pages is not None and segment.num_files * _LEAST_BYTES_A_FILE > pages.table.size_bytes:
        return f"{name} pages of {segment.num_files} files in {pages.table.size_bytes} bytes"
    layers: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for tile in tiles:
        if not (0 <= tile.column < columns and 0 <= tile.number < len(tiles) and 0 < tile.num_units <= units):
            return f"{name} tile {tile.number} of column {tile.column} with {tile.num_units} of {units} units"
        if not _fits(tile):
            return f"{name} tile {tile}"
        layers.setdefault((tile.column, tile.number), []).append((tile.layer, tile.num_units))
    for (column, number), of_tile in layers.items():
        if sorted(of_tile) != [(layer, of_tile[0][1]) for layer in range(len(of_tile))] or len(of_tile) > _MAX_LAYERS:
            return f"{name} tile {number} of column {column} with layers {of_tile}"
    return None


def _fits(tile: TileRecord) -> bool:
    """Tell whether the parts have the rows of the tile, and each file the size of its rows."""
    if not 0 < tile.num_blocks < _MAX_BLOCKS or sum(part.num_blocks for part in tile.parts) != tile.num_blocks:
        return False
    layout = layout_of(tile.num_units)
    return all(
        part.num_blocks > 0 and part.file.size_bytes == layout.file_bytes(part.num_blocks) and _is_file(part.file)
        for part in tile.parts
    )


def _of_global(record: GlobalRecord, columns: int) -> str | None:
    if not 0 <= record.column < columns or not _is_file(record.file):
        return f"a global filter of column {record.column} in {record.file}"
    if not 0 < record.num_blocks * BYTES_PER_BLOCK < record.file.size_bytes:
        return f"a global filter of {record.num_blocks} blocks in {record.file.size_bytes} bytes"
    if not 0 <= record.fpp <= 1 or (record.ndv is not None and not record.ndv >= 0):
        return f"a global filter with a rate of {record.fpp} and {record.ndv} values"
    return None


def _is_file(file: FileRecord) -> bool:
    return 0 < file.size_bytes < _MAX_FILE_BYTES and 0 <= file.crc32 < 1 << 32


def _is_batched(file: BatchedRecord) -> bool:
    return _is_file(file) and 0 < file.head_bytes <= file.size_bytes and 0 <= file.head_crc32 < 1 << 32


def _is_schema(text: str) -> bool:
    """Tell whether this text has the form of a table's schema in Spark's JSON."""
    if _depth(text) > MAX_SCHEMA_DEPTH:
        return False
    try:
        return all(len(name) <= _MAX_TYPE_NAME for name in type_names(parse_struct(text)))
    except UnsupportedTypeError:
        return False


def _depth(text: str) -> int:
    """Return the nesting depth of brackets; 0 if there are too few brackets to exceed the limit."""
    if text.count("{") + text.count("[") <= MAX_SCHEMA_DEPTH:
        return 0
    depth = deepest = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted, escaped = escaped or character != '"', character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth -= 1
    return deepest

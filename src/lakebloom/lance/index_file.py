"""One ``bloomfilter.lance``: a file in Lance's format with one row for each zone.

column              type      meaning
fragment_id         uint64
zone_start          uint64    the first row within the fragment, deleted rows included
zone_length         uint64    from the first row to the last, deleted rows included
has_null            bool
bloom_filter_data   binary    the filter's blocks; their number may differ between zones

metadata of the schema
bloomfilter_item          rows of a zone, as a decimal number
bloomfilter_probability   the configured rate, without an exponent
null_bitmap               number of the global buffer that tells which rows are NULL; missing in older files

that buffer, little-endian
fragments          uint32
for each           fragment id uint32, length uint32, roaring bitmap of the rows (portable format)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lakebloom.errors import CorruptIndexError, FilterFormatError, IndexFormatError
from lakebloom.lance.pylance import lance_failures, require_lance
from lakebloom.lance.zones import ZoneFilter
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK
from lakebloom.sbbf.filter import Sbbf

__all__ = ["FILE_NAME", "FPP", "ROWS_PER_ZONE", "IndexFileContent", "RowNumbers", "read_index_file", "write_index_file"]

FILE_NAME = "bloomfilter.lance"
ROWS_PER_ZONE, FPP = 8192, 0.00057
"""Lance's defaults, also for a file without these keys."""

_SCHEMA = pa.schema(
    [
        pa.field("fragment_id", pa.uint64(), nullable=False),
        pa.field("zone_start", pa.uint64(), nullable=False),
        pa.field("zone_length", pa.uint64(), nullable=False),
        pa.field("has_null", pa.bool_(), nullable=False),
        pa.field("bloom_filter_data", pa.binary(), nullable=False),
    ]
)
_ROWS, _RATE, _NULLS = "bloomfilter_item", "bloomfilter_probability", "null_bitmap"
_ZONES_PER_READ, _BYTES_PER_WRITE = 8, 1 << 30
"""Arrow's binary columns have at most 2 GiB; Lance's filters have at most 128 MiB."""
_HINT = "drop the index and build it again"

RowNumbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint32]]


@dataclass(frozen=True, slots=True)
class IndexFileContent:
    """The contents of one index file."""

    zones: tuple[ZoneFilter, ...]
    rows_per_zone: int
    fpp: float


def read_index_file(path: str, storage_options: Mapping[str, str] | None = None) -> IndexFileContent:
    """Read an index file.

    Raises IndexFormatError for a Lance file that is not a Bloom filter index, CorruptIndexError for a damaged one,
    NotFoundError, AccessDeniedError or StorageError.
    """
    require_lance()
    from lance.file import LanceFileReader

    options = None if storage_options is None else dict(storage_options)
    with lance_failures(f"cannot read the Lance index file {path}", CorruptIndexError, _HINT):
        reader = LanceFileReader(path, storage_options=options)
        schema = reader.metadata().schema
        _require_schema(path, schema)
        batches = [] if reader.num_rows() == 0 else list(reader.read_all(batch_size=_ZONES_PER_READ).to_batches())
    metadata = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    zones = tuple(zone for batch in batches for zone in _zones(path, batch))
    return IndexFileContent(
        zones,
        _number(path, metadata, _ROWS, ROWS_PER_ZONE, int),
        _number(path, metadata, _RATE, FPP, float),
    )


def _require_schema(path: str, schema: pa.Schema) -> None:
    for wanted in _SCHEMA:
        position = schema.get_field_index(wanted.name)
        if position < 0 or schema.field(position).type != wanted.type:
            raise IndexFormatError(
                f"{path} is a Lance file without a Bloom filter index: it has no column {wanted.name} of {wanted.type}",
                found=f"columns {', '.join(f'{field.name} {field.type}' for field in schema)}",
                hint="name the bloomfilter.lance of a Bloom filter index",
            )


def _number(path: str, metadata: Mapping[str, str], key: str, default: Any, kind: type) -> Any:
    try:
        return kind(metadata.get(key, default))
    except ValueError as error:
        raise CorruptIndexError(f"the {key} of {path} is not a number", found=metadata[key], hint=_HINT) from error


def _zones(path: str, batch: pa.RecordBatch) -> Iterator[ZoneFilter]:
    columns = [batch.column(name) for name in _SCHEMA.names]
    *facts, bits = columns
    if any(column.null_count for column in columns):
        raise CorruptIndexError(f"{path} has a zone without one of its values", found="NULL", hint=_HINT)
    rows = zip(*(column.to_pylist() for column in facts), bits, strict=True)
    for fragment_id, zone_start, zone_length, has_null, data in rows:
        buffer = data.as_buffer()
        if buffer.size % BYTES_PER_BLOCK:
            raise CorruptIndexError(
                f"the filter of zone {zone_start} of fragment {fragment_id} in {path} is not a whole number of blocks",
                found=f"{buffer.size} bytes",
                hint=_HINT,
            )
        try:
            zone_filter = Sbbf.from_bytes(buffer)
        except FilterFormatError as error:
            raise CorruptIndexError(
                f"the filter of zone {zone_start} of fragment {fragment_id} in {path} cannot be read",
                found=error.found,
                hint=_HINT,
            ) from error
        yield ZoneFilter(fragment_id, zone_start, zone_length, has_null, zone_filter)


def write_index_file(
    path: str,
    content: IndexFileContent,
    null_rows: Mapping[int, Sequence[RowNumbers]],
    version: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Write an index file as Lance would, and return its size in bytes.

    ``null_rows`` are the rows of each fragment that are NULL, in ascending order; ``version`` is that of Lance's file
    format, by default its newest.
    """
    require_lance()
    from lance.file import LanceFileWriter

    options = None if storage_options is None else dict(storage_options)
    with LanceFileWriter(path, _SCHEMA, version=version, storage_options=options) as writer:
        buffer = writer.add_global_buffer(_null_bitmap(null_rows))
        writer.add_schema_metadata(_ROWS, str(content.rows_per_zone))
        writer.add_schema_metadata(_RATE, np.format_float_positional(content.fpp, trim="-"))
        writer.add_schema_metadata(_NULLS, str(buffer))
        for zones in _parts(content.zones):
            writer.write_batch(_batch(zones))
    size: int | None = writer.size_bytes
    assert size is not None  # known once it is closed
    return size


def _parts(zones: Sequence[ZoneFilter]) -> Iterator[list[ZoneFilter]]:
    part: list[ZoneFilter] = []
    room = _BYTES_PER_WRITE
    for zone in zones:
        if part and room < zone.filter.num_bytes:
            yield part
            part, room = [], _BYTES_PER_WRITE
        part.append(zone)
        room -= zone.filter.num_bytes
    if part:
        yield part


def _batch(zones: Sequence[ZoneFilter]) -> pa.RecordBatch:
    columns = (
        [zone.fragment_id for zone in zones],
        [zone.zone_start for zone in zones],
        [zone.zone_length for zone in zones],
        [zone.has_null for zone in zones],
        [zone.filter.to_bytes() for zone in zones],
    )
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _null_bitmap(null_rows: Mapping[int, Sequence[RowNumbers]]) -> bytes:
    from lance.bitmap import Bitmap

    parts = []
    for fragment_id in sorted(null_rows):
        rows = np.concatenate([np.empty(0, dtype=np.uint32), *null_rows[fragment_id]])
        if len(rows):
            pickled: Any = Bitmap(pa.array(rows)).__reduce__()  # pickling is the only way to get the portable bytes
            bits: bytes = pickled[1][0]
            parts.append(struct.pack("<II", fragment_id, len(bits)) + bits)
    return struct.pack("<I", len(parts)) + b"".join(parts)

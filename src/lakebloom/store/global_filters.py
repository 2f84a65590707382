"""Global filters: one filter over a whole column.

"LKBLMGF1"    8 bytes     magic and version
crc32         4 bytes     little-endian, of the filter below
filter                    Thrift header and bitset, as in a Parquet file
"""

from __future__ import annotations

import math
import uuid
import zlib
from typing import TYPE_CHECKING

from lakebloom.errors import FilterFormatError, UnknownFormatError
from lakebloom.sbbf.filter import Sbbf
from lakebloom.store.files import corrupt, read_blob, write_blob
from lakebloom.store.records import GlobalRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakebloom.storage import Storage

FOLDER = "global"
_MAGIC = b"LKBLMGF1"
_HEADER_BYTES = len(_MAGIC) + 4


def write_global(
    storage: Storage, column: int, label: str, f: Sbbf, segments: Iterable[str], prefix: str = ""
) -> GlobalRecord:
    """Write a filter over the values of these segments, under a name that starts with ``prefix``."""
    body = f.to_parquet()
    contents = _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body
    file = write_blob(storage, f"{FOLDER}/{label}/{prefix}{uuid.uuid4()}.sbbf", contents)
    return GlobalRecord(
        column=column,
        num_blocks=f.num_blocks,
        fpp=f.fpp,
        ndv=_finite(f.ndv),
        segments=tuple(sorted(segments)),
        file=file,
    )


def _finite(ndv: float) -> float | None:
    """Return a number that JSON can hold. The estimate of a full filter is infinite."""
    return ndv if math.isfinite(ndv) else None


def read_global(storage: Storage, record: GlobalRecord) -> Sbbf:
    """Read a filter. Raises CorruptIndexError or UnknownFormatError."""
    data = read_blob(storage, record.file)
    magic, body = bytes(data[: len(_MAGIC)]), data[_HEADER_BYTES:]
    if magic != _MAGIC:
        raise UnknownFormatError(f"cannot read {record.file.path}", found=magic, hint="upgrade lakebloom")
    if zlib.crc32(body) != int.from_bytes(data[len(_MAGIC) : _HEADER_BYTES], "little"):
        raise corrupt(record.file.path, "a wrong checksum")
    try:
        f = Sbbf.from_parquet(body)
    except FilterFormatError as error:
        raise corrupt(record.file.path, str(error)) from error
    if f.num_blocks != record.num_blocks:
        raise corrupt(record.file.path, f"{f.num_blocks} blocks where the log says {record.num_blocks}")
    return f

"""PyArrow's reader of one Parquet file, without loading ``pyarrow.parquet``.

``pyarrow.parquet`` loads PyArrow's file systems and Python's ssl, which takes a tenth of the time of loading PyArrow,
and lakebloom opens files itself. Its reader is in ``pyarrow._parquet``. Columns are given by the numbers of their
leaves, so that no names have to be resolved for each read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

try:
    from pyarrow._parquet import ParquetReader
except ImportError:  # pragma: no cover  # a version of PyArrow that has it elsewhere
    from pyarrow.parquet import ParquetReader

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["open_footer", "open_reader"]

_MAGIC = b"PAR1"


def open_reader(source: Any, metadata: Any, *, dictionaries: Collection[int] = (), buffer_bytes: int = 0) -> Any:
    """Open a file whose metadata is known; the leaves in ``dictionaries`` are read as such."""
    reader = ParquetReader()
    options = {
        "metadata": metadata,
        "read_dictionary": list(dictionaries) or None,
        "buffer_size": buffer_bytes,
        "pre_buffer": False,
        "coerce_int96_timestamp_unit": "us",  # nanoseconds end in 2262
    }
    try:
        reader.open(source, arrow_extensions_enabled=True, **options)  # as pyarrow.parquet does it
    except TypeError:  # an older version, which has no such option
        reader.open(source, **options)
    return reader


def open_footer(footer: bytes) -> Any:
    """Parse a footer, without its length; the result has ``metadata`` and ``schema_arrow``."""
    whole = b"".join((_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC))
    return open_reader(pa.BufferReader(whole), None)

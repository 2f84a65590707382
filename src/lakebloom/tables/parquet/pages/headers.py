"""The header of a page: its kind, its size, how many values it has, and whether they are in the dictionary."""

from __future__ import annotations

from typing import NamedTuple

from lakebloom.tables.parquet.thrift_structs import I32, Fields, UnreadableStructError, decode, struct_of

__all__ = ["DATA_PAGE", "DATA_PAGE_V2", "DICTIONARY_PAGE", "PageHeader", "read_header"]

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
"""The format's numbers of kinds of pages."""
_DICTIONARY_ENCODINGS = (2, 8)
"""PLAIN_DICTIONARY and RLE_DICTIONARY."""


class PageHeader(NamedTuple):
    """What is needed of a header."""

    kind: int
    size: int
    """The bytes of the header itself."""
    compressed_bytes: int
    """The bytes behind the header."""
    uncompressed_bytes: int
    num_values: int
    num_rows: int | None
    """Told by pages of version 2 only."""
    uses_dictionary: bool


class _DataPage(Fields):
    num_values: int | None = None
    encoding: int | None = None

    thrift_spec = (None, (1, I32, "num_values", None, None), (2, I32, "encoding", None, None))


class _DataPageV2(Fields):
    num_values: int | None = None
    num_rows: int | None = None
    encoding: int | None = None

    thrift_spec = (
        None,
        (1, I32, "num_values", None, None),
        None,
        (3, I32, "num_rows", None, None),
        (4, I32, "encoding", None, None),
    )


class _Header(Fields):
    kind: int | None = None
    uncompressed_bytes: int | None = None
    compressed_bytes: int | None = None
    data_page: _DataPage | None = None
    data_page_v2: _DataPageV2 | None = None

    thrift_spec = (
        None,
        (1, I32, "kind", None, None),
        (2, I32, "uncompressed_bytes", None, None),
        (3, I32, "compressed_bytes", None, None),
        None,
        struct_of(5, "data_page", _DataPage),
        None,
        None,
        struct_of(8, "data_page_v2", _DataPageV2),
    )


def read_header(data: bytes) -> PageHeader | None:
    """Return the header at the start of some bytes; None if they are too few, or no header."""
    header = _Header()
    try:
        size = decode(header, data)
    except UnreadableStructError:
        return None
    if header.kind is None or header.compressed_bytes is None or header.uncompressed_bytes is None:
        return None
    page = (
        header.data_page_v2 if header.kind == DATA_PAGE_V2 else header.data_page if header.kind == DATA_PAGE else None
    )
    if (page is None and header.kind in (DATA_PAGE, DATA_PAGE_V2)) or header.compressed_bytes < 0:
        return None
    num_values = 0 if page is None else page.num_values
    num_rows = page.num_rows if isinstance(page, _DataPageV2) else None
    if num_values is None or num_values < 0 or (num_rows is not None and num_rows < 0):
        return None
    uses_dictionary = page is not None and page.encoding in _DICTIONARY_ENCODINGS
    return PageHeader(
        header.kind, size, header.compressed_bytes, header.uncompressed_bytes, num_values, num_rows, uses_dictionary
    )

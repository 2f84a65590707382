"""Small files in memory: their footers have room, and never overwrite pages."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.tables.parquet.file_schema import FileColumn
from lakebloom.tables.parquet.pages.small_file import (
    SmallChunk,
    arrow_schema_text,
    footer_bytes,
    footer_room,
    open_small,
    schema_bytes,
)

NUMBERS = st.integers(0, 2**63 - 1)
CHUNKS = st.builds(
    SmallChunk, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), NUMBERS, NUMBERS, NUMBERS, st.none() | NUMBERS
)


@given(st.lists(CHUNKS, min_size=1, max_size=40), NUMBERS, st.booleans(), st.data())
def test_a_footer_of_some_columns_fits_into_the_room_of_all(
    chunks: list[SmallChunk], num_rows: int, has_arrow_schema: bool, data: st.DataObject
) -> None:
    # The sizes of chunks are summed up, as 64-bit numbers.
    for chunk in chunks:
        chunk.size_bytes //= len(chunks)
    columns = [FileColumn(b"\x15\x02\x25\x02\x18\x01a\x00", 1, range(i, i + 1), False) for i in range(len(chunks))]
    fields = [pa.field(f"a{number}", pa.int32()) for number in range(len(chunks))]

    def schemas(count: int) -> tuple[bytes, bytes | None]:
        text = arrow_schema_text(pa.schema(fields[:count])) if has_arrow_schema else None
        return schema_bytes(columns[:count]), text

    some = data.draw(st.integers(1, len(chunks)))
    schema, arrow_schema = schemas(some)
    footer = footer_bytes(schema, chunks[:some], num_rows, arrow_schema)
    assert len(footer) <= footer_room(*schemas(len(chunks)), len(chunks))


def test_pages_are_not_overwritten() -> None:
    pages = memoryview(bytearray(b"pages...room"))
    with pytest.raises(ValueError, match="room for 4"):
        open_small(pages, 4, b"a footer")
    assert bytes(pages) == b"pages...room"

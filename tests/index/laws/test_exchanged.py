"""Bytes of an index that lie in the wrong place never answer for others: who reads them is told, and so is verify."""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lakebloom import BloomIndexConfig, col, errors
from lakebloom.storage import open_storage
from lakebloom.store.tile_layout import MAGIC, WIDE_UNITS, layout_of
from lakebloom.store.tiles import TileReader, tile_record, write_part
from tests.index.lake import NAME, Lake

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Storage
    from lakebloom.store.records import TileRecord

KEYS = range(480)
ROWS = 60


@pytest.fixture(params=["local disk", "object store"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """Several columns, segments and layers: tiles of one shape."""
    location = None if request.param == "local disk" else f"memory://{uuid.uuid4().hex}/indexes"
    lake = Lake(tmp_path, {"k": "bigint", "j": "bigint"}, location)
    for number in range(len(KEYS) // ROWS):
        keys = np.arange(number * ROWS, (number + 1) * ROWS)
        lake.write(f"f{number}", {"k": keys, "j": keys + len(KEYS)})
    lake.create(BloomIndexConfig(NAME, ["k", "j"], fpp=1e-4), tasks=2)
    return lake


def storage_of(lake: Lake) -> Storage:
    return lake.catalog().index(NAME).storage


def shape(tile: TileRecord) -> tuple[int, ...]:
    return tile.num_blocks, tile.num_units, tile.size_bytes


def segment_of(tile: TileRecord) -> str:
    return tile.parts[0].file.path.split("/")[1]


def exchanged(lake: Lake) -> list[tuple[TileRecord, TileRecord]]:
    """Pairs of tiles of one shape: of two segments, of two columns, of two layers."""
    tiles = [tile for segment in lake.entry().segments for tile in segment.tiles]
    return [(a, b) for a, b in itertools.combinations(tiles, 2) if shape(a) == shape(b)]


def outcomes(lake: Lake) -> tuple[int, int]:
    """How many keys were found wrongly, and how many questions were refused."""
    wrong = refused = 0
    for column, start in (("k", 0), ("j", len(KEYS))):
        for key in range(start, start + len(KEYS), 19):
            try:
                wrong += lake.open().lookup(NAME, col(column) == key).num_rows != 1
            except errors.CorruptIndexError:
                refused += 1
    return wrong, refused


@pytest.mark.slow
def test_exchanged_tiles_answer_nothing(lake: Lake) -> None:
    storage = storage_of(lake)
    pairs = exchanged(lake)
    assert {(segment_of(a) == segment_of(b), a.column == b.column) for a, b in pairs} >= {(False, True), (True, False)}
    for a, b in pairs[:12]:
        first, second = bytes(storage.read(a.parts[0].file.path)), bytes(storage.read(b.parts[0].file.path))
        storage.write(a.parts[0].file.path, second)
        storage.write(b.parts[0].file.path, first)
        wrong, refused = outcomes(lake)
        assert (wrong, refused > 0) == (0, True), (a.parts[0].file.path, b.parts[0].file.path)
        corrupt = lake.open().verify_index(NAME).corrupt
        paths = {tile.parts[0].file.path for tile in (a, b)}
        assert {path for path in paths if any(path in line for line in corrupt)} == paths
        storage.write(a.parts[0].file.path, first)
        storage.write(b.parts[0].file.path, second)
    assert outcomes(lake) == (0, 0)


@pytest.mark.slow
def test_exchanged_rows_of_one_tile_answer_nothing(lake: Lake) -> None:
    """With their checksums: as a write that went to the wrong place would leave them."""
    storage = storage_of(lake)
    tile = lake.entry().segments[0].tiles[0]
    assert tile.num_blocks > 1
    path = tile.parts[0].file.path
    data = bytes(storage.read(path))
    row_bytes = layout_of(tile.num_units).row_bytes
    rows = [data[at : at + row_bytes] for at in range(len(MAGIC), len(data), row_bytes)]
    assert len(rows) == tile.num_blocks
    storage.write(path, MAGIC + b"".join(reversed(rows)))
    wrong, refused = outcomes(lake)
    assert wrong == 0
    assert refused > 0


def test_exchanged_planes_and_parts_of_a_wide_tile_answer_nothing(tmp_path: Path) -> None:
    """Each piece has its place: among the planes of a row, among rows, among parts and among tiles."""
    storage = open_storage(tmp_path)
    rng = np.random.default_rng(1)
    blocks = rng.integers(0, 2**32, (4, WIDE_UNITS, 8), dtype=np.uint32)
    records = [
        write_part(storage, f"s/k.0.0.{part}.tile", blocks[:2], column=0, number=0, layer=0, first_row=2 * part)
        for part in range(2)
    ]
    tile = tile_record(0, 0, 0, WIDE_UNITS, records)
    whole = [bytes(storage.read(part.file.path)) for part in tile.parts]
    stored = layout_of(WIDE_UNITS).stored_bytes
    pieces = [whole[0][at : at + stored] for at in range(len(MAGIC), len(whole[0]), stored)]
    assert len(pieces) == 2 * 256
    for first, second in ((3, 4), (3, 3 + 256), (0, 511)):
        changed = list(pieces)
        changed[first], changed[second] = changed[second], changed[first]
        storage.write(records[0].file.path, MAGIC + b"".join(changed))
        for piece in (first, second):
            with pytest.raises(errors.CorruptIndexError, match="wrong checksum of plane"):
                TileReader(storage, tile).planes(piece // 256, [piece % 256])
        untouched = next(piece for piece in range(512) if piece not in (first, second))
        assert TileReader(storage, tile).planes(untouched // 256, [untouched % 256])
    storage.write(records[0].file.path, whole[1])
    storage.write(records[1].file.path, whole[0])
    for row in range(4):  # the two parts hold the same bits
        with pytest.raises(errors.CorruptIndexError, match="wrong checksum of plane"):
            TileReader(storage, tile).planes(row, [0])
    for column, number, layer in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
        write_part(storage, records[0].file.path, blocks[:2], column=column, number=number, layer=layer)
        with pytest.raises(errors.CorruptIndexError, match="wrong checksum of plane"):
            TileReader(storage, tile).planes(0, [0])

"""Bytes of an index that lie in the wrong place never answer for others: who reads them is told, and so is verify."""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lakebloom import BloomIndexConfig, col, errors
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
    return tile.num_blocks, tile.num_units, tile.blocks_offset, tile.checks_offset, tile.file.size_bytes


def segment_of(tile: TileRecord) -> str:
    return tile.file.path.split("/")[1]


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
        first, second = bytes(storage.read(a.file.path)), bytes(storage.read(b.file.path))
        storage.write(a.file.path, second)
        storage.write(b.file.path, first)
        wrong, refused = outcomes(lake)
        assert (wrong, refused > 0) == (0, True), (a.file.path, b.file.path)
        corrupt = lake.open().verify_index(NAME).corrupt
        assert {tile.file.path for tile in (a, b) if any(tile.file.path in line for line in corrupt)} == {
            a.file.path,
            b.file.path,
        }
        storage.write(a.file.path, first)
        storage.write(b.file.path, second)
    assert outcomes(lake) == (0, 0)


@pytest.mark.slow
def test_exchanged_rows_of_one_tile_answer_nothing(lake: Lake) -> None:
    """With their checksums: as a write that went to the wrong place would leave them."""
    storage = storage_of(lake)
    tile = lake.entry().segments[0].tiles[0]
    assert tile.num_blocks > 1
    data = bytearray(storage.read(tile.file.path))
    width = 32 * tile.num_units
    for offset, size in ((tile.blocks_offset, width), (tile.checks_offset, 4)):
        rows = [bytes(data[offset + n * size : offset + (n + 1) * size]) for n in range(tile.num_blocks)]
        data[offset : offset + size * tile.num_blocks] = b"".join(reversed(rows))
    storage.write(tile.file.path, bytes(data))
    wrong, refused = outcomes(lake)
    assert wrong == 0
    assert refused > 0

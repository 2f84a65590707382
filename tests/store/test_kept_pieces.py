"""Pieces that are kept between questions: the same bits as those on disk, within the limit, by many threads."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lakebloom.storage import open_storage
from lakebloom.store import kept_pieces, tiles
from lakebloom.store.tile_layout import MAGIC, WIDE_UNITS, layout_of
from lakebloom.store.tiles import TileReader, write_tile

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Storage
    from lakebloom.store.records import TileRecord

LIMIT = 64 << 10
SHAPES = [(37 + number, 1 + number % 9) for number in range(18)] + [(3, WIDE_UNITS), (2, WIDE_UNITS + 100)]


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    monkeypatch.setattr(kept_pieces, "KEPT_BYTES", LIMIT)
    monkeypatch.setattr(tiles, "KEPT_BYTES", LIMIT)
    kept_pieces._LIMIT.clear()
    return open_storage(tmp_path)


def tile_of(storage: Storage, number: int, num_blocks: int, num_units: int) -> TileRecord:
    words = np.random.default_rng(number).integers(0, 1 << 32, (num_blocks, num_units, 8), dtype=np.uint32)
    return write_tile(storage, "segments/s/k", words, column=0, number=number, layer=0)


def pieces_of(storage: Storage, tile: TileRecord) -> list[bytes]:
    data = bytes(storage.read(tile.parts[0].file.path))
    stored = layout_of(tile.num_units).stored_bytes
    return [data[at : at + stored - 4] for at in range(len(MAGIC), len(data), stored)]


@pytest.mark.slow
def test_many_threads_get_the_pieces_that_are_on_disk(storage: Storage) -> None:
    records = [tile_of(storage, number, *shape) for number, shape in enumerate(SHAPES)]
    expected = [pieces_of(storage, tile) for tile in records]
    readers = [TileReader(storage, tile).parts[0] for tile in records]

    def ask(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(300):
            number = dice.randrange(len(records))
            all_pieces = expected[number]
            wanted = sorted({dice.randrange(len(all_pieces)) for _ in range(dice.choice([1, 2, 30]))})
            assert [bytes(piece) for piece in readers[number].some(wanted)] == [all_pieces[n] for n in wanted]
            memory, places = readers[number].many(np.array(wanted))
            size = readers[number].layout.piece_bytes
            for n, place in zip(wanted, places.tolist(), strict=True):
                assert memory[place * size : (place + 1) * size].tobytes() == all_pieces[n]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert 0 < kept_pieces._LIMIT.size_bytes <= LIMIT
    assert kept_pieces._LIMIT.size_bytes == sum(kept_pieces._LIMIT.kept.values())


def test_pieces_that_exceed_the_limit_are_not_kept(storage: Storage) -> None:
    large = tile_of(storage, 1, 4, LIMIT // 32 - 100)
    reader = TileReader(storage, large).parts[0]
    memory, places = reader.many(np.arange(4))
    size = reader.layout.piece_bytes
    assert [memory[p * size : (p + 1) * size].tobytes() for p in places.tolist()] == pieces_of(storage, large)
    assert kept_pieces._LIMIT.size_bytes == 0


def test_a_file_that_was_replaced_is_read_again(storage: Storage) -> None:
    first = tile_of(storage, 1, 8, 2)
    reader = TileReader(storage, first)
    before = bytes(reader.row(3))
    write_tile(storage, "segments/s/k", np.zeros((8, 2, 8), dtype=np.uint32), column=0, number=1, layer=0)
    assert any(before)
    assert not any(bytes(reader.row(3)))


def test_planes_of_a_file_that_was_replaced_are_read_again(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_pieces, "KEPT_BYTES", 1 << 20)
    reader = TileReader(storage, tile_of(storage, 1, 2, WIDE_UNITS))
    before = [plane.tobytes() for plane in reader.planes(1, [3, 40])]
    assert [plane.tobytes() for plane in reader.planes(1, [3, 40])] == before
    assert all(map(any, before))
    write_tile(storage, "segments/s/k", np.zeros((2, WIDE_UNITS, 8), dtype=np.uint32), column=0, number=1, layer=0)
    assert not any(plane.any() for plane in reader.planes(1, [3, 40]))

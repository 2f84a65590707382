"""Rows that are kept between questions: the same bits as those on disk, within the limit, by many threads."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lakebloom.storage import open_storage
from lakebloom.store import kept_rows, tiles
from lakebloom.store.tiles import TileReader, read_rows, write_tile

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Storage
    from lakebloom.store.records import TileRecord

LIMIT = 64 << 10


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    monkeypatch.setattr(kept_rows, "KEPT_ROW_BYTES", LIMIT)
    monkeypatch.setattr(tiles, "KEPT_ROW_BYTES", LIMIT)
    kept_rows._LIMIT.clear()
    return open_storage(tmp_path)


def tile_of(storage: Storage, number: int, num_blocks: int, num_units: int) -> TileRecord:
    words = np.random.default_rng(number).integers(0, 1 << 32, (num_blocks, num_units, 8), dtype=np.uint32)
    return write_tile(storage, f"segments/s/{number}.tile.arrow", words, column=0, number=number, layer=0)


def test_many_threads_get_the_rows_that_are_on_disk(storage: Storage) -> None:
    records = [tile_of(storage, number, 37 + number, 1 + number % 9) for number in range(20)]
    expected = [np.stack(read_rows(storage, tile, range(tile.num_blocks))) for tile in records]
    readers = [TileReader(storage, tile) for tile in records]

    def ask(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(300):
            number = dice.randrange(len(records))
            blocks = [dice.randrange(records[number].num_blocks) for _ in range(dice.choice([1, 2, 30]))]
            row: Any = readers[number].row(blocks[0])
            assert (row.view("<u4") == expected[number][blocks[0]].reshape(row.shape[0], 8)).all()
            words, places = readers[number].rows(np.array(blocks))
            assert (words[places] == expected[number][blocks]).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert 0 < kept_rows._LIMIT.size_bytes <= LIMIT
    assert kept_rows._LIMIT.size_bytes == sum(kept_rows._LIMIT.kept.values())


def test_rows_that_exceed_the_limit_are_not_kept(storage: Storage) -> None:
    wide = tile_of(storage, 1, 4, LIMIT // 32)
    reader = TileReader(storage, wide)
    words, places = reader.rows(np.arange(4))
    assert (words[places] == np.stack(read_rows(storage, wide, range(4)))).all()
    assert kept_rows._LIMIT.size_bytes == 0


def test_a_file_that_was_replaced_is_read_again(storage: Storage) -> None:
    first = tile_of(storage, 1, 8, 2)
    reader = TileReader(storage, first)
    before = reader.row(3).copy()
    other = np.zeros((8, 2, 8), dtype=np.uint32)
    write_tile(storage, first.file.path, other, column=0, number=1, layer=0)
    assert before.any()
    assert not reader.row(3).any()

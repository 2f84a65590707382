"""Segments asked as one give the answers that each of them gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom import errors
from lakebloom.index.query.views.side_by_side import SideBySide
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.kernels import portable
from lakebloom.sbbf.layers import mix, mix_one
from lakebloom.storage import open_storage
from lakebloom.store.probing import which_hold
from lakebloom.store.segments import Segment, SegmentWriter
from lakebloom.store.tiles import read_tile
from lakebloom.store.unit_table import ColumnFacts, Unit
from tests.examples import most
from tests.store.examples import CONFIG, hashes_of, table_file, write_segment

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.storage import Storage

COLUMN = ("k",)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path / "index")


def segments_of(storage: Storage, shapes: list[dict[int, int]], layers: int) -> list[Segment]:
    records = [write_segment(storage, f"s{i}", sizes, layers=layers) for i, sizes in enumerate(shapes)]
    return [Segment(storage, record, CONFIG) for record in records]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=most(25))
@given(
    shapes=st.lists(
        st.dictionaries(st.sampled_from([1, 7, 30]), st.integers(1, 6), min_size=1, max_size=3), min_size=2, max_size=4
    ),
    layers=st.integers(1, 2),
    asked=st.lists(st.integers(0, 20), max_size=4, unique=True),
)
def test_the_answers_of_all_segments(
    storage: Storage, shapes: list[dict[int, int]], layers: int, asked: list[int]
) -> None:
    segments = segments_of(storage, shapes, layers)
    whole = SideBySide.of(segments)
    assert whole is not None
    assert whole.num_units == sum(segment.num_units for segment in segments)
    assert whole.row_counts().tolist() == [n for segment in segments for n in segment.row_counts().tolist()]
    for count in (1, 2):
        hashes = np.concatenate([np.empty(0, np.uint64), *(hashes_of(unit, count) for unit in asked)])
        answers = [segment.might_contain_any(COLUMN, hashes) for segment in segments]
        assert whole.might_contain_any(COLUMN, hashes).tolist() == np.concatenate(answers).tolist()
        kept = np.flatnonzero(np.concatenate(answers))
        found = {segments[number].record.id: units.tolist() for number, units in whole.by_segment(kept)}
        each = zip(segments, answers, strict=True)
        assert found == {s.record.id: np.flatnonzero(hit).tolist() for s, hit in each if hit.any()}


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=most(25))
@given(st.lists(st.lists(st.sampled_from([None, (1, 1), (7, 1), (7, 2), (30, 2)]), max_size=6), min_size=2, max_size=4))
def test_units_without_filter_and_with_those_of_files(
    storage: Storage, shapes: list[list[tuple[int, int] | None]]
) -> None:
    """Each unit has no filter, or one of so many blocks and layers. A segment may have no units."""
    segments, homes = [], []
    for number, shape in enumerate(shapes):
        writer = SegmentWriter(storage, f"s{number}", [COLUMN])
        for blocks, layers in sorted({kind for kind in shape if kind is not None}):
            members = [unit for unit, kind in enumerate(shape) if kind == (blocks, layers)]
            words = [
                np.stack([_words(100 * number + unit, blocks, layer) for unit in members], 1) for layer in range(layers)
            ]
            writer.add_tile(0, members, words)
        units = [Unit(table_file(100 * number + unit), 0, 50, 0, 1, (ColumnFacts(None),)) for unit in range(len(shape))]
        segments.append(Segment(storage, writer.finish(units, ["bigint"], 0.01 / (number + 1)), CONFIG))
        homes += [100 * number + unit for unit in range(len(shape))]
    whole = SideBySide.of(segments)
    assert whole is not None
    for place, home in enumerate(homes):
        hashes = hashes_of(home)[:1]
        found = whole.might_contain_any(COLUMN, hashes)
        assert found[place]
        assert found.tolist() == [hit for s in segments for hit in s.might_contain_any(COLUMN, hashes).tolist()]
    counts, known = whole.null_counts(COLUMN)
    assert len(counts) == len(homes)
    assert not known.any()


def _words(unit: int, blocks: int, layer: int) -> np.ndarray:
    f = Sbbf(blocks)
    f.insert_hashes(hashes_of(unit) if layer == 0 else mix(hashes_of(unit)))
    return f.words


def test_segments_that_are_not_alike_stay_apart(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = segments_of(storage, [{7: 5}, {7: 3}], 1)
    assert SideBySide.of(segments[:1]) is SideBySide.of([]) is None
    other = Segment(storage, write_segment(storage, "other", {7: 2}), CONFIG)
    other.record = msgspec.structs.replace(other.record, types=("int",))
    assert SideBySide.of([*segments, other]) is None
    monkeypatch.setattr("lakebloom.index.query.views.side_by_side.SIDE_BY_SIDE_UNITS", 7)
    assert SideBySide.of(segments) is None


def test_a_tile_that_does_not_fit_its_units_is_an_error(storage: Storage) -> None:
    """Filters would answer for other units than their own."""
    segments = segments_of(storage, [{7: 5}, {7: 3}], 1)
    (layers,) = segments[1].tiles(COLUMN).values()
    layers[0].tile = msgspec.structs.replace(layers[0].tile, num_units=2)
    whole = SideBySide.of(segments)
    assert whole is not None
    with pytest.raises(errors.CorruptIndexError, match="units name it"):
        whole.might_contain_any(COLUMN, hashes_of(0, 1))


@pytest.mark.parametrize("damage", ["missing", "short", "altered", "exchanged", "a directory"])
def test_damage_to_one_of_the_tiles_is_noticed(storage: Storage, tmp_path: Path, damage: str) -> None:
    segments = segments_of(storage, [{7: 5, 30: 3}, {7: 5}], layers=1)
    whole = SideBySide.of(segments)
    assert whole is not None
    h = hashes_of(0, 1)
    assert whole.might_contain_any(COLUMN, h)[0]
    first, second = (tmp_path / "index" / each.record.tiles[0].parts[0].file.path for each in segments)
    data = bytearray(second.read_bytes())
    if damage == "altered":
        second.write_bytes(bytes(byte ^ 1 for byte in data))
    elif damage == "short":
        second.write_bytes(data[:20])
    elif damage == "exchanged":
        second.write_bytes(first.read_bytes())
    else:
        second.unlink()
        if damage == "a directory":
            second.mkdir()
    with pytest.raises(errors.CorruptIndexError, match=second.name):
        whole.might_contain_any(COLUMN, h)
    with pytest.raises(errors.CorruptIndexError, match=second.name):
        segments[1].might_contain_any(COLUMN, h)


@given(st.integers(0, 2**64 - 1))
def test_one_hash_is_mixed_as_many_are(h: int) -> None:
    assert mix_one(h) == mix(np.array([h], dtype=np.uint64))[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=most(50))
@given(h=st.integers(0, 2**64 - 1))
def test_one_hash_asks_for_the_bits_that_it_sets(storage: Storage, h: int) -> None:
    (segment,) = segments_of(storage, [{7: 6}], 2)
    (layers,) = segment.tiles(COLUMN).values()
    passed = np.ones(6, dtype=np.bool_)
    for layer, hashes in zip(layers, (np.array([h], np.uint64), mix(np.array([h], np.uint64))), strict=True):
        blocks = read_tile(storage, layer.tile)[portable.block_numbers(hashes, 7)[0]]
        wanted = portable.masks(hashes)[0]
        passed &= ((blocks & wanted) == wanted).all(axis=1)
    assert which_hold(layers, h).tolist() == np.flatnonzero(passed).tolist()

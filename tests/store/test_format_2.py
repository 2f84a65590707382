"""An index of format version 2, as it was once written, is read by every later version."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
import xxhash

from lakebloom import Lakebloom, col
from lakebloom.index.catalog import Catalog
from lakebloom.index.snapshot import Snapshot
from lakebloom.storage import open_storage
from lakebloom.store import merge
from lakebloom.store.global_filters import read_global
from lakebloom.store.segments import Segment
from tests.fixtures.make_format_2 import values_of
from tests.store.examples import CONFIG, hashes_of, write_segment

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "format-2"


def found(predicate: object) -> set[tuple[str, int]]:
    table = Lakebloom(location=FIXTURE).candidates("events", predicate)
    return {(Path(row["path"]).stem, row["row_start"]) for row in table.to_pylist()}


def test_its_records() -> None:
    lake = Lakebloom(location=FIXTURE)
    record = lake.index("events")
    assert (record.version, record.segments, record.units, record.columns) == (2, 2, 18, ("user_id", "s.country"))
    assert [version.operation for version in lake.history("events")] == ["refresh", "create"]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("row", [0, 57, 133, 199])
def test_every_value_is_found_where_it_is(number: int, row: int) -> None:
    users, countries = values_of(number)
    here = (f"part-{number:03d}", 0 if row < 100 else 100)
    assert here in found(col("user_id") == users[row].as_py())
    assert len(found(col("user_id") == users[row].as_py())) <= 2
    country = countries[row].as_py()
    if country is not None:
        assert here in found(col("s.country") == country)


def test_absent_values_and_nulls() -> None:
    assert found(col("user_id") == -1) == set()
    assert found(col("s.country").is_null()) == {(f"part-{n:03d}", start) for n in range(8) for start in (0, 100)}
    assert found(col("user_id").is_null()) == set()


def test_its_global_filters() -> None:
    index = Catalog(FIXTURE).index("events")
    for record in index.active().global_filters:
        f = read_global(index.storage, record)
        for number in range(5):
            assert f.might_contain(values_of(number)[record.column].drop_null()).all()


# A reader that was written from docs/FORMAT.md alone: no module of lakebloom is used below, but for hashing.

SALTS = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


def mix(h: int) -> int:
    h = (h + 0x9E3779B97F4A7C15) % 2**64
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    h = (h ^ h >> 27) * 0x94D049BB133111EB % 2**64
    return h ^ h >> 31


def piece_of(home: Path, tile: dict[str, Any], number: int, size: int, per_row: int) -> bytes:
    """Return a piece of a tile, after checking the checksum behind it."""
    first = 0
    for part in tile["parts"]:
        if number < (first + part["num_blocks"]) * per_row:
            break
        first += part["num_blocks"]
    path = part["file"]["path"]
    data = (home / path).read_bytes()
    assert data[:8] == b"LKBLMTL2"
    assert (len(data), zlib.crc32(data)) == (part["file"]["size_bytes"], part["file"]["crc32"])
    at = 8 + (number - first * per_row) * (size + 4)
    piece = data[at : at + size]
    identity = f"{path}\n{tile['column']}\n{tile['number']}\n{tile['layer']}\n".encode()
    covered = identity + number.to_bytes(8, "little") + piece
    assert zlib.crc32(covered) == int.from_bytes(data[at + size : at + size + 4], "little")
    return piece


def bits_of(home: Path, tile: dict[str, Any], h: int) -> list[bool]:
    """Tell for each unit of a tile whether one layer of its filter lets a hash pass."""
    n, z = tile["num_units"], tile["num_blocks"]
    row = (h >> 32) * z >> 32
    planes = [32 * i + ((h % 2**32) * salt % 2**32 >> 27) for i, salt in enumerate(SALTS)]
    if n < 2048:
        whole = int.from_bytes(piece_of(home, tile, row, 32 * n, 1), "little")
        found = [whole >> plane * n for plane in planes]
    else:
        size = -(-n // 64) * 8
        found = [int.from_bytes(piece_of(home, tile, 256 * row + p, size, 256), "little") for p in planes]
    return [all(plane >> unit & 1 for plane in found) for unit in range(n)]


def who_may_hold(home: Path, segment: dict[str, Any], column: int, h: int) -> dict[int, list[bool]]:
    """Return the answers of each tile of a column."""
    answers: dict[int, list[bool]] = {}
    for tile in sorted(segment["tiles"], key=lambda tile: tile["layer"]):
        if tile["column"] == column:
            mixed = h
            for _ in range(tile["layer"]):
                mixed = mix(mixed)
            passed = bits_of(home, tile, mixed)
            before = answers.get(tile["number"], [True] * len(passed))
            answers[tile["number"]] = [a and b for a, b in zip(before, passed, strict=True)]
    return answers


def test_an_independent_reader_finds_what_lakebloom_finds() -> None:
    home = FIXTURE / "events"
    commit = json.loads((home / "log/00000000000000000002.json").read_text().splitlines()[1])
    assert sorted({tile["layer"] for segment in commit["segments"] for tile in segment["tiles"]}) == [0, 1, 2]
    index = Catalog(FIXTURE).index("events")
    snapshot = Snapshot(index.storage, index.active())
    for column, path in enumerate((("user_id",), ("s", "country"))):
        values = pa.concat_arrays([values_of(number)[column].drop_null() for number in (0, 4, 7)])
        for value in [*values.to_pylist()[::37], -1 if column == 0 else "nowhere"]:
            h = xxhash.xxh64_intdigest(value.to_bytes(8, "little", signed=True) if column == 0 else value.encode())
            for record, segment in zip(commit["segments"], snapshot.segments, strict=True):
                (answers,) = who_may_hold(home, record, column, h).values()
                assert segment.might_contain_any(path, np.array([h], np.uint64)).tolist() == answers


@pytest.mark.slow
def test_an_independent_reader_reads_wide_tiles_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "MERGED_BYTES", 8 * 32 * 2100 * 2)  # two rows a part
    storage = open_storage(tmp_path)
    narrow = [write_segment(storage, f"s{n}", {5: 1050}, layers=2, first_unit=1050 * n) for n in range(2)]
    parts = [(Segment(storage, record, CONFIG), np.ones(1050, dtype=np.bool_)) for record in narrow]
    record = merge.merge_segments(storage, "wide", [("k",)], parts)
    assert [len(tile.parts) for tile in record.tiles] == [3, 3]
    segment = Segment(storage, record, CONFIG)
    for unit in (0, 999, 1050, 2099):
        h = hashes_of(unit)[3]
        (answers,) = who_may_hold(tmp_path, json.loads(msgspec.json.encode(record)), 0, int(h)).values()
        assert answers[unit]
        assert segment.might_contain_any(("k",), np.array([h])).tolist() == answers


def table_of(home: Path, record: dict[str, Any], num_rows: int) -> pa.Table:
    """Return a table in batches, after checking the checksum of each, and each read by itself."""
    data = (home / record["path"]).read_bytes()
    assert (len(data), zlib.crc32(data)) == (record["size_bytes"], record["crc32"])
    head = data[: record["head_bytes"]]
    assert zlib.crc32(head) == record["head_crc32"]
    schema = pa.ipc.read_schema(pa.py_buffer(head))
    assert schema.metadata[b"lakebloom"] == b"2"
    described = np.frombuffer(bytes.fromhex(schema.metadata[b"batches"].decode()), "<u4").reshape(-1, 2)
    assert len(described) == -(-num_rows // 4096)
    at, batches = len(head), []
    for size, crc32 in described.tolist():
        batch = data[at : at + size]
        assert zlib.crc32(batch) == crc32
        batches += (
            pa.ipc.open_stream(schema.remove_metadata().serialize().to_pybytes() + batch + END).read_all().to_batches()
        )
        at += size
    assert data[at:] == END
    whole = pa.ipc.open_stream(data).read_all()
    assert whole.num_rows == num_rows
    assert pa.Table.from_batches(batches, schema).to_pydict() == whole.to_pydict()
    return whole


END = b"\xff\xff\xff\xff\0\0\0\0"


def test_an_independent_reader_reads_the_units() -> None:
    home = FIXTURE / "events"
    commit = json.loads((home / "log/00000000000000000002.json").read_text().splitlines()[1])
    index = Catalog(FIXTURE).index("events")
    for record, segment in zip(commit["segments"], Snapshot(index.storage, index.active()).segments, strict=True):
        files = table_of(home, record["table_files"], record["num_files"]).to_pylist()
        units = table_of(home, record["units"], record["num_units"]).to_pylist()
        facts = [table_of(home, each, record["num_units"]).to_pylist() for each in record["facts"]]
        uris = [file["directory"] + file["name"] for file in files]
        assert [min(uris), max(uris)] == record["uris"]
        firsts = [file["first_unit"] for file in files]
        for number, unit in enumerate(segment.units.units()):
            file = files[sum(first <= number for first in firsts) - 1]
            assert unit.file == (file["directory"] + file["name"], file["size_bytes"], file["mtime_ms"], file["tag"])
            assert {name: getattr(unit, name) for name in units[number]} == units[number]
            for known, fact in zip(unit.columns, facts, strict=True):
                assert {name: getattr(known, name) for name in fact[number]} == fact[number]

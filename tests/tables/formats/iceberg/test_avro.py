"""Avro files of a table's metadata that claim more than they hold."""

from __future__ import annotations

import copy
import json
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.avro.codecs import KNOWN_CODECS

from lakebloom.errors import DataFileError
from lakebloom.tables.formats.iceberg import avro
from lakebloom.tables.formats.iceberg.avro import _Decoder
from lakebloom.tables.formats.iceberg.manifests import ListedFile, Manifest, read_entries
from lakebloom.tables.formats.iceberg.unpacking import unpacked
from tests.tables.formats.iceberg.hand_table import HandTable, column, with_id

NOTHING = {"type": "record", "name": "nothing", "fields": []}
SYNC = b"S" * 16


def number(value: int) -> bytes:
    value, found = (value << 1) ^ (value >> 63), b""
    while value > 0x7F:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def sized(data: bytes) -> bytes:
    return number(len(data)) + data


def file_of(schema: Any, blocks: list[tuple[int, bytes]], codec: str = "null") -> bytes:
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    header = b"".join(sized(key.encode()) + sized(value) for key, value in meta.items())
    body = b"".join(number(count) + sized(data) + SYNC for count, data in blocks)
    return b"Obj\x01" + number(len(meta)) + header + number(0) + SYNC + body


class Written:
    """A manifest of one entry: the schema of it, and its only block, unpacked."""

    def __init__(self, root: Path) -> None:
        table = HandTable(root / "t", [column(1, "k", "int")])
        schema = pa.schema([with_id("k", pa.int32(), 1)])
        table.commit(table.data(pa.table([pa.array([1], pa.int32())], schema=schema)))
        self.root = root
        decoder = _Decoder(Path(table.manifests[0].path).read_bytes())
        decoder.read(4)
        meta = {decoder.read_utf8(): decoder.read_bytes() for _ in range(decoder.read_int())}
        assert decoder.read_int() == 0
        decoder.read(len(SYNC))
        assert decoder.read_int() == 1
        data = decoder.read_bytes()
        self.schema = json.loads(meta["avro.schema"])
        self.block = data if meta["avro.codec"] == b"null" else zlib.decompress(data, -15)

    def read(self, data: bytes) -> tuple[ListedFile, ...]:
        path = self.root / "m.avro"
        path.write_bytes(data)
        manifest = Manifest(f"file://{path}", 0, 1, 1, len(data))
        return read_entries([manifest], {}, {})[manifest.uri]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def small_limits(monkeypatch: pytest.MonkeyPatch, block: int, file: int) -> None:
    monkeypatch.setattr(avro, "_MOST_BLOCK_BYTES", block)
    monkeypatch.setattr(avro, "_MOST_FILE_BYTES", file)


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "zstandard"])
def test_a_bomb_is_refused_before_it_is_unpacked(written: Written, monkeypatch: pytest.MonkeyPatch, codec: Any) -> None:
    packer = KNOWN_CODECS[codec]
    assert packer is not None
    good, bomb = packer.compress(written.block)[0], packer.compress(bytes(1 << 22))[0]
    assert len(bomb) < 1 << 13
    small_limits(monkeypatch, 1 << 16, 1 << 18)
    assert len(written.read(file_of(written.schema, [(1, good)] * 2, codec))) == 2
    with pytest.raises(DataFileError, match="a block of more than 65536 bytes"):
        written.read(file_of(written.schema, [(1, good), (1, bomb)], codec))
    # Many blocks, each of them small enough.
    part = packer.compress(written.block + bytes(60_000))[0]
    with pytest.raises(DataFileError, match="a block of more than"):
        written.read(file_of(written.schema, [(1, part)] * 5, codec))


def test_what_is_unpacked_is_whole_and_not_too_much() -> None:
    for name in ("deflate", "bzip2", "zstandard"):
        codec: Any = KNOWN_CODECS[name]  # type: ignore[index]
        for size in (0, 1, 999, 1000):
            assert unpacked(codec, codec.compress(b"x" * size)[0], 1000) == b"x" * size
        for size in (1001, 100_000):
            with pytest.raises(ValueError, match="more than 1000 bytes"):
                unpacked(codec, codec.compress(b"x" * size)[0], 1000)
    for name in ("deflate", "bzip2"):
        codec = KNOWN_CODECS[name]  # type: ignore[index]
        with pytest.raises(ValueError, match="cut off"):
            unpacked(codec, codec.compress(bytes(range(256)))[0][:-20], 1000)


def test_a_snappy_block_states_its_size_first() -> None:
    codec: Any = KNOWN_CODECS["snappy"]
    for stated in (b"\xe9\x07", b"\xff\xff\xff\xff\x0f"):
        with pytest.raises(ValueError, match="more than 1000 bytes"):
            unpacked(codec, stated + b"0" * 8, 1000)
    for data in (b"", b"\x01", b"\xff" * 3 + b"0000", b"\xff" * 20):
        with pytest.raises(ValueError, match="without a size"):
            unpacked(codec, data, 1000)


def test_more_records_than_bytes_are_refused(written: Written) -> None:
    first, *others = written.schema["fields"]
    nothing = written.schema | {"fields": [first | {"type": "null"}, *others]}
    with pytest.raises(DataFileError, match="records in"):
        written.read(file_of(nothing, [(1 << 60, b"")]))
    with pytest.raises(DataFileError):
        written.read(file_of(written.schema, [(1 << 60, written.block)]))


@pytest.mark.parametrize("items", ["null", NOTHING, {"type": "fixed", "size": 0, "name": "none"}])
def test_lists_of_nothing_are_refused(written: Written, items: Any) -> None:
    """The values of partitions are read whatever their type is: 2^60 of these would take no bytes, and no end."""
    schema = copy.deepcopy(written.schema)
    (file,) = (field["type"] for field in schema["fields"] if field["name"] == "data_file")
    (partition,) = (field["type"] for field in file["fields"] if field["name"] == "partition")
    many = {"type": "array", "items": items, "element-id": 9001}
    partition["fields"].append({"name": "x", "type": many, "field-id": 1000})
    start = b"".join(number(0) if isinstance(field["type"], list) else number(1) for field in schema["fields"][:-1])
    block = start + number(0) + sized(b"a") + sized(b"PARQUET") + number(1 << 60)
    with pytest.raises(DataFileError, match="a list of"):
        written.read(file_of(schema, [(1, block)]))

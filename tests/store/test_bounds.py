"""An entry is believed only as far as it can be true: with any value exchanged for another it is read or refused."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig
from lakebloom.errors import LakebloomError
from lakebloom.store.bounds import contradiction
from lakebloom.store.commits import decode_commit, encode_commit
from lakebloom.store.records import Commit
from lakebloom.tables.schema import TableSchema
from tests.fuzz.damage import HOSTILE_VALUES
from tests.index.lake import NAME, Lake

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "k", "type": "long", "nullable": True, "metadata": {}},
        {
            "name": "s",
            "type": {"type": "struct", "fields": [{"name": "a", "type": "string", "nullable": True, "metadata": {}}]},
            "nullable": True,
            "metadata": {"EXISTS_DEFAULT": "5"},
        },
        {"name": "a", "type": {"type": "array", "elementType": "long", "containsNull": True}, "metadata": {}},
        {"name": "m", "type": {"type": "map", "keyType": "long", "valueType": "string"}, "metadata": {}},
    ],
}
MORE = ["struct<a:", "decimal(", "decimal(38,40)", "char(x)", "string collate X", "variant", {"type": "udt"}]


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [found for key, value in items for found in [(*path, key), *places(value, (*path, key))]]


def exchanged(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    tree = copy.deepcopy(tree)
    node = tree
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return tree


@pytest.fixture
def entry(tmp_path: Path) -> Commit:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(2))
    lake.create(BloomIndexConfig(NAME, ["k", "s"], fpp=1e-4, granularity="row_group", global_filter=True))
    return lake.entry()


@pytest.mark.slow
def test_an_honest_entry_is_believed(entry: Commit) -> None:
    assert contradiction(entry) is None
    assert decode_commit(encode_commit(entry), "x") == entry


@pytest.mark.slow
def test_every_value_exchanged_gives_an_entry_or_a_typed_error(entry: Commit) -> None:
    body = msgspec.json.decode(msgspec.json.encode(entry))
    refused = 0
    for path in places(body):
        for value in HOSTILE_VALUES:
            try:
                changed = msgspec.convert(exchanged(body, path, value), Commit)
            except (msgspec.ValidationError, RecursionError):
                continue
            try:
                found = decode_commit(encode_commit(changed), "x")
            except LakebloomError:
                refused += 1
                continue
            for segment in found.segments:
                for tile in segment.tiles:
                    assert tile.num_blocks * tile.num_units * 32 < tile.size_bytes
                    assert all(part.file.size_bytes > 32 * part.num_blocks > 0 for part in tile.parts)
                    assert tile.num_units <= segment.num_units <= segment.units.size_bytes
    assert refused > 100


@pytest.mark.slow
def test_every_schema_is_read_or_refused(entry: Commit) -> None:
    for path in places(SCHEMA):
        for value in [*HOSTILE_VALUES, *MORE]:
            schema = json.dumps(exchanged(SCHEMA, path, value))
            source = msgspec.structs.replace(entry.table, schema_json=schema)
            if contradiction(msgspec.structs.replace(entry, table=source)) is not None:
                continue
            read = TableSchema.parse(schema)
            assert set(read.defaults) <= set(read.top_level_names)
            assert len(read.types) >= len(read.top_level_names)
            for name in read.top_level_names:
                with suppress(LakebloomError):
                    assert isinstance(read.arrow([name]), pa.Schema)

"""A damaged index gives typed errors or right answers, never wrong ones."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col, errors
from lakebloom.index.query.reader import Reader
from lakebloom.store.commits import encode_commit, entry_path
from lakebloom.store.files import write_blob
from lakebloom.store.records import FORMAT_VERSION, BatchedRecord
from tests.fuzz.damage import cut, flipped, lengthened, shifted
from tests.index.lake import NAME, Lake, assert_answers, questions

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.storage import Storage
    from lakebloom.store.records import Commit

QUESTIONS = questions([45])
PREDICATES = [question.predicate for question in QUESTIONS]
DAMAGES = 200


@pytest.fixture
def storage(lake: Lake) -> Storage:
    """An index in two versions, with two layers of filters, several segments and global filters."""
    lake.fill(range(2, 4))
    lake.create(BloomIndexConfig(NAME, ["k", "s", "n"], fpp=1e-4, global_filter=True))
    lake.fill([4])
    lake.refresh()
    return lake.catalog().index(NAME).storage


def answers(reader: Lakebloom) -> list[object]:
    candidates = [reader.candidates(NAME, predicate).to_pylist() for predicate in PREDICATES]
    return [*candidates, reader.lookup(NAME, PREDICATES[1]).to_pylist()]


def outcome(reader: Lakebloom, expected: list[object]) -> str:
    """What became of a reader's questions; anything but these two is an exception."""
    try:
        return "right" if answers(reader) == expected else "wrong"
    except errors.IndexFormatError:
        return "refused"


# Damage at random


def overwritten(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(min(len(data) - at, rng.randrange(1, 64))) + data[at + 64 :]


def zeroed(data: bytes, rng: random.Random) -> bytes:
    low, high = sorted(rng.choices(range(len(data) + 1), k=2))
    return data[:low] + bytes(high - low) + data[high:]


WAYS = [flipped, overwritten, zeroed, cut, lengthened, shifted]


@pytest.mark.slow
def test_random_damage_never_gives_a_wrong_answer(lake: Lake, storage: Storage) -> None:
    expected = answers(lake.open())
    assert_answers(lake, QUESTIONS)
    rng = random.Random(20240607)
    files = sorted(file.path for file in storage.list(""))
    outcomes = Counter[str]()
    for number in range(DAMAGES):
        path, way = rng.choice(files), WAYS[number % len(WAYS)]
        whole = bytes(storage.read(path))
        warm = lake.open()
        warm.candidates(NAME, PREDICATES[0])
        storage.write(path, way(whole, rng))
        for reader in (lake.open(), warm):
            became = outcome(reader, expected)
            assert became != "wrong", f"{way.__name__} {path}"
            outcomes[became] += 1
        storage.write(path, whole)
    assert min(outcomes["right"], outcomes["refused"]) > DAMAGES // 4, "both happen"
    assert answers(lake.open()) == expected


@pytest.mark.slow
def test_files_that_are_missing(lake: Lake, storage: Storage) -> None:
    expected = answers(lake.open())
    for file in sorted(lake.entry().paths):
        whole = bytes(storage.read(file))
        storage.delete(file)
        allowed = {"right"} if file.startswith("global/") else {"refused"}
        if file.endswith(".1.0.tile"):
            allowed = {"right", "refused"}  # the second layer is read only for what passes the first
        assert outcome(lake.open(), expected) in allowed, file
        assert any(f"{file}; found no such file" in line for line in lake.open().verify_index(NAME).corrupt)
        storage.write(file, whole)
    assert answers(lake.open()) == expected


# The log


@pytest.mark.slow
@pytest.mark.parametrize(
    "hint", [b"", b"rubbish", b"-1", b"+2", b"2\n", b"\xff\xfe", b"9" * 5000, b"1", b"3", b"99999999999999999999"]
)
def test_a_damaged_hint_does_no_harm(lake: Lake, storage: Storage, hint: bytes) -> None:
    expected = answers(lake.open())
    storage.write("log/latest", hint)
    assert answers(lake.open()) == expected


def changed(entry: Commit, storage: Storage, change: Callable[[dict], None]) -> None:
    """Write an entry with another content and a checksum that fits."""
    body = msgspec.json.decode(msgspec.json.encode(entry))
    change(body)
    data = msgspec.json.encode(body)
    preamble = msgspec.json.encode({"lakebloom": FORMAT_VERSION, "crc32": zlib.crc32(data)})
    storage.write(entry_path(entry.version), preamble + b"\n" + data + b"\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(surprise=1),
        lambda body: body["segments"][0].update(compression="zstd"),
        lambda body: body["segments"][0]["tiles"][0].update(num_blocks="many"),
        lambda body: body.update(state="asleep"),
        lambda body: body.pop("config"),
        lambda body: body.update(version=1),
        lambda body: body.update(version=7),
    ],
)
def test_an_entry_that_says_what_is_not_known(lake: Lake, storage: Storage, change: Callable[[dict], None]) -> None:
    """Fields are not skipped over: who ignores what he does not know could skip what he should not."""
    changed(lake.entry(), storage, change)
    with pytest.raises(errors.CorruptIndexError, match="cannot read the commit"):
        lake.open().candidates(NAME, PREDICATES[0])
    with pytest.raises(errors.CorruptIndexError, match="cannot read the commit"):
        lake.open().lookup(NAME, PREDICATES[0])


@pytest.mark.parametrize(("version", "remedy"), [(1, "create it again"), (3, "upgrade lakebloom")])
def test_another_format(lake: Lake, storage: Storage, version: int, remedy: str) -> None:
    path = entry_path(2)
    storage.write(path, bytes(storage.read(path)).replace(b'{"lakebloom":2', b'{"lakebloom":%d' % version, 1))
    with pytest.raises(errors.UnknownFormatError, match=f"found format {version}.*{remedy}") as raised:
        lake.open().candidates(NAME, PREDICATES[0])
    assert raised.value.code == "UNKNOWN_FORMAT_VERSION"


@pytest.mark.parametrize("version", ["1", "3", "x", None])
@pytest.mark.parametrize("name", ["files", "units", "k.facts"])
def test_a_unit_table_of_another_format(lake: Lake, storage: Storage, name: str, version: str | None) -> None:
    entry = lake.entry()
    segment = entry.segments[0]
    (record,) = (table for table in segment.tables if table.path.endswith(f"/{name}.arrow"))
    whole = bytes(storage.read(record.path))
    schema = pa.ipc.read_schema(pa.py_buffer(whole))
    metadata = {key: value for key, value in schema.metadata.items() if key != b"lakebloom"}
    head = schema.with_metadata(metadata | ({} if version is None else {b"lakebloom": version})).serialize()
    changed = write_blob(storage, record.path, head.to_pybytes() + whole[record.head_bytes :])
    sizes = {"head_bytes": head.size, "head_crc32": zlib.crc32(head)}
    tables = {record.path: BatchedRecord(**msgspec.structs.asdict(changed), **sizes)}
    replaced(lake, storage, tables)
    with pytest.raises(errors.UnknownFormatError, match=rf"{name}\.arrow"):
        lake.open().candidates(NAME, col("k").is_null() | col("k").is_not_null())


def replaced(lake: Lake, storage: Storage, tables: dict[str, BatchedRecord]) -> None:
    """Let the commit name other unit tables."""
    entry = lake.entry()
    segments = []
    for segment in entry.segments:
        found = [tables.get(table.path, table) for table in segment.tables]
        segments.append(msgspec.structs.replace(segment, table_files=found[0], units=found[1], facts=tuple(found[2:])))
    changed = msgspec.structs.replace(entry, segments=tuple(segments))
    storage.write(entry_path(entry.version), encode_commit(changed))


def test_a_unit_that_names_a_tile_which_is_not_there_is_kept(lake: Lake, storage: Storage) -> None:
    """Unknown means keep, even if only a faulty writer can have written this."""
    entry = lake.entry()
    assert lake.kept(col("s") == "s5") == set()  # within the bounds of f2, and not in its filter
    without = [msgspec.structs.replace(segment, tiles=()) for segment in entry.segments]
    storage.write(entry_path(2), encode_commit(msgspec.structs.replace(entry, segments=tuple(without))))
    assert lake.kept(col("s") == "s5") == {("f2", 0)}
    assert lake.kept(col("n") == 1) == {(f"f{number}", 0) for number in range(2, 5)}


def test_a_later_entry_that_is_damaged_stops_a_warm_reader(lake: Lake, storage: Storage) -> None:
    reader = lake.open()
    reader.candidates(NAME, PREDICATES[0])
    storage.write(entry_path(3), b"half an en")
    with pytest.raises(errors.CorruptIndexError):
        reader.candidates(NAME, PREDICATES[0])
    storage.delete(entry_path(3))
    assert reader.candidates(NAME, PREDICATES[0]).num_rows


# Errors of the store are not damage


class Denied:
    """A store that takes back its permission for tiles."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def read_ranges(self, path: str, ranges: object) -> None:
        raise errors.AccessDeniedError(f"could not read {path}")


def test_a_store_that_refuses_is_not_called_corrupt(lake: Lake, storage: Storage) -> None:
    reader = Reader(lake.catalog(Denied).index(NAME))  # type: ignore[arg-type]
    with pytest.raises(errors.AccessDeniedError):
        reader.candidates(PREDICATES[0])

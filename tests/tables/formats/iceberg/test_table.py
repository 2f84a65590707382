"""Iceberg tables as their metadata describes them: where it is, which snapshots there are, what cannot be read."""

from __future__ import annotations

import builtins
import gzip
import json
import os
import random
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebloom.errors import (
    DataFileError,
    InvalidArgumentError,
    LakebloomError,
    NotFoundError,
    StorageError,
    UnsupportedSourceError,
)
from lakebloom.tables.formats.iceberg import locate, manifests, metadata
from lakebloom.tables.formats.iceberg import table as iceberg_table
from lakebloom.tables.formats.iceberg.catalogs import has_catalog
from lakebloom.tables.formats.iceberg.named import iceberg_source
from lakebloom.tables.formats.iceberg.table import IcebergTable, Source
from tests.tables.formats.iceberg.hand_table import START_MS, HandTable, column, with_id
from tests.tables.formats.iceberg.sql_catalog import named_catalog

SCHEMA = pa.schema([with_id("k", pa.int64(), 1)])


def rows(*values: int) -> pa.Table:
    return pa.table([pa.array(values, pa.int64())], schema=SCHEMA)


def small(root: Path, **options: Any) -> HandTable:
    table = HandTable(root, [column(1, "k", "long")], **options)
    table.commit(table.data(rows(1, 2)))
    return table


def opened(root: Path) -> IcebergTable:
    return IcebergTable(Source(directory=f"file://{root}"))


def test_newer_versions_than_the_hint_are_found(tmp_path: Path) -> None:
    table = small(tmp_path / "t")
    reader = opened(tmp_path / "t")
    first = reader.newest()
    assert reader.newest() is first
    assert first.version == table.current
    second = table.commit(table.data(rows(3)))
    (tmp_path / "t/metadata/version-hint.text").write_text("2")
    assert reader.newest().version == second
    assert len(reader.newest().files) == 2
    assert opened(tmp_path / "t").newest().metadata_uri.endswith("v3.metadata.json")


def test_the_directory_is_never_listed_and_files_are_not_looked_at(tmp_path: Path) -> None:
    table = small(tmp_path / "t")
    gone = table.data(rows(7))
    table.commit(gone)
    table.commit(removed=[gone])
    (tmp_path / "t/data/stray.parquet").write_bytes(b"no part of the table")
    Path(table.manifests[0].entries[0].path).unlink()
    (file,) = opened(tmp_path / "t").newest().files
    assert file.uri == f"file://{table.manifests[0].entries[0].path}"


def test_a_file_is_known_by_the_commit_that_added_it(tmp_path: Path) -> None:
    """Not by the snapshot, which Iceberg's own tasks do not tell; the id of the table is part of it."""
    table = small(tmp_path / "t")
    (first,) = opened(tmp_path / "t").newest().files
    hashed = zlib.crc32(table.metadata["table-uuid"].encode()) & 0xFFFFF
    assert first.mtime_ms == 1000 * (hashed * 2**32 + 1) < 2**63
    kept = table.manifests[0].entries[0]
    table.commit(removed=[kept])
    table.commit(kept)  # the same path and size, taken over again
    (again,) = opened(tmp_path / "t").newest().files
    assert again.mtime_ms == first.mtime_ms + 2000
    table.metadata["table-uuid"] = "00000000-0000-0000-0000-00000000000A"
    table.write_metadata()
    (other,) = opened(tmp_path / "t").newest().files
    assert other.mtime_ms == 1000 * ((zlib.crc32(b"00000000-0000-0000-0000-00000000000a") & 0xFFFFF) * 2**32 + 3)


@pytest.mark.parametrize("number", [0, None])
def test_a_file_without_a_number_is_known_by_its_snapshot(number: int | None) -> None:
    listed = manifests.ListedFile(0, "file:///a", "parquet", 5, 1, 0, (), 0, 77, number, (), None, None, None)
    assert listed.identity("id") == ("file:///a", 5, 77, "log")


def test_a_manifest_that_is_lost_is_told_beside_a_busy_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new version has the lost manifest, too: to read the next one, and the next, would never end."""
    table = small(tmp_path / "t")
    reader = opened(tmp_path / "t")
    Path(table.manifests[0].path).unlink()
    find, commits = IcebergTable._find, []

    def busy(self: IcebergTable, kept: Any) -> Any:
        commits.append(table.commit(table.data(rows(len(commits)))))
        assert len(commits) < 20
        return find(self, kept)

    monkeypatch.setattr(IcebergTable, "_find", busy)
    with pytest.raises(NotFoundError):
        reader.newest()


def test_metadata_of_other_catalogs_by_the_highest_number(tmp_path: Path) -> None:
    table = small(tmp_path / "t")
    folder = tmp_path / "t/metadata"
    (folder / "version-hint.text").unlink()
    first, second = (folder / f"v{number}.metadata.json" for number in (1, 2))
    first.rename(folder / "00009-aa.metadata.json")
    newest = folder / "00010-bb.gz.metadata.json"
    newest.write_bytes(gzip.compress(second.read_bytes()))
    second.unlink()
    reader = opened(tmp_path / "t")
    assert reader.newest().version == table.current
    (folder / "00010-cc.metadata.json").write_bytes(newest.read_bytes())
    with pytest.raises(UnsupportedSourceError, match="only its catalog knows"):
        reader.newest()
    fixed = IcebergTable(Source(metadata=f"file://{newest}"))
    assert fixed.newest().version == table.current
    with pytest.raises(NotFoundError, match="no Iceberg table"):
        opened(tmp_path / "other").newest()


@pytest.mark.parametrize("hint", ["", " \n"])
def test_a_hint_that_was_not_written_yet_is_no_hint(tmp_path: Path, hint: str) -> None:
    """Hadoop's catalog writes it after the version, and not in one step."""
    table = small(tmp_path / "t")
    table.commit(table.data(rows(3)))
    (tmp_path / "t/metadata/version-hint.text").write_text(hint)
    assert opened(tmp_path / "t").newest().version == table.current
    (tmp_path / "t/metadata/version-hint.text").write_text("../v1")
    with pytest.raises(DataFileError, match=r"version-hint\.text"):
        opened(tmp_path / "t").newest()


def test_snapshots_by_id_and_time(tmp_path: Path) -> None:
    table = small(tmp_path / "t")
    first = table.current
    table.schema([column(1, "key", "long")])
    second = table.commit(table.data(rows(3)))
    reader = opened(tmp_path / "t")
    times = {each["snapshot-id"]: each["timestamp-ms"] for each in table.metadata["snapshots"]}
    assert [len(reader.at(number).files) for number in (first, second)] == [1, 2]
    assert [reader.at(number).timestamp_ms for number in (first, second)] == list(times.values())
    assert '"name":"k"' in reader.at(first).schema_json
    assert '"name":"key"' in reader.newest().schema_json
    for moment, version in [
        (times[first], first),
        (times[second] - 1, first),
        (times[second], second),
        (1 << 50, second),
    ]:
        assert reader.at_timestamp(moment).version == version
    table.roll_back(first)
    assert reader.newest().version == first
    assert reader.at_timestamp(times[second]).version == second
    assert reader.at_timestamp(1 << 50).version == first
    table.expire(set())
    for ask in (lambda: reader.at(second), lambda: reader.at(17), lambda: reader.at_timestamp(START_MS - 1)):
        with pytest.raises(NotFoundError, match="no snapshot"):
            ask()


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    HandTable(tmp_path / "t", [column(1, "k", "long")])
    reader = opened(tmp_path / "t")
    newest = reader.newest()
    assert (newest.version, newest.files, newest.timestamp_ms) == (0, [], None)
    assert reader.at(0).files == []
    with pytest.raises(NotFoundError):
        reader.at_timestamp(1 << 50)


def test_version_1_as_pyiceberg_writes_it(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("k", pa.int64())]), properties={"format-version": "1"})
    table.append(pa.table({"k": [1, 2]}))
    table.append(pa.table({"k": [3]}))
    newest = opened(tmp_path / "w/db/t").newest()
    judged = {task.file.file_path: task.file.file_size_in_bytes for task in table.scan().plan_files()}
    assert {file.uri: file.size_bytes for file in newest.files} == judged
    assert newest.version == table.current_snapshot().snapshot_id


def test_a_table_by_its_name_in_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = named_catalog(monkeypatch, tmp_path)
    table = catalog.create_table("db.t", pa.schema([("k", pa.int64())]))
    table.append(pa.table({"k": [1]}))
    assert has_catalog("lake.db.t")
    assert not has_catalog("other.db.t")
    source = iceberg_source("lake.db.t", {})
    assert source == Source(catalog="lake.db.t")
    assert iceberg_source("lake.db.t", {}, is_table=lambda name: True) is None
    reader = IcebergTable(source)
    first = reader.newest()
    assert reader.newest() is first
    table.append(pa.table({"k": [2]}))
    assert len(reader.newest().files) == 2
    with pytest.raises(NotFoundError, match=r"no Iceberg table db\.no"):
        IcebergTable(Source(catalog="lake.db.no")).newest()
    with pytest.raises(InvalidArgumentError, match="cannot be opened"):
        IcebergTable(Source(catalog="nowhere.db.t")).newest()
    monkeypatch.setattr(type(catalog), "load_table", lambda self, name: 1 / 0)
    with pytest.raises(StorageError, match="did not answer"):
        reader.newest()


def test_which_sources_are_iceberg_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small(tmp_path / "a b")
    uri = f"file://{tmp_path}/a b"
    for source in (str(tmp_path / "a b"), tmp_path / "a b", uri, f"iceberg.`{tmp_path}/a b`", f"ICEBERG.`{uri}`"):
        assert iceberg_source(source, {}) == Source(directory=uri)
    assert iceberg_source(table.metadata_file, {}) == Source(metadata=f"{uri}/metadata/v2.metadata.json")
    monkeypatch.chdir(tmp_path)
    assert iceberg_source("a b", {}) == Source(directory=uri)
    (tmp_path / "a b/_delta_log").mkdir()  # a Delta table that also writes Iceberg's metadata is one of Delta
    for source in (str(tmp_path / "a b"), str(tmp_path), "db.t", "c.db.t", 7, "hdfs://n/t", "parquet.`/t`"):
        assert iceberg_source(source, {}) is None
    with pytest.raises(UnsupportedSourceError, match="only be reached through Spark"):
        iceberg_source("iceberg.`hdfs://n/t`", {})


def test_without_pyiceberg_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path / "t")
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "pyiceberg":
            raise ImportError("No module named 'pyiceberg'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnsupportedSourceError, match=r"lakebloom\[iceberg\]"):
        _ = opened(tmp_path / "t").newest().files
    assert not has_catalog("lake.db.t")


def test_metadata_that_cannot_be_read(tmp_path: Path) -> None:
    table = small(tmp_path / "t")
    file = table.metadata_file
    good = json.loads(file.read_text())
    wrong: list[tuple[dict[str, Any], type[LakebloomError]]] = [
        ({"format-version": 4}, UnsupportedSourceError),
        ({"current-schema-id": 9}, DataFileError),
        ({"schemas": 7}, DataFileError),
        ({"current-snapshot-id": 9}, DataFileError),
        ({"location": None}, DataFileError),
    ]
    for change, error in wrong:
        file.write_text(json.dumps(good | change))
        with pytest.raises(error):
            opened(tmp_path / "t").newest()
    file.write_bytes(gzip.compress(b"[" * 100_000))
    with pytest.raises(DataFileError):
        opened(tmp_path / "t").newest()
    old = good | {"snapshots": [{k: v for k, v in each.items() if k != "manifest-list"} for each in good["snapshots"]]}
    file.write_text(json.dumps(old))
    with pytest.raises(UnsupportedSourceError, match="no list of manifests"):
        _ = opened(tmp_path / "t").newest().files


def test_a_bomb_of_compressed_metadata_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small(tmp_path / "t")
    monkeypatch.setattr(metadata, "_MOST_BYTES", 1 << 16)
    table.metadata_file.write_bytes(gzip.compress(b" " * (1 << 20)))
    with pytest.raises(DataFileError, match="more than 65536 bytes"):
        opened(tmp_path / "t").newest()


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["m*.avro", "snap-*.avro"])
def test_damaged_manifests_are_errors_with_a_type(tmp_path: Path, ending: str) -> None:
    small(tmp_path / "t")
    (path,) = (tmp_path / "t/metadata").glob(ending)
    good, chance = path.read_bytes(), random.Random(7)
    unread = opened(tmp_path / "t").newest().files
    for _ in range(150):
        data = bytearray(good)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        for _ in range(chance.randint(1, 4)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            found = opened(tmp_path / "t").newest().files
        except LakebloomError:
            continue
        assert len(found) <= len(unread)


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    table = small(tmp_path / "t")
    table.commit(table.manifests[0].entries[0])
    with pytest.raises(UnsupportedSourceError, match="several times"):
        _ = opened(tmp_path / "t").newest().files


def test_a_directory_that_did_not_change_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small(tmp_path / "t")
    folder = tmp_path / "t/metadata"
    os.utime(folder, ns=(1, 1))
    monkeypatch.setattr(locate, "_SETTLED_NS", 0)
    reader = opened(tmp_path / "t")
    first = reader.newest()
    read: list[str] = []
    real = iceberg_table.newest_metadata
    monkeypatch.setattr(iceberg_table, "newest_metadata", lambda *given: (read.append(given[0]), real(*given))[1])
    assert reader.newest() is first
    assert not read
    second = table.commit(table.data(rows(3)))
    assert reader.newest().version == second
    assert len(read) == 1
    table.metadata_file.write_text(table.metadata_file.read_text() + " ")  # a table that was made anew
    assert reader.newest() is not first
    monkeypatch.setattr(locate, "_SETTLED_NS", 1 << 62)
    assert locate.folder_state(f"file://{folder}") is None
    assert locate.folder_state(f"file://{tmp_path}/no") is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["manifest", "list"])
def test_a_file_of_metadata_that_was_cut_off_is_an_error(tmp_path: Path, kind: str) -> None:
    """Taken for a shorter one, the table would lose files, or rows that were deleted would come back."""
    table = small(tmp_path / "t")
    path = Path(table.manifests[0].path)
    if kind == "list":
        path = tmp_path / f"t/metadata/snap-{table.current}.avro"
    good = path.read_bytes()
    header = good.index(good[-16:]) + 16
    """Where the first block begins: a list without any block is one of no manifests."""
    for end in [*range(0, header - 16, 50), *range(header + 1, len(good))]:
        path.write_bytes(good[:end])
        with pytest.raises(DataFileError):
            _ = opened(tmp_path / "t").newest().files
    path.write_bytes(good)
    assert len(opened(tmp_path / "t").newest().files) == 1

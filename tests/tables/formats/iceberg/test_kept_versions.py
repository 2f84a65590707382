"""What was read or described for one version of an Iceberg table is kept for the next ones."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from lakebloom.tables.formats.iceberg import manifests
from lakebloom.tables.formats.iceberg import table as iceberg_table
from tests.tables.formats.iceberg.hand_table import Entry, column
from tests.tables.formats.iceberg.test_table import opened, rows, small

if TYPE_CHECKING:
    from pathlib import Path


def test_a_manifest_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small(tmp_path / "t")
    reader = opened(tmp_path / "t")
    assert len(reader.newest().files) == 1
    read: list[str] = []
    real = manifests._entries
    monkeypatch.setattr(manifests, "_entries", lambda each, options: (read.append(each.uri), real(each, options))[1])
    for number in range(3):
        table.commit(table.data(rows(number)))
        assert len(reader.newest().files) == number + 2
    assert len(read) == len(set(read)) == 3


def test_a_file_is_described_once_and_deletes_are_of_one_version(tmp_path: Path) -> None:
    table = small(tmp_path / "t")
    reader = opened(tmp_path / "t")
    first = reader.newest()
    (described,) = first.data_files.values()
    table.commit(table.data(rows(3)))
    second = reader.newest()
    assert second.data_files[described.file.uri] is described
    (entry,) = table.manifests[0].entries
    table.commit(table.positions({entry.path: [0]}, entry))
    third = reader.newest()
    assert third.data_files[described.file.uri].deletes is not None
    assert third.data_files[described.file.uri].file == described.file
    assert [each.data_files[described.file.uri].deletes for each in (first, second)] == [None, None]
    table.partitioned([{"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000, "result": "long"}])
    table.commit(table.data(rows(4), 1, (4,)))
    assert {uri: file.constants for uri, file in reader.newest().data_files.items()} == {
        uri: file.constants for uri, file in opened(tmp_path / "t").newest().data_files.items()
    }
    assert (("#1", "4"),) in {file.constants for file in reader.newest().data_files.values()}


def test_an_older_snapshot_is_read_once_while_nothing_is_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small(tmp_path / "t")
    numbers = [table.current, *(table.commit(table.data(rows(number))) for number in range(3))]
    reader = opened(tmp_path / "t")
    real = iceberg_table.read_manifest_list
    read: list[str] = []
    monkeypatch.setattr(
        iceberg_table, "read_manifest_list", lambda uri, options: (read.append(uri), real(uri, options))[1]
    )
    for _ in range(3):
        assert [len(reader.at(number).files) for number in numbers[:2]] == [1, 2]
    assert len(read) == 2
    assert [len(reader.at(number).files) for number in numbers] == [1, 2, 3, 4]
    table.schema([column(1, "key", "long")])
    table.commit(table.data(rows(9)))
    read.clear()
    assert len(reader.at(numbers[3]).files) == 4
    assert len(read) == 1, "newer metadata may say something else about a snapshot"


@pytest.mark.parametrize("seed", range(4))
def test_files_followed_and_read_anew_are_the_same(tmp_path: Path, seed: int) -> None:
    """Whatever was asked for before: the newest snapshot, an older one, or one that was rolled back to."""
    chance = random.Random(seed)
    table = small(tmp_path / "t")

    def new() -> Entry:
        return Entry(table.next_path(), chance.randint(1, 999), 2, 0)

    for _ in range(5):
        table.commit(*(new() for _ in range(10)))
    numbers = [table.current]
    reader = opened(tmp_path / "t")
    for _ in range(20):
        present = [entry for manifest in table.manifests for entry in manifest.entries]
        removed = chance.sample(present, chance.randint(0, 3))
        numbers.append(table.commit(*(new() for _ in range(chance.randint(0, 4))), removed=removed))
        if chance.random() < 0.2:
            table.roll_back(chance.choice(numbers))
        if chance.random() < 0.2:
            table.partitioned(
                [{"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000, "result": "long"}]
            )
        for version in (None, chance.choice(numbers)):
            kept, anew = (
                each.newest() if version is None else each.at(version) for each in (reader, opened(tmp_path / "t"))
            )
            assert kept.files == anew.files == sorted(file.file for file in anew.data_files.values())
            assert kept.files.columns.files() == list(anew.files)
            assert kept.data_files == anew.data_files

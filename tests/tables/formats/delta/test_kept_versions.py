"""The files of a version are made from those of the version before, and are the ones that the whole log has."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.errors import UnsupportedSourceError
from tests.tables.formats.delta.hand_table import HandTable
from tests.tables.formats.delta.test_log import FIELDS, log_of, rows

if TYPE_CHECKING:
    from pathlib import Path


class Moving(HandTable):
    """A table whose files come, go, and get and lose deletion vectors. Nobody opens them."""

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root, FIELDS[:1])
        self.random = random.Random(seed)
        self.like = self.add("like.parquet", rows(1, 2, 3))["add"]
        self.count = 0

    def new(self) -> dict[str, Any]:
        self.count += 1
        return {"add": {**self.like, "path": f"{self.random.random()}", "size": self.count}}

    def some(self, most: int) -> list[dict[str, Any]]:
        files = [{"add": entry} for entry in self.active.values()]
        return self.random.sample(files, min(len(files), self.random.randint(0, most)))

    def move(self) -> None:
        came, went = [self.new() for _ in range(self.random.randint(0, 6))], self.some(4)
        vectors = [None, self.inline([self.random.randint(0, 2)])]
        hidden = [each for each in self.some(3) if each not in went]
        again = [
            action for each in hidden for action in (self.remove(each), self.again(each, self.random.choice(vectors)))
        ]
        actions = [*came, *map(self.remove, went), *again]
        if went and self.random.random() < 0.3:  # a file comes back as it was, or written anew
            actions.append({"add": {**went[0]["add"], "modificationTime": self.random.choice([5, 1_700_000_000_123])}})
        self.commit(*actions)


@pytest.mark.parametrize("seed", range(4))
def test_files_followed_and_read_anew_are_the_same(tmp_path: Path, seed: int) -> None:
    table = Moving(tmp_path, seed)
    table.commit(*(table.new() for _ in range(80)))
    log = log_of(tmp_path)
    for step in range(60):
        table.move()
        if step % 17 == 16:
            table.checkpoint()
        if table.random.random() < 0.2:
            continue  # two versions at once
        kept, anew = log.newest(), log_of(tmp_path).newest()
        if table.random.random() < 0.8:  # otherwise the next version has no list that it could be made from
            assert kept.files == anew.files
            assert kept.files.columns.files() == list(anew.files)
        assert kept.data_files == anew.data_files
        assert kept.state.num_deletes == sum(file.deletes is not None for file in anew.data_files.values())


def test_a_second_vector_is_refused_whatever_was_known_before(tmp_path: Path) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    added = table.add("a.parquet", rows(1, 2, 3))
    table.commit(added)
    log = log_of(tmp_path)
    assert len(log.newest().files) == 1
    table.commit(table.again(added, table.inline([1])))
    for _ in range(2):
        with pytest.raises(UnsupportedSourceError, match="several deletion vectors"):
            _ = log.newest().files

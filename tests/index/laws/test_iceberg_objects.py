"""An Iceberg table in an object store: what a lookup costs, and that it sees what is new."""

from __future__ import annotations

import dataclasses
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index.build.create import create_index
from lakebloom.index.current_table import iceberg_record
from lakebloom.storage import open_storage
from lakebloom.tables.formats.iceberg.table import Source
from lakebloom.tables.listing import objects
from tests.index.iceberg_lake import IcebergIndexes
from tests.index.logged_lake import NAME
from tests.tables.formats.iceberg.hand_table import Entry, HandTable, Manifest, column, with_id

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.typedef import Record

SCHEMA = pa.schema([with_id("k", pa.int64(), 1)])


def rows(*values: int) -> pa.Table:
    return pa.table([list(values)], schema=SCHEMA)


class ObjectTable(HandTable):
    """Written to a local directory, with the paths that it has in the store to which it is copied."""

    def __init__(self, root: Path, uri: str) -> None:
        self.store, self._storage = uri, open_storage(uri)
        self._published: set[Path] = set()
        super().__init__(root, [column(1, "k", "long")])

    def there(self, path: str) -> str:
        return path.replace(str(self.root), self.store)

    def publish(self, *, again: bool = False) -> None:
        """Copy what is new; ``again``: all files once more, as a bucket's owner does who encrypts them anew."""
        for path in self.root.rglob("*"):
            if path.is_file() and (again or path not in self._published or path.suffix == ".text"):
                self._published.add(path)
                data = path.read_bytes()
                if path.name.endswith(".metadata.json"):
                    data = self.there(data.decode()).encode()
                self._storage.write(str(path.relative_to(self.root)), data)

    def _record(self, status: int, entry: Entry, sequence: int, snapshot_id: int) -> Record:
        record = super()._record(status, entry, sequence, snapshot_id)
        record[4][1] = self.there(entry.path)
        return record

    def _listed(self, each: Manifest) -> Record:
        return super()._listed(dataclasses.replace(each, path=self.there(each.path)))


@pytest.fixture
def table(tmp_path: Path) -> ObjectTable:
    made = ObjectTable(tmp_path / "t", f"memory://{uuid.uuid4().hex}/lake/t")
    files = [made.data(rows(number, 9)) for number in range(5)]
    made.commit(*files)
    made.commit(made.positions({made.there(files[0].path): [1]}, files[0]))
    made.publish()
    return made


@pytest.fixture
def lake(tmp_path: Path, table: ObjectTable) -> Lakebloom:
    source = Source(directory=table.store)
    indexes = IcebergIndexes(tmp_path, table.root, source)
    create_index(indexes._shop(), iceberg_record(source, {}), BloomIndexConfig(NAME, ["k"]))
    return indexes.open()


def found(lake: Lakebloom, key: int, **options: Any) -> int:
    return lake.lookup(NAME, col("k") == key, **options).num_rows


def test_where_nothing_is_new_a_lookup_costs_one_request(
    table: ObjectTable, lake: Lakebloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (found(lake, 9), found(lake, 2)) == (4, 1)
    requests: list[str] = []
    for name in ("stat_file", "find_below", "names_after", "first_below"):
        whole = getattr(objects, name)
        monkeypatch.setattr(
            objects, name, lambda uri, *rest, whole=whole, **more: (requests.append(uri), whole(uri, *rest, **more))[1]
        )
    for name in ("read", "read_ranges", "list"):
        whole = getattr(type(table._storage), name)
        monkeypatch.setattr(
            type(table._storage), name, lambda self, path, *rest, whole=whole: (
                requests.append(f"{self.uri}/{path}"), whole(self, path, *rest)
            )[1]
        )  # fmt: skip
    assert found(lake, 1234) == 0
    assert requests == [f"{table.store}/metadata/v{table.number + 1}.metadata.json"]
    before = table.current
    table.commit(table.data(rows(1234)))
    table.publish()
    assert found(lake, 1234) == 1
    assert found(lake, 1234, version=before) == 0
    assert found(lake, 9, version=before) == 4


def test_objects_that_were_written_again_with_the_same_bytes_are_read(table: ObjectTable, lake: Lakebloom) -> None:
    """They have other ETags, by which a process that knows their footers tells that they were written again."""
    assert (found(lake, 9), found(lake, 2)) == (4, 1)
    table.publish(again=True)
    for _ in range(2):
        assert (found(lake, 9), found(lake, 2)) == (4, 1)

"""An object is replaced only if it is the version that was read; its attributes stay; embedding relies on it."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom.errors import StorageError
from lakebloom.parquet import embed, embedding
from lakebloom.storage.objects import versions
from lakebloom.storage.objects.clients import connect
from lakebloom.storage.objects.storage import ObjectStorage
from tests.storage.conftest import BUCKET, s3_options_for

ATTRIBUTES = {"Content-Type": "application/vnd.apache.parquet", "owner": "finance"}


def content(value: int) -> bytes:
    """Files of one size, whatever the value."""
    sink = io.BytesIO()
    columns = {"id": pa.array([value] * 100, pa.int64())}
    pq.write_table(pa.table(columns), sink, use_dictionary=False, compression="none", write_statistics=False)
    return sink.getvalue()


class Place:
    """A key of its own in a store."""

    def __init__(self, base: str, options: dict[str, str]) -> None:
        self.base, self.options = f"{base}/{uuid.uuid4().hex}", options
        self.uri = f"{self.base}/a.parquet"
        self.store = connect(base, options)
        self.key = self.uri.removeprefix(f"{'/'.join(base.split('/')[:3])}/")

    def put(self, value: int) -> None:
        obstore.put(self.store, self.key, content(value), attributes=ATTRIBUTES)

    @property
    def stored(self) -> bytes:
        return bytes(obstore.get(self.store, self.key).bytes())

    @property
    def value(self) -> int:
        found: int = pq.read_table(io.BytesIO(self.stored))["id"][0].as_py()
        return found

    @property
    def attributes(self) -> dict[str, str]:
        return dict(obstore.get(self.store, self.key).attributes)  # type: ignore[arg-type]

    @property
    def others(self) -> list[str]:
        listed = obstore.list(self.store, self.key.rpartition("/")[0]).collect()
        return [found["path"] for found in listed if found["path"] != self.key]


@pytest.fixture(params=["memory", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "memory":
        return Place(f"memory://{uuid.uuid4().hex}", {})
    return Place(f"s3://{BUCKET}", s3_options_for(request.getfixturevalue("s3_endpoint")))


def test_only_the_version_that_was_read_is_replaced(place: Place) -> None:
    place.put(1)
    storage = ObjectStorage(place.base, place.options)
    data, seen = storage.read_version("a.parquet")
    assert (bytes(data), dict(seen.attributes)) == (content(1), ATTRIBUTES)
    storage.replace_version("a.parquet", [b"new ", b"content"], seen)
    assert (place.stored, place.attributes) == (b"new content", ATTRIBUTES)
    with pytest.raises(StorageError, match="was changed"):
        storage.replace_version("a.parquet", [b"newer"], seen)
    assert place.stored == b"new content"
    obstore.delete(place.store, place.key)
    with pytest.raises(StorageError):
        storage.replace_version("a.parquet", [b"newer"], seen)
    assert place.others == []


def test_an_answer_that_was_lost_is_no_conflict(place: Place) -> None:
    """The store has acted, and the repeated request is told that the version is another."""
    place.put(1)
    storage = ObjectStorage(place.base, place.options)
    _, seen = storage.read_version("a.parquet")
    storage.replace_version("a.parquet", [b"new ", b"content"], seen)
    storage.replace_version("a.parquet", [b"new content"], seen)
    assert place.stored == b"new content"


def test_embedding_keeps_attributes(place: Place) -> None:
    place.put(1)
    assert embed(place.uri, columns=["id"], options=place.options).filters == 1
    assert (place.value, place.attributes) == (1, ATTRIBUTES)
    assert place.others == []


MOMENTS: dict[str, str] = {
    "after it was read": "read_footer",
    "while filters are made": "StoredValues",
    "before the upload": "open_storage",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_embedding_gives_way_to_another_writer(place: Place, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the new object has the same size, in the same second."""
    place.put(1)
    name = MOMENTS[moment]
    real: Callable[..., Any] = getattr(embedding, name)
    calls = 0

    def meddled(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == (2 if name == "open_storage" else 1):
            place.put(2)
        return real(*arguments, **options)

    monkeypatch.setattr(embedding, name, meddled)
    with pytest.raises(StorageError, match="was changed"):
        embed(place.uri, columns=["id"], options=place.options)
    assert (place.stored, place.attributes) == (content(2), ATTRIBUTES)


def test_a_store_that_ignores_the_condition_is_refused(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(f"s3://{BUCKET}", s3_options_for(s3_endpoint))
    place.put(1)
    put = obstore.put

    def deaf(store: Any, key: str, data: Any, **options: Any) -> Any:
        options.pop("mode", None)  # as a proxy does that drops the header
        return put(store, key, data, **options)

    monkeypatch.setattr(versions, "_PROVEN", set())
    monkeypatch.setattr(obstore, "put", deaf)
    with pytest.raises(StorageError, match="ignores If-Match"):
        embed(place.uri, columns=["id"], options=place.options)
    assert place.stored == content(1)
    assert place.others == []
    target = f"{place.base}/b.parquet"
    assert embed(place.uri, target, columns=["id"], options=place.options).filters == 1

"""Stores that do not keep the promise of a conditional PUT are refused before the first commit, by name.

A proxy in front of a real server plays the stores: what it does to a PUT with If-None-Match is what they do.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakebloom.errors import LakebloomError, StorageError
from lakebloom.storage import open_storage
from lakebloom.store.log import Log
from tests.storage.conftest import BUCKET, s3_options_for
from tests.storage.http_server import Handler, forwarded, serving
from tests.storage.lossy import Fault, LossyProxy
from tests.store.examples import entry

if TYPE_CHECKING:
    from collections.abc import Iterator

# What a store answers to a PUT of an object that exists, and whether it replaces it.
STORES = {
    "ignores the header": (None, True),
    "says yes and keeps the first": (200, False),
    "says no and keeps the second": (412, True),
    "has no conditional writes": (501, False),
}


class FaultyStore:
    """A real server, but for one answer."""

    def __init__(self, upstream: str, status: int | None, replaces: bool) -> None:
        self.paths: set[str] = set()
        store = self

        class Faulty(Handler):
            def answer(self) -> None:
                body = self.body()
                headers = {k: v for k, v in self.headers.items() if k.lower() != "if-none-match"}
                is_conditional = "if-none-match" in map(str.lower, self.headers)
                is_second = is_conditional and (self.path in store.paths or status == 501)
                if self.command == "PUT":
                    store.paths.add(self.path)
                if is_second and not replaces:
                    self.reply(status or 200, [("ETag", '"1"')], b"")
                    return
                code, found, content = forwarded(self, upstream, body, headers)
                if not any(name.lower() == "etag" for name, _ in found):
                    found.append(("ETag", '"1"'))
                self.reply(status if is_second and status is not None else code, found, content)

        self.handler = Faulty
        self.endpoint = ""


@pytest.fixture(params=STORES)
def faulty(request: pytest.FixtureRequest, s3_endpoint: str) -> Iterator[FaultyStore]:
    store = FaultyStore(s3_endpoint, *STORES[request.param])
    with serving(store.handler) as address:
        store.endpoint = f"http://{address}"
        yield store


@pytest.mark.slow
def test_no_commit_is_made_to_a_store_that_lets_two_writers_through(faulty: FaultyStore) -> None:
    location = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    storage = open_storage(location, s3_options_for(faulty.endpoint))
    for _ in range(2):  # a refusal is no proof
        with pytest.raises(StorageError, match=f"an index cannot be kept in s3://{BUCKET} at {faulty.endpoint}"):
            Log(storage, "i").create(entry())
    assert list(storage.list("")) == []
    assert list(storage.temporaries("")) == [], "the probe is cleaned up"


def test_readers_and_writers_of_other_files_are_not_asked_to_prove_anything(faulty: FaultyStore) -> None:
    storage = open_storage(f"s3://{BUCKET}/{uuid.uuid4().hex}", s3_options_for(faulty.endpoint))
    storage.write("a", b"1")
    assert bytes(storage.read("a")) == b"1"
    assert len(faulty.paths) == 1


@pytest.mark.parametrize(
    "faults",
    [[*first, fault] for first in ([], [Fault.NONE]) for fault in Fault if fault is not Fault.NONE],
    ids=lambda faults: "+".join(fault.name for fault in faults),
)
def test_lost_answers_do_not_make_a_good_store_a_bad_one(s3_endpoint: str, faults: list[Fault]) -> None:
    with LossyProxy(s3_endpoint, faults, meets_probes=True) as proxy:
        storage = open_storage(f"s3://{BUCKET}/{uuid.uuid4().hex}", s3_options_for(proxy.endpoint))
        storage.put_if_absent("log/1", b"1")
        assert bytes(storage.read("log/1")) == b"1"


@pytest.mark.slow
def test_a_store_that_cannot_be_reached_is_not_called_a_bad_one(s3_endpoint: str) -> None:
    with LossyProxy(s3_endpoint, [Fault.REQUEST_LOST] * 50, meets_probes=True) as proxy:
        storage = open_storage(f"s3://{BUCKET}/{uuid.uuid4().hex}", s3_options_for(proxy.endpoint))
        with pytest.raises(LakebloomError) as caught:
            storage.put_if_absent("log/1", b"1")
    assert "cannot be kept" not in str(caught.value)

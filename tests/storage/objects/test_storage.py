"""What only object stores have: lost answers, request counts, secrets, and stores that live in memory."""

from __future__ import annotations

import pickle
import uuid
from typing import TYPE_CHECKING

import numpy as np
import obstore
import pytest

from lakebloom.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    InvalidArgumentError,
    LakebloomError,
    NotFoundError,
    StorageError,
)
from lakebloom.storage import open_storage
from lakebloom.storage.objects.storage import ObjectStorage
from tests.storage.conftest import BUCKET, s3_options_for
from tests.storage.lossy import Fault, LossyProxy

if TYPE_CHECKING:
    from lakebloom.storage import Storage


PROOF = ["PUT", "PUT", "GET", "POST"]  # the last one deletes


def fresh_location() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


def through(proxy: LossyProxy, location: str) -> Storage:
    return open_storage(location, s3_options_for(proxy.endpoint))


class TestLostAnswers:
    """put_if_absent through a proxy that breaks connections; the server behind it is real."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "faults",
        [
            [Fault.ANSWER_LOST],
            [Fault.ANSWER_503],
            [Fault.ANSWER_503, Fault.ANSWER_503],
            [Fault.REQUEST_LOST],
            [Fault.REQUEST_LOST, Fault.ANSWER_LOST],
        ],
        ids=lambda faults: "+".join(fault.name for fault in faults),
    )
    def test_the_writer_recognises_its_own_object(self, s3_endpoint: str, faults: list[Fault]) -> None:
        location = fresh_location()
        with LossyProxy(s3_endpoint, faults) as proxy:
            storage = through(proxy, location)
            storage.put_if_absent("log/1", b"ours")
            assert bytes(storage.read("log/1")) == b"ours"
            with pytest.raises(AlreadyExistsError):
                storage.put_if_absent("log/1", b"ours")

    @pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.ANSWER_503, Fault.REQUEST_LOST])
    def test_the_writer_recognises_anothers_object(
        self, s3_endpoint: str, s3_options: dict[str, str], fault: Fault
    ) -> None:
        location = fresh_location()
        open_storage(location, s3_options).put_if_absent("log/1", b"theirs")
        with LossyProxy(s3_endpoint, [fault]) as proxy:
            storage = through(proxy, location)
            with pytest.raises(AlreadyExistsError):
                storage.put_if_absent("log/1", b"theirs")  # equal bytes are no proof
            assert bytes(storage.read("log/1")) == b"theirs"

    @pytest.mark.slow
    def test_an_outcome_that_stays_unknown_is_said_to_be_unknown(self, s3_endpoint: str) -> None:
        with LossyProxy(s3_endpoint, [Fault.REQUEST_LOST] * 20) as proxy:
            storage = through(proxy, fresh_location())
            with pytest.raises(StorageError, match="may or may not have been stored") as caught:
                storage.put_if_absent("log/1", b"ours")
        assert not isinstance(caught.value, AlreadyExistsError)

    def test_without_a_mark_the_bytes_decide(self, s3_options: dict[str, str]) -> None:
        storage = ObjectStorage(fresh_location(), s3_options)
        obstore.put(storage._store, storage._key("log/1"), b"written by a store that drops metadata")
        storage.put_if_absent("log/1", b"written by a store that drops metadata")
        with pytest.raises(AlreadyExistsError):
            storage.put_if_absent("log/1", b"something else")


class TestRequests:
    """What goes over the wire."""

    def test_a_read_is_one_get_and_near_ranges_are_one_too(self, s3_endpoint: str) -> None:
        with LossyProxy(s3_endpoint, []) as proxy:
            storage = through(proxy, fresh_location())
            storage.write("tile", [b"x" * 1_000_000, b"y" * 1_000_000])
            storage.read("tile")
            storage.read_ranges("tile", [(0, 32), (200_000, 32), (400_000, 32)])
            storage.put_if_absent("log/1", b"1")
            assert proxy.requests == ["PUT", "GET", "GET", *PROOF, "PUT"]
            storage.put_if_absent("log/2", b"2")
            through(proxy, fresh_location()).put_if_absent("log/1", b"1")
            assert proxy.requests[-2:] == ["PUT", "PUT"], "a bucket is asked once in a process"
            assert [file.path for file in storage.list("")] == ["log/1", "log/2", "tile"]
            assert list(storage.temporaries("")) == []

    def test_ranges_that_are_far_apart_are_requests_of_their_own(self, s3_endpoint: str) -> None:
        data = np.random.default_rng(1).bytes(3_000_000)
        with LossyProxy(s3_endpoint, []) as proxy:
            storage = through(proxy, fresh_location())
            storage.write("tile", data)
            del proxy.requests[:]
            ranges = [(2_900_000, 100_000), (5, 10), (1_000_000, 7), (0, 100), (1_000_003, 300_000), (1_000_000, 1)]
            found = storage.read_ranges("tile", ranges)
            assert [bytes(view) for view in found] == [data[at : at + size] for at, size in ranges]
            assert proxy.requests == ["GET"] * 3
            many = [(at, 9) for at in range(2_999_000, 0, -7919)]
            assert [bytes(view) for view in storage.read_ranges("tile", many)] == [data[at : at + 9] for at, _ in many]
            with pytest.raises(StorageError):
                storage.read_ranges("tile", [(0, 10), (2_999_999, 10)])

    def test_the_server_honours_if_none_match(self, s3_options: dict[str, str]) -> None:
        """Without this the contract's races would prove nothing about S3."""
        storage = ObjectStorage(fresh_location(), s3_options)
        storage.write("a", b"1")
        with pytest.raises(obstore.exceptions.AlreadyExistsError, match="412"):
            obstore.put(storage._store, storage._key("a"), b"2", mode="create")


class TestErrors:
    def test_a_missing_bucket_is_not_found(self, s3_options: dict[str, str]) -> None:
        storage = open_storage("s3://no-such-bucket/x", s3_options)
        with pytest.raises(NotFoundError, match=r"could not write s3://no-such-bucket/x/a.*NoSuchBucket"):
            storage.write("a", b"")

    def test_a_store_that_cannot_be_reached_says_so(self, s3_options: dict[str, str]) -> None:
        storage = open_storage("s3://bucket", s3_options | {"endpoint": "http://127.0.0.1:9", "max_retries": "0"})
        for operation in (lambda: storage.read("a"), lambda: list(storage.list("")), lambda: storage.delete("a")):
            with pytest.raises(StorageError, match="check that the store can be reached"):
                operation()
        with pytest.raises(StorageError, match="could not find out whether"):
            storage.put_if_absent("a", b"1")

    def test_a_refusal_is_access_denied(self, s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise obstore.exceptions.PermissionDeniedError("403 Forbidden")

        monkeypatch.setattr(obstore, "get", refuse)
        with pytest.raises(AccessDeniedError, match="check the credentials"):
            open_storage(fresh_location(), s3_options).read("a")

    def test_a_store_without_conditional_writes_is_refused(self, s3_options: dict[str, str]) -> None:
        storage = open_storage(fresh_location(), s3_options | {"conditional_put": "disabled"})
        with pytest.raises(StorageError, match="conditional writes"):
            storage.put_if_absent("a", b"1")

    def test_errors_survive_pickling(self, s3_options: dict[str, str]) -> None:
        with pytest.raises(NotFoundError) as caught:
            open_storage(fresh_location(), s3_options).read("a")
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


class TestSecrets:
    SECRET = "wJalrXUtnFEMI/K7MDENG"

    def shown(self, error: BaseException) -> str:
        """An error as a traceback would show it, causes included."""
        texts = [str(error), repr(error)]
        if error.__cause__ is not None:
            texts.append(self.shown(error.__cause__))
        elif error.__context__ is not None and not error.__suppress_context__:
            texts.append(self.shown(error.__context__))
        return "\n".join(texts)

    def test_repr_shows_no_options(self, s3_options: dict[str, str]) -> None:
        storage = open_storage("s3://bucket/x", s3_options | {"secret_access_key": self.SECRET})
        assert repr(storage) == "ObjectStorage('s3://bucket/x')"

    @pytest.mark.parametrize(
        ("location", "options"),
        [
            ("s3://bucket", {"secret_access_key": SECRET}),
            ("s3://bucket", {"request_payer": SECRET}),
            ("s3://bucket", {"no_such_key": SECRET}),
            ("az://container", {"account_name": "x", "account_key": SECRET + "!"}),
            ("gs://bucket", {"service_account_key": f'{{"private_key": "{SECRET}'}),
            ("memory://x", {"token": SECRET}),
            ("/data", {"token": SECRET}),
            ("hdfs://x/y", {"token": SECRET}),
        ],
    )
    def test_bad_options_are_named_without_their_values(self, location: str, options: dict[str, str]) -> None:
        with pytest.raises(InvalidArgumentError) as caught:
            open_storage(location, options)
        assert self.SECRET not in self.shown(caught.value)

    def test_a_store_that_echoes_a_secret_is_not_quoted(
        self, s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def echo(*_: object) -> None:
            raise obstore.exceptions.GenericError(f"bad signature for {self.SECRET}\n\nDebug source: {self.SECRET}")

        storage = open_storage("s3://bucket", s3_options | {"secret_access_key": self.SECRET})
        monkeypatch.setattr(obstore, "get", echo)
        with pytest.raises(StorageError, match=r"bad signature for \*\*\*") as caught:
            storage.read("a")
        assert self.SECRET not in self.shown(caught.value)

    def test_passwords_in_uris_are_refused_and_not_shown(self) -> None:
        with pytest.raises(LakebloomError) as caught:
            open_storage(f"s3://user:{self.SECRET}@bucket/x")
        assert self.SECRET not in self.shown(caught.value)


class TestOpening:
    def test_it_pickles_with_its_options(self, s3_options: dict[str, str]) -> None:
        storage = open_storage(fresh_location(), s3_options)
        storage.write("a", b"1")
        again = pickle.loads(pickle.dumps(storage))
        assert (bytes(again.read("a")), again.uri) == (b"1", storage.uri)

    def test_memory_is_shared_by_its_authority(self) -> None:
        name = uuid.uuid4().hex
        open_storage(f"memory://{name}/lake/index").write("a", b"1")
        assert [file.path for file in open_storage(f"memory://{name}").list("lake")] == ["lake/index/a"]
        assert list(open_storage(f"memory://other{name}/lake/index").list("")) == []
        assert bytes(pickle.loads(pickle.dumps(open_storage(f"memory://{name}/lake"))).read("index/a")) == b"1"

    def test_a_percent_sign_in_the_base_is_a_percent_sign(self, s3_options: dict[str, str]) -> None:
        location = f"{fresh_location()}/50%20off"
        storage = open_storage(location, s3_options)
        storage.write("a", b"1")
        parent = open_storage(location.rpartition("/")[0], s3_options)
        assert [file.path for file in parent.list("")] == ["50%20off/a"]

    @pytest.mark.parametrize(
        ("location", "options"),
        [
            ("gs://bucket/x", {"skip_signature": "true"}),
            ("az://container/x", {"account_name": "lake"}),
            ("abfs://container@lake.dfs.core.windows.net/x", {}),
            ("s3a://bucket/x", {"AWS_REGION": "eu-central-1", "skip_signature": "true", "timeout": "5s"}),
        ],
    )
    def test_other_clouds_can_be_opened(self, location: str, options: dict[str, str]) -> None:
        assert isinstance(open_storage(location, options), ObjectStorage)

    def test_a_bucket_is_needed(self) -> None:
        with pytest.raises(InvalidArgumentError, match="does not name a bucket"):
            open_storage("s3:///x")

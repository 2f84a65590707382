"""What only Hadoop has: checksum files, Java's exceptions, and file systems that promise nothing."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.errors import AlreadyExistsError, NotFoundError, StorageError
from lakebloom.storage import normalise, open_storage
from lakebloom.storage.hadoop import publish
from lakebloom.storage.hadoop.errors import translated
from lakebloom.storage.hadoop.publish import RenamePublisher
from lakebloom.storage.hadoop.storage import HadoopStorage
from lakebloom.storage.local.temporary import temporary_name

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def storage(spark: SparkSession, tmp_path: Path) -> HadoopStorage:
    return HadoopStorage(normalise(tmp_path), spark)


def test_checksum_files_are_neither_written_nor_listed(storage: HadoopStorage, tmp_path: Path) -> None:
    storage.write("a", b"1")
    (tmp_path / ".old.crc").write_bytes(b"left by another Hadoop program")
    assert [file.path for file in storage.list("")] == ["a"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".old.crc", "a"]


def test_both_local_backends_see_the_same_files(storage: HadoopStorage, tmp_path: Path) -> None:
    local = open_storage(tmp_path)
    local.write("a b%20c", b"from Python")
    storage.write("dir/b", b"from Java")
    local.write("dir/b", b"replaced")  # a stale checksum would make Hadoop refuse this
    assert sorted(storage.list(""), key=str) == sorted(local.list(""), key=str)
    assert bytes(storage.read("dir/b")) == b"replaced"


def test_unfinished_files_are_found(storage: HadoopStorage, tmp_path: Path) -> None:
    name = temporary_name()
    (tmp_path / name).write_bytes(b"half")
    assert list(storage.list("")) == []
    (found,) = storage.temporaries("")
    storage.delete(found.path)
    assert list(storage.temporaries("")) == []


def test_it_does_not_leave_the_driver(storage: HadoopStorage) -> None:
    with pytest.raises(StorageError, match="cannot be sent to another process"):
        pickle.dumps(storage)
    assert repr(storage) == f"HadoopStorage({storage.uri!r})"


class TestRename:
    """The code for HDFS, on a file system that has the same calls but no atomic check."""

    @pytest.fixture
    def storage(self, storage: HadoopStorage, monkeypatch: pytest.MonkeyPatch) -> HadoopStorage:
        monkeypatch.setitem(publish._PUBLISHERS, "file", RenamePublisher)
        return storage

    def test_create_and_replace(self, storage: HadoopStorage) -> None:
        storage.put_if_absent("log/1", b"first")
        with pytest.raises(AlreadyExistsError, match="another writer"):
            storage.put_if_absent("log/1", b"second")
        assert bytes(storage.read("log/1")) == b"first"
        storage.write("log/1", b"third")
        assert bytes(storage.read("log/1")) == b"third"
        assert list(storage.temporaries("")) == []

    def test_a_rename_whose_answer_was_lost_is_recognised(
        self, storage: HadoopStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        init = RenamePublisher.__init__

        def init_losing_answers(self: Any, gateway: Any, file_system: Any) -> None:
            init(self, gateway, file_system)
            self._context = LosesAnswers(self._context)

        monkeypatch.setattr(RenamePublisher, "__init__", init_losing_answers)
        storage.put_if_absent("log/1", b"ours")
        assert bytes(storage.read("log/1")) == b"ours"

    def test_other_failures_are_failures(self, storage: HadoopStorage) -> None:
        publisher = storage._publisher()
        with pytest.raises(NotFoundError), translated("could not rename"):
            publisher.replace(storage._path("missing"), storage._path("target"))


class LosesAnswers:
    """Renames, and then renames again as a client does that heard nothing."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def rename(self, *arguments: Any) -> None:
        self._context.rename(*arguments)
        self._context.rename(*arguments)


@pytest.mark.parametrize("location", ["viewfs://cluster/x", "oss://bucket/x", "ftp://host/x"])
def test_file_systems_without_a_known_guarantee_are_refused(spark: SparkSession, location: str) -> None:
    with pytest.raises(StorageError):
        open_storage(location, spark=spark).put_if_absent("log/1", b"1")


def test_an_unknown_guarantee_is_refused_by_name(spark: SparkSession) -> None:
    storage = open_storage("webhdfs://127.0.0.1:9/x", spark=spark)
    for operation in (storage.write, storage.put_if_absent):
        with pytest.raises(StorageError, match="webhdfs: file system, where a rename may let two writers win"):
            operation("a", b"1")


def test_an_unreachable_namenode_is_a_storage_error(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set("ipc.client.connect.max.retries", "0")
    request.addfinalizer(lambda: configuration.unset("ipc.client.connect.max.retries"))
    storage = open_storage("hdfs://127.0.0.1:9/index", spark=spark)
    for operation in (
        lambda: storage.read("a"),
        lambda: list(storage.list("")),
        lambda: storage.put_if_absent("a", b"1"),
    ):
        with pytest.raises(StorageError, match=r"could not .* hdfs://127.0.0.1:9/index.*java.net.ConnectException"):
            operation()

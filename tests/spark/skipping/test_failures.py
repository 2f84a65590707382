"""An index that is gone, damaged, slow or mad: right rows, one warning, and skipping again when it is well."""

from __future__ import annotations

import logging
import random
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.index.query import scans
from lakebloom.predicate.reasons import Reason
from tests.index.laws.test_corruption import WAYS
from tests.spark.skipping.support import EXACT, configured, each, files_read, rows, skipping
from tests.spark.support import keys, reopen, rule_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from lakebloom.storage import Storage

pytestmark = pytest.mark.spark
FILES = 4


@pytest.fixture
def table(lake: Lakebloom, tmp_path: Path) -> Path:
    table = keys(tmp_path / "t", *([number, number + 100] for number in range(FILES - 1)))
    lake.create_index(table, BloomIndexConfig("x", ["k"], fpp=EXACT))
    keys(table, [FILES - 1], first=FILES - 1)
    lake.refresh_index("x")
    return table


@pytest.fixture
def query(spark: SparkSession, table: Path) -> Callable[[], DataFrame]:
    return lambda: spark.read.parquet(str(table)).where("k = 1")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.name == "lakebloom"]
    assert all(record.levelno == logging.WARNING for record in caplog.records if record.name == "lakebloom")
    return found


def index_files(home: Path, pattern: str) -> list[Path]:
    return sorted(path for path in (home / "indexes/x").rglob(pattern) if path.is_file())


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "tiles cut": ("*.tile", lambda data: data[: len(data) // 2]),
    "tiles overwritten": ("*.tile", lambda data: bytes(len(data))),
    "unit tables overwritten": ("files.arrow", lambda data: b"\xff" * len(data)),
    "unit tables empty": ("files.arrow", lambda _: b""),
    "log damaged": ("0*.json", lambda data: data.replace(b"active", b"actiwe")),
    "log cut": ("0*.json", lambda data: data[:-20]),
    "a later format": ("0*.json", lambda data: data.replace(b'{"lakebloom":2', b'{"lakebloom":9')),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage(
    lake: Lakebloom,
    tmp_path: Path,
    query: Callable[[], DataFrame],
    caplog: pytest.LogCaptureFixture,
    damage: str,
) -> None:
    pattern, change = DAMAGES[damage]
    expected = rows(query())
    with skipping(lake):
        whole = {path: path.read_bytes() for path in index_files(tmp_path, pattern)}
        assert whole
        for path, data in whole.items():
            path.unlink()  # a new file, so that what is mapped into memory stays
            path.write_bytes(change(data))
            assert path.read_bytes() != data
        reopen(lake)
        for _ in range(3):
            frame = query()
            assert rows(frame) == expected
            assert len(files_read(frame)) == FILES
        assert len(warnings(caplog)) == 1
        assert "INDEX_UNREADABLE" in warnings(caplog)[0]
        for path, data in whole.items():
            path.unlink()
            path.write_bytes(data)
        assert files_read(query()) == ["1.parquet"]


@pytest.mark.parametrize("warm", [True, False])
def test_an_index_that_is_gone(
    lake: Lakebloom, tmp_path: Path, query: Callable[[], DataFrame], caplog: pytest.LogCaptureFixture, warm: bool
) -> None:
    expected = rows(query())
    with skipping(lake):
        if warm:
            assert rows(query()) == expected
        shutil.move(tmp_path / "indexes/x", tmp_path / "away")
        for _ in range(3):
            assert rows(query()) == expected
        assert len(warnings(caplog)) <= 1
        shutil.move(tmp_path / "away", tmp_path / "indexes/x")
        assert rows(query()) == expected
        assert files_read(query()) == ["1.parquet"]


def test_a_damaged_index_does_not_disturb_others(
    spark: SparkSession, lake: Lakebloom, table: Path, tmp_path: Path, query: Callable[[], DataFrame]
) -> None:
    lake.create_index(table, BloomIndexConfig("y", ["k"], fpp=EXACT))
    for path in index_files(tmp_path, "0*.json"):
        path.write_bytes(b"rubbish")
    healthy = Lakebloom(spark, tmp_path / "indexes")
    with skipping(healthy):
        assert files_read(query()) == ["1.parquet"]


class Hanging:
    """A storage that does not answer while it is told not to."""

    def __init__(self, inner: Storage, answers: threading.Event) -> None:
        self._inner, self._answers = inner, answers

    def __getattr__(self, name: str) -> Any:
        self._answers.wait()
        return getattr(self._inner, name)


def test_a_storage_that_hangs(
    spark: SparkSession,
    lake: Lakebloom,
    tmp_path: Path,
    query: Callable[[], DataFrame],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()
    expected = rows(query())
    with configured(spark, {"spark.lakebloom.query.timeoutMs": "50"}), skipping(lake):
        reopen(lake, lambda storage: Hanging(storage, answers))
        assert rows(query()) == expected
        for _ in range(3):  # it is left alone for a while
            assert rows(query()) == expected
        assert len(files_read(query())) == FILES
        assert len(warnings(caplog)) == 1
        assert "TIMED_OUT" in warnings(caplog)[0]
        answers.set()
    monkeypatch.setattr(scans, "_REST_S", 0.0)
    rule_of(lake).scan_pruner.wake()
    with skipping(lake):
        assert files_read(query()) == ["1.parquet"]


def test_a_storage_that_hangs_while_skipping_is_enabled(
    spark: SparkSession, lake: Lakebloom, tmp_path: Path, query: Callable[[], DataFrame]
) -> None:
    """enable() and explain come back, queries read everything, and the index is said to have timed out."""
    expected = rows(query())
    answers = threading.Event()
    reopen(lake, lambda storage: Hanging(storage, answers))
    with configured(spark, {"spark.lakebloom.query.timeoutMs": "50"}), skipping(lake):
        frame = query()
        (scan,) = lake.explain(frame).scans
        assert [(index.name, index.reason) for index in scan.indexes] == [("x", Reason.TIMED_OUT)]
        assert scan.files_kept == FILES
        assert rows(frame) == expected
    answers.set()
    with configured(spark, {"spark.lakebloom.query.timeoutMs": "600000"}), skipping(lake):
        assert files_read(query()) == ["1.parquet"]


def test_a_callback_that_raises(
    lake: Lakebloom, query: Callable[[], DataFrame], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = rows(query())
    with skipping(lake):
        scan_pruner = rule_of(lake).scan_pruner
        with monkeypatch.context() as patch:
            patch.setattr(scan_pruner, "prune", lambda *_: 1 / 0)
            for _ in range(3):
                assert rows(query()) == expected
        assert len(warnings(caplog)) == 1
        assert files_read(query()) == ["1.parquet"]


@pytest.mark.parametrize("reply", ["", "no json", "[{}]", '[{"name": "x"}]', '{"a": 1}', "null", "[1]"])
def test_an_answer_that_makes_no_sense(
    lake: Lakebloom, query: Callable[[], DataFrame], monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    expected = rows(query())
    with skipping(lake):
        with monkeypatch.context() as patch:
            patch.setattr(rule_of(lake).callback, "apply", lambda _: reply)
            frame = query()
            assert rows(frame) == expected
            assert len(files_read(frame)) == FILES
        assert files_read(query()) == ["1.parquet"]


def test_a_setting_that_does_not_exist(
    spark: SparkSession, lake: Lakebloom, query: Callable[[], DataFrame], caplog: pytest.LogCaptureFixture
) -> None:
    expected = rows(query())
    with skipping(lake):
        with configured(spark, {"spark.lakebloom.query.timeoutMs": "soon"}):
            for _ in range(2):
                assert rows(query()) == expected
        assert len(warnings(caplog)) == 1
        assert files_read(query()) == ["1.parquet"]


def test_random_damage_under_running_queries(spark: SparkSession, lake: Lakebloom, table: Path, tmp_path: Path) -> None:
    """One thread breaks, removes and mends files of the index, while queries run."""
    predicates = ["k = 1", "k IN (0, 101, 7)", "k IS NULL", "k = 55", "k = 2 OR k = 3"]
    frame = spark.read.parquet(str(table))
    expected = rows(each(frame, predicates))
    rng = random.Random(20240607)
    files = {path: path.read_bytes() for path in index_files(tmp_path, "*")}
    stop = threading.Event()
    broken = 0

    def vandal() -> None:
        nonlocal broken
        while not stop.is_set():
            path = rng.choice(sorted(files))
            path.unlink(missing_ok=True)
            if rng.random() < 0.8:
                path.write_bytes(rng.choice(WAYS)(files[path], rng))
            broken += 1
            stop.wait(0.02)
            path.unlink(missing_ok=True)
            path.write_bytes(files[path])

    thread = threading.Thread(target=vandal)
    with skipping(lake):
        thread.start()
        try:
            for number in range(12):
                if number % 3 == 0:  # as a new process has it
                    reopen(lake)
                assert rows(each(frame, predicates)) == expected
        finally:
            stop.set()
            thread.join()
        assert broken > 10
        reopen(lake)
        assert files_read(frame.where("k = 1")) == ["1.parquet"]

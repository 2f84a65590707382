"""The callback port is open to every user of the machine: without the secret nobody learns or changes anything."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.predicate.tree import to_json
from lakebloom.spark.rule.callback import Callback
from lakebloom.spark.rule.exposed import exposed, new_secret
from tests.spark.skipping.support import files_read, skipping
from tests.spark.support import write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


class Echo(Callback[Any]):
    def apply(self, text: str) -> str:
        self.calls += 1
        return text

    def reply(self, request: Any) -> None: ...

    def failure(self, request: Any, error: Exception) -> None: ...


SECRET = new_secret()
WRONG: list[tuple[Any, ...]] = [
    (),
    ("q",),
    ("", "q"),
    (SECRET[:-1], "q"),
    (SECRET + " ", "q"),
    (SECRET.swapcase(), "q"),
    ("\udcff" + SECRET, "q"),
    ("q", SECRET),
    (SECRET, "q", "more"),
    (SECRET, None),
    (SECRET, b"q"),
    (SECRET.encode(), "q"),
    (None, "q"),
    ([SECRET], "q"),
]


@pytest.mark.parametrize("given", WRONG)
def test_a_call_without_the_secret_is_answered_with_nothing(given: tuple[Any, ...]) -> None:
    echo = Echo()
    assert getattr(exposed(echo, SECRET), "apply")(*given) == ""  # noqa: B009
    assert echo.calls == 0


def test_a_call_with_the_secret_is_answered() -> None:
    assert getattr(exposed(Echo(), SECRET), "apply")(SECRET, "q") == "q"  # noqa: B009


def test_secrets_differ() -> None:
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert min(map(len, made)) >= 43  # 256 bits


def test_nothing_but_apply_is_reachable() -> None:
    reached = exposed(Echo(), SECRET)
    names = {*dir(type(reached)), *dir(Callback), *vars(Echo()), "scan_pruner", "__dict__", "__globals__"}
    assert [name for name in sorted(names) if callable(getattr(reached, name, None))] == ["__class__", "apply"]
    assert getattr(reached, "__class__")() is None  # noqa: B009
    for change in (setattr, delattr):
        with pytest.raises(AttributeError):
            change(reached, *(["apply", None] if change is setattr else ["apply"]))


@pytest.fixture
def table(lake: Lakebloom, tmp_path: Path) -> Path:
    for number in range(4):
        write(tmp_path / f"t/{number}.parquet", {"k": pa.array([number, number + 10], pa.int64())})
    lake.create_index(tmp_path / "t", BloomIndexConfig("x", ["k"], fpp=1e-7))
    return tmp_path / "t"


class Stranger:
    """Speaks py4j's protocol with the callback port, as any process of the machine can."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._port = gateway._callback_server.server_socket.getsockname()[1]

    def call(self, target: int, method: str, *arguments: str) -> str:
        """Call a method of the object of this number; the error text where there is no answer."""
        lines = "".join("s" + argument.replace("\\", "\\\\") + "\n" for argument in arguments)
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            connection.sendall(f"c\np{target}\n{method}\n{lines}e\n".encode())
            return connection.makefile(encoding="utf-8").readline().strip()


def test_a_stranger_learns_and_changes_nothing(spark: SparkSession, lake: Lakebloom, table: Path) -> None:
    frame = spark.read.parquet(str(table))
    request = {
        "format": "parquet",
        "schema": frame.schema.json(),
        "options": {},
        "session": {},
        "predicate": json.loads(to_json(col("k") == 3)),
        "indexes": ["x"],
        "known": {},
    }
    with skipping(lake):
        assert lake._skipping is not None
        calls = lake._skipping.callback.calls, lake._skipping.joins.calls
        stranger = Stranger(spark)
        gateway: Any = spark.sparkContext._gateway
        numbers = [int(name[1:]) for name in gateway.gateway_property.pool.dict if name[1:].isdigit()]
        for number in numbers[-2:]:  # the two callbacks of this lake
            for arguments in ([json.dumps(request)], ["", json.dumps(request)], [json.dumps(request)] * 2):
                assert stranger.call(number, "apply", *arguments) == "!ys"
            for method in ("__setattr__", "__init__", "__getattribute__", "__class__", "scan_pruner", "Java", "calls"):
                assert stranger.call(number, method, "scan_pruner", "gone").startswith("!x"), method
        assert (lake._skipping.callback.calls, lake._skipping.joins.calls) == calls
        assert files_read(frame.where("k = 13")) == ["3.parquet"]


def test_a_callback_server_that_is_there_already(spark: SparkSession, lake: Lakebloom, table: Path) -> None:
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    with skipping(lake):
        assert files_read(spark.read.parquet(str(table)).where("k = 2")) == ["2.parquet"]

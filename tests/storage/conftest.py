"""Every backend, opened on a base that nobody else uses."""

from __future__ import annotations

import logging
import threading
import urllib.request
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.storage import Storage, normalise, open_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BUCKET = "lakebloom-test"
# Starting a JVM takes seconds; `-m "not spark"` leaves it out.
BACKENDS = ["local", "memory", "s3", pytest.param("hadoop", marks=pytest.mark.spark)]


def _one_put_at_a_time() -> None:
    """Let moto decide who is first as S3 does: it looks whether a key is taken and then writes, in many threads."""
    from moto.s3.responses import S3Response

    put_object, lock = S3Response.put_object, threading.Lock()

    def guarded(self: Any) -> Any:
        with lock:
            return put_object(self)

    S3Response.put_object = guarded  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """An S3 server on loopback with one bucket."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    _one_put_at_a_time()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")):
        pass
    yield endpoint
    server.stop()


@pytest.fixture
def s3_options(s3_endpoint: str) -> dict[str, str]:
    return s3_options_for(s3_endpoint)


def s3_options_for(endpoint: str) -> dict[str, str]:
    return {
        "endpoint": endpoint,
        "region": "us-east-1",
        "access_key_id": "test-access-key",
        "secret_access_key": "test-secret-key",
        "allow_http": "true",
        "max_retries": "2",
    }


@pytest.fixture(params=BACKENDS)
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    """Opens the same base, again and again."""
    backend = request.param
    name = uuid.uuid4().hex
    if backend == "local":
        return lambda: open_storage(tmp_path / "base")
    if backend == "memory":
        return lambda: open_storage(f"memory://{name}/base")
    if backend == "s3":
        options = request.getfixturevalue("s3_options")
        return lambda: open_storage(f"s3://{BUCKET}/{name}/base", options)
    session: Any = request.getfixturevalue("spark")
    # open_storage would choose the local backend; this is about the code that serves HDFS.
    from lakebloom.storage.hadoop.storage import HadoopStorage

    return lambda: HadoopStorage(normalise(tmp_path / "base"), session)


@pytest.fixture
def storage(reopen: Callable[[], Storage]) -> Storage:
    return reopen()

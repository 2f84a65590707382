"""A store that accepts connections and never answers: every call ends with a typed error, within a known limit.

No time is measured here: a call without a limit would not end.
"""

from __future__ import annotations

import socket
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakebloom import Lakebloom, col
from lakebloom.errors import InvalidArgumentError, StorageError
from lakebloom.storage import open_storage
from lakebloom.storage.objects.clients import _arguments
from tests.storage.conftest import s3_options_for

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """An endpoint that takes requests and says nothing."""
    server = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                taken.append(server.accept()[0])
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    server.shutdown(socket.SHUT_RDWR)  # wakes the thread, which may have taken a last connection
    thread.join()
    server.close()
    for connection in taken:
        connection.close()


@pytest.fixture
def options(silent: str) -> dict[str, str]:
    return s3_options_for(silent) | {"timeout": "200ms", "retry_timeout": "300ms", "max_retries": "100"}


@pytest.mark.slow
def test_every_operation_of_a_storage_ends(options: dict[str, str]) -> None:
    storage = open_storage("s3://bucket/x", options)
    for call in (
        lambda: storage.read("a"),
        lambda: storage.read_ranges("a", [(0, 1)]),
        lambda: list(storage.list("")),
        lambda: storage.write("a", b"1"),
        lambda: storage.put_if_absent("a", b"1"),
        lambda: storage.delete("a"),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.code == "STORAGE_FAILED"


@pytest.mark.slow
def test_every_question_ends(options: dict[str, str]) -> None:
    lake = Lakebloom(location="s3://bucket/x", options=options)
    for call in (
        lake.indexes,
        lambda: lake.index("i"),
        lambda: lake.history("i"),
        lambda: lake.lookup("i", col("k") == 1),
        lambda: lake.candidates("i", col("k") == 1),
    ):
        with pytest.raises(StorageError):
            call()


def test_the_limits_stand_without_being_asked_for() -> None:
    """docs/OBJECT_STORES.md states them."""
    arguments = _arguments({})
    assert arguments["client_options"] == {"connect_timeout": "5s", "timeout": "30s"}
    assert arguments["retry_config"] == {"max_retries": 5, "retry_timeout": timedelta(seconds=25)}


@pytest.mark.parametrize(
    ("given", "seconds"), [("25s", 25), ("25", 25), ("0", 0), ("500ms", 0.5), ("1.5s", 1.5), ("2min", 120), ("2m", 120)]
)
def test_a_limit_is_given_as_a_time(given: str, seconds: float) -> None:
    assert _arguments({"Retry_Timeout": given})["retry_config"]["retry_timeout"] == timedelta(seconds=seconds)


@pytest.mark.parametrize("given", ["soon", "", "-1s", "1h30", "s"])
def test_what_is_no_time_is_refused(given: str) -> None:
    with pytest.raises(InvalidArgumentError, match="retry_timeout must be a time such as 25s"):
        open_storage("s3://bucket", {"retry_timeout": given, "region": "x"})

"""Catalogs of pyiceberg: packages that are missing, secrets, and threads that ask at the same time."""

from __future__ import annotations

import builtins
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

import pyiceberg.catalog

from lakebloom.errors import UnsupportedSourceError
from lakebloom.tables.formats.iceberg import catalog_clients
from lakebloom.tables.formats.iceberg.catalog_clients import config_of
from lakebloom.tables.formats.iceberg.catalogs import forget_catalogs, metadata_of
from tests.tables.formats.iceberg.named_lake import configure

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    forget_catalogs()


@pytest.mark.parametrize(
    ("kind", "module", "extra"),
    [
        ("glue", "boto3", "pyiceberg[glue]"),
        ("hive", "hive_metastore", "pyiceberg[hive]"),
        ("sql", "sqlalchemy", "pyiceberg[sql-postgres]"),
    ],
)
def test_a_missing_package_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, kind: str, module: str, extra: str
) -> None:
    configure(monkeypatch, "lake", {"type": kind, "uri": "thrift://127.0.0.1:1"})
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        # Modules of pyiceberg that were imported before have what they need.
        if name.partition(".")[0] == module or name == f"pyiceberg.catalog.{kind}":
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnsupportedSourceError, match="needs a package that is not installed") as caught:
        metadata_of("lake.db.t")
    assert caught.value.hint == f"pip install '{extra}'"


def test_a_package_that_is_missed_later_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late:
        def __init__(self, **properties: str) -> None:
            self.properties = properties

        def load_table(self, identifier: str) -> Any:
            raise ModuleNotFoundError("No module named 'boto3'", name="boto3")

    monkeypatch.setattr(pyiceberg.catalog, "load_catalog", lambda name, **properties: Late())
    with pytest.raises(UnsupportedSourceError, match="No module named 'boto3'") as caught:
        metadata_of("lake.db.t")
    assert caught.value.hint == "pip install boto3"


def test_secrets_of_a_configuration_are_in_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "token": "secret-of-a-token",
        "credential": "a-client:secret-of-a-client",
        "s3.secret-access-key": "secret-of-s3",
        "header.X-Api-Key": "secret-of-a-header",
        "auth.basic.password": "secret-of-a-user",
        "uri": "postgresql://someone:secret-of-a-url@127.0.0.1/db",
    }
    public = {"type": "sql", "warehouse": "s3://lake/warehouse", "token-refresh-enabled": "true", "auth.type": "basic"}
    configure(monkeypatch, "lake", {**secrets, **public})
    shown = repr(config_of("lake"))
    assert "secret-of" not in shown
    told = UnsupportedSourceError(" ".join(secret.split(":")[-1] for secret in secrets.values()), found=secrets["uri"])
    assert "secret-of" not in str(told)
    kept = UnsupportedSourceError(" ".join(public.values()))
    assert kept.message == " ".join(public.values())


class Meeting:
    """A catalog that answers when as many calls as there are threads have come, each to a catalog of its own."""

    def __init__(self, together: threading.Barrier, **properties: str) -> None:
        self.together, self.properties, self.calls = together, properties, 0

    def load_table(self, identifier: str) -> Any:
        self.calls += 1
        self.together.wait(600)
        self.calls -= 1
        assert self.calls == 0
        return SimpleNamespace(metadata_location="/t/metadata/v1.metadata.json")


def test_calls_at_the_same_time_have_a_catalog_each(monkeypatch: pytest.MonkeyPatch) -> None:
    together, opened = threading.Barrier(4), []

    def load(name: str, **properties: str) -> Meeting:
        opened.append(Meeting(together))
        return opened[-1]

    monkeypatch.setattr(pyiceberg.catalog, "load_catalog", load)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = set(pool.map(metadata_of, ["lake.db.t"] * 4))
            assert found == {"file:///t/metadata/v1.metadata.json"}
    assert len(opened) == 4  # they are used again
    here = os.getpid()
    monkeypatch.setattr(catalog_clients.os, "getpid", lambda: here + 1)
    together.abort()
    together.reset()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(metadata_of, ["lake.db.t"] * 4))
    assert len(opened) == 8  # but not by another process

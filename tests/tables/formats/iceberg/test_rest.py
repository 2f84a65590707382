"""Iceberg tables in a REST catalog, which wants a token and is not always well."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from lakebloom.errors import (
    AccessDeniedError,
    InvalidArgumentError,
    NotFoundError,
    StorageError,
    UnsupportedSourceError,
)
from lakebloom.tables.formats.iceberg import catalogs
from lakebloom.tables.formats.iceberg.catalogs import forget_catalogs, metadata_of
from tests.tables.formats.iceberg.named_lake import SCHEMA, NamedLake, configure, follow, found
from tests.tables.formats.iceberg.rest_server import TOKEN, RestServer, rest_server
from tests.tables.formats.iceberg.sql_catalog import local_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "rest.db.t"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestServer]:
    """A server with a table ``db.t``, known by the name ``rest``."""
    tables = local_catalog(tmp_path)
    tables.create_table("db.t", SCHEMA)
    with rest_server(tables) as running:
        configure(monkeypatch, "rest", running.properties)
        yield running
    forget_catalogs()


def test_an_index_follows_the_catalog(server: RestServer, tmp_path: Path) -> None:
    lake = NamedLake(NAME, str(tmp_path / "indexes"))
    follow(lake, server.tables.load_table("db.t"))
    assert server.requests.count("/v1/config") == 1  # it is opened once
    server.requests.clear()
    with lake.open() as opened:
        assert found(opened, 1) == ["s1"]
    assert server.requests == ["/v1/namespaces/db/tables/t"]


def test_a_namespace_of_several_parts(server: RestServer) -> None:
    server.tables.create_namespace("db.a")
    server.tables.create_namespace("db.a.b")
    table = server.tables.create_table("db.a.b.t", SCHEMA)
    assert metadata_of("rest.db.a.b.t") == table.metadata_location


def test_a_table_that_is_not_there(server: RestServer) -> None:
    with pytest.raises(NotFoundError, match=r"no Iceberg table db\.no in the catalog rest") as caught:
        metadata_of("rest.db.no")
    assert caught.value.hint == "check the name; pyiceberg --catalog rest list db shows the tables"


@pytest.mark.parametrize("known", [True, False])
def test_a_token_that_is_refused_is_not_shown(
    server: RestServer, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    if known:
        metadata_of(NAME)
    server.token = "a-newer-token-of-the-tests"
    with pytest.raises(AccessDeniedError, match=r"rest \(rest, http://127.*\) refused .*not allowed: ") as caught:
        metadata_of(NAME)
    shown = "".join(traceback.format_exception(caught.value))
    assert TOKEN not in shown
    assert "***" in shown
    assert "check the token" in caught.value.hint
    monkeypatch.setenv("PYICEBERG_CATALOG__REST__TOKEN", server.token)
    assert metadata_of(NAME)  # without a new process


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("ailment", "said"), [("overloaded", "come back later"), ("silent", "no answer within"), ("page", "JSON")]
)
def test_a_server_that_ails_has_a_limit_and_may_recover(
    server: RestServer, monkeypatch: pytest.MonkeyPatch, ailment: str, said: str, *, known: bool
) -> None:
    """No time is measured: without a limit the call would not end."""
    if known:
        metadata_of(NAME)
    server.ailment = ailment
    with monkeypatch.context() as impatient:
        if ailment == "silent":
            impatient.setattr(catalogs, "_LIMIT_S", 0.05)
        with pytest.raises(StorageError, match=said) as caught:
            metadata_of(NAME)
    assert caught.value.code == "STORAGE_FAILED"
    assert f"the catalog rest (rest, http://{server.host}) did not answer for the table db.t" in str(caught.value)
    assert "try again" in caught.value.hint
    server.ailment = ""
    assert metadata_of(NAME)


def test_a_server_that_is_not_there(server: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__REST__URI", "http://someone:his-password@127.0.0.1:1")
    with pytest.raises(StorageError, match="did not answer") as caught:
        metadata_of(NAME)
    assert "his-password" not in "".join(traceback.format_exception(caught.value))
    monkeypatch.setenv("PYICEBERG_CATALOG__REST__URI", "http://127.0.0.1:port")
    with pytest.raises(InvalidArgumentError, match=r"cannot be opened.*PYICEBERG_CATALOG__REST__URI"):
        metadata_of(NAME)


def test_an_answer_without_a_place(server: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = server._table
    monkeypatch.setattr(server, "_table", lambda name: (200, {**answer(name)[1], "metadata-location": None}))
    with pytest.raises(UnsupportedSourceError, match="does not tell where the metadata"):
        metadata_of(NAME)

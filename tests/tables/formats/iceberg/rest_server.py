"""A REST catalog on loopback: reads of tables that another catalog of pyiceberg has, for who shows a token.

It also plays servers that ail: those that are overloaded, that say nothing, and pages for people in front of them.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyiceberg.exceptions import NoSuchTableError

from tests.storage.http_server import Handler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.catalog import Catalog

TOKEN = "a-token-of-the-test-suite"
SEPARATOR = "\x1f"
"""Between the parts of a namespace."""


class RestServer:
    """What the server has, and how it feels."""

    def __init__(self, tables: Catalog) -> None:
        self.tables, self.token = tables, TOKEN
        self.ailment = ""
        """overloaded, silent, page, or nothing."""
        self.recovered = threading.Event()
        self.requests: list[str] = []
        self.host = ""

    @property
    def properties(self) -> dict[str, str]:
        return {"type": "rest", "uri": f"http://{self.host}", "token": TOKEN}

    def answer(self, path: str, authorization: str) -> tuple[int, Any]:
        if authorization != f"Bearer {self.token}":
            return _error(HTTPStatus.UNAUTHORIZED, "NotAuthorizedException", f"not allowed: {authorization}")
        match path.strip("/").split("/"):
            case ["v1", "config"]:
                return HTTPStatus.OK, {"defaults": {}, "overrides": {}}
            case ["v1", "namespaces", namespace, "tables", name]:
                return self._table((*unquote(namespace).split(SEPARATOR), unquote(name)))
        return _error(HTTPStatus.NOT_FOUND, "NotFound", path)

    def _table(self, identifier: tuple[str, ...]) -> tuple[int, Any]:
        try:
            table = self.tables.load_table(identifier)
        except NoSuchTableError as error:
            return _error(HTTPStatus.NOT_FOUND, "NoSuchTableException", str(error))
        metadata = json.loads(table.metadata.model_dump_json())
        return HTTPStatus.OK, {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}


def _error(code: int, kind: str, message: str) -> tuple[int, Any]:
    return code, {"error": {"message": message, "type": kind, "code": int(code)}}


@contextmanager
def rest_server(tables: Catalog) -> Iterator[RestServer]:
    """Serve the tables of a catalog until the end."""
    server = RestServer(tables)

    class Answering(Handler):
        def answer(self) -> None:
            path = urlsplit(self.path).path
            server.requests.append(path)
            if server.ailment == "silent":
                server.recovered.wait()
                self.close_connection = True
                return
            if server.ailment == "page":
                self.reply(HTTPStatus.OK, [("Content-Type", "text/html")], b"<html>Please log in</html>")
                return
            code, told = server.answer(path, self.headers.get("Authorization", ""))
            if server.ailment == "overloaded":
                code, told = _error(HTTPStatus.SERVICE_UNAVAILABLE, "SlowDown", "come back later")
            self.reply(code, [("Content-Type", "application/json")], json.dumps(told).encode())

    with serving(Answering) as server.host:
        try:
            yield server
        finally:
            server.recovered.set()  # the server ends when all its threads have

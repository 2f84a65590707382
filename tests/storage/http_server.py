"""HTTP servers on loopback that play stores: those that fail, forget, refuse, or repeat what they were sent."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Handler", "forwarded", "serving"]

_OWN_HEADERS = {"content-length", "transfer-encoding", "connection", "server", "date"}
"""What each server says for itself."""


class Handler(BaseHTTPRequestHandler):
    """Answers every kind of request in ``answer``, and logs nothing."""

    def answer(self) -> None:
        raise NotImplementedError

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, code: int, headers: Iterable[tuple[str, str]], content: bytes) -> None:
        self.send_response(code)
        for name, value in headers:
            if name.lower() not in _OWN_HEADERS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_GET(self) -> None:
        self.answer()

    do_DELETE = do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - http.server's names

    def log_message(self, *args: Any) -> None:
        pass


def forwarded(
    request: Handler, upstream: str, body: bytes, headers: Mapping[str, str]
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Ask another server the same; return its status, headers and content."""
    connection = http.client.HTTPConnection(upstream.removeprefix("http://"))
    try:
        connection.request(request.command, request.path, body, dict(headers))
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()
    finally:
        connection.close()


@contextmanager
def serving(handler: type[Handler]) -> Iterator[str]:
    """Run a server until the end; its host and port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""An HTTP proxy on loopback that loses answers.

It stands between a client and a real server, so that retries, connection errors and read-backs are the client's own.
"""

from __future__ import annotations

import enum
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

__all__ = ["Fault", "LossyProxy"]


class Fault(enum.Enum):
    """What happens to one PUT."""

    NONE = enum.auto()
    ANSWER_LOST = enum.auto()  # the server has acted, then the connection breaks
    ANSWER_503 = enum.auto()  # the server has acted, then something in between says it did not
    REQUEST_LOST = enum.auto()  # the connection breaks before the server hears of it


class LossyProxy:
    """Forwards everything to `upstream`; the PUTs suffer the given faults in turn, later ones none.

    Those of the proof that a store has conditional writes are spared unless `meets_probes`.
    """

    def __init__(self, upstream: str, faults: Iterable[Fault], *, meets_probes: bool = False) -> None:
        self._meets_probes = meets_probes
        self.requests: list[str] = []
        self._faults = iter(faults)
        self._upstream = upstream.removeprefix("http://")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> LossyProxy:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                proxy.requests.append(self.command)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                is_probe = ".lakebloom-" in self.path and not proxy._meets_probes
                is_hit = self.command == "PUT" and not is_probe
                fault = next(proxy._faults, Fault.NONE) if is_hit else Fault.NONE
                if fault is Fault.REQUEST_LOST:
                    self.close_connection = True
                    return
                response, content = proxy._forward(self, body)
                if fault is Fault.ANSWER_LOST:
                    self.close_connection = True
                    return
                self.send_response(503 if fault is Fault.ANSWER_503 else response.status)
                for name, value in response.getheaders():
                    if name.lower() not in {"content-length", "transfer-encoding", "connection", "server", "date"}:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815 - http.server's names

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def _forward(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(self._upstream)
        try:
            connection.request(request.command, request.path, body, dict(request.headers))
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

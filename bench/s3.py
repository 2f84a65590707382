"""An S3 server on loopback that counts what is asked of it: in this process, or in another one that seems far away."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

BUCKET = "bench"
_TAKEN = "/-/taken"
_IF_MATCH = "HTTP_IF_MATCH"


@dataclass(slots=True)
class Traffic:
    """What came in and went out."""

    requests: Counter[str] = field(default_factory=Counter)
    size_bytes: int = 0

    def clear(self) -> None:
        """Start anew."""
        self.requests.clear()
        self.size_bytes = 0


@contextmanager
def counting_s3() -> Iterator[tuple[dict[str, str], Traffic]]:
    """Run a server with one bucket in a thread; yield the options that reach it, and its traffic."""
    traffic = Traffic()
    server = _server(traffic, 0.0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield _reached(server.server_port), traffic
    finally:
        server.shutdown()
        thread.join()


@dataclass(frozen=True, slots=True)
class DistantS3:
    """A server in a process of its own, each of whose answers takes a while to come."""

    options: dict[str, str]

    def taken(self) -> Traffic:
        """Return what was asked since the last time."""
        with urllib.request.urlopen(f"{self.options['endpoint']}{_TAKEN}") as answer:
            found = json.load(answer)
        return Traffic(Counter(found["requests"]), found["size_bytes"])


@contextmanager
def distant_s3(latency_s: float) -> Iterator[DistantS3]:
    """Run a server that answers so much later than it could, as one does that is not in the same building."""
    command = [sys.executable, "-m", "bench.s3", str(latency_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield DistantS3(_reached(int(process.stdout.readline())))
        finally:
            process.terminate()


def _reached(port: int) -> dict[str, str]:
    """Make the bucket; return the options of a client."""
    endpoint = f"http://127.0.0.1:{port}"
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")):
        pass
    return {
        "endpoint": endpoint,
        "region": "us-east-1",
        "access_key_id": "bench",
        "secret_access_key": "bench",
        "allow_http": "true",
    }


def _server(traffic: Traffic, latency_s: float) -> Any:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = _Ranges(DomainDispatcherApplication(create_backend_app))
    lock = threading.Lock()

    def counted(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if environ["PATH_INFO"] == _TAKEN:
            with lock:
                taken = json.dumps({"requests": traffic.requests, "size_bytes": traffic.size_bytes}).encode()
                traffic.clear()
            start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(taken)))])
            return [taken]

        def started(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            size = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
            with lock:
                traffic.requests[f"{environ['REQUEST_METHOD']} {status[:3]}"] += 1
                traffic.size_bytes += size
            return start_response(status, headers, *rest)

        time.sleep(latency_s)
        return application(environ, started)

    return make_server("127.0.0.1", 0, counted, threaded=True)


class _Ranges:
    """Answers ranges of objects from memory: moto copies a whole object for each of them, however large it is."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._known: dict[str, tuple[list[tuple[str, str]], bytes]] = {}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        path = environ["PATH_INFO"]
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", environ.get("HTTP_RANGE", ""))
        conditions = {name for name in environ if name.startswith("HTTP_IF_")}
        is_plain = not environ["QUERY_STRING"] and conditions <= {_IF_MATCH}
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            self._known.pop(path, None)
        elif environ["REQUEST_METHOD"] == "GET" and wanted is not None and is_plain:
            found = self._known.get(path) or self._whole(environ)
            if found is not None:
                self._known[path] = found
                headers, body = found
                first, last = _bounds(wanted[1], wanted[2], len(body))
                tag = next((value for name, value in headers if name.lower() == "etag"), "")
                if first <= last and environ.get(_IF_MATCH, tag) == tag:
                    described = {
                        "Content-Range": f"bytes {first}-{last}/{len(body)}",
                        "Content-Length": last - first + 1,
                    }
                    start_response("206 Partial Content", [*headers, *((k, str(v)) for k, v in described.items())])
                    return [body[first : last + 1]]
        return self._application(environ, start_response)

    def _whole(self, environ: dict[str, Any]) -> tuple[list[tuple[str, str]], bytes] | None:
        """Return an object with the headers that describe it; None if there is none."""
        answered: list[Any] = []
        whole = {name: value for name, value in environ.items() if name != "HTTP_RANGE"}
        body = b"".join(self._application(whole, lambda *answer: answered.append(answer)))
        if not answered[0][0].startswith("200"):
            return None
        counted = ("content-length", "content-range", "date", "server")
        return [each for each in answered[0][1] if each[0].lower() not in counted], body


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    """Return the first and the last byte of a range."""
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


def _serve(latency_s: float) -> None:
    server = _server(Traffic(), latency_s)
    print(server.server_port, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    _serve(float(sys.argv[1]))

"""An HTTP proxy on loopback that loses answers.

It stands between a client and a real server, so that retries, connection errors and read-backs are the client's own.
"""

from __future__ import annotations

import enum
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.storage.http_server import Handler, forwarded, serving

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
        self._upstream = upstream
        self._exit = ExitStack()

    def __enter__(self) -> LossyProxy:
        self.endpoint = f"http://{self._exit.enter_context(serving(self._handler()))}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._exit.close()

    def _handler(self) -> type[Handler]:
        proxy = self

        class Lossy(Handler):
            def answer(self) -> None:
                proxy.requests.append(self.command)
                body = self.body()
                is_probe = ".lakebloom-" in self.path and not proxy._meets_probes
                is_hit = self.command == "PUT" and not is_probe
                fault = next(proxy._faults, Fault.NONE) if is_hit else Fault.NONE
                if fault is Fault.REQUEST_LOST:
                    self.close_connection = True
                    return
                status, headers, content = forwarded(self, proxy._upstream, body, self.headers)
                if fault is Fault.ANSWER_LOST:
                    self.close_connection = True
                    return
                self.reply(503 if fault is Fault.ANSWER_503 else status, headers, content)

        return Lossy

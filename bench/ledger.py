"""What it took to make something that is kept between runs: seconds and bytes, noted when it was made."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from bench.parameters import WORK


class Cost(msgspec.Struct, frozen=True):
    """What it took to make a form of a lake; the bytes are of what answers for keys, not of copies of the rows."""

    build_s: float
    size_bytes: int


class Ledger:
    """The costs of all forms of a lake, by the name of the method that uses them."""

    def __init__(self, lake: str) -> None:
        self._path = WORK / "costs" / f"{lake}.json"

    def costs(self) -> dict[str, Cost]:
        """Return what is known."""
        return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Cost]) if self._path.exists() else {}

    def note(self, name: str, cost: Cost) -> None:
        """Keep a cost."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(msgspec.json.encode({**self.costs(), name: cost}))

    def made(self, name: str, make: Callable[[], int]) -> None:
        """Make a form, which returns its bytes, unless it was made before."""
        if name not in self.costs():
            started = time.perf_counter()
            size_bytes = make()
            self.note(name, Cost(time.perf_counter() - started, size_bytes))

"""A storage that crashes on command and remembers what was done to it.

    recorder = FaultyStorage(inner)                                       never crashes: counts reads, listings …
    storage = FaultyStorage(inner, crash_at=3, mode=Crash.BEFORE)         dies instead of its third operation
    storage = FaultyStorage(inner, crash_at=3, mode=Crash.AFTER)          its third operation takes effect, then it dies

To test a crash at every step, raise `crash_at` until an action ends without `SimulatedCrash`.
"""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebloom.storage.buffers import as_views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from lakebloom.storage import Buffer, Buffers, Storage, StoredFile, Views

    Result = TypeVar("Result")

__all__ = ["Crash", "FaultyStorage", "Operation", "SimulatedCrash"]


class SimulatedCrash(BaseException):
    """The process ends here. No `except Exception` may stop it."""


class Crash(enum.Enum):
    """When the chosen operation's process dies."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Operation:
    """One call: its name, the path or prefix, and how many bytes were moved."""

    name: str
    path: str
    size_bytes: int = 0


class FaultyStorage:
    """Passes everything on to another storage until the operation numbered `crash_at` (from 1).

    A dead process does nothing more: after the crash every operation raises `SimulatedCrash` without any effect, so
    that clean-up code cannot hide what a real crash leaves behind.
    """

    def __init__(self, inner: Storage, *, crash_at: int | None = None, mode: Crash = Crash.BEFORE) -> None:
        self.inner = inner
        self.log: list[Operation] = []
        self._crash_at = crash_at
        self._mode = mode
        self._lock = threading.Lock()

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def operations(self) -> int:
        """How many operations were begun, the crashed one included."""
        return len(self.log)

    def count(self, *names: str) -> int:
        """How many operations had one of these names."""
        return sum(operation.name in names for operation in self.log)

    def read(self, path: str) -> memoryview:
        return self._run("read", path, lambda: self.inner.read(path), size_of=len)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        size_bytes = sum(length for _, length in ranges)
        return self._run("read_ranges", path, lambda: self.inner.read_ranges(path, ranges), size_bytes)

    def write(self, path: str, data: Buffers) -> None:
        size_bytes = sum(view.nbytes for view in as_views(data))
        self._run("write", path, lambda: self.inner.write(path, data), size_bytes)

    def put_if_absent(self, path: str, data: Buffer) -> None:
        size_bytes = as_views(data)[0].nbytes
        self._run("put_if_absent", path, lambda: self.inner.put_if_absent(path, data), size_bytes)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        return self._run("list", prefix, lambda: self.inner.list(prefix))

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        return self._run("temporaries", prefix, lambda: self.inner.temporaries(prefix))

    def delete(self, path: str) -> None:
        self._run("delete", path, lambda: self.inner.delete(path))

    def _run(
        self,
        name: str,
        path: str,
        effect: Callable[[], Result],
        size_bytes: int = 0,
        size_of: Callable[[Result], int] | None = None,
    ) -> Result:
        with self._lock:
            number = self.operations + 1
            if self._crash_at is not None and number > self._crash_at:
                raise SimulatedCrash(f"{name} {path}: the process died in operation {self._crash_at}")
            self.log.append(Operation(name, path, size_bytes))
        crashes = number == self._crash_at
        if crashes and self._mode is Crash.BEFORE:
            raise SimulatedCrash(f"before {name} {path}, operation {number}")
        result = effect()
        if size_of is not None:
            self.log[number - 1] = Operation(name, path, size_of(result))
        if crashes:
            raise SimulatedCrash(f"after {name} {path}, operation {number}")
        return result

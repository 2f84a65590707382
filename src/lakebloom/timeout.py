"""Waits for a call with a time limit."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["side_by_side", "within"]

KeyT = TypeVar("KeyT")
ResultT = TypeVar("ResultT")


class _Call(Generic[ResultT]):
    """A call in its own thread, which is abandoned if it hangs.

    There is no other way to end a read from a store that does not answer.
    """

    def __init__(self, call: Callable[[], ResultT]) -> None:
        self._results: list[ResultT] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], ResultT]) -> None:
        try:
            self._results.append(call())
        except BaseException as error:
            self._errors.append(error)

    def result(self, seconds: float, limit_s: float) -> ResultT:
        self._thread.join(max(0.0, seconds))
        if self._errors:
            raise self._errors[0]
        if not self._results:
            raise TimeoutError(f"no answer within {limit_s:.1f} s")
        return self._results[0]


def within(seconds: float, call: Callable[[], ResultT]) -> ResultT:
    """Return what a function returns, or raise what it raises. Raises TimeoutError if it takes longer."""
    return _Call(call).result(seconds, seconds)


def side_by_side(seconds: float, calls: Mapping[KeyT, Callable[[], ResultT]]) -> dict[KeyT, ResultT | TimeoutError]:
    """Return what each of several functions returns, or the TimeoutError of those that take longer than this.

    All start at once, so that each has the whole time. Raises what one of them raises.
    """
    deadline_s = time.monotonic() + seconds
    running = {key: _Call(call) for key, call in calls.items()}
    results: dict[KeyT, ResultT | TimeoutError] = {}
    for key, call in running.items():
        try:
            results[key] = call.result(deadline_s - time.monotonic(), seconds)
        except TimeoutError as error:
            results[key] = error
    return results

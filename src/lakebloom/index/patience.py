"""Waiting for an answer, but not for ever."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

ResultT = TypeVar("ResultT")


def within(seconds: float, call: Callable[[], ResultT]) -> ResultT:
    """Return what a function returns, or raise what it raises. Raises TimeoutError if it takes longer.

    It runs in a thread of its own, which is left behind if it hangs: nothing else ends a read from a store that does
    not answer.
    """
    results: list[ResultT] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:.1f} s")
    return results[0]

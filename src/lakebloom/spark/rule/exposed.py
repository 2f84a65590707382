"""What Java may call in Python: one method, behind a secret.

py4j's callback port is open to every user of the machine, and PySpark starts it without a token: whoever connects may
name any object that Python has handed to Java, and any attribute of it. So the object that is handed over has one
attribute that can be called, ``apply``, and every call carries a secret that only the Java side of the same Lakebloom
object knows. A call without it gets an empty reply.
"""

from __future__ import annotations

import hmac
import secrets
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakebloom.spark.rule.callback import Callback

__all__ = ["exposed", "new_secret", "withdraw"]

_REACHABLE = ("apply", "Java")
"""py4j reads ``Java`` to learn which interface an object implements; it cannot be called."""
_IMPLEMENTED = SimpleNamespace(implements=("java.util.function.BiFunction",))


def new_secret() -> str:
    """Return a secret that nobody guesses."""
    return secrets.token_urlsafe(32)


def exposed(callback: Callback[Any], secret: str) -> object:
    """Return what to hand to Java in place of a callback: ``apply(secret, request)``, and nothing else.

    What it needs is in the closure, where py4j, which looks up one attribute, does not get.
    """
    expected = secret.encode()

    class Exposed:
        __slots__ = ()
        Java = _IMPLEMENTED

        def apply(self, *given: Any) -> str:
            if not _knows(expected, given):
                callback.warn_once("secret", "a call to lakebloom's callback without its secret was refused")
                return ""
            return callback.apply(given[1])

        def __getattribute__(self, name: str) -> Any:
            if name == "__class__":  # isinstance asks; what it gets makes None and takes no arguments
                return type(None)
            if name not in _REACHABLE:
                raise AttributeError(name)
            return object.__getattribute__(self, name)

        def __setattr__(self, name: str, value: object) -> NoReturn:
            raise AttributeError(name)

        def __delattr__(self, name: str) -> NoReturn:
            raise AttributeError(name)

    return Exposed()


def withdraw(spark: Any, callbacks: Iterable[object]) -> None:
    """Let Java call these no more, and forget them. A plan that still calls one reads everything."""
    pool = spark.sparkContext._gateway.gateway_property.pool
    with pool.lock:
        for key in [key for key, held in pool.dict.items() if any(held is callback for callback in callbacks)]:
            del pool.dict[key]


def _knows(expected: bytes, given: tuple[Any, ...]) -> bool:
    if len(given) != 2 or not all(isinstance(text, str) for text in given):
        return False
    return hmac.compare_digest(expected, given[0].encode(errors="surrogatepass"))

"""Calls with wrong arguments: a WrongCallError that names the argument and the one that was probably meant."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lakebloom.errors import WrongCallError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["typed_call", "wrong_call"]

CallT = TypeVar("CallT", bound="Callable[..., Any]")


def wrong_call(
    call: str, names: Sequence[str], given: Mapping[str, object], error: TypeError, hint: str = ""
) -> WrongCallError:
    """Return the error for a call that raised a TypeError; ``names`` are the names of its arguments.

    >>> print(wrong_call("fold", ["num_blocks"], {"num_block": 1}, TypeError()))
    [WRONG_CALL] fold() has no argument num_block; found num_block. Hint: did you mean num_blocks?
    """
    import difflib

    unknown = [name for name in given if name not in names]
    if not unknown:
        found = str(error).partition("() ")[2] or str(error)
        known = ", ".join(names) or "none"
        return WrongCallError(
            f"{call}() was called with the wrong arguments", found=found, hint=hint or f"its arguments are {known}"
        )
    lower = {name.lower().replace("_", ""): name for name in names}
    close = difflib.get_close_matches(unknown[0].lower().replace("_", ""), lower, n=1, cutoff=0.6)
    if close:
        hint = f"did you mean {lower[close[0]]}?"
    return WrongCallError(
        f"{call}() has no argument {unknown[0]}",
        found=", ".join(unknown),
        hint=hint or f"its arguments are {', '.join(names)}",
    )


def typed_call(function: CallT) -> CallT:
    """Make a call with wrong arguments raise WrongCallError, a TypeError with a hint."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # raised inside the function
            raise wrong_call(function.__name__, names, given, error) from None

    return cast("CallT", call)

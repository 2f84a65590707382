"""Arrays as compiled kernels take them: the address of memory of any kind, or a writable array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np

    ArrayT = TypeVar("ArrayT", bound="np.ndarray[Any, Any]")

__all__ = ["address", "writable"]


def address(array: np.ndarray[Any, Any]) -> int:
    """Return where an array's bytes begin. The caller keeps the array alive."""
    found: int = array.__array_interface__["data"][0]
    return found


def writable(array: ArrayT) -> ArrayT:
    """Return an array as a writable one: for numba, a read-only array has another type."""
    return array if array.flags.writeable else array.copy()

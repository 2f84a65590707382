"""Bulk hashing and filtering in two interchangeable forms (``compiled``, ``portable``), and ``single`` for one value.

``choose`` says which to take. The types here are those of the arrays that kernels work on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

__all__ = ["BoolArray", "ByteArray", "HashArray", "OffsetArray", "WordArray"]

HashArray: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"
WordArray: TypeAlias = "np.ndarray[Any, np.dtype[np.uint32]]"
ByteArray: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
BoolArray: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
OffsetArray: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

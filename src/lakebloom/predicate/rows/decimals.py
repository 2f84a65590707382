"""Exact numbers as unscaled integers, and back into Arrow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

__all__ = ["decimal_array", "rescaled"]


def rescaled(unscaled: Sequence[int], scale: int, to: int) -> list[int] | None:
    """Return unscaled numbers for another scale; None if one would lose digits.

    >>> rescaled([150, 200], 2, 1), rescaled([150, 155], 2, 1)
    ([15, 20], None)
    """
    if to >= scale:
        factor = 10 ** (to - scale)
        return [number * factor for number in unscaled]
    divisor = 10 ** (scale - to)
    return None if any(number % divisor for number in unscaled) else [number // divisor for number in unscaled]


def decimal_array(unscaled: Sequence[int], type: pa.DataType) -> pa.Array:
    """Return unscaled numbers as Arrow decimals; each must have at most as many digits as the type.

    >>> decimal_array([150], pa.decimal128(10, 2))[0].as_py()
    Decimal('1.50')
    """
    # Arrow stores a decimal as little-endian two's complement of its unscaled number.
    stored = b"".join(number.to_bytes(type.byte_width, "little", signed=True) for number in unscaled)
    return pa.Array.from_buffers(type, len(unscaled), [None, pa.py_buffer(stored)])

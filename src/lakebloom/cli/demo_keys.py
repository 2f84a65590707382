"""Random keys for the demo."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def uuids(rng: np.random.Generator, count: int) -> pa.Array:
    """Return random uuids as text."""
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    text = digits[rng.integers(0, 16, (count, 36), dtype=np.uint8)]
    text[:, [8, 13, 18, 23]] = ord("-")
    offsets = np.arange(0, 36 * count + 1, 36, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text.tobytes()))

"""Values as raw memory: the memory layouts of Arrow arrays, each ready for the hash kernels.

A layout refers to the array's buffers. Slicing copies nothing, and a layout is hashed slice by slice, so a column is
hashed in pieces that stay in the CPU cache, without a Python object for each value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import ByteArray, HashArray, OffsetArray
    from lakebloom.sbbf.kernels.choose import Kernels

_WIDEST_NUMBER = 16


class Layout(Protocol):
    """A sequence of values that can be hashed."""

    def __len__(self) -> int: ...

    @property
    def long_bytes(self) -> int:
        """The size of all values in bytes; None for numbers, whose count says enough."""

    def slice(self, start: int, stop: int) -> Layout:
        """Return the values from ``start`` to before ``stop``."""

    def hash_into(self, kernels: Kernels, out: HashArray) -> None:
        """Write the hash of each value to ``out``, which has this layout's length."""


class Fixed(msgspec.Struct, frozen=True):
    """Values of one width, as rows of a [count, width] byte array."""

    values: ByteArray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def long_bytes(self) -> int:
        """The size of all values in bytes; None if they are as short as numbers."""
        return self.values.nbytes if self.values.shape[1] > _WIDEST_NUMBER else 0

    def slice(self, start: int, stop: int) -> Fixed:
        """Return the values from ``start`` to before ``stop``."""
        return Fixed(self.values[start:stop])

    def hash_into(self, kernels: Kernels, out: HashArray) -> None:
        """Hash the bytes as they are."""
        kernels.hash_fixed(self.values, out)


class Floats(msgspec.Struct, frozen=True):
    """IEEE numbers of 4 or 8 bytes. Both zeros have the same hash, and so have all NaNs."""

    values: ByteArray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def long_bytes(self) -> int:
        """None: numbers are short."""
        return 0

    def slice(self, start: int, stop: int) -> Floats:
        """Return the values from ``start`` to before ``stop``."""
        return Floats(self.values[start:stop])

    def hash_into(self, kernels: Kernels, out: HashArray) -> None:
        """Hash 0.0 for -0.0 and one quiet NaN for every NaN."""
        kernels.hash_floats(self.values, out)


class Offsets(msgspec.Struct, frozen=True):
    """Values of any length: value i is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: OffsetArray
    data: ByteArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def long_bytes(self) -> int:
        """The bytes of all values."""
        return int(self.offsets[-1] - self.offsets[0])

    def slice(self, start: int, stop: int) -> Offsets:
        """Return the values from ``start`` to before ``stop``."""
        return Offsets(self.offsets[start : stop + 1], self.data)

    def hash_into(self, kernels: Kernels, out: HashArray) -> None:
        """Hash the bytes as they are."""
        kernels.hash_offsets(self.offsets, self.data, out)


class Views(msgspec.Struct, frozen=True):
    """Arrow string views: 16 bytes each, short values inside, long ones in ``buffers``."""

    views: ByteArray
    buffers: Sequence[ByteArray]

    def __len__(self) -> int:
        return len(self.views)

    @property
    def long_bytes(self) -> int:
        """The bytes of all values; each view starts with its size."""
        return int(np.ascontiguousarray(self.views).view("<i4")[:, 0].sum(dtype=np.int64))

    def slice(self, start: int, stop: int) -> Views:
        """Return the values from ``start`` to before ``stop``."""
        return Views(self.views[start:stop], self.buffers)

    def hash_into(self, kernels: Kernels, out: HashArray) -> None:
        """Hash the bytes as they are."""
        kernels.hash_views(self.views, self.buffers, out)


class Gathered(msgspec.Struct, frozen=True):
    """Values of a dictionary: each distinct value was hashed once; ``indices`` has the number of each value's hash."""

    hashes: HashArray
    indices: np.ndarray[Any, np.dtype[Any]]

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def long_bytes(self) -> int:
        """None: the values have been hashed."""
        return 0

    def slice(self, start: int, stop: int) -> Gathered:
        """Return the values from ``start`` to before ``stop``."""
        return Gathered(self.hashes, self.indices[start:stop])

    def hash_into(self, kernels: Kernels, out: HashArray) -> None:
        """Look the hashes up."""
        np.take(self.hashes, self.indices, out=out)

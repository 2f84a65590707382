"""Which kernels to use: ``compiled`` (numba) is fast and takes half a second to load, ``portable`` (numpy) is there.

``choose`` picks by the amount of work, at once and so far, so that a lookup of a few keys never loads a compiler and a
process that hashes all day does not go without one.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Protocol, cast

from lakebloom.tuning import BULK_BYTES, BULK_PROBES, BULK_VALUES, BULK_VALUES_SO_FAR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import BoolArray, ByteArray, HashArray, OffsetArray, WordArray

__all__ = ["Kernels", "choose", "choose_to_probe", "load_compiled"]

_COMPILED, _PORTABLE = f"{__package__}.compiled", f"{__package__}.portable"

_values_so_far = 0
_probed_so_far = 0


class Kernels(Protocol):
    """What both forms offer."""

    def hash_fixed(self, values: ByteArray, out: HashArray) -> None:
        """Hash the rows of a [count, width] byte array."""

    def hash_floats(self, values: ByteArray, out: HashArray) -> None:
        """Hash IEEE numbers of 4 or 8 bytes, with one zero and one NaN."""

    def hash_offsets(self, offsets: OffsetArray, data: ByteArray, out: HashArray) -> None:
        """Hash ``data[offsets[i]:offsets[i + 1]]`` for each i."""

    def hash_views(self, views: ByteArray, buffers: Sequence[ByteArray], out: HashArray) -> None:
        """Hash Arrow string views, rows of a [count, 16] byte array that point into ``buffers``."""

    def insert(self, words: WordArray, hashes: HashArray) -> None:
        """Set the bits of each hash."""

    def check(self, words: WordArray, hashes: HashArray, out: BoolArray) -> None:
        """Tell for each hash whether all its bits are set."""

    def to_planes(self, blocks: WordArray, rows: ByteArray, row_bytes: int, plane_bits: int) -> None:
        """Set the bits of [num_rows, num_units, 8] blocks in rows of zeros.

        Row r begins at byte ``r * row_bytes``, and plane p of it ``p * plane_bits`` bits later: bit i of it is bit
        p % 32 of word p // 32 of the block of unit i. Behind the last row 16 bytes may be touched.
        """

    def from_planes(self, rows: ByteArray, row_bytes: int, plane_bits: int, blocks: WordArray) -> None:
        """Fill [num_rows, num_units, 8] blocks from such rows."""

    def and_planes(
        self,
        rows: ByteArray,
        places: OffsetArray,
        piece_bits: int,
        plane_bits: int,
        hashes: HashArray,
        order: OffsetArray,
        passed: HashArray,
        *,
        is_first: bool,
    ) -> None:
        """AND the eight planes of hash n into row ``order[n]`` of ``passed``, one bit for each unit in 64-bit words.

        ``places`` are the numbers of pieces in ``rows``: [n, 1] where a piece has all planes, which are ``plane_bits``
        apart; [n, 8] where it has one. ``is_first``: most bits of ``passed`` are still set, so it pays to look at all
        of them. Behind the last plane 16 bytes may be read.
        """

    def or_hits(
        self,
        rows: Sequence[ByteArray],
        places: OffsetArray,
        piece_bits: int,
        plane_bits: int,
        hashes: HashArray,
        units: HashArray,
        hit: HashArray,
    ) -> None:
        """Set the bits in ``hit`` of those of some ``units`` that pass all layers for at least one hash.

        ``rows`` is the memory of each layer, and ``hashes`` are those of the same values in each of them, [layers, n];
        ``places``, [layers, n, 1 or 8], and the numbers of bits are as for ``and_planes``.
        """

    def crc32_of_pieces(self, pieces: ByteArray, size: int, numbers: OffsetArray, seed: int, out: WordArray) -> None:
        """Compute zlib's CRC-32 of the first ``size`` bytes of each row, behind its number in 8 bytes.

        Each goes on from ``seed``, the CRC-32 of what comes before.
        """


def choose(count: int, size_bytes: int = 0) -> Kernels:
    """Return the kernels to use for ``count`` values, which have ``size_bytes`` if they may be long."""
    global _values_so_far  # a count lost to a race between threads does not matter
    _values_so_far += count
    bulk = (
        _COMPILED in sys.modules
        or count >= BULK_VALUES
        or size_bytes > BULK_BYTES
        or _values_so_far >= BULK_VALUES_SO_FAR
    )
    return cast("Kernels", importlib.import_module(_COMPILED if bulk else _PORTABLE))


def choose_to_probe(work: int) -> Kernels:
    """Return the kernels to use for probing planes; ``work`` is in hashed values that take as long in numpy.

    A process that probes one list of some thousand values is done before the compiled ones are loaded. From the second
    one on, or for a longer list, loading them is worth it.
    """
    global _probed_so_far
    _probed_so_far += work
    bulk = _COMPILED in sys.modules or work >= BULK_PROBES or _probed_so_far >= BULK_PROBES
    return cast("Kernels", importlib.import_module(_COMPILED if bulk else _PORTABLE))


def load_compiled() -> None:
    """Load the compiled kernels now: for a process that will hash many arrays, each of them small."""
    importlib.import_module(_COMPILED)

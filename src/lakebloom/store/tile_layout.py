"""Where the bits of a tile lie in its files: rows of planes, each piece with its checksum directly behind it.

    file     "LKBLMTL2"   row first   row first + 1   ...                                        one part of a tile
    row      plane 0 | plane 1 | ... | plane 255                                     256 n bits for n units
    narrow   all planes of the row, without padding: 32 n bytes        | crc32       one piece, below 2,048 units
    wide     plane 0, padded to a multiple of 64 units | crc32 | plane 1 | crc32 ... 256 pieces

Plane 32 w + j of row b has one bit for each unit: bit j of word w of block b of its filter. A piece is what one
checksum covers, and is always read whole. Its number counts pieces through all parts of the tile.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakebloom.sbbf.blocks import BITS_PER_BLOCK, BYTES_PER_BLOCK, WORDS_PER_BLOCK
from lakebloom.sbbf.kernels.choose import choose
from lakebloom.tuning import CACHED_ANSWERS, LONG_PIECE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.sbbf.kernels import ByteArray, OffsetArray, WordArray

__all__ = ["CHECK_BYTES", "MAGIC", "SLACK_BYTES", "WIDE_UNITS", "Layout", "layout_of", "seed_of"]

MAGIC = b"LKBLMTL2"
WIDE_UNITS = 2048
"""From so many units on, each plane has a checksum of its own. Part of the format."""
CHECK_BYTES = 4
SLACK_BYTES = 16
"""What kernels may touch behind the last plane: they take 64 bits at a time, from any bit on."""


class Layout(msgspec.Struct, frozen=True):
    """The layout of a tile, which follows from its number of units."""

    num_units: int
    is_wide: bool
    words: int
    """64-bit words of a plane, when it is by itself."""
    piece_bytes: int
    pieces_per_row: int
    plane_bits: int
    """How many bits the planes of a stored row are apart."""

    @property
    def stored_bytes(self) -> int:
        """The size of a piece with its checksum."""
        return self.piece_bytes + CHECK_BYTES

    @property
    def row_bytes(self) -> int:
        """The size of a row with its checksums."""
        return self.pieces_per_row * self.stored_bytes

    def offset(self, piece: int) -> int:
        """Return where a piece starts in a file, counted from the file's first piece."""
        return len(MAGIC) + piece * self.stored_bytes

    def file_bytes(self, num_rows: int) -> int:
        """Return the size of a file of some rows."""
        return len(MAGIC) + num_rows * self.row_bytes

    def packed(self, blocks: WordArray, first_piece: int, seed: int) -> ByteArray:
        """Return the contents of a file for [num_rows, num_units, 8] blocks."""
        num_rows = len(blocks)
        size_bytes = self.file_bytes(num_rows)
        data: ByteArray = np.zeros(size_bytes + SLACK_BYTES, dtype=np.uint8)
        data[: len(MAGIC)] = np.frombuffer(MAGIC, dtype=np.uint8)
        rows = data[len(MAGIC) :]
        pieces = rows[: num_rows * self.row_bytes].reshape(-1, self.stored_bytes)
        if self.num_units == 1:  # the planes of a single filter are its blocks
            pieces[:, :BYTES_PER_BLOCK] = np.ascontiguousarray(blocks).view(np.uint8).reshape(num_rows, -1)
        else:
            blocks = np.ascontiguousarray(blocks)
            choose(blocks.size // WORDS_PER_BLOCK).to_planes(blocks, rows, self.row_bytes, self.plane_bits)
        checks = self.checksums(pieces, np.arange(first_piece, first_piece + len(pieces)), seed)
        pieces[:, self.piece_bytes :] = checks.view(np.uint8).reshape(-1, CHECK_BYTES)
        return data[:size_bytes]

    def checksums(self, pieces: ByteArray, numbers: OffsetArray, seed: int) -> WordArray:
        """Return the CRC-32 of pieces, [count, stored_bytes].

        It covers the identity of the tile (``seed``) and the number of the piece, so that each has its place.
        """
        found: WordArray = np.empty(len(pieces), dtype="<u4")
        # Of long pieces, zlib computes more bytes in a second than compiled code does.
        kernels = choose(len(pieces) if self.piece_bytes <= LONG_PIECE_BYTES else 0)
        kernels.crc32_of_pieces(pieces, self.piece_bytes, numbers, seed, found)
        return found

    @staticmethod
    def checksum(piece: memoryview, number: int, seed: int) -> bytes:
        """Return the checksum of one piece, as it is stored."""
        return zlib.crc32(piece, zlib.crc32(number.to_bytes(8, "little"), seed)).to_bytes(CHECK_BYTES, "little")

    def unpacked(self, rows: Sequence[ByteArray]) -> WordArray:
        """Return whole rows, as they are stored, as [num_rows, num_units, 8] blocks."""
        padded = np.concatenate([*rows, np.zeros(SLACK_BYTES, dtype=np.uint8)])
        num_rows = len(padded) // self.row_bytes
        blocks: WordArray = np.empty((num_rows, self.num_units, WORDS_PER_BLOCK), dtype=np.uint32)
        choose(blocks.size // WORDS_PER_BLOCK).from_planes(padded, self.row_bytes, self.plane_bits, blocks)
        return blocks


@lru_cache(maxsize=CACHED_ANSWERS)
def layout_of(num_units: int) -> Layout:
    """Return the layout of a tile with this many units.

    >>> layout_of(100).row_bytes, layout_of(4000).piece_bytes, layout_of(4000).pieces_per_row
    (3204, 504, 256)
    """
    words = -(-num_units // 64)
    if num_units < WIDE_UNITS:
        return Layout(num_units, False, words, BYTES_PER_BLOCK * num_units, 1, num_units)
    return Layout(num_units, True, words, 8 * words, BITS_PER_BLOCK, 8 * (8 * words + CHECK_BYTES))


def seed_of(path: str, column: int, number: int, layer: int) -> int:
    """Return the CRC-32 of the text that tells which tile a file belongs to. Every checksum in it goes on from here."""
    return zlib.crc32(f"{path}\n{column}\n{number}\n{layer}\n".encode())

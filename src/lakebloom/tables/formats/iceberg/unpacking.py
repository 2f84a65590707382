"""Compressed blocks of Avro files, unpacked to a size that is known before.

pyiceberg's codecs unpack whatever a block holds, and a thousandth of a gigabyte may hold a gigabyte.
"""

from __future__ import annotations

import bz2
import zlib
from io import BytesIO
from typing import TYPE_CHECKING

from pyiceberg.avro.codecs import KNOWN_CODECS

if TYPE_CHECKING:
    from pyiceberg.avro.codecs.codec import Codec

__all__ = ["unpacked"]

_CHECKSUM_BYTES = 4
_MOST_LENGTH_BYTES = 5
_PART_BYTES = 1 << 18


def unpacked(codec: type[Codec], data: bytes, most_bytes: int) -> bytes:
    """Return what a block holds. Raises ValueError where that is more than so many bytes, or damaged."""
    if codec is KNOWN_CODECS["deflate"]:
        stream = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        # One byte more is asked for, so that too many show.
        return _whole(stream.decompress(data, most_bytes + 1), most_bytes, stream.eof)
    if codec is KNOWN_CODECS["bzip2"]:
        bz2_stream = bz2.BZ2Decompressor()
        return _whole(bz2_stream.decompress(data, most_bytes + 1), most_bytes, bz2_stream.eof)
    if codec is KNOWN_CODECS["zstandard"]:
        return _whole(_from_zstandard(data, most_bytes + 1), most_bytes, True)
    if codec is KNOWN_CODECS["snappy"]:
        _whole(b"", most_bytes, True, _snappy_length(data))
        return codec.decompress(data)
    raise ValueError(f"compressed with {codec.__name__}, which is not known")


def _whole(found: bytes, most_bytes: int, is_ended: bool, size: int | None = None) -> bytes:
    if (len(found) if size is None else size) > most_bytes:
        raise ValueError(f"a block of more than {most_bytes} bytes")
    if not is_ended:
        raise ValueError("a compressed block that was cut off")
    return found


def _from_zstandard(data: bytes, most_bytes: int) -> bytes:
    try:
        from zstandard import ZstdDecompressor
    except ImportError as error:
        raise ValueError("compressed with Zstandard, which needs the package zstandard") from error
    found = bytearray()
    with ZstdDecompressor().stream_reader(BytesIO(data)) as reader:
        while len(found) < most_bytes and (part := reader.read(min(_PART_BYTES, most_bytes - len(found)))):
            found += part
    return bytes(found)


def _snappy_length(data: bytes) -> int:
    """Return the size that a Snappy block states first: seven bits a byte, the lowest first."""
    found = 0
    for place, number in enumerate(data[: min(_MOST_LENGTH_BYTES, len(data) - _CHECKSUM_BYTES)]):
        found |= (number & 0x7F) << (7 * place)
        if number < 0x80:
            return found
    raise ValueError("a Snappy block without a size")

"""Encrypting the filters of a file by Parquet's rules, pages left aside: lakebloom does not read those."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from thrift.Thrift import TType

from lakebloom.parquet.footer import Footer, read_footer, serialise
from lakebloom.parquet.thrift_tree import Items, Struct
from lakebloom.sbbf.bytes.header import read_header

__all__ = ["KEYS", "PADDED_HEADER_BYTES", "Sealing"]

KEYS = {b"footer": b"0123456789012345", b"id": b"1234567890123450" * 2, b"name": b"1234567890123451"}
"""By key metadata; of 128 and 256 bits."""
FILE_ID = b"file id!"
PADDED_HEADER_BYTES = 100


@dataclass(frozen=True)
class Sealing:
    """How to encrypt: which columns, with which keys."""

    columns: tuple[str, ...] = ("id", "name")
    footer_key_for: tuple[str, ...] = ()
    """Columns that use the footer's key."""
    plain_footer: bool = False
    algorithm: int = 1
    prefix: bytes = b""
    stored_prefix: bool = True
    with_length: bool = True

    def seal(self, data: bytes) -> bytes:
        footer = read_footer(io.BytesIO(data))
        body = data[: footer.start]
        for row_group, group in enumerate(footer.row_groups):
            for number, chunk in enumerate(group.columns):
                name = footer.leaves[number].path[0]
                if name in self.columns and chunk.metadata is not None:
                    assert chunk.bloom_filter_offset is not None
                    frames = self._filter(data, chunk.bloom_filter_offset, name, row_group, number)
                    chunk.set_bloom_filter(len(body), len(frames))
                    if not self.with_length:
                        chunk.metadata.drop(15)
                    body += frames
        for row_group, group in enumerate(footer.row_groups):
            for number, chunk in enumerate(group.columns):
                name = footer.leaves[number].path[0]
                if name in self.columns and chunk.metadata is not None:
                    self._mark(chunk.tree, chunk.metadata, name, row_group, number)
        return body + self._end(footer)

    def _filter(self, data: bytes, offset: int, name: str, *ordinals: int) -> bytes:
        num_bytes, header_bytes = read_header(data[offset:])
        header = data[offset : offset + header_bytes].ljust(PADDED_HEADER_BYTES, b"\0")  # as parquet-java does
        bitset = data[offset + header_bytes : offset + header_bytes + num_bytes]
        return self._frame(header, self._key(name), 8, *ordinals) + self._frame(bitset, self._key(name), 9, *ordinals)

    def _key(self, name: str) -> bytes:
        return b"footer" if name in self.footer_key_for else name.encode()

    def _frame(self, plain: bytes, key: bytes, module: int, *ordinals: int) -> bytes:
        aad = self.prefix + FILE_ID + bytes([module]) + b"".join(number.to_bytes(2, "little") for number in ordinals)
        nonce = os.urandom(12)
        sealed = nonce + AESGCM(KEYS[key]).encrypt(nonce, plain, aad)
        return len(sealed).to_bytes(4, "little") + sealed

    def _mark(self, tree: Struct, metadata: Struct, name: str, row_group: int, column: int) -> None:
        if name in self.footer_key_for:
            tree.put(8, TType.STRUCT, Struct([(1, TType.STRUCT, Struct())]))
            return
        path = Items(TType.STRING, [name.encode()])
        own = Struct([(1, TType.LIST, path), (2, TType.STRING, name.encode())])
        tree.put(8, TType.STRUCT, Struct([(2, TType.STRUCT, own)]))
        tree.put(9, TType.STRING, self._frame(serialise(metadata), self._key(name), 1, row_group, column))
        if not self.plain_footer:
            tree.drop(3)

    def _end(self, footer: Footer) -> bytes:
        fields = [(2, TType.STRING, FILE_ID)]
        if self.prefix and self.stored_prefix:
            fields.insert(0, (1, TType.STRING, self.prefix))
        if self.prefix and not self.stored_prefix:
            fields.append((3, TType.BOOL, True))
        algorithm = Struct([(self.algorithm, TType.STRUCT, Struct(list(fields)))])
        if self.plain_footer:
            footer.tree.put(8, TType.STRUCT, algorithm)
            footer.tree.put(9, TType.STRING, b"footer")
            signed = serialise(footer.tree) + bytes(28)
            return signed + len(signed).to_bytes(4, "little") + b"PAR1"
        crypto = serialise(Struct([(1, TType.STRUCT, algorithm), (2, TType.STRING, b"footer")]))
        both = crypto + self._frame(serialise(footer.tree), b"footer", 0)
        return both + len(both).to_bytes(4, "little") + b"PARE"

"""The footer of a file that may be encrypted, in whole or column by column.

"PAR1" at the end    the footer is plain; of an encrypted column it has part of the metadata, and all of it encrypted
"PARE" at the end    FileCryptoMetaData (Thrift), then the encrypted footer; columns with keys of their own have
                     their metadata encrypted once more
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from thrift.Thrift import TType

from lakebloom.errors import CorruptFooterError
from lakebloom.parquet.encryption import Decryptor, KeyRetriever, Module
from lakebloom.parquet.footer import ColumnChunk, parse_footer
from lakebloom.parquet.thrift_tree import parse

if TYPE_CHECKING:
    from lakebloom.parquet.footer import Footer, Tail
    from lakebloom.parquet.open_file import OpenFile
    from lakebloom.parquet.thrift_tree import Struct

__all__ = ["ColumnKey", "Metadata", "read_metadata"]


@dataclass(frozen=True, slots=True)
class ColumnKey:
    """The encryption of one column chunk."""

    decryptor: Decryptor
    metadata: bytes
    ordinals: tuple[int, int]
    """The numbers of row group and column, which the tag of every part covers."""

    def decrypt(self, frame: bytes | memoryview, module: Module) -> bytes:
        """Return the plain bytes of a part of the chunk. Raises what ``Decryptor.decrypt`` raises."""
        return self.decryptor.decrypt(frame, module, self.metadata, *self.ordinals)


@dataclass(frozen=True)
class Metadata:
    """The metadata of a file, and the decryption of encrypted parts."""

    footer: Footer
    decryptor: Decryptor | None

    @cached_property
    def boundaries(self) -> frozenset[int]:
        """Offsets of parts of the file that the footer has in plain form: chunks, page indexes, filters, footer."""
        found: set[int | None] = {self.footer.start}
        for group in self.footer.row_groups:
            for chunk in group.columns:
                found |= {chunk.dictionary_page_offset, chunk.data_page_offset, chunk.bloom_filter_offset}
                found |= {index[0] for index in (chunk.column_index, chunk.offset_index) if index is not None}
        return frozenset(offset for offset in found if offset is not None)

    def key_of(self, row_group: int, column: int) -> ColumnKey | None:
        """Return the encryption of a column chunk, None if it is not encrypted."""
        group = self.footer.row_groups[row_group]
        chunk = group.columns[column]
        if not chunk.is_encrypted:
            return None
        if self.decryptor is None:
            raise _contradiction("an encrypted column in a file that names no algorithm")
        ordinal = group.tree.get(7, TType.I16)  # row groups may be numbered explicitly
        ordinals = (row_group if ordinal is None else ordinal, column)
        return ColumnKey(self.decryptor, _key_metadata(chunk, self.decryptor), ordinals)

    def chunk(self, row_group: int, column: int) -> ColumnChunk:
        """Return a column chunk with its metadata, decrypted if necessary. Raises EncryptedFileError."""
        chunk = self.footer.row_groups[row_group].columns[column]
        if chunk.metadata is not None:  # for an encrypted column without statistics, but with offsets
            return chunk
        key, sealed = self.key_of(row_group, column), chunk.tree.get(9, TType.STRING)
        if key is None or sealed is None:
            raise _contradiction("a column chunk without metadata")
        metadata, _ = parse(key.decrypt(sealed, Module.COLUMN_METADATA))
        return replace(chunk, metadata=metadata)


def read_metadata(file: OpenFile, key_retriever: KeyRetriever | None) -> Metadata:
    """Read the footer of a file, and decrypt it if necessary.

    Raises NotParquetError or CorruptFooterError, and EncryptedFileError if the footer's key is missing.
    """
    tail = file.tail()
    if tail.is_encrypted:
        return _of_encrypted(file.name, tail, key_retriever)
    footer = parse_footer(tail)
    algorithm = footer.tree.get(8, TType.STRUCT)
    if algorithm is None:
        return Metadata(footer, None)
    return Metadata(footer, Decryptor(file.name, algorithm, footer.tree.get(9, TType.STRING), key_retriever))


def _of_encrypted(name: str, tail: Tail, key_retriever: KeyRetriever | None) -> Metadata:
    crypto, length = parse(tail.footer)
    decryptor = Decryptor(name, _algorithm(crypto), crypto.get(2, TType.STRING), key_retriever)
    plain = decryptor.decrypt(tail.footer[length:], Module.FOOTER, decryptor.footer_key)
    return Metadata(parse_footer(replace(tail, footer=plain)), decryptor)


def _algorithm(crypto: Struct) -> Struct:
    algorithm: Struct | None = crypto.get(1, TType.STRUCT)
    if algorithm is None:
        raise _contradiction("an encrypted footer that names no algorithm")
    return algorithm


def _key_metadata(chunk: ColumnChunk, decryptor: Decryptor) -> bytes:
    """Return the metadata of a chunk's key; that of the footer's key if it has none."""
    crypto = chunk.crypto_metadata
    own: Struct | None = None if crypto is None else crypto.get(2, TType.STRUCT)
    if own is None:
        return decryptor.footer_key
    return own.get(2, TType.STRING) or b""


def _contradiction(found: str) -> CorruptFooterError:
    return CorruptFooterError(
        "the footer of a Parquet file contradicts itself", found=found, hint="check that the file is complete"
    )

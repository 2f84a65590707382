"""Parquet's modular encryption, as much as filters need: the parts of a file are decrypted one by one.

    length of the rest (4 bytes, little-endian)   nonce (12)   ciphertext   tag (16)        AES-GCM

The tag also covers the kind and place of a part, so that parts cannot be exchanged:

    AAD prefix, if the writer had one    file's own number    kind (1)    row group (2)   column (2)    little-endian
                                                              0 footer           left out
                                                              1 column metadata
                                                              8 filter header
                                                              9 filter bitset

Both of Parquet's algorithms encrypt these parts in the same way; AES_GCM_CTR_V1 differs for pages only. Keys come from
the caller: a file names each key by its *key metadata*, which the writer chose. The signature of a plain footer is not
checked: the parts of encrypted columns have their own tags.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from thrift.Thrift import TType

from lakebloom.errors import (
    CorruptFilterError,
    CorruptFooterError,
    DataFileError,
    EncryptedFileError,
    FilterFormatError,
)

if TYPE_CHECKING:
    from lakebloom.parquet.thrift_tree import Struct

__all__ = ["FRAME_BYTES", "Decryptor", "KeyRetriever", "Module", "frame_size"]

KeyRetriever: TypeAlias = Callable[[bytes], bytes]
"""From a key's metadata to the key: 16, 24 or 32 bytes. Raises LookupError for an unknown key."""

_LENGTH_BYTES, _NONCE_BYTES, _TAG_BYTES = 4, 12, 16
FRAME_BYTES = _LENGTH_BYTES + _NONCE_BYTES + _TAG_BYTES
"""How many bytes an encrypted part is longer than the plain one."""
_KEY_BYTES = (16, 24, 32)
_LONGEST_NAME = 32


class Module(enum.IntEnum):
    """The kinds of encrypted parts."""

    FOOTER = 0
    COLUMN_METADATA = 1
    FILTER_HEADER = 8
    FILTER_BITSET = 9

    @property
    def title(self) -> str:
        """The name for messages."""
        return self.name.lower().replace("_", " ")

    def corrupt(self, found: str) -> DataFileError | FilterFormatError:
        """Return the error for a part with a wrong frame."""
        kind = CorruptFilterError if self >= Module.FILTER_HEADER else CorruptFooterError
        return kind(f"cannot decrypt a {self.title}", found=found, hint="check that the file is complete")


class Decryptor:
    """Decrypts the parts of one file. Gets each key once. Raises EncryptedFileError for a missing or wrong key."""

    def __init__(self, name: str, algorithm: Struct, footer_key: bytes | None, retriever: KeyRetriever | None) -> None:
        self._name, self._retriever = name, retriever
        self.footer_key = footer_key or b""
        """The metadata of the footer's key."""
        self._file_aad = _file_aad(name, algorithm)
        self._ciphers: dict[bytes, Any] = {}

    def decrypt(self, frame: bytes | memoryview, module: Module, key: bytes, *ordinals: int) -> bytes:
        """Return the plain bytes of the part at the start of `frame`.

        `key` is the key's metadata; `ordinals` are row group and column. Raises CorruptFooterError or
        CorruptFilterError for an incomplete part.
        """
        end = frame_size(frame, module)
        aad = self._file_aad + bytes([module]) + b"".join(_ordinal(number, module) for number in ordinals)
        sealed = bytes(frame[_LENGTH_BYTES:end])
        cipher = self._cipher(key)
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], aad))
        except InvalidTag as error:
            raise EncryptedFileError(
                f"the key for a {module.title} of {self._name} is wrong, or its bytes were altered",
                found=f"the key {_shown(key)}",
                hint="check what key_retriever returns for it",
            ) from error

    def _cipher(self, key: bytes) -> Any:
        if key not in self._ciphers:
            self._ciphers[key] = _aes_gcm(self._key(key))
        return self._ciphers[key]

    def _key(self, metadata: bytes) -> bytes:
        if self._retriever is None:
            raise self._missing(metadata, "no key_retriever", "pass key_retriever, a function from metadata to key")
        try:
            key = self._retriever(metadata)
        except LookupError as error:
            raise self._missing(metadata, repr(error), "name only columns whose keys you have") from error
        if not isinstance(key, bytes) or len(key) not in _KEY_BYTES:
            found = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__  # without the key
            raise self._missing(metadata, found, "key_retriever must return 16, 24 or 32 bytes")
        return key

    def _missing(self, metadata: bytes, found: str, hint: str) -> EncryptedFileError:
        return EncryptedFileError(
            f"{self._name} is encrypted, and there is no key {_shown(metadata)}",
            found=found,
            hint=hint,
        )


def frame_size(frame: bytes | memoryview, module: Module) -> int:
    """Return the size of the complete encrypted part at the start of `frame`. Raises what `decrypt` does."""
    size = _LENGTH_BYTES + int.from_bytes(frame[:_LENGTH_BYTES], "little")
    if not FRAME_BYTES <= size <= len(frame):
        raise module.corrupt(f"a part of {size} bytes in {len(frame)} bytes")
    return size


def _file_aad(name: str, algorithm: Struct) -> bytes:
    for number, kind, member in algorithm.fields:
        if number in (1, 2) and kind == TType.STRUCT:  # AES_GCM_V1, AES_GCM_CTR_V1
            if member.get(3, TType.BOOL) and not member.get(1, TType.STRING):
                raise EncryptedFileError(
                    f"{name} was encrypted with an AAD prefix that it does not contain",
                    hint="lakebloom reads files that contain their AAD prefix, or have none",
                )
            return (member.get(1, TType.STRING) or b"") + (member.get(2, TType.STRING) or b"")
    raise EncryptedFileError(
        f"{name} is encrypted with an unknown algorithm",
        found=", ".join(f"number {number}" for number, _, _ in algorithm.fields) or "none",
        hint="lakebloom reads AES_GCM_V1 and AES_GCM_CTR_V1",
    )


def _ordinal(number: int, module: Module) -> bytes:
    try:
        return number.to_bytes(2, "little", signed=True)
    except OverflowError:  # the format cannot store this number
        raise module.corrupt(f"row group or column number {number}") from None


def _aes_gcm(key: bytes) -> Any:
    try:
        # Imported here: only encrypted files need the package.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise EncryptedFileError(
            "reading encrypted files needs the package cryptography", hint="pip install 'lakebloom[encryption]'"
        ) from error
    return AESGCM(key)


def _shown(metadata: bytes) -> str:
    """Return a key's name for messages, without the rest of its metadata, which may contain the wrapped key."""
    try:
        fields = json.loads(metadata)  # as parquet-java and Arrow write it
        return repr(str(fields["masterKeyID"]))
    except (ValueError, LookupError, TypeError):
        is_name = len(metadata) <= _LONGEST_NAME and metadata.isascii()
        return repr(metadata.decode()) if is_name else f"({len(metadata)} bytes)"

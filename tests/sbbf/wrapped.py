"""A Python-defined extension type, for tests."""

from __future__ import annotations

import pyarrow as pa


class Wrapped(pa.ExtensionType):
    """An extension type as people write them: its equality takes its hash away."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "lakebloom.test")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Wrapped:
        return cls(storage)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wrapped)

"""The actions of a Delta log that decide what a table is. Everything else in them is ignored, as the protocol says."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from lakebloom.errors import DataFileError
from lakebloom.tables.formats.delta.deletion_vectors import Descriptor

__all__ = ["Action", "Add", "CommitInfo", "Metadata", "Protocol", "Remove", "Sidecar", "broken", "parse_actions"]

_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Time: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), lt=1 << 62)]


class Add(msgspec.Struct, frozen=True, rename="camel"):
    """A file that is part of the table from here on."""

    path: str
    size: _Size
    modification_time: _Time
    partition_values: dict[str, str | None] = {}
    deletion_vector: Descriptor | None = None


class Remove(msgspec.Struct, frozen=True, rename="camel"):
    """A file, with one of its vectors, that is no longer part of it."""

    path: str
    deletion_vector: Descriptor | None = None
    deletion_timestamp: _Time | None = None
    """When it was removed; VACUUM keeps the file for some time from then on."""


class Format(msgspec.Struct, frozen=True):
    """The format of the files."""

    provider: str = "parquet"


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The table's id, columns and properties."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: dict[str, str | None] = {}
    format: Format = Format()


class Protocol(msgspec.Struct, frozen=True, rename="camel"):
    """What a reader must be able to do."""

    min_reader_version: int
    min_writer_version: int = 1
    reader_features: tuple[str, ...] | None = None


class CommitInfo(msgspec.Struct, frozen=True, rename="camel"):
    """About a commit."""

    in_commit_timestamp: _Time | None = None


class Sidecar(msgspec.Struct, frozen=True, rename="camel"):
    """A file with a part of a checkpoint."""

    path: str


class Action(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a log. At most one of these is there."""

    add: Add | None = None
    remove: Remove | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    commit_info: CommitInfo | None = None
    sidecar: Sidecar | None = None


_DECODER: msgspec.json.Decoder[Action] = msgspec.json.Decoder(Action)


def parse_actions(uri: str, data: memoryview) -> list[Action]:
    """Return the actions in a file of the log. Raises DataFileError."""
    try:
        return _DECODER.decode_lines(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise broken(uri, str(error)) from error


def broken(uri: str, found: str) -> DataFileError:
    """Return the error for a file of a log that makes no sense."""
    return DataFileError(
        f"could not read {uri}, a file of a Delta log",
        found=found,
        hint="check that the file is complete; query the table with Delta to see whether it can read it",
    )

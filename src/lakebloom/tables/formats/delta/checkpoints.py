"""Checkpoints of a Delta log: the whole state of a version, in Parquet or JSON.

Only the columns that say what a table is are read: statistics are most of a checkpoint, and removed files are of no
interest. Rows come in batches, so that memory follows the files of the table and not the size of the checkpoint.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from lakebloom.storage import open_storage
from lakebloom.tables.file_identity import is_object
from lakebloom.tables.formats.delta.actions import Action, Add, Metadata, Protocol, Sidecar, broken, parse_actions
from lakebloom.tables.formats.delta.log_files import LOG
from lakebloom.tables.formats.delta.paths import file_uri
from lakebloom.tables.parquet.footer import read_arrow_footer
from lakebloom.tables.parquet.open import open_source, parquet_file, reading
from lakebloom.tuning import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from lakebloom.tables.formats.delta.log_files import Checkpoint

__all__ = ["read_checkpoint"]

_BATCH_ROWS = 1 << 14
_SIDECARS = "_sidecars"
_WANTED: dict[str, tuple[str, ...]] = {
    "add": ("path", "size", "modificationTime", "partitionValues", "deletionVector"),
    "metaData": ("id", "schemaString", "partitionColumns", "configuration", "format"),
    "protocol": ("minReaderVersion", "minWriterVersion", "readerFeatures"),
    "sidecar": ("path",),
}


def read_checkpoint(table_uri: str, checkpoint: Checkpoint, options: Mapping[str, str]) -> Iterator[Action]:
    """Yield the actions of a checkpoint, those in its sidecars included. Raises DataFileError."""
    log = f"{table_uri}/{LOG}"
    sidecars: list[str] = []
    for actions in _each(lambda name: _actions(log, name, options), checkpoint.names, log):
        for action in actions:
            if action.sidecar is not None:
                sidecars.append(_sidecar_uri(action.sidecar, log))
            else:
                yield action
    for actions in _each(lambda uri: _parquet(uri, options, ("add",)), sidecars, log):
        yield from actions


def _each(read: Callable[[str], Iterable[Action]], names: Sequence[str], log: str) -> Iterator[Iterable[Action]]:
    """Yield what is read of each file, several at a time where each waits for a request."""
    if len(names) < 2 or not is_object(log):
        yield from map(read, names)
        return
    with ThreadPoolExecutor(min(len(names), REQUESTS)) as threads:
        yield from threads.map(lambda name: list(read(name)), names)


def _actions(log: str, name: str, options: Mapping[str, str]) -> Iterable[Action]:
    uri = f"{log}/{name}"
    if name.endswith(".json"):
        storage = open_storage(log, options if is_object(log) else {})
        return parse_actions(uri, storage.read(name))
    return _parquet(uri, options, tuple(_WANTED))


def _sidecar_uri(sidecar: Sidecar, log: str) -> str:
    """Return where a sidecar is: the protocol names a file, and some writers give an absolute path."""
    try:
        return file_uri(sidecar.path, f"{log}/{_SIDECARS}")
    except ValueError as error:
        raise broken(log, str(error)) from error


def _parquet(uri: str, options: Mapping[str, str], kinds: Sequence[str]) -> Iterator[Action]:
    with open_source(uri, options) as source, reading(uri):
        file = parquet_file(uri, source, read_arrow_footer(uri, source))
        schema = file.schema_arrow
        columns = [f"{kind}.{name}" for kind in kinds for name in _WANTED[kind] if _has(schema, kind, name)]
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False) if columns else ():
            try:
                yield from _of_batch(batch)
            except (msgspec.MsgspecError, TypeError, KeyError, AttributeError) as error:
                raise broken(uri, str(error)) from error


def _has(schema: pa.Schema, kind: str, name: str) -> bool:
    place = schema.get_field_index(kind)
    kind_of = schema.field(place).type if place >= 0 else pa.null()
    return pa.types.is_struct(kind_of) and int(kind_of.get_field_index(name)) >= 0


def _of_batch(batch: pa.RecordBatch) -> Iterator[Action]:
    for kind in batch.schema.names:
        column = batch.column(kind)
        rows = column.filter(column.is_valid())
        if not len(rows):
            continue
        if kind == "add":
            yield from (Action(add=add) for add in _adds(rows))
        elif kind == "metaData":
            yield from (Action(meta_data=each) for each in _records(rows, Metadata))
        elif kind == "protocol":
            yield from (Action(protocol=each) for each in _records(rows, Protocol))
        else:
            yield from (Action(sidecar=each) for each in _records(rows, Sidecar))


def _adds(rows: pa.StructArray) -> Iterator[Add]:
    """Yield the files. Written out for the columns that every file has: there may be millions."""
    plain = _field(rows, "partitionValues")
    is_partitioned = plain is not None and plain.null_count < len(plain) and len(plain.items) > 0
    vectors = _field(rows, "deletionVector")
    if is_partitioned or (vectors is not None and vectors.null_count < len(vectors)):
        yield from _records(rows, Add)
        return
    names = ("path", "size", "modificationTime")
    paths, sizes, times = (rows.field(rows.type.get_field_index(name)) for name in names)
    if paths.null_count or sizes.null_count or times.null_count or sizes.type != pa.int64():
        yield from _records(rows, Add)
        return
    for path, size, time in zip(paths.to_pylist(), sizes.to_pylist(), times.to_pylist(), strict=True):
        if size < 0 or not isinstance(time, int):
            raise TypeError(f"a file of {size} bytes and the time {time}")
        yield Add(path, size, time)


def _field(rows: pa.StructArray, name: str) -> Any:
    place = rows.type.get_field_index(name)
    return None if place < 0 else rows.field(place)


def _records(rows: pa.StructArray, kind: Any) -> Iterator[Any]:
    for row in rows.to_pylist(maps_as_pydicts="lossy"):
        yield msgspec.convert({name: value for name, value in row.items() if value is not None}, kind)

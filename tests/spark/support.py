"""What the tests of the Spark layer share: small tables, and a look into an index."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakebloom.index.catalog import Catalog
from lakebloom.index.snapshot import Snapshot
from lakebloom.store.tiles import read_tile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakebloom import Lakebloom
    from lakebloom.predicate.tree import Predicate
    from lakebloom.spark.rule.install import Skipping


def write(path: Path, columns: Mapping[str, Any], **options: Any) -> Path:
    """Write a Parquet file, and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), path, **options)
    return path


def keys(directory: Path, *parts: range | list[Any], first: int = 0) -> Path:
    """Write a table of one bigint column k, one file for each range: 0.parquet, 1.parquet and so on."""
    for number, values in enumerate(parts, start=first):
        write(directory / f"{number}.parquet", {"k": pa.array(values, pa.int64())})
    return directory


def kept(lake: Lakebloom, name: str, predicate: Predicate) -> list[str]:
    """The names of the files that can match, sorted."""
    return sorted({Path(path).name for path in lake.candidates(name, predicate)["path"].to_pylist()})


def indexed(lake: Lakebloom, name: str) -> list[str]:
    """The paths of all files that an index knows, sorted."""
    return sorted(local_path(file.uri) for file in snapshot(lake, name).files)


def local_path(uri: str) -> str:
    return uri.removeprefix("file://")


def path_of(file_uri: str) -> str:
    """The local path of an encoded URI, as Spark prints it."""
    return unquote(urlsplit(file_uri).path)


def fresh_name() -> str:
    return f"n{uuid.uuid4().hex[:12]}"


def rule_of(lake: Lakebloom) -> Skipping:
    """The rule of a lake that has had one, and its callbacks."""
    assert lake._skipping is not None
    return lake._skipping


def reopen(lake: Lakebloom, wrap: Callable[[Any], Any] = lambda storage: storage) -> None:
    """Let a lake know of its indexes what a new process knows, and reach them through another storage."""
    lake._catalog = Catalog(lake.location, wrap=wrap)
    lake._readers.clear()


def snapshot(lake: Lakebloom, name: str) -> Snapshot:
    index = lake.catalog.index(name)
    return Snapshot(index.storage, index.log.newest())


@dataclass(frozen=True)
class UnitFilter:
    """One column of one unit: all that a reader of the table must agree on."""

    file: str
    row_start: int
    row_count: int
    null_count: int | None
    layers: tuple[bytes, ...]
    bounds: str
    """Its min and max as text: NaN differs from itself."""


def unit_filters(lake: Lakebloom, name: str, column: int = 0) -> list[UnitFilter]:
    """The units of an index, sorted by file and row."""
    return sorted(_unit_filters(snapshot(lake, name), column), key=lambda unit: (unit.file, unit.row_start))


def _unit_filters(version: Snapshot, column: int) -> Iterator[UnitFilter]:
    for segment in version.segments:
        tiles = segment.units.tiles(column)
        words = {
            number: [read_tile(version.storage, layer) for layer in layers]
            for number, layers in segment.layers(column).items()
        }
        slots = {number: np.flatnonzero(tiles == number).tolist() for number in words}
        for i, unit in enumerate(segment.units.units()):
            number = int(tiles[i])
            layers = (layer[:, slots[number].index(i)] for layer in words[number])
            yield UnitFilter(
                local_path(unit.file.uri),
                unit.row_start,
                unit.row_count,
                unit.columns[column].null_count,
                tuple(layer.tobytes() for layer in layers),
                repr((unit.columns[column].min, unit.columns[column].max)),
            )

"""Which files Python sends to Java: those of an index once, and those of new segments only."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from lakebloom import col
from lakebloom.spark.rule.callback import PruneCallback
from lakebloom.spark.rule.wire import PruneRequest, dump
from tests.index.lake import NAME, Lake
from tests.index.query.scanning import reading, scan_pruner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakebloom.predicate.tree import Predicate


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})


def asker(lake: Lake) -> Callable[[Predicate, dict[str, str]], Any]:
    callback = PruneCallback(scan_pruner(lake.catalog()), lambda: 60.0)

    def ask(predicate: Predicate, known: dict[str, str]) -> Any:
        made = reading(lake.types, predicate)
        request = PruneRequest(
            **{name: getattr(made, name) for name in made.__struct_fields__}, indexes=(NAME,), known=known
        )
        (kept,) = msgspec.json.decode(callback.apply(dump(request)))["kept"]
        return kept

    return ask


class Java:
    """What Java keeps of the files that it was sent: the last number of each path."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.known: dict[str, str] = {}

    def take(self, kept: Any) -> list[str]:
        sent = [] if kept["files"] is None else [line.split("\t")[0] for line in kept["files"].split("\0")[:-1]]
        if kept["files"] is not None:
            if not kept["after"]:
                self.numbers = {}
            self.numbers |= {path: kept["after"] + number for number, path in enumerate(sent)}
        self.known = {NAME: kept["fingerprint"]}
        return [path.rpartition("/")[2] for path in sent]

    def kept(self, kept: Any) -> set[str]:
        bits = np.unpackbits(np.frombuffer(base64.b64decode(kept["bits"]), np.uint8), bitorder="little")
        return {path.rpartition("/")[2].removesuffix(".parquet") for path, n in self.numbers.items() if bits[n]}


def test_only_files_of_new_segments_are_sent(lake: Lake) -> None:
    lake.fill(range(4))
    lake.create(tasks=2)
    ask, java = asker(lake), Java()
    assert java.take(ask(col("k") == 25, {})) == [f"f{number}.parquet" for number in range(4)]
    again = ask(col("k") == 45, java.known)
    assert (java.take(again), java.kept(again)) == ([], {"f2"})

    lake.fill([4])
    lake.write("f1", {"k": pa.array([2000], pa.int64())})
    lake.refresh()
    newer = ask(col("k") == 2000, java.known)
    assert sorted(java.take(newer)) == ["f1.parquet", "f4.parquet"]
    assert newer["after"] == 4
    assert java.kept(newer) == {"f1"}
    assert java.kept(ask(col("k") == 85, java.known)) == {"f4"}
    assert java.kept(ask(col("k") == 25, java.known)) == set(), "f1 was written anew"
    assert len(java.take(ask(col("k") == 5, {NAME: "of another index"}))) == 6

    lake.open().optimize_index(NAME)
    merged = ask(col("k") == 2000, java.known)
    assert merged["after"] == 0
    assert sorted(java.take(merged)) == [f"f{number}.parquet" for number in range(5)]
    assert java.kept(merged) == {"f1"}

"""The table of the exact tests: six files that are called by letters, each with keys of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebloom import BloomIndexConfig
from tests.spark.skipping.support import EXACT
from tests.spark.support import write

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = "abcdef"
# k, n and s are indexed, v is not. d holds nothing but NULL, e not even a row.
FILES: dict[str, list[tuple[int | None, int | None, str | None, int]]] = {
    "a": [(1, 1, "one", 1), (2, None, "two", 2)],
    "b": [(3, None, "three", 3), (4, None, None, 4)],
    "c": [(5, 5, "", 5), (5, 6, "five", 6)],
    "d": [(None, None, None, 1), (None, None, None, 8)],
    "e": [],
    "f": [(1, 1, "ünï", 9), (None, 7, "it's", 10)],
}
BY_LETTER = BloomIndexConfig("by_letter", ["k", "n", "s", "nested.k", "nested.deep.k", "`a.b`", "`ключ ☃`"], fpp=EXACT)


def write_letters(directory: Path) -> Path:
    """Write the table: nested.k, nested.deep.k, `a.b` and `ключ ☃` repeat k, but nested is NULL where v is 1."""
    for letter, rows in FILES.items():
        write(directory / f"{letter}.parquet", _columns(rows))
    return directory


def _columns(rows: list[tuple[int | None, int | None, str | None, int]]) -> dict[str, Any]:
    k, n, s, v = ([row[i] for row in rows] for i in range(4))
    keys = pa.array(k, pa.int64())
    deep = pa.StructArray.from_arrays([keys], ["k"])
    nested = pa.StructArray.from_arrays([keys, deep], ["k", "deep"], mask=pa.array([one == 1 for one in v], pa.bool_()))
    return {
        "k": keys,
        "n": pa.array(n, pa.int32()),
        "s": pa.array(s, pa.string()),
        "v": pa.array(v, pa.int32()),
        "nested": nested,
        "a": pa.StructArray.from_arrays([pa.array([-1] * len(rows), pa.int64())], ["b"]),
        "a.b": keys,
        "ключ ☃": keys,
    }


def letters(files: list[str]) -> str:
    """File names as they are written in these tests."""
    return "".join(name.removesuffix(".parquet") for name in files)

"""The tables that are searched, and what must be found in them.

Our tables and the peers' are the same files, which are those of the needle bench. Lance gets the same rows in its own
format, with one index a version, so that both share the data.
"""

from __future__ import annotations

import json
import random
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bench.ledger import Cost, Ledger
from bench.needle.source import Haystack, haystacks
from bench.parameters import WORK, Lookup, Needle
from bench.session import session
from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import LakebloomError

FOLDER = WORK / "lookup"
INDEXES = FOLDER / "indexes"
PRESENT, ABSENT, MANY = "present key", "absent key", f"{Lookup.keys} keys"
CASES = (PRESENT, ABSENT, MANY)
BTREE_FILES = sorted(Lookup.sizes)[1]
LanceKind = Literal["BLOOMFILTER", "BTREE"]


@dataclass(frozen=True, slots=True)
class Question:
    """Keys to look for, and the rows that must come back."""

    keys: list[str]
    rows: list[tuple[str, int]]
    homes: dict[str, str]
    """Which file each of the keys is in."""

    @classmethod
    def of(cls, rows: list[tuple[str, int, str]]) -> Question:
        """Return the question for the keys of these rows: key, amount and home."""
        return cls([key for key, _, _ in rows], sorted(row[:2] for row in rows), {key: home for key, _, home in rows})


@dataclass(frozen=True, slots=True)
class LookupTable:
    """One table in all forms: folders of Parquet files, Lance's copy, and the name of our index."""

    files: int
    plain: str
    embedded: str
    lance: str
    index: str
    lance_versions: dict[str, int]


def tables() -> list[LookupTable]:
    """Return all tables; what is not there is made first."""
    found = haystacks(WORK / "needle", list(Lookup.sizes), Needle.rows_per_file)
    made = [_table(haystack) for haystack in found]
    _index([table for table in made if not _is_indexed(table)])
    return made


def _table(haystack: Haystack) -> LookupTable:
    name, lance = f"files_{haystack.files}", FOLDER / f"lance-{haystack.files}"
    # A sorted copy of 100 million keys takes minutes to make: one table of a middle size shows what it is worth.
    kinds: tuple[LanceKind, ...] = ("BLOOMFILTER", "BTREE") if haystack.files == BTREE_FILES else ("BLOOMFILTER",)
    versions = write_lance(Path(haystack.plain), lance, kinds, name)
    return LookupTable(haystack.files, haystack.plain, haystack.embedded, str(lance), name, versions)


def _kept(path: Path, make: Callable[[], object]) -> dict[str, int]:
    if not path.exists():
        path.write_text(json.dumps(make()))
    found: dict[str, int] = json.loads(path.read_text())
    return found


def write_lance(plain: Path, target: Path, kinds: tuple[LanceKind, ...], lake: str) -> dict[str, int]:
    """Return the versions of Lance's copy of a lake, one with each kind of index. It is made once."""
    return dict(_kept(target.with_suffix(".json"), lambda: _write_lance(plain, target, kinds, Ledger(lake))))


def _write_lance(plain: Path, target: Path, kinds: tuple[LanceKind, ...], ledger: Ledger) -> dict[str, int]:
    import lance

    shutil.rmtree(target, ignore_errors=True)
    dataset = lance.write_dataset(ds.dataset(plain, format="parquet").scanner(), str(target))
    versions: dict[str, int] = {}
    for kind in kinds:
        for index in dataset.describe_indices():
            dataset.drop_index(index.name)
        before, started = size_of(target / "_indices"), time.perf_counter()
        dataset.create_scalar_index("uuid", kind)
        elapsed_s = time.perf_counter() - started
        ledger.note(f"Lance, {kind}", Cost(elapsed_s, size_of(target / "_indices") - before))
        versions[kind] = dataset.version
    return versions


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _is_indexed(table: LookupTable) -> bool:
    absent = col("uuid") == "none"
    try:
        return bool(Lakebloom(location=INDEXES).lookup(table.index, absent, unindexed="error").num_rows == 0)
    except LakebloomError:  # there is none, or one of another time
        return False


def _index(needed: list[LookupTable]) -> None:
    if not needed:
        return
    spark = session("lookup")
    lake = Lakebloom(spark, INDEXES)
    for table in needed:
        shutil.rmtree(INDEXES / table.index, ignore_errors=True)
        started = time.perf_counter()
        lake.create_index(table.plain, BloomIndexConfig(table.index, ["uuid"]))
        cost = Cost(time.perf_counter() - started, lake.index(table.index).size_bytes)
        Ledger(table.index).note("lakebloom", cost)
    spark.stop()


def questions(table: LookupTable, count: int) -> dict[str, list[Question]]:
    """Return questions of each kind, each with keys of its own from rows all over the table."""
    rng = random.Random(f"{Lookup.seed} {table.files}")
    paths = sorted(Path(table.plain).iterdir())
    rows = [_row(rng.choice(paths), rng) for _ in range(count)]
    pool = [_row(path, rng) for path in rng.sample(paths, min(len(paths), 4 * Lookup.keys))]
    many = [rng.sample(pool, Lookup.keys) for _ in range(count)]
    return {
        PRESENT: [Question.of([row]) for row in rows],
        ABSENT: [Question([str(uuid.UUID(int=rng.getrandbits(128), version=4))], [], {}) for _ in range(count)],
        MANY: [Question.of(chosen) for chosen in many],
    }


def _row(path: Path, rng: random.Random) -> tuple[str, int, str]:
    found = pq.read_table(path, columns=["uuid", "amount"])
    number = rng.randrange(found.num_rows)
    return found["uuid"][number].as_py(), found["amount"][number].as_py(), str(path)

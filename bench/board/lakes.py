"""The lakes of the board and what is asked of them: two of small files, one of very many columns, one of real size.

But for the wide one they are the lakes of the lookups, with their indexes and Lance's copies.
"""

from __future__ import annotations

import random
import shutil
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from bench.board.forms import Lake
from bench.board.wide import wide_files, wide_questions
from bench.ledger import Cost, Ledger
from bench.lookup.large import INDEX, LANCE, has_large_index, large_index, large_lake, large_lance, large_questions
from bench.lookup.race import OURS
from bench.lookup.source import INDEXES, MANY, Question, questions, tables, write_lance
from bench.parameters import WORK, Board, Large, LargeLookup, Needle, Wide
from bench.session import session
from lakebloom import BloomIndexConfig, Lakebloom

BOARD = WORK / "board"
VERY_MANY = f"{Board.many:,} keys"
ON_DELTA, ON_ICEBERG = f"{OURS}, Delta", f"{OURS}, Iceberg"
Asked: TypeAlias = dict[str, list[Question]]


def lakes() -> list[tuple[Lake, Asked]]:
    """Return all lakes; what is not there is made first."""
    return [*_small(), _wide(), _large()]


def _small() -> list[tuple[Lake, Asked]]:
    found = []
    for table in tables():
        if table.files not in Board.small_files:
            continue
        lake = Lake(
            table.index,
            f"{table.files:,} files of {Needle.rows_per_file:,} rows",
            *map(Path, (table.plain, table.embedded, table.lance)),
            table.lance_versions,
            INDEXES,
            BOARD / table.index,
            table.files * Needle.rows_per_file,
            has_logs=table.files == min(Board.small_files),
        )
        found.append((lake, _with_very_many(questions(table, Board.questions + 1))))
    return found


def _large() -> tuple[Lake, Asked]:
    files = large_lake()
    if not has_large_index():
        large_index(files)
    lake = Lake(
        INDEX,
        f"{LargeLookup.files} files of {Large.rows_per_file:,} rows and 12 columns",
        files.plain,
        files.embedded,
        LANCE,
        large_lance(files),
        INDEXES,
        BOARD / INDEX,
        LargeLookup.files * Large.rows_per_file,
        by_row_group=True,
        has_logs=True,
    )
    asked = {case: some[: Board.questions + 1] for case, some in large_questions(files).items()}
    return lake, _with_very_many(asked)


def _wide() -> tuple[Lake, Asked]:
    folder = BOARD / "wide"
    rows = wide_files(folder)
    lake = Lake(
        "wide",
        f"{Wide.files} files of {Wide.rows_per_file:,} rows and {Wide.columns} columns",
        folder / "plain",
        folder / "embedded",
        folder / "lance",
        write_lance(folder / "plain", folder / "lance", ("BLOOMFILTER", "BTREE"), "wide"),
        BOARD / "indexes",
        folder / "forms",
        Wide.files * Wide.rows_per_file,
    )
    return lake, _with_very_many(wide_questions(rows, Board.questions + 1))


def _with_very_many(asked: Asked) -> Asked:
    rng = random.Random(Board.many)
    more = []
    for question in asked[MANY][: Board.long_lists + 1]:
        absent = [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(Board.many - Board.there)]
        keys = [*question.keys, *absent]
        rng.shuffle(keys)
        more.append(Question(keys, question.rows, question.homes))
    return {**asked, VERY_MANY: more}


def make_indexes(made: Iterable[Lake]) -> None:
    """Build the indexes that the lookups do not have."""
    wanted = [("wide", OURS, BOARD / "indexes", "wide", lake.plain) for lake in made if lake.name == "wide"]
    for lake in made:
        if lake.has_logs:
            for method, place in ((ON_DELTA, lake.delta), (ON_ICEBERG, lake.iceberg)):
                wanted.append((lake.name, method, BOARD / "indexes", place_name(lake, method), place))
    missing = [each for each in wanted if each[1] not in Ledger(each[0]).costs()]
    if not missing:
        return
    spark = session("board")
    for name, method, location, index, place in missing:
        shutil.rmtree(location / index, ignore_errors=True)
        started = time.perf_counter()
        found = Lakebloom(spark, location)
        found.create_index(str(place), BloomIndexConfig(index, ["uuid"]))
        cost = Cost(time.perf_counter() - started, found.index(index).size_bytes)
        Ledger(name).note(method, cost)
    spark.stop()


def place_name(lake: Lake, method: str) -> str:
    """Return the name of the index of a table with a log."""
    return f"{lake.name}_{method.rpartition(' ')[2].lower()}"

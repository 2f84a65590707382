"""From SQL to predicate trees to files: the pairs are in trees.txt, three lines each.

    the condition, as SQL
    the tree that Java sends for it
    the files that it reads, by their letters; - where there is none

To see what changed after an edit, read the diff that a failing test prints.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakebloom import Lakebloom
from lakebloom.predicate.tree import from_json
from tests.spark.needs import possible
from tests.spark.skipping.letters import BY_LETTER, letters, write_letters
from tests.spark.skipping.support import files_read, skipping, trees

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FIXTURE = Path(__file__).with_name("trees.txt")


def test_conditions_become_trees(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lakebloom(spark, tmp_path / "indexes")
    lake.create_index(write_letters(tmp_path / "t"), BY_LETTER)
    table = spark.read.parquet(str(tmp_path / "t"))
    pairs = {block.splitlines()[0]: block for block in FIXTURE.read_text().removesuffix("\n").split("\n\n")}
    conditions, blocks = possible(pairs), []
    with skipping(lake):
        for condition in conditions:
            frame = table.where(condition)
            (tree,) = trees(lake, frame)
            text = json.dumps(tree, ensure_ascii=False)
            from_json(text)  # Python understands every tree
            blocks.append(f"{condition}\n{text}\n{letters(files_read(frame)) or '-'}")
    assert "\n\n".join(blocks) == "\n\n".join(pairs[condition] for condition in conditions)

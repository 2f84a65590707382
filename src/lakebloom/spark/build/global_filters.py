"""Merges global filters in Spark, by ranges of blocks.

Each task builds a filter of its own values, and sends the blocks that are not empty, divided into ranges. Spark
collects the same range of all tasks in one place, where they are ORed. The driver gets one filter, however many tasks
there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, WORDS_PER_BLOCK
from lakebloom.sbbf.filter import Sbbf
from lakebloom.spark.build.results import RESULT_SCHEMA, row
from lakebloom.tuning import GLOBAL_RANGE_BLOCKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakebloom.index.build.plan import BuildPlan
    from lakebloom.sbbf.kernels import WordArray

_NUMBER_BYTES = 4


def partial_rows(column: int, f: Sbbf) -> Iterator[pa.RecordBatch]:
    """Yield a task's blocks: for each range, the numbers of the blocks that are not empty, then the blocks."""
    for number, start in enumerate(range(0, f.num_blocks, GLOBAL_RANGE_BLOCKS)):
        words = f.words[start : start + GLOBAL_RANGE_BLOCKS]
        filled = np.flatnonzero(words.any(axis=1))
        if len(filled):
            yield row("partial", str(column), number, _packed(filled, words[filled]))


def _packed(numbers: np.ndarray[tuple[int], np.dtype[np.intp]], blocks: WordArray) -> bytes:
    return numbers.astype("<u4").tobytes() + blocks.astype("<u4", copy=False).tobytes()


def _merge_into(words: WordArray, payload: bytes) -> None:
    count = len(payload) // (_NUMBER_BYTES + BYTES_PER_BLOCK)
    numbers = np.frombuffer(payload, dtype="<u4", count=count)
    blocks = np.frombuffer(payload, dtype="<u4", offset=count * _NUMBER_BYTES).reshape(count, WORDS_PER_BLOCK)
    words[numbers] |= blocks


def merge_partials(tasks: DataFrame) -> DataFrame:
    """Collect the same ranges of all tasks and OR them. Other rows pass through.

    Rows are distributed by number only, so all rows of a task about its shard take the same path. If they are lost and
    the task runs again, under new names, the driver does not get parts of both runs.
    """

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ranges: dict[tuple[str, int], WordArray] = {}
        for batch in batches:
            for kind, name, number, payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if kind != "partial":
                    yield row(kind, name, number, payload)
                    continue
                empty = np.zeros((GLOBAL_RANGE_BLOCKS, WORDS_PER_BLOCK), dtype=np.uint32)
                _merge_into(ranges.setdefault((name, number), empty), payload)
        for (name, number), words in ranges.items():
            filled = np.flatnonzero(words.any(axis=1))
            yield row("partial", name, number, _packed(filled, words[filled]))

    return tasks.repartition("number").mapInArrow(merge, RESULT_SCHEMA)


class GlobalFilters:
    """The global filters of a build, filled range by range."""

    def __init__(self, plan: BuildPlan) -> None:
        count = 0 if plan.global_blocks is None else len(plan.columns)
        shape = (plan.global_blocks or 1, WORDS_PER_BLOCK)
        self._words = [np.zeros(shape, dtype=np.uint32) for _ in range(count)]

    def take(self, column: str, number: int, payload: bytes) -> None:
        """Add a merged range."""
        start = number * GLOBAL_RANGE_BLOCKS
        _merge_into(self._words[int(column)][start : start + GLOBAL_RANGE_BLOCKS], payload)

    def finished(self) -> list[Sbbf]:
        """Return the filters."""
        return [Sbbf.from_words(words) for words in self._words]

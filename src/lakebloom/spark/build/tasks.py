"""Jobs whose tasks each do one part of some work, and answer in rows of ``results``.

A DataFrame sends the same function to all of its tasks, so every task gets all parts, packed, and unpacks only its own:
reading 100,000 file names takes a third of a second, in each of hundreds of tasks.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from lakebloom.spark.build.results import RESULT_SCHEMA, row

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PackedShards", "answers", "shard_tasks"]

ShardT = TypeVar("ShardT")
AnswerT = TypeVar("AnswerT")


class PackedShards(Generic[ShardT]):
    """Parts of some work, on their way to the tasks that do them."""

    def __init__(self, shards: Iterable[ShardT]) -> None:
        self._packed = tuple(zlib.compress(pickle.dumps(shard), 1) for shard in shards)

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, number: int) -> ShardT:
        """Unpack one of them."""
        shard: ShardT = pickle.loads(zlib.decompress(self._packed[number]))
        return shard


def shard_tasks(
    spark: SparkSession, shards: Sequence[ShardT], work: Callable[[ShardT], Iterable[pa.RecordBatch]]
) -> DataFrame:
    """Return the job that does the work of each shard in a task of its own."""
    packed = PackedShards(shards)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(packed[number])

    return spark.range(0, len(packed), 1, len(packed)).mapInArrow(run, RESULT_SCHEMA)


def answers(
    spark: SparkSession, shards: Sequence[ShardT], work: Callable[[ShardT], AnswerT], answer_type: type[AnswerT]
) -> list[AnswerT]:
    """Run such a job whose tasks answer with one record each, and return these in the order of the shards."""

    def answered(shard: tuple[int, ShardT]) -> list[pa.RecordBatch]:
        number, own = shard
        return [row("result", "", number, msgspec.json.encode(work(own)))]

    found = shard_tasks(spark, list(enumerate(shards)), answered).collect()
    return [
        msgspec.json.decode(bytes(each["payload"]), type=answer_type)
        for each in sorted(found, key=lambda each: int(each["number"]))
    ]

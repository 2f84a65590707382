"""How the rows of ``spark.createDataFrame([...])`` are told from those of any other RDD.

PySpark sends a list to the driver's JVM and puts a Python function over it that passes on what it gets, in other
batches. Spark cannot tell that function from one of the user's. We can: here PySpark pickles it again, and the Java
side compares its bytes. Nothing is unpickled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.spark.rule.wire import ListPickle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["list_pickles"]

_BATCHES = ((1, 254), (256, 1023))
"""Sizes of batches that take one byte in a pickle, and two: all of whose bits differ. PySpark's batches end at 1024."""


def list_pickles(spark: SparkSession) -> tuple[ListPickle, ...]:
    """Return the pickles of PySpark's function for all sizes of batches, with the places of these sizes."""
    rows: Any = spark.sparkContext.parallelize([], 1)
    found = []
    for one, other in _BATCHES:
        first, second = _pickled(rows, one), _pickled(rows, other)
        free = [place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b]
        if len(first) == len(second) and len(free) == (other.bit_length() + 7) // 8:
            found.append(ListPickle(first, tuple(free)))
    return tuple(found)


def _pickled(rows: Any, batch: int) -> bytes:
    """Return what PySpark sends to its workers to pass on a list in batches of this size."""
    from pyspark import serializers

    pickling: Any = serializers
    rows._jrdd_deserializer = pickling.BatchedSerializer(rows.ctx._unbatched_serializer, batch)
    piped = rows._pickled()
    command = (piped.func, None, piped._prev_jrdd_deserializer, piped._jrdd_deserializer)
    pickled: bytes = pickling.CloudPickleSerializer().dumps(command)
    return pickled

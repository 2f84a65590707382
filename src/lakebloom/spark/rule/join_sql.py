"""The filter of a join as SQL, which Java parses and puts on top of a plan.

It reads two made-up tables: ``lakebloom_rows`` has the key ``k``, ``lakebloom_words`` one row with the filter ``w``, an
array of blocks of eight words. The hash is computed once, in a projection below the tests, where it stays because no
rule of the optimizer comes after ours. So is the block of a row: where Spark does not compile a whole stage, each row
carries its columns along, and must not carry the filter. Arithmetic must wrap: Java turns ANSI mode off.
"""

from __future__ import annotations

import numpy as np

from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.sbbf.blocks import SALTS
from lakebloom.spark.build.expressions import INT_DIGITS, SEED_ZERO

__all__ = ["join_filter_sql"]


def join_filter_sql(mark: str, column_type: str, num_blocks: int) -> str:
    """Return a query of the keys that may be in a filter; its column ``mark`` tells Java which filter it is.

    The type is one that lakebloom indexes, but no decimal of more than 18 digits.
    """
    words = "(SELECT w FROM lakebloom_words)"
    number = f"CAST(shiftrightunsigned(shiftrightunsigned(h, 32) * {num_blocks}L, 32) AS INT)"
    hashes = f"SELECT k, xxhash64({SEED_ZERO}L, {_hashed(column_type)}) AS h FROM lakebloom_rows"
    blocks = f"SELECT k, CAST(h AS INT) AS low, {words}[{number}] AS {mark} FROM ({hashes})"
    tests = (
        f"(shiftrightunsigned({mark}[{word}], shiftrightunsigned(low * {_signed(salt)}, 27)) & 1) = 1"
        for word, salt in enumerate(SALTS)
    )
    return f"SELECT k FROM ({blocks}) WHERE {' AND '.join(tests)}"


def _hashed(column_type: str) -> str:
    """Return what the index hashes of a key: for a decimal the number without its point."""
    kind = spark_type(column_type)
    if kind.kind is not Kind.DECIMAL:
        return "k"
    whole = f"CAST(k * 1{'0' * kind.scale}BD AS DECIMAL({kind.precision}, 0))"
    return f"CAST({whole} AS {'INT' if kind.precision <= INT_DIGITS else 'BIGINT'})"


def _signed(word: int) -> int:
    return int(np.uint32(word).view(np.int32))

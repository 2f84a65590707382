"""Hashes and filters as Spark expressions: no UDF, whole-stage code, on Connect too, with ANSI mode on or off.

Spark's xxhash64 starts with seed 42 and chains its arguments. The hash of one constant under seed 42 is 0, which is
then the seed for the column. This gives the index's hash for every type except decimals: their bytes are computed
first.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.sbbf.blocks import SALTS
from lakebloom.sbbf.hashing.decimals import min_bytes

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["INT_DIGITS", "LONG_DIGITS", "SEED_ZERO", "canonical_hash", "might_contain"]

SEED_ZERO = -365884300664092260
"""The bigint whose hash under Spark's seed 42 is 0."""
INT_DIGITS = 9
"""Decimals of more digits are hashed as bigint."""
LONG_DIGITS = 18
"""Decimals with more digits are hashed as bytes, which are computed from the digits."""
_NINES, _WORDS = 5, 4
_LOW_16, _LOW_32 = 0xFFFF, 0xFFFFFFFF


def canonical_hash(column: Column, type_name: str) -> Column:
    """Return the index's hash of a column of this type as a bigint, NULL for NULL."""
    from pyspark.sql import functions as F  # noqa: N812

    kind = spark_type(type_name)
    hashed = _decimal_bytes(column, kind.precision, kind.scale) if kind.kind is Kind.DECIMAL else column
    return F.when(column.isNotNull(), F.xxhash64(F.lit(SEED_ZERO), hashed))


def _decimal_bytes(column: Column, precision: int, scale: int) -> Column:
    """Return the value that the index hashes for a decimal: the unscaled number as int, bigint or big-endian bytes."""
    from pyspark.sql import functions as F  # noqa: N812

    if precision > LONG_DIGITS:
        return _wide_decimal_bytes(column, precision, scale)
    # The same digits without a decimal point. The product has at most 38 digits, so it is exact.
    whole = column * F.expr(f"CAST('1{'0' * scale}' AS DECIMAL({scale + 1}, 0))")
    return whole.cast(f"decimal({precision},0)").cast("int" if precision <= INT_DIGITS else "bigint")


def _wide_decimal_bytes(column: Column, precision: int, scale: int) -> Column:
    """Return the two's complement of the unscaled number, from its digits as text.

    Spark's arithmetic rounds decimals of more than 34 digits. So nine digits at a time are added to four words of 32
    bits, the lowest first.
    """
    from pyspark.sql import functions as F  # noqa: N812

    picture = f"S{'0' * max(1, precision - scale)}{'D' * bool(scale)}{'0' * scale}"
    text = F.to_char(column, F.lit(picture))
    digits = F.lpad(F.regexp_replace(text, "[^0-9]", ""), _NINES * 9, "0")
    nines = F.array(*(F.substring(digits, 1 + 9 * i, 9).cast("bigint") for i in range(_NINES)))
    zeros = F.array(*(F.lit(0).cast("bigint") for _ in range(_WORDS)))
    words = F.aggregate(nines, zeros, lambda so_far, nine: _carried(so_far, F.lit(1_000_000_000), nine))
    inverted = F.transform(words, lambda word: F.lit(_LOW_32) - word)
    negative = F.aggregate(
        F.array(F.lit(1).cast("bigint")), inverted, lambda so_far, one: _carried(so_far, F.lit(1), one)
    )
    signed = F.when(column < 0, negative).otherwise(words)
    hexadecimal = F.concat(*(F.lpad(F.hex(F.get(signed, F.lit(i))), 8, "0") for i in reversed(range(_WORDS))))
    width = 2 * min_bytes(precision)
    return F.unhex(F.substring(hexadecimal, 8 * _WORDS - width + 1, width))


def _carried(words: Column, factor: Column, added: Column) -> Column:
    """Return words * factor + added, word by word."""
    from pyspark.sql import functions as F  # noqa: N812

    sums, carry = [], added
    for number in range(_WORDS):
        total = F.get(words, F.lit(number)) * factor + carry
        sums.append(total.bitwiseAND(F.lit(_LOW_32)))
        carry = F.shiftrightunsigned(total, 32)
    return F.array(*sums)


def might_contain(words: Column, hashed: Column, num_blocks: int) -> Column:
    """Return whether a filter, given as the array of its words, may hold a hash; NULL for NULL."""
    from pyspark.sql import functions as F  # noqa: N812

    high, low = F.shiftrightunsigned(hashed, 32), hashed.bitwiseAND(F.lit(_LOW_32))
    first = F.shiftrightunsigned(high * F.lit(num_blocks), 32) * 8
    low_16, high_16 = low.bitwiseAND(F.lit(_LOW_16)), F.shiftrightunsigned(low, 16)
    tests = []
    for number, salt in enumerate(SALTS):
        # low * salt modulo 2^32, in two halves: the whole product overflows a bigint, which ANSI mode rejects.
        upper = F.shiftleft((high_16 * F.lit(salt)).bitwiseAND(F.lit(_LOW_16)), 16)
        product = (low_16 * F.lit(salt) + upper).bitwiseAND(F.lit(_LOW_32))
        bit = F.shiftrightunsigned(product, 27).cast("int")
        word = F.get(words, (first + number).cast("int"))
        tests.append(F.call_function("shiftrightunsigned", word, bit).bitwiseAND(F.lit(1)) == 1)
    return functools.reduce(operator.and_, tests)

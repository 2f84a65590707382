"""The size of a filter for a rate, and the rate of a filter of a given size.

The rate of a Split Block Bloom Filter depends only on the mean number of values in a block. A block that received i
values has a given bit of a word set with probability 1 - (31/32)^i, and values spread over blocks like a Poisson
variable (Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters"):

    rate(load) = sum over i of  Poisson(i; load) * (1 - (31/32)^i)^8

The closed form (1 - e^(-8 n / m))^8, which Parquet writers use, ignores that blocks fill unevenly: at 1 % it gives
9.7 bits a value, but 10.5 are needed.
"""

from __future__ import annotations

import math
import numbers
import operator
from functools import lru_cache
from typing import Literal, SupportsIndex, TypeAlias, get_args

from lakebloom.errors import InvalidArgumentError
from lakebloom.sbbf.blocks import BITS_PER_BLOCK, BYTES_PER_BLOCK, MAX_BLOCKS
from lakebloom.tuning import CACHED_ANSWERS, FOLDABLE_BITS

__all__ = [
    "SizingRule",
    "auto_fpp",
    "foldable_blocks",
    "fpp",
    "layer_fpps",
    "num_blocks",
    "rate",
    "rate_argument",
    "too_large",
    "whole",
]

SizingRule: TypeAlias = Literal["putze", "parquet", "lance"]

_MAX_EMBEDDED_BYTES = 128 * 1024 * 1024
_HOPELESS_LOAD = 5000.0
"""Above this mean number of values in a block, practically every bit is set."""
_MAX_NDV = 2**63 - 1
"""More rows than any table has, and few enough for floating point."""
_LAYERS_BELOW = (1e-3, 2e-7)
"""Below the first rate an index has two layers, below the second three."""
_AUTO_RANGE = (1e-7, 0.01)


def fpp(num_blocks: int, ndv: float) -> float:
    """Return the false-positive rate of ``num_blocks`` blocks that hold ``ndv`` distinct values.

    >>> round(fpp(1024, 26_214), 4)
    0.0126
    """
    blocks = whole("num_blocks", num_blocks, least=1)
    if blocks > MAX_BLOCKS:
        raise too_large(blocks)
    return rate(_amount("ndv, the number of distinct values,", ndv) / blocks)


@lru_cache(maxsize=CACHED_ANSWERS)
def rate(load: float) -> float:
    """Return the false-positive rate at a mean number of values in a block."""
    if load <= 0:
        return 0.0
    if load > _HOPELESS_LOAD:
        return 1.0
    spread = 12 * math.sqrt(load) + 60
    first, last = max(1, int(load - spread)), int(load + spread)
    log_load, log_miss = math.log(load), math.log(31 / 32)
    terms = (
        math.exp(i * log_load - load - math.lgamma(i + 1)) * math.expm1(i * log_miss) ** 8
        for i in range(first, last + 1)
    )
    return min(1.0, math.fsum(terms))


def num_blocks(ndv: int, fpp: float, rule: SizingRule = "putze") -> int:
    """Return the blocks that ``ndv`` distinct values need for a false-positive rate of at most ``fpp``.

    ``rule``: "putze", exact, any number of blocks; "parquet", the closed form rounded up to a power of two between
    32 bytes and 128 MiB, as arrow-rs and parquet-java size; "lance", the smallest power of two that Lance picks.

    >>> num_blocks(10_000, 0.01), num_blocks(10_000, 0.01, rule="parquet"), num_blocks(8192, 0.00057, rule="lance")
    (412, 512, 1024)
    """
    count = whole("ndv", ndv, least=0)
    if count > _MAX_NDV:
        raise InvalidArgumentError(
            f"ndv, the number of distinct values, is too large: at most 2^63 - 1 = {_MAX_NDV}",
            found=f"a number of {count.bit_length()} bits",
        )
    target = rate_argument(fpp)
    if rule == "putze":
        return _putze_blocks(count, target)
    if rule == "parquet":
        return _parquet_blocks(count, target)
    if rule == "lance":
        return _lance_blocks(count, target)
    raise InvalidArgumentError(f"rule must be one of {', '.join(get_args(SizingRule))}", found=rule)


def auto_fpp(units: int) -> float:
    """Return the rate that gives 0.25 expected false positives in a lookup over this many units, within bounds."""
    low, high = _AUTO_RANGE
    return min(high, max(low, 0.25 / max(1.0, _amount("units", units))))


def foldable_blocks(num_blocks: int) -> int:
    """Return the next number of blocks that folds well: m * 2^k with 16 <= m < 32.

    The exact size for some values may be a prime, which folds only to a single block. This one costs up to 6 percent
    more (usually 2 to 3), can be halved k times, and m often has divisors too. Fewer than 32 blocks stay as
    they are.

    >>> foldable_blocks(41_131), foldable_blocks(23)
    (43008, 23)
    """
    blocks = whole("num_blocks", num_blocks, least=1)
    halvings = max(0, blocks.bit_length() - FOLDABLE_BITS)
    rounded = -(-blocks >> halvings) << halvings
    if rounded > MAX_BLOCKS:
        raise too_large(rounded)
    return rounded


def layer_fpps(fpp: float) -> tuple[float, ...]:
    """Return the rate of each layer of filters that together give ``fpp``.

    A single filter gets expensive below one in a thousand (41 bits a value at 1e-5); two independent ones at the
    square root do not (27), and below 2e-7 three save a tenth of the bits of two (37 instead of 42 at 1e-7). A layer
    costs each lookup a further read (docs/decisions/0048), so a third one comes only where it saves that much.

    >>> layer_fpps(0.01), layer_fpps(1e-6), len(layer_fpps(1e-7))
    ((0.01,), (0.001, 0.001), 3)
    """
    target = rate_argument(fpp)
    layers = 1 + sum(target < limit for limit in _LAYERS_BELOW)
    return (target ** (1 / layers),) * layers


def _putze_blocks(ndv: int, fpp: float) -> int:
    estimate = ndv / _load_for(fpp)
    if estimate > 2 * MAX_BLOCKS:
        raise too_large(f"about {estimate:.3g}")
    # The load is exact to 12 digits: find the last block exactly.
    near = range(max(1, math.floor(estimate) - 1), math.ceil(estimate) + 2)
    blocks = next((blocks for blocks in near if rate(ndv / blocks) <= fpp), near[-1])
    if blocks > MAX_BLOCKS:
        raise too_large(blocks)
    return blocks


@lru_cache(maxsize=CACHED_ANSWERS)
def _load_for(fpp: float) -> float:
    """Return the largest load whose rate is at most ``fpp``, to 12 digits."""
    low, high = 0.0, _HOPELESS_LOAD
    middle = high / 2
    while high - low > 1e-12 * high and low < middle < high:  # the smallest floats have fewer digits
        low, high = (middle, high) if rate(middle) <= fpp else (low, middle)
        middle = (low + high) / 2
    return low or high


def _parquet_blocks(ndv: int, fpp: float) -> int:
    bits = -8.0 * ndv / _log_one_minus_root(fpp)
    size = max(BYTES_PER_BLOCK, min(int(min(bits, 8.0 * _MAX_EMBEDDED_BYTES)) // 8, _MAX_EMBEDDED_BYTES))
    return (1 << (size - 1).bit_length()) // BYTES_PER_BLOCK


def _log_one_minus_root(fpp: float) -> float:
    """Return ln(1 - fpp^(1/8)), also if the difference is too close to 0 or 1 for a plain subtraction."""
    root = fpp ** (1 / 8)
    return math.log1p(-root) if root < 0.5 else math.log(-math.expm1(math.log(fpp) / 8))


@lru_cache(maxsize=CACHED_ANSWERS)  # 750 terms for each step of the search
def _lance_blocks(ndv: int, fpp: float) -> int:
    """Search the power of two as Lance does: a Poisson sum of 750 terms, log2 of the bytes between 5 and 27."""
    low, high = 0, 64
    while high > low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _lance_rate(ndv, middle) < fpp else (middle, high)
    return (1 << min(27, max(5, high))) // BYTES_PER_BLOCK


def _lance_rate(ndv: int, log2_bytes: int) -> float:
    bits = 8.0 * 2.0**log2_bytes
    if ndv == 0:
        return 0.0
    if ndv / bits > 2:
        return 1.0
    load = BITS_PER_BLOCK * ndv / bits
    total = 0.0
    for i in range(749, -1, -1):
        log_poisson = i * math.log(load) - load - math.lgamma(i + 1)
        share = 1 - (31 / 32) ** i
        total += math.exp(log_poisson + 8 * math.log(share)) if share > 0 else 0.0
    return total


def whole(name: str, value: SupportsIndex, least: int) -> int:
    """Return a whole number that is at least ``least``, and raise InvalidArgumentError otherwise."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgumentError(f"{name} must be a whole number", found=value) from None
    if number < least:
        raise InvalidArgumentError(f"{name} must be at least {least}", found=number)
    return number


def rate_argument(fpp: float) -> float:
    """Return a rate strictly between 0 and 1, and raise InvalidArgumentError otherwise."""
    number = _real(fpp)
    if not 0 < number < 1:
        raise InvalidArgumentError(
            "fpp, the false-positive probability, must lie strictly between 0 and 1",
            found=fpp,
            hint=_rate_hint(fpp, number),
        )
    return number


def _rate_hint(given: object, number: float) -> str:
    """Return a hint for the probable mistake: percent, or a number as text."""
    text = given.strip() if isinstance(given, str) else ""
    try:
        number = float(text.rstrip("% ")) if text else number
    except ValueError:
        return "try fpp=0.01"
    if text and not text.endswith("%") and 0 < number < 1:
        return f"pass the number itself: fpp={number:g}"
    if 1 <= number < 100 or (text.endswith("%") and 0 < number < 100):
        return f"it is a fraction: {number:g} % is fpp={number / 100:g}"
    return "try fpp=0.01"


def _amount(name: str, value: float) -> float:
    number = _real(value)
    if not number >= 0:
        raise InvalidArgumentError(f"{name} must be a number that is not negative", found=value)
    return number


def _real(value: object) -> float:
    """Return a real number of any class, numpy's included, as a float; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if operator.gt(value, 0) else -math.inf


def too_large(blocks: int | str) -> InvalidArgumentError:
    """Return the error for more blocks than a 32-bit block number reaches."""
    return InvalidArgumentError(
        f"a filter has at most 2^31 - 1 = {MAX_BLOCKS} blocks",
        found=f"{blocks} blocks",
        hint="use a higher fpp, or filters over fewer values",
    )

"""``Sbbf``: the Split Block Bloom Filter as an object.

A filter answers "certainly absent" or "perhaps present". It is z blocks of 256 bits; a value sets eight bits of one
block. Its bytes are those of the filters in Parquet files and in Lance's index.

Threads may share a filter: changes take its lock; reads need none, because bits are never cleared.
An insert records the type of its values before it sets bits; a probe reads the types after it tests bits.
"""

from __future__ import annotations

import math
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakebloom.calls import typed_call
from lakebloom.errors import FilterMismatchError, InvalidArgumentError
from lakebloom.sbbf import estimates, folding, sizing
from lakebloom.sbbf.blocks import MAX_BLOCKS, WORDS_PER_BLOCK
from lakebloom.sbbf.bytes import bitsets
from lakebloom.sbbf.hashing.encoding import CANONICAL, Encoding, require_encoding
from lakebloom.sbbf.hashing.hash_values import hash_slices, kernels_for, prepare
from lakebloom.sbbf.kernels.choose import choose
from lakebloom.sbbf.values.read import is_scalar, read_values
from lakebloom.sbbf.values.unwrap import unwrapped
from lakebloom.sbbf.values.widths import ANY_WIDTH, NO_WIDTH, Widths, widths_of

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import BoolArray, HashArray, WordArray
    from lakebloom.sbbf.kernels.choose import Kernels

__all__ = ["Sbbf"]


class Sbbf:
    """A Split Block Bloom Filter.

    >>> f = Sbbf.for_items(1000, fpp=0.01)
    >>> f.insert(["alice", "bob", None])
    >>> "alice" in f, "carol" in f
    (True, False)
    >>> f.might_contain(["bob", "dave", None]).tolist()
    [True, False, False]
    """

    __slots__ = ("_lock", "_widths", "_words")
    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self, num_blocks: int) -> None:
        blocks = sizing.whole("num_blocks", num_blocks, least=1)
        if blocks > MAX_BLOCKS:
            raise sizing.too_large(blocks)
        self._lock = threading.Lock()
        self._words: WordArray = np.zeros((blocks, WORDS_PER_BLOCK), dtype=np.uint32)
        self._widths = NO_WIDTH

    @classmethod
    @typed_call
    def for_items(cls, ndv: int, fpp: float = 0.01, rule: sizing.SizingRule = "putze") -> Sbbf:
        """Return an empty filter that will hold ``ndv`` distinct values at a false-positive rate of ``fpp``.

        ``rule`` is explained at ``lakebloom.sizing.num_blocks``.
        """
        return cls(sizing.num_blocks(ndv, fpp, rule))

    @classmethod
    def from_words(cls, words: WordArray) -> Sbbf:
        """Wrap [num_blocks, 8] words of uint32, without a copy where they are native, aligned and contiguous.

        Raises InvalidArgumentError for an array of another type or shape.
        """
        return cls._of(bitsets.require_words(words), ANY_WIDTH)

    @classmethod
    def _of(cls, words: WordArray, widths: Widths) -> Sbbf:
        made = cls.__new__(cls)
        made._lock, made._words, made._widths = threading.Lock(), words, widths
        return made

    # Values

    def insert(self, values: object, *, type: pa.DataType | None = None, encoding: Encoding = CANONICAL) -> None:
        """Insert one value or many; NULLs are skipped.

        ``type`` says how to read Python objects, ``encoding`` which bytes of a value are hashed. Raises
        UnsupportedTypeError, ValueConversionError or InvalidArgumentError, before anything is inserted.
        """
        require_encoding(encoding)
        chunks = [unwrapped(chunk) for chunk in read_values(values, type).chunks]
        prepared = [prepare(chunk, encoding) for chunk in chunks]
        kernels = kernels_for(*prepared)
        self._learn(widths_of(chunks, encoding))
        for part in prepared:
            for where, hashes in hash_slices(part, kernels):
                self._set_bits(kernels, hashes if part.valid is None else hashes[part.valid[where]])

    def _learn(self, widths: Widths) -> None:
        with self._lock:
            self._widths |= widths

    def _set_bits(self, kernels: Kernels, hashes: HashArray) -> None:
        with self._lock:
            kernels.insert(self._own_words(), hashes)

    def _own_words(self) -> WordArray:
        """Return words to write to; a copy, if the memory is read-only."""
        if not self._words.flags.writeable:
            self._words = self._words.copy()
        return self._words

    def might_contain(
        self, values: object, *, type: pa.DataType | None = None, encoding: Encoding = CANONICAL
    ) -> bool | BoolArray:
        """Tell for each value whether it may be in the filter: False is certain. A NULL is not.

        Returns a bool for a scalar and a numpy array of bools otherwise. A number of another width than those
        inserted (Python's 5 against int32 values) is looked up in their width too. A filter made from bytes or hashes
        does not know its widths: there a Python number is looked up as int, bigint, float and double, and a decimal
        needs its ``type``.
        """
        require_encoding(encoding)
        chunks, typed = read_values(values, type)
        answers = [self._check_chunk(unwrapped(chunk), encoding, typed=typed) for chunk in chunks]
        joined = answers[0] if len(answers) == 1 else np.concatenate(answers)
        return bool(joined[0]) if is_scalar(values) else joined

    def _check_chunk(self, chunk: pa.Array, encoding: Encoding, *, typed: bool) -> BoolArray:
        answer = self._check_array(chunk, encoding)
        for other in self._widths.other_forms(chunk, encoding, typed=typed):
            answer |= self._check_array(other, encoding)
        return answer

    def _check_array(self, array: pa.Array, encoding: Encoding) -> BoolArray:
        prepared = prepare(array, encoding)
        out = np.empty(len(array), dtype=np.bool_)
        kernels = kernels_for(prepared)
        for where, hashes in hash_slices(prepared, kernels):
            kernels.check(self._words, hashes, out[where])
        return out if prepared.valid is None else out & prepared.valid

    def __contains__(self, value: object) -> bool:
        if not is_scalar(value):
            raise InvalidArgumentError("`in` takes one value", found=value, hint="use might_contain for several")
        return bool(self.might_contain(value))

    def insert_hashes(self, hashes: HashArray) -> None:
        """Insert values by their hashes, a numpy array of uint64."""
        hashes = _hash_argument(hashes)
        if len(hashes):
            self._learn(ANY_WIDTH)
            self._set_bits(choose(len(hashes)), hashes)

    def might_contain_hashes(self, hashes: HashArray) -> BoolArray:
        """Tell for each hash whether its value may be in the filter."""
        hashes = _hash_argument(hashes)
        out = np.empty(len(hashes), dtype=np.bool_)
        choose(len(hashes)).check(self._words, hashes, out)
        return out

    # Sizes

    def fold(self, num_blocks: int) -> Sbbf:
        """Return the filter of the same values with fewer blocks, a divisor of this one's number."""
        folded = folding.fold(self._words, sizing.whole("num_blocks", num_blocks, least=1))
        return Sbbf._of(folded, self._widths)

    def fold_to(self, fpp: float) -> Sbbf:
        """Return the smallest folded filter whose rate, estimated from its bits, is at most ``fpp``.

        A filter that already exceeds that rate is returned at its own size. Only divisors of this size are
        possible, so start from a size with many divisors, a few percent above the exact one:

        >>> exact = sizing.num_blocks(100_000, 0.01)
        >>> f = Sbbf(sizing.foldable_blocks(exact))
        >>> exact, f.num_blocks
        (4113, 4352)
        >>> f.insert(range(1000))
        >>> f.fold_to(0.01).num_blocks
        64
        """
        folded = folding.fold_to(self._words, sizing.rate_argument(fpp))
        return Sbbf._of(folded, self._widths)

    @property
    def num_blocks(self) -> int:
        """The number of 256-bit blocks, z."""
        return len(self._words)

    @property
    def num_bytes(self) -> int:
        """The size of the bitset in bytes, 32 z."""
        return self._words.nbytes

    @property
    def fpp(self) -> float:
        """The false-positive rate, estimated from the bits."""
        return estimates.fpp(self._words)

    @property
    def ndv(self) -> float:
        """The number of distinct values, estimated from the bits; infinity when all are set."""
        return estimates.ndv(self._words)

    @property
    def words(self) -> WordArray:
        """The bits as a read-only [num_blocks, 8] array of uint32."""
        view: WordArray = self._words.view()
        view.flags.writeable = False
        return view

    # Sets

    def __ior__(self, other: Sbbf) -> Sbbf:
        if not isinstance(other, Sbbf):
            return NotImplemented
        self._require_same_size(other)
        with _locked(self, other):
            words = self._own_words()
            np.bitwise_or(words, other._words, out=words)
            self._widths |= other._widths
        return self

    def __or__(self, other: Sbbf) -> Sbbf:
        if not isinstance(other, Sbbf):
            return NotImplemented
        self._require_same_size(other)
        words = self._words | other._words
        return Sbbf._of(words, self._widths | other._widths)

    def _require_same_size(self, other: Sbbf) -> None:
        if other.num_blocks != self.num_blocks:
            raise FilterMismatchError(
                "filters can be merged only if they have the same number of blocks",
                found=f"{self.num_blocks} and {other.num_blocks}",
                hint=f"fold both to {math.gcd(self.num_blocks, other.num_blocks)} first",
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sbbf):
            return NotImplemented
        return np.array_equal(self._words, other._words)

    def __repr__(self) -> str:
        return f"Sbbf(num_blocks={self.num_blocks}, ndv~{self.ndv:.0f}, fpp~{self.fpp:.2g})"

    # Bytes

    def to_bytes(self) -> bytes:
        """Return the bitset: little-endian words, block after block. This is also how Lance stores a filter."""
        return bitsets.to_bytes(self._words)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Sbbf:
        """Return the filter of a bitset. A tail of fewer than 32 bytes, which some writers leave, is ignored.

        The bytes are not copied before the first insert. Raises CorruptFilterError for fewer than 32 bytes, and
        InvalidArgumentError for other objects than bytes.
        """
        return cls._of(bitsets.from_bytes(data), ANY_WIDTH)

    def to_parquet(self) -> bytes:
        """Return the filter in the form of a Parquet file: Thrift header, then the bitset."""
        return bitsets.to_parquet(self._words)

    @classmethod
    def from_parquet(cls, data: bytes | memoryview) -> Sbbf:
        """Return the filter after the Thrift header at the start of ``data``. Later bytes are ignored.

        Raises CorruptFilterError or UnsupportedFilterError, and InvalidArgumentError for other objects than bytes.
        """
        return cls._of(bitsets.from_parquet(data), ANY_WIDTH)

    def __reduce__(self) -> tuple[Any, ...]:
        # For pickle and copy: a lock cannot be copied.
        return _restored, (self.to_bytes(), tuple(self._widths.types), self._widths.complete)


def _restored(data: bytes, types: tuple[pa.DataType, ...], complete: bool) -> Sbbf:
    return Sbbf._of(bitsets.from_bytes(data), Widths(frozenset(types), complete))


def _locked(*filters: Sbbf) -> ExitStack:
    """Take the locks of several filters in a fixed order, so that two merges cannot deadlock."""
    stack = ExitStack()
    for lock in sorted({f._lock for f in filters}, key=id):
        stack.enter_context(lock)
    return stack


def _hash_argument(hashes: Any) -> HashArray:
    array = np.asarray(hashes)
    if array.dtype != np.uint64 or array.ndim != 1:
        raise InvalidArgumentError(
            "hashes must be a numpy array of uint64 with one dimension",
            found=f"{array.dtype} with {array.ndim} dimensions",
            hint="make them with lakebloom.hash_values",
        )
    return np.require(array, requirements=["C", "A"])

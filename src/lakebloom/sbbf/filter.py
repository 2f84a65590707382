"""``Sbbf``: the Split Block Bloom Filter as an object.

A filter answers "certainly absent" or "perhaps present". It is z blocks of 256 bits; a value sets eight bits of one
block. Its bytes are those of the filters in Parquet files and in Lance's index.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakebloom.errors import CorruptFilterError, FilterMismatchError, InvalidArgumentError
from lakebloom.sbbf import estimates, folding, sizing
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK, MAX_BLOCKS, WORDS_PER_BLOCK
from lakebloom.sbbf.encoding import CANONICAL, Encoding, require_encoding
from lakebloom.sbbf.hashing import hash_slices, prepare
from lakebloom.sbbf.kernels import choose
from lakebloom.sbbf.values import as_other_number, is_scalar, to_chunks

if TYPE_CHECKING:
    from lakebloom.sbbf.kernels import BoolArray, HashArray, WordArray

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

    __slots__ = ("_types", "_words")
    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self, num_blocks: int) -> None:
        blocks = sizing.whole("num_blocks", num_blocks, least=1)
        if blocks > MAX_BLOCKS:
            raise sizing.too_large(blocks)
        self._words: WordArray = np.zeros((blocks, WORDS_PER_BLOCK), dtype=np.uint32)
        self._types: frozenset[pa.DataType] = frozenset()

    @classmethod
    def for_items(cls, ndv: int, fpp: float = 0.01, rule: sizing.SizingRule = "putze") -> Sbbf:
        """Return an empty filter that will hold ``ndv`` distinct values at a false-positive rate of ``fpp``.

        ``rule`` is explained at ``lakebloom.sizing.num_blocks``.
        """
        return cls(sizing.num_blocks(ndv, fpp, rule))

    @classmethod
    def from_words(cls, words: WordArray) -> Sbbf:
        """Wrap [num_blocks, 8] words without a copy."""
        made = cls.__new__(cls)
        made._words, made._types = words, frozenset()
        return made

    # Values

    def insert(self, values: object, *, type: pa.DataType | None = None, encoding: Encoding = CANONICAL) -> None:
        """Insert one value or many; NULLs are skipped.

        ``type`` says how to read Python objects, ``encoding`` which bytes of a value are hashed. Raises
        UnsupportedTypeError, ValueConversionError or InvalidArgumentError, before anything is inserted.
        """
        require_encoding(encoding)
        chunks = to_chunks(values, type)
        prepared = [prepare(chunk, encoding) for chunk in chunks]
        for part in prepared:
            for where, hashes in hash_slices(part):
                self.insert_hashes(hashes if part.valid is None else hashes[part.valid[where]])
        self._types |= {chunk.type for chunk in chunks if len(chunk)}

    def might_contain(
        self, values: object, *, type: pa.DataType | None = None, encoding: Encoding = CANONICAL
    ) -> bool | BoolArray:
        """Tell for each value whether it may be in the filter: False is certain. A NULL is not.

        Returns a bool for a scalar and a numpy array of bools otherwise. A number of another width than those
        inserted (Python's 5 against int32 values) is looked up in their width too.
        """
        require_encoding(encoding)
        answers = [self._check_chunk(chunk, encoding) for chunk in to_chunks(values, type)]
        joined = answers[0] if len(answers) == 1 else np.concatenate([np.empty(0, dtype=np.bool_), *answers])
        return bool(joined[0]) if is_scalar(values) else joined

    def _check_chunk(self, chunk: pa.Array, encoding: Encoding) -> BoolArray:
        answer = self._check_array(chunk, encoding)
        for known in self._types:
            other = as_other_number(chunk, known)
            if other is not None:
                answer |= self._check_array(other, encoding)
        return answer

    def _check_array(self, array: pa.Array, encoding: Encoding) -> BoolArray:
        prepared = prepare(array, encoding)
        out = np.empty(len(array), dtype=np.bool_)
        kernels = choose(len(array))
        for where, hashes in hash_slices(prepared):
            kernels.check(self._words, hashes, out[where])
        return out if prepared.valid is None else out & prepared.valid

    def __contains__(self, value: object) -> bool:
        if not is_scalar(value):
            raise InvalidArgumentError("`in` takes one value", found=value, hint="use might_contain for several")
        return bool(self.might_contain(value))

    def insert_hashes(self, hashes: HashArray) -> None:
        """Insert values by their hashes, a numpy array of uint64."""
        hashes = _hash_argument(hashes)
        if not self._words.flags.writeable:  # made over somebody else's memory: take a copy to write to
            self._words = self._words.copy()
        choose(len(hashes)).insert(self._words, hashes)

    def might_contain_hashes(self, hashes: HashArray) -> BoolArray:
        """Tell for each hash whether its value may be in the filter."""
        hashes = _hash_argument(hashes)
        out = np.empty(len(hashes), dtype=np.bool_)
        choose(len(hashes)).check(self._words, hashes, out)
        return out

    # Sizes

    def fold(self, num_blocks: int) -> Sbbf:
        """Return the filter that ``num_blocks`` blocks, a divisor of this one's, would have given."""
        return self._like(folding.fold(self._words, sizing.whole("num_blocks", num_blocks, least=1)))

    def fold_to(self, fpp: float) -> Sbbf:
        """Return the smallest folded filter whose rate, estimated from its bits, is at most ``fpp``.

        A filter that already exceeds that rate comes back at its own size.
        """
        return self._like(folding.fold_to(self._words, sizing.rate_argument(fpp)))

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
        view = self._words.view()
        view.flags.writeable = False
        return view

    # Sets

    def __ior__(self, other: Sbbf) -> Sbbf:
        if not isinstance(other, Sbbf):
            return NotImplemented
        merged = self | other
        self._words, self._types = merged._words, merged._types
        return self

    def __or__(self, other: Sbbf) -> Sbbf:
        if not isinstance(other, Sbbf):
            return NotImplemented
        if other.num_blocks != self.num_blocks:
            common = math.gcd(self.num_blocks, other.num_blocks)
            raise FilterMismatchError(
                "filters merge only at the same number of blocks",
                found=f"{self.num_blocks} and {other.num_blocks}",
                hint=f"fold both to {common} first",
            )
        merged = self._like(self._words | other._words)
        merged._types |= other._types
        return merged

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sbbf):
            return NotImplemented
        return np.array_equal(self._words, other._words)

    def _like(self, words: WordArray) -> Sbbf:
        made = Sbbf.from_words(words)
        made._types = self._types
        return made

    def __repr__(self) -> str:
        return f"Sbbf(num_blocks={self.num_blocks}, ndv~{self.ndv:.0f}, fpp~{self.fpp:.2g})"

    # Bytes

    def to_bytes(self) -> bytes:
        """Return the bitset: little-endian words, block after block. This is also how Lance stores a filter."""
        return self._words.astype("<u4", copy=False).tobytes()

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Sbbf:
        """Return the filter of a bitset. A tail of fewer than 32 bytes, which some writers leave, is ignored.

        The bytes are not copied until something is inserted. Raises CorruptFilterError for fewer than 32 bytes.
        """
        view = memoryview(data).cast("B")
        blocks = len(view) // BYTES_PER_BLOCK
        if blocks < 1:
            raise CorruptFilterError(
                f"a filter has at least {BYTES_PER_BLOCK} bytes",
                found=f"{len(view)} bytes",
                hint="pass a whole bitset",
            )
        words = np.frombuffer(view[: blocks * BYTES_PER_BLOCK], dtype="<u4").reshape(blocks, WORDS_PER_BLOCK)
        if words.flags.writeable or words.ctypes.data % words.itemsize:
            words = words.copy()
        return cls.from_words(words)

    def to_parquet(self) -> bytes:
        """Return the filter as it stands in a Parquet file: Thrift header, then the bitset."""
        from lakebloom.sbbf.header import MAX_BITSET_BYTES, write_header

        if self.num_bytes > MAX_BITSET_BYTES:
            raise FilterMismatchError(
                f"a filter in a Parquet file has at most {MAX_BITSET_BYTES} bytes",
                found=f"{self.num_bytes} bytes",
                hint="fold it first",
            )
        return write_header(self.num_bytes) + self.to_bytes()

    @classmethod
    def from_parquet(cls, data: bytes | memoryview) -> Sbbf:
        """Return the filter that starts with a Thrift header at the start of ``data``; what follows it is ignored.

        Raises CorruptFilterError or UnsupportedFilterError.
        """
        from lakebloom.sbbf.header import read_header

        view = memoryview(data).cast("B")
        num_bytes, header_bytes = read_header(view)
        bitset = view[header_bytes : header_bytes + num_bytes]
        if len(bitset) < num_bytes:
            raise CorruptFilterError(
                f"the header announces a bitset of {num_bytes} bytes",
                found=f"{len(bitset)} bytes after it",
                hint="read the whole filter: bloom_filter_length bytes from bloom_filter_offset",
            )
        return cls.from_bytes(bitset)


def _hash_argument(hashes: Any) -> HashArray:
    array = np.asarray(hashes)
    if array.dtype != np.uint64 or array.ndim != 1:
        raise InvalidArgumentError(
            "hashes must be a numpy array of uint64 with one dimension",
            found=f"{array.dtype} with {array.ndim} dimensions",
            hint="make them with lakebloom.hash_values",
        )
    return np.ascontiguousarray(array)

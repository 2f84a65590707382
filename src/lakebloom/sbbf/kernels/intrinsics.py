"""LLVM building blocks of the compiled kernels: unaligned loads, vectors of a block and of a hash state, prefetch.

A block is eight 32-bit words, so one value touches one vector of eight lanes:

    mask = 1 << ((key * salt) >> 27)        eight lanes at once, key = the low 32 bits of the hash
    insert:  block |= mask                  check:  mask & ~block == 0

XXH64 consumes long values in stripes of 32 bytes with four independent 64-bit states: one vector of four lanes.
LLVM finds neither shape in scalar loops, so both are written as vectors here.

Memory is addressed by plain integers: one machine-code signature then serves writable arrays, read-only Arrow
buffers and memory maps.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from lakebloom.sbbf.blocks import SALTS
from lakebloom.sbbf.kernels.xxh64 import PRIMES

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_LANES = ir.VectorType(_I32, 8)
_STATES = ir.VectorType(_I64, 4)


def _lanes(values: list[int]) -> Any:
    return ir.Constant(_LANES, values)


def _states(values: list[int]) -> Any:
    return ir.Constant(_STATES, [value % 2**64 for value in values])


def _pointer(builder: Any, address: Any, pointee: Any) -> Any:
    return builder.inttoptr(address, pointee.as_pointer())


def _block_pointer(builder: Any, words: Any, block: Any) -> Any:
    byte_offset = builder.shl(block, ir.Constant(_I64, 5))
    return _pointer(builder, builder.add(words, byte_offset), _LANES)


def _mask(builder: Any, key: Any) -> Any:
    undefined = ir.Constant(_LANES, ir.Undefined)
    first = builder.insert_element(undefined, key, ir.Constant(_I32, 0))
    keys = builder.shuffle_vector(first, undefined, _lanes([0] * 8))
    shifts = builder.lshr(builder.mul(keys, _lanes(list(SALTS))), _lanes([27] * 8))
    return builder.shl(_lanes([1] * 8), shifts)


def _unaligned_load(bits: int) -> Any:
    @intrinsic
    def load(typing_context: Any, base: Any, byte_offset: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            # Base and offset stay separate: LLVM vectorises a loop over base[i], not one over inttoptr(base + i).
            pointer = builder.gep(_pointer(builder, args[0], _I8), [args[1]])
            value = builder.load(builder.bitcast(pointer, ir.IntType(bits).as_pointer()), align=1)
            return value if bits == 64 else builder.zext(value, _I64)

        return types.uint64(types.int64, types.int64), codegen

    return load


@intrinsic
def big_endian(typing_context: Any, word: Any) -> Any:
    """Return a word with its bytes reversed: as a number it then sorts like the bytes in memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(args[0])

    return types.uint64(types.uint64), codegen


load_u8, load_u32, load_u64 = _unaligned_load(8), _unaligned_load(32), _unaligned_load(64)


def _unaligned_store(bits: int, *, merge: bool = False) -> Any:
    @intrinsic
    def store(typing_context: Any, base: Any, byte_offset: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.gep(_pointer(builder, args[0], _I8), [args[1]])
            pointer = builder.bitcast(pointer, ir.IntType(bits).as_pointer())
            value = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
            if merge:
                value = builder.or_(value, builder.load(pointer, align=1))
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.uint64), codegen

    return store


store_u8, store_u64, or_u64 = _unaligned_store(8), _unaligned_store(64), _unaligned_store(64, merge=True)


def _rotate(builder: Any, states: Any, bits: list[int]) -> Any:
    left = builder.shl(states, _states(bits))
    return builder.or_(left, builder.lshr(states, _states([64 - count for count in bits])))


def _stripe_round(builder: Any, states: Any, data: Any) -> Any:
    mixed = builder.add(states, builder.mul(data, _states([PRIMES[1]] * 4)))
    return builder.mul(_rotate(builder, mixed, [31] * 4), _states([PRIMES[0]] * 4))


def _merge(builder: Any, states: Any) -> Any:
    def lane(vector: Any, number: int) -> Any:
        return builder.extract_element(vector, ir.Constant(_I32, number))

    turned = _rotate(builder, states, [1, 7, 12, 18])
    rounds = _stripe_round(builder, _states([0] * 4), states)
    h = lane(turned, 0)
    for number in range(1, 4):
        h = builder.add(h, lane(turned, number))
    for number in range(4):
        h = builder.mul(builder.xor(h, lane(rounds, number)), ir.Constant(_I64, PRIMES[0]))
        h = builder.add(h, ir.Constant(_I64, PRIMES[3]))
    return h


@intrinsic
def hash_stripes(typing_context: Any, base: Any, start: Any, stripes: Any) -> Any:
    """Run XXH64 over ``stripes`` >= 1 stripes of 32 bytes and return the merged state."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.gep(_pointer(builder, args[0], _I8), [args[1]])
        entry, loop, done = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        number, states = builder.phi(_I64), builder.phi(_STATES)
        here = builder.gep(first, [builder.shl(number, ir.Constant(_I64, 5))])
        data = builder.load(builder.bitcast(here, _STATES.as_pointer()), align=1)
        next_states = _stripe_round(builder, states, data)
        next_number = builder.add(number, ir.Constant(_I64, 1))
        number.add_incoming(ir.Constant(_I64, 0), entry)
        number.add_incoming(next_number, loop)
        states.add_incoming(_states([PRIMES[0] + PRIMES[1], PRIMES[1], 0, -PRIMES[0]]), entry)
        states.add_incoming(next_states, loop)
        builder.cbranch(builder.icmp_signed("<", next_number, args[2]), loop, done)
        builder.position_at_end(done)
        return _merge(builder, next_states)

    return types.uint64(types.int64, types.int64, types.int64), codegen


@intrinsic
def insert_key(typing_context: Any, words: Any, block: Any, key: Any) -> Any:
    """Set the key's eight bits in the block numbered ``block`` of the filter at address ``words``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _block_pointer(builder, args[0], args[1])
        builder.store(builder.or_(builder.load(pointer, align=4), _mask(builder, args[2])), pointer, align=4)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.uint32), codegen


@intrinsic
def contains_key(typing_context: Any, words: Any, block: Any, key: Any) -> Any:
    """Tell whether all of the key's eight bits are set, without a branch."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        stored = builder.load(_block_pointer(builder, args[0], args[1]), align=4)
        missing = builder.and_(_mask(builder, args[2]), builder.xor(stored, _lanes([0xFFFFFFFF] * 8)))
        whole = ir.IntType(256)
        return builder.icmp_unsigned("==", builder.bitcast(missing, whole), ir.Constant(whole, 0))

    return types.boolean(types.int64, types.int64, types.uint32), codegen


@intrinsic
def prefetch_block(typing_context: Any, words: Any, block: Any) -> Any:
    """Start loading a block into the CPU cache, so that a batch of values waits for memory once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte_offset = builder.shl(args[1], ir.Constant(_I64, 5))
        pointer = _pointer(builder, builder.add(args[0], byte_offset), _I8)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer.type], ir.FunctionType(ir.VoidType(), [pointer.type, _I32, _I32, _I32])
        )
        read, keep, data = ir.Constant(_I32, 0), ir.Constant(_I32, 3), ir.Constant(_I32, 1)
        builder.call(function, [pointer, read, keep, data])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen

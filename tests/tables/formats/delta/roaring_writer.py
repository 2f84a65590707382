"""Writes Roaring bitmaps, independent of the reader: each container in a form of choice."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["sorted", "bits", "runs"]


def usual(values: list[int]) -> Form:
    """Return the form that writers choose without runs."""
    return "sorted" if len(values) <= 4096 else "bits"


def roaring64(values: Iterable[int], form: Callable[[list[int]], Form] = usual) -> bytes:
    """Return a set in the portable form of 64 bits."""
    by_high = [(high, list(low)) for high, low in groupby(sorted(set(values)), lambda value: value >> 32)]
    parts = [struct.pack("<Q", len(by_high))]
    for high, low in by_high:
        parts += [struct.pack("<I", high), _roaring32([value & 0xFFFFFFFF for value in low], form)]
    return b"".join(parts)


def _roaring32(values: list[int], form: Callable[[list[int]], Form]) -> bytes:
    groups = [(key, [value & 0xFFFF for value in low]) for key, low in groupby(values, lambda value: value >> 16)]
    forms = [form(low) for _, low in groups]
    header = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in groups)
    bodies = [_container(low, kind) for (_, low), kind in zip(groups, forms, strict=True)]
    if "runs" in forms:
        flags = bytearray((len(groups) + 7) // 8)
        for number, kind in enumerate(forms):
            flags[number // 8] |= (kind == "runs") << number % 8
        start = struct.pack("<HH", 12347, len(groups) - 1) + bytes(flags)
        with_offsets = len(groups) >= 4
    else:
        start, with_offsets = struct.pack("<II", 12346, len(groups)), True
    if with_offsets:
        at, offsets = len(start) + len(header) + 4 * len(groups), []
        for body in bodies:
            offsets.append(struct.pack("<I", at))
            at += len(body)
        header += b"".join(offsets)
    return start + header + b"".join(bodies)


def _container(low: list[int], form: Form) -> bytes:
    if form == "sorted":
        return struct.pack(f"<{len(low)}H", *low)
    if form == "bits":
        bits = bytearray(8192)
        for value in low:
            bits[value // 8] |= 1 << value % 8
        return bytes(bits)
    runs: list[list[int]] = []
    for value in low:
        if runs and value == runs[-1][0] + runs[-1][1] + 1:
            runs[-1][1] += 1
        else:
            runs.append([value, 0])
    return struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", *run) for run in runs)

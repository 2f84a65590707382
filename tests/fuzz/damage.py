"""Ways to damage bytes, and values that no honest writer gives."""

from __future__ import annotations

import json
import random
from typing import Any

__all__ = ["HOSTILE_VALUES", "cut", "damaged", "flipped", "lengthened", "shifted", "with_hostile_value"]


def flipped(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def overwritten(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    count = min(len(data) - at, rng.choice([1, 2, 4, 8, 64]))
    fill = rng.choice([rng.randbytes(count), b"\xff" * count, b"\x00" * count, b"\x7f" * count])
    return data[:at] + fill + data[at + count :]


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def lengthened(data: bytes, rng: random.Random) -> bytes:
    return data + rng.randbytes(rng.randrange(1, 64))


def shifted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(1) + data[at:-1]


def repeated(data: bytes, rng: random.Random) -> bytes:
    low, high = sorted(rng.choices(range(len(data) + 1), k=2))
    return data[:high] + data[low:high] * rng.randrange(1, 4) + data[high:]


_WAYS = [flipped, overwritten, overwritten, cut, lengthened, shifted, repeated]


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes with one to four things wrong."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        data = rng.choice(_WAYS)(data, rng) if data else rng.randbytes(8)
    return data


def _deep(levels: int) -> Any:
    nested: Any = 1
    for _ in range(levels):
        nested = [nested]
    return nested


HOSTILE_VALUES: list[Any] = [
    -1,
    0,
    1,
    2**31 - 1,
    2**31,
    2**63 - 1,
    2**63,
    2**70,
    -(2**63),
    1e308,
    -0.5,
    1.0,
    0.0,
    1e-320,
    "",
    "x" * 100_000,
    "../../outside",
    "/etc/passwd",
    "segments/../../x",
    "\x00",
    "decimal(99,99)",
    "array<" * 5000,
    '{"type":"struct","fields":[' * 2000,
    None,
    True,
    [],
    {},
    _deep(500),
    [[]] * 1000,
]


def with_hostile_value(tree: Any, rng: random.Random) -> Any:
    """Return JSON with one value exchanged, somewhere."""
    places: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in items:
            places.append((node, key))
            waiting.append(value)
    for _ in range(rng.choice([1, 1, 2])):
        node, key = rng.choice(places)
        if isinstance(node[key], str) and node[key].startswith("{"):  # JSON in JSON, such as a schema
            node[key] = json.dumps(with_hostile_value(json.loads(node[key]), rng))
            continue
        node[key] = rng.choice(HOSTILE_VALUES) if rng.random() < 0.8 else _near(node[key], rng)
    return tree


def _near(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return rng.choice([value + 1, value - 1, value * 2, -value, value * 1000])

"""Random rows for tables that a library writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.index.laws.random_history import RandomHistory

KEYS = 100
PARTITIONS = ("a", "b c", None, "100%")


def random_value(history: RandomHistory, kind: pa.DataType, name: str) -> Any:
    if name == "p":
        return history.random.choice(PARTITIONS)
    number = history.random.randrange(KEYS)
    return number if pa.types.is_integer(kind) else None if number % 7 == 0 else f"{name}-{number % 20}"


def random_rows(history: RandomHistory, schema: pa.Schema, keys: Sequence[int] | None = None) -> pa.Table:
    """Return some rows of a schema, or one for each of these keys."""
    count = history.random.randint(1, 12) if keys is None else len(keys)
    columns = [[random_value(history, each.type, each.name) for _ in range(count)] for each in schema]
    if keys is not None:
        columns[schema.names.index("k")] = list(keys)
    return pa.table([pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)], schema=schema)


def some_keys(history: RandomHistory) -> list[int]:
    return history.random.sample(range(KEYS), 5)

"""Settings are written as people write Spark's own, and a mistake is named."""

from __future__ import annotations

import pytest

from lakebloom.errors import InvalidArgumentError
from lakebloom.index.settings import KEYS, PREFIX, Settings

SIZES = [("0", 0), ("1048576", 1 << 20), ("1m", 1 << 20), ("64MB", 64 << 20), ("2 GB", 2 << 30), ("3k", 3072)]
TIMES = [("5000", 5000), ("5s", 5000), ("250ms", 250), ("2min", 120_000), ("7d", 7 * 86_400_000)]


@pytest.mark.parametrize(("text", "size_bytes"), SIZES)
def test_sizes_have_units(text: str, size_bytes: int) -> None:
    keys = [key for key, name in KEYS.items() if name.endswith("_bytes")]
    assert keys
    for key in keys:
        assert getattr(Settings.parse({key: text}), KEYS[key]) == size_bytes


@pytest.mark.parametrize(("text", "time_ms"), TIMES)
def test_times_have_units(text: str, time_ms: int) -> None:
    keys = [key for key, name in KEYS.items() if name.endswith("_ms")]
    assert keys
    for key in keys:
        assert getattr(Settings.parse({key: text}), KEYS[key]) == time_ms


@pytest.mark.parametrize("text", ["", "-1", "1.5m", "64 megs", "m", "1m2", "1s"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="a size such as 67108864, 64m or 64MB"):
        Settings.parse({f"{PREFIX}global.maxBytes": text})


def test_a_number_of_keys_has_no_unit() -> None:
    with pytest.raises(InvalidArgumentError, match="a number"):
        Settings.parse({f"{PREFIX}join.maxKeys": "10k"})

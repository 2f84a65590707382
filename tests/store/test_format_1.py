"""An index of format version 1, as it was once written, is read by every later version."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakebloom import Lakebloom, col
from lakebloom.index.catalog import Catalog
from lakebloom.store.global_filters import read_global
from tests.fixtures.make_format_1 import values_of

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "format-1"


def found(predicate: object) -> set[tuple[str, int]]:
    table = Lakebloom(location=FIXTURE).candidates("events", predicate)
    return {(Path(row["path"]).stem, row["row_start"]) for row in table.to_pylist()}


def test_its_records() -> None:
    lake = Lakebloom(location=FIXTURE)
    record = lake.index("events")
    assert (record.version, record.segments, record.units, record.columns) == (2, 2, 18, ("user_id", "s.country"))
    assert [version.operation for version in lake.history("events")] == ["refresh", "create"]


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("row", [0, 57, 133, 199])
def test_every_value_is_found_where_it_is(number: int, row: int) -> None:
    users, countries = values_of(number)
    here = (f"part-{number:03d}", 0 if row < 100 else 100)
    assert here in found(col("user_id") == users[row].as_py())
    assert len(found(col("user_id") == users[row].as_py())) <= 2
    country = countries[row].as_py()
    if country is not None:
        assert here in found(col("s.country") == country)


def test_absent_values_and_nulls() -> None:
    assert found(col("user_id") == -1) == set()
    assert found(col("s.country").is_null()) == {(f"part-{n:03d}", start) for n in range(8) for start in (0, 100)}
    assert found(col("user_id").is_null()) == set()


def test_its_global_filters() -> None:
    index = Catalog(FIXTURE).index("events")
    for record in index.active().global_filters:
        f = read_global(index.storage, record)
        for number in range(5):
            assert f.might_contain(values_of(number)[record.column].drop_null()).all()

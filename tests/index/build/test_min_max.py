"""Each unit knows the bounds of its columns, whether its filters were built or imported."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig
from lakebloom.index.build.create import create_index
from lakebloom.index.maintain.optimize import optimize_index
from tests.index.lake import NAME, SMALL, Lake, columns_of
from tests.index.local_builder import source_of, workshop

UTC = datetime.timezone.utc
DAY, MOMENT = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30, 0, 1)
MICROS = 1_709_209_800_000_001

VALUES: dict[str, tuple[pa.Array, Any, Any]] = {
    "smallint": (pa.array([5, None, -3], pa.int16()), -3, 5),
    "int": (pa.array([2**31 - 1, None, 0], pa.int32()), 0, 2**31 - 1),
    "bigint": (pa.array([None, 2**62, -(2**63)], pa.int64()), -(2**63), 2**62),
    "float": (pa.array([1.5, -0.0, None], pa.float32()), 0.0, 1.5),
    "double": (pa.array([1.5, math.nan, None], pa.float64()), 1.5, math.nan),
    "date": (pa.array([DAY, None, datetime.date(1970, 1, 1)]), 0, 19782),
    "timestamp": (pa.array([MOMENT.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")), MICROS, MICROS),
    "timestamp_ntz": (pa.array([MOMENT, None], pa.timestamp("us")), MICROS, MICROS),
    "decimal(9,2)": (pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)), -225, 150),
    "decimal(38,2)": (pa.array([Decimal("1.50"), None], pa.decimal128(38, 2)), Decimal("1.50"), Decimal("1.50")),
    "string": (pa.array(["é", "z", None, "b" * 40]), b"b" * 32, "é".encode()),
    "binary": (pa.array([b"\xff" * 40, b"", None]), b"", None),
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_type(tmp_path: Any, kind: str) -> None:
    values, low, high = VALUES[kind]
    lake = Lake(tmp_path, {"c": kind})
    lake.write("f", {"c": values}, row_group_size=100)
    lake.create(BloomIndexConfig(NAME, ["c"]))
    (segment,) = lake.snapshot().segments
    assert repr([ends.to_pylist() for ends in segment.units.bounds(0)]) == repr([[low], [high]])


@pytest.mark.parametrize("granularity", ["file", "row_group", 7])
def test_every_unit_has_its_own(lake: Lake, granularity: Any) -> None:
    lake.fill(range(3))
    lake.write("nulls", {"k": pa.nulls(4, pa.int64()), "s": ["only"] * 4})
    lake.write("empty", columns_of([]))
    lake.create(BloomIndexConfig(NAME, ["k", "s", "n"], granularity=granularity))
    optimize_index(lake.catalog(), NAME)
    for segment in lake.snapshot().segments:
        for unit, span in enumerate(segment.units.units()):
            covered = range(span.row_start, span.row_start + span.row_count)
            rows = [row for uri, i, row in lake.rows() if uri == span.file.uri and i in covered]
            for number, column in enumerate(("k", "s", "n")):
                known = [row[column] for row in rows if row[column] is not None]
                known = [value.encode() if column == "s" else value for value in known]
                ends = [bound[unit].as_py() for bound in segment.units.bounds(number)]
                assert ends == ([min(known), max(known)] if known else [None, None])


@pytest.mark.parametrize("granularity", ["file", "row_group"])
def test_imported_filters_take_statistics_of_signed_numbers_only(lake: Lake, granularity: Any) -> None:
    columns = columns_of(range(20)) | {"n": pa.array([None] * 10 + list(range(10)), pa.int32())}
    given = {column: {"ndv": 100, "fpp": 1e-5} for column in columns}
    lake.write("f", columns, row_group_size=10, bloom_filter_options=given)
    config = BloomIndexConfig(NAME, ["k", "s", "n"], granularity=granularity, fpp=1e-4)
    shop = workshop(lake.catalog(), tasks=1, **SMALL)
    report = create_index(shop, source_of(lake.table, lake.types), config, from_embedded=True)
    assert report.read_anyway == ()
    (segment,) = lake.snapshot().segments
    found = {name: [ends.to_pylist() for ends in segment.units.bounds(i)] for i, name in enumerate("ksn")}
    if granularity == "file":
        assert found == {"k": [[0], [19]], "s": [[None], [None]], "n": [[0], [9]]}
    else:
        assert found == {"k": [[0, 10], [9, 19]], "s": [[None] * 2, [None] * 2], "n": [[None, 0], [None, 9]]}

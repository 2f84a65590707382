"""The price tag tells before a build what the build then costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lakebloom import BloomIndexConfig, col
from lakebloom.errors import IndexExistsError
from lakebloom.index.build.create import create_index, price_index
from lakebloom.index.build.price import PriceTag
from tests.index.lake import Lake
from tests.index.local_builder import source_of, workshop

if TYPE_CHECKING:
    from pathlib import Path


class _StoppedError(Exception):
    pass


@pytest.fixture
def keyed(tmp_path: Path) -> Lake:
    """Ten files of 40,000 keys each, no two alike."""
    lake = Lake(tmp_path, {"k": "bigint", "x": "bigint"})
    rng = np.random.default_rng(3)
    for number in range(10):
        keys = pa.array(rng.integers(0, 1 << 62, 40_000))
        lake.write(f"f{number}", {"k": keys, "x": keys}, row_group_size=10_000, use_dictionary=False)
    return lake


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["file", "row_group"])
def test_the_price_is_what_is_paid(keyed: Lake, granularity: str) -> None:
    config = BloomIndexConfig("i", ["k"], granularity=granularity)  # type: ignore[arg-type]
    price = price_index(workshop(keyed.catalog()), source_of(keyed.table, keyed.types), config)
    report = keyed.create(config)
    assert (price.files, price.units, price.rows) == (report.files, report.units, report.rows)
    assert price.fpp == pytest.approx(report.fpp)
    assert price.bytes_to_read == pytest.approx(report.bytes_read, rel=0.02)
    assert price.index_bytes == pytest.approx(report.bytes_written, rel=0.1)
    absent = [len(keyed.kept(col("k") == (1 << 60) + key)) for key in range(1, 201)]
    # Of a key that is there its own unit is read, and as many others in vain as of one that is not.
    skipped = 1 - (1 + np.mean(absent) * (1 - 1 / report.units)) / report.units
    assert price.expected_skip == pytest.approx(skipped, abs=0.01)


def test_a_price_may_be_too_high(keyed: Lake) -> None:
    def refuse(_: PriceTag) -> None:
        raise _StoppedError

    source = source_of(keyed.table, keyed.types)
    with pytest.raises(_StoppedError):
        create_index(workshop(keyed.catalog()), source, BloomIndexConfig("i", ["k"]), refuse)
    assert keyed.stored() == set()


def test_pricing_writes_nothing_and_checks_everything(keyed: Lake) -> None:
    shop, source = workshop(keyed.catalog()), source_of(keyed.table, keyed.types)
    price_index(shop, source, BloomIndexConfig("i", ["k"]))
    assert keyed.stored() == set()
    keyed.create(BloomIndexConfig("i", ["k"]))
    with pytest.raises(IndexExistsError):
        price_index(shop, source, BloomIndexConfig("i", ["k"]))

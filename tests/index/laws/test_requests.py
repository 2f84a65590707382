"""What operations ask of an object store is no more than docs/OPERATIONS.md says, as an S3 server counts it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from bench.s3 import BUCKET, counting_s3

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.catalog import Catalog
from tests.index.lake import NAME, SMALL, Lake
from tests.index.local_builder import source_of, workshop
from tests.test_package import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebloom.index.build.run import Workshop


def documented() -> dict[str, int]:
    page = (ROOT / "docs/OPERATIONS.md").read_text()
    rows = re.findall(r"^\| ([a-z][^|]*) \| (\d+) \| (\d+) USD \|$", page, re.MULTILINE)
    assert all(int(price) == 5 * int(requests) for _, requests, price in rows)
    return {call: int(requests) for call, requests, _ in rows}


@pytest.mark.slow
def test_requests_of_operations(lake: Lake) -> None:
    lake.fill(range(10))
    config = BloomIndexConfig(NAME, ["k"], fpp=0.001)
    with counting_s3() as (options, traffic):

        def shop() -> Workshop:
            return workshop(Catalog(f"s3://{BUCKET}/indexes", options), tasks=1, **SMALL)

        def create(*, replace: bool) -> object:
            return create_index(shop(), source_of(lake.table, lake.types), config, replace=replace)

        def add() -> object:
            lake.fill([10])
            traffic.clear()
            return refresh_index(shop(), NAME)

        reader = Lakebloom(location=f"s3://{BUCKET}/indexes", options=options)
        calls: dict[str, Callable[[], object]] = {
            "create, the first in a process": lambda: create(replace=False),
            "refresh, nothing new": lambda: refresh_index(shop(), NAME),
            "refresh, one new segment": add,
            "status": lambda: Lakebloom(location=f"s3://{BUCKET}/indexes", options=options).status(NAME),
            "optimize, two segments": lambda: reader.optimize_index(NAME),
            "create with replace": lambda: create(replace=True),
            "first lookup": lambda: Lakebloom(location=reader.location, options=options).lookup(NAME, col("k") == 5),
            "another lookup": lambda: reader.lookup(NAME, col("k") == 25),
            "delete": lambda: reader.delete_index(NAME),
        }
        found: dict[str, int] = {}
        for call, run in calls.items():
            if call == "another lookup":
                reader.lookup(NAME, col("k") == 5)
            traffic.clear()
            run()
            found[call] = sum(traffic.requests.values())
    limits = documented()
    assert found.keys() == limits.keys()
    assert {call: count for call, count in found.items() if count > limits[call]} == {}, found

"""Delta tables on an object store: written by deltalake, indexed, looked up in any version, erased from and proven."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import NotFoundError
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.build.run import Workshop
from lakebloom.index.catalog import Catalog
from lakebloom.index.current_table import delta_record
from lakebloom.index.settings import Settings
from tests.index.local_builder import LocalBuilder
from tests.storage.conftest import BUCKET, s3_endpoint, s3_options  # noqa: F401  (fixtures)

if TYPE_CHECKING:
    pass


class _Lake:
    """A table and its index in one bucket."""

    def __init__(self, options: dict[str, str]) -> None:
        self.place, self.options = f"s3://{BUCKET}/{uuid.uuid4().hex}", options
        self.table = f"{self.place}/a table"
        self.storage = {
            "AWS_ENDPOINT_URL": options["endpoint"],
            "AWS_ACCESS_KEY_ID": options["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": options["secret_access_key"],
            "AWS_REGION": options["region"],
            "AWS_ALLOW_HTTP": "true",
        }

    def write(self, *keys: int) -> None:
        rows = pa.table({"k": pa.array(keys, pa.int64()), "s": [f"s{key}" for key in keys]})
        write_deltalake(self.table, rows, mode="append", storage_options=self.storage)

    def delta(self) -> DeltaTable:
        return DeltaTable(self.table, storage_options=self.storage)

    def shop(self) -> Workshop:
        catalog = Catalog(f"{self.place}/indexes", self.options)
        return Workshop(catalog, LocalBuilder(catalog, options=self.options), Settings(global_max_bytes=1 << 16))

    def open(self) -> Lakebloom:
        return Lakebloom(location=f"{self.place}/indexes", options=self.options)


@pytest.fixture
def lake(s3_options: dict[str, str]) -> _Lake:  # noqa: F811
    made = _Lake(s3_options)
    for number in range(4):
        made.write(*range(number * 10, number * 10 + 10))
    create_index(made.shop(), delta_record(made.table, s3_options), BloomIndexConfig("i", ["k"]))
    return made


def found(opened: Lakebloom, key: int, version: int | None = None) -> list[int]:
    rows: list[int] = opened.lookup("i", col("k") == key, version=version)["k"].to_pylist()
    return rows


@pytest.mark.slow
def test_lookups_follow_the_log(lake: _Lake) -> None:
    opened = lake.open()
    assert [found(opened, key) for key in (5, 25, 77)] == [[5], [25], []]
    lake.delta().delete("k = 25")
    assert found(opened, 25) == []
    assert found(opened, 25, version=3) == [25]
    lake.write(25, 99)
    assert [found(opened, key) for key in (25, 99)] == [[25], [99]]
    assert refresh_index(lake.shop(), "i", "quick").files == 2
    assert opened.lookup("i", col("k") == 99, unindexed="error").num_rows == 1
    (status,) = opened.status("i")
    assert status.coverage == 1.0
    assert opened.verify_index("i").false_negatives == 0
    with pytest.raises(NotFoundError, match="no version 77"):
        found(opened, 1, version=77)


@pytest.mark.slow
def test_an_erasure(lake: _Lake) -> None:
    opened = lake.open()
    plan = opened.erasure_plan("i", [5, 25, 77])
    assert (plan.rows, plan.files, plan.files_read, plan.versions_holding) == (2, 2, 2, 4)
    assert plan.table == f"delta.`{lake.table}`"
    lake.delta().delete("k IN (5, 25, 77)")
    assert plan.check().rows == 0
    assert not plan.check().erased
    lake.delta().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    check = plan.check()
    assert check.erased
    assert check.files_gone == 2
    lake.write(5)
    assert not plan.check().erased

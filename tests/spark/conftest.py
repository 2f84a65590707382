from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom import Lakebloom
from tests.spark.needs import HAS_DATA_SOURCE
from tests.spark.skipping.support import configured
from tests.spark.support import fresh_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

DRIVER_KEY = "spark.lakebloom.build.driverMaxBytes"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lakebloom:
    """Indexes of one test."""
    return Lakebloom(spark, tmp_path / "indexes")


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Let Spark compile queries, as it does for users; the session of the tests interprets them."""
    with configured(spark, {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}):
        yield


@pytest.fixture
def in_tasks(spark: SparkSession) -> Iterator[None]:
    """Let small builds run as Spark jobs, too."""
    spark.conf.set(DRIVER_KEY, "0")
    yield
    spark.conf.unset(DRIVER_KEY)


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A database whose managed tables are in the test's own directory."""
    name = fresh_name()
    spark.sql(f"CREATE DATABASE {name} LOCATION '{tmp_path / 'warehouse'}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def source(spark: SparkSession, lake: Lakebloom) -> Lakebloom:
    """The same, whose data source the session knows."""
    if not HAS_DATA_SOURCE:
        pytest.skip("needs data sources in Python (Spark 4.0)")
    lake.register_source()
    return lake

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.spark.versions import session_settings
from tests.spark.skipping.support import configured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.openCostInBytes": "1",
}
"""Hundreds of tiny queries: compiling each would take longer than all of them, and none needs two tasks."""


@pytest.fixture(scope="package", autouse=True)
def _quick(spark: SparkSession) -> Iterator[None]:
    with configured(spark, QUICK):
        yield


@pytest.fixture(autouse=True)
def _as_it_was(spark: SparkSession) -> Iterator[None]:
    """No test may leave a rule or a setting behind."""
    session: Any = spark
    before = session_settings(spark)
    yield
    assert session._jsparkSession.experimental().extraOptimizations().size() == 0
    assert session_settings(spark) == before

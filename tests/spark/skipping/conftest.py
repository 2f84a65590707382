from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.spark.versions import session_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _as_it_was(spark: SparkSession) -> Iterator[None]:
    """No test may leave a rule or a setting behind."""
    session: Any = spark
    before = session_settings(spark)
    yield
    assert session._jsparkSession.experimental().extraOptimizations().size() == 0
    assert session_settings(spark) == before

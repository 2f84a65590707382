from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _as_it_was(spark: SparkSession) -> Iterator[None]:
    """No test may leave a rule or a setting behind."""
    session: Any = spark
    before = dict(spark.conf.getAll)
    yield
    assert session._jsparkSession.experimental().extraOptimizations().size() == 0
    assert dict(spark.conf.getAll) == before

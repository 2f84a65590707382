"""What a session's configuration says about lakebloom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.index.settings import PREFIX, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def settings_of(spark: SparkSession) -> Settings:
    """Return the session's settings. Raises InvalidArgumentError for an unknown key."""
    everything = spark.conf.getAll
    return Settings.parse({key: str(value) for key, value in everything.items() if key.startswith(PREFIX)})


def default_location(spark: SparkSession) -> str:
    """Return where indexes are kept unless someone says otherwise: beside the warehouse, whose folders are tables."""
    location = settings_of(spark).location
    if location is not None:
        return location
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    place = warehouse.rstrip("/")
    is_bucket = "://" in place and "/" not in place.partition("://")[2]
    return f"{place}/_lakebloom" if is_bucket else f"{place}-lakebloom"

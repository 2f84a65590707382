"""The settings of lakebloom in a Spark session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakebloom.index.settings import PREFIX, Settings
from lakebloom.spark.versions import session_settings
from lakebloom.tables.columns import ColumnNames
from lakebloom.tables.reader_settings import CASE_SENSITIVE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLACE = re.compile(r"((?:[\w+.-]+:)?(?://[^/]*)?)(/*)(.*?)/*", re.DOTALL)
"""A scheme and an authority, slashes, and a path."""


def settings_of(spark: SparkSession) -> Settings:
    """Return the session's settings. Raises InvalidArgumentError for an unknown key."""
    return Settings.parse({key: value for key, value in session_settings(spark).items() if key.startswith(PREFIX)})


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return whether the session compares names of columns with regard to case."""
    return str(spark.conf.get(CASE_SENSITIVE, "false")).lower() == "true"


def column_of(frame: DataFrame, name: str, where: str) -> str:
    """Return the column of a DataFrame that a name means. Raises ColumnNotFoundError."""
    names = ColumnNames([(column,) for column in frame.columns], case_sensitive=is_case_sensitive(frame.sparkSession))
    return names.require((name,), where=where)[0]


def default_location(spark: SparkSession) -> str:
    """Return the default location of indexes: next to the warehouse, because directories inside it are tables."""
    location = settings_of(spark).location
    if location is not None:
        return location
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    return beside(warehouse)


def beside(warehouse: str) -> str:
    """Return the directory next to a warehouse.

    The root of a file system or of a bucket has no directory next to it; there the name begins with an underscore, so
    that it is no table or database.

    >>> beside("/data/warehouse/"), beside("s3://bucket"), beside("file:/")
    ('/data/warehouse-lakebloom', 's3://bucket/_lakebloom', 'file:/_lakebloom')
    """
    match = _PLACE.fullmatch(warehouse)
    assert match is not None
    root, slashes, path = match.groups()
    return f"{root}{slashes}{path}-lakebloom" if path else f"{root}/_lakebloom"

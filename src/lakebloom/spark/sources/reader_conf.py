"""What a session says about how files are read: for an index that is built, and while one is."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakebloom.errors import UnsupportedSessionError
from lakebloom.spark.versions import session_settings
from lakebloom.tables.reader_settings import CHANGES, HARMLESS, is_of, keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from lakebloom.store.records import SourceRecord

__all__ = ["configured", "reading_as_built", "session_values"]

CASE_SENSITIVE = "spark.sql.caseSensitive"


def session_values(spark: SparkSession, file_format: str) -> dict[str, str | None]:
    """Return the settings that change what is read of a format, and those of the same family that are set."""
    found: dict[str, str | None] = {key: _value(spark, key) for key in keys(file_format)}
    found.update((key, value) for key, value in session_settings(spark).items() if is_of(file_format, key))
    return found


def _value(spark: SparkSession, key: str) -> str | None:
    """Return what a reader would find under a key of the session, or below it in Hadoop's configuration."""
    try:
        value = spark.conf.get(key)  # without a default of ours, so that Spark gives its own
    except Exception:  # this version of Spark does not know it, and no one has set it
        value = None
    if value is not None or key.startswith("spark."):
        return None if value is None else str(value)
    if hasattr(spark, "_jsparkSession"):
        context: Any = spark.sparkContext
        return context._jsc.hadoopConfiguration().get(key)  # type: ignore[no-any-return]
    return spark.conf.get(f"spark.hadoop.{key}", None)


@contextmanager
def reading_as_built(spark: SparkSession, source: SourceRecord) -> Iterator[None]:
    """Let the session read files as it did when the index was created, until the end.

    Raises UnsupportedSessionError where this version of Spark, or its configuration, cannot.
    """
    wanted: dict[str, str | None] = {CASE_SENSITIVE: str(source.case_sensitive).lower()}
    now = session_values(spark, source.format)
    for setting in CHANGES:
        if source.format in setting.formats:
            target = source.settings.get(setting.key, setting.standard)
            if setting.value(now[setting.key]) != target:
                wanted[setting.key] = target
    unlisted = {key for key in {*now, *source.settings} if key not in HARMLESS and is_of(source.format, key)}
    wanted.update((key, source.settings.get(key)) for key in unlisted.difference(keys(source.format)))
    with configured(spark, wanted):
        after = session_values(spark, source.format)
        for setting in CHANGES:
            if source.format in setting.formats:
                found, target = setting.value(after[setting.key]), source.settings.get(setting.key, setting.standard)
                if found != target:
                    raise UnsupportedSessionError(
                        "this session cannot read the table as it was read when the index was created",
                        found=f"{setting.key} = {found or 'not set'}, and then {target or 'not set'}",
                        hint="refresh with the version and configuration of Spark that created the index, or create it "
                        "again",
                    )
        yield


@contextmanager
def configured(spark: SparkSession, wanted: Mapping[str, str | None]) -> Iterator[None]:
    """Set some keys of the session, or unset them, until the end."""
    before = session_settings(spark)
    _set(spark, wanted)
    try:
        yield
    finally:
        _set(spark, {key: before.get(key) for key in wanted})


def _set(spark: SparkSession, wanted: Mapping[str, str | None]) -> None:
    for key, value in wanted.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)

"""Session settings that change how files are read: recorded with an index, and restored for a refresh."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakebloom.errors import UnsupportedSessionError
from lakebloom.spark.versions import session_settings
from lakebloom.tables.reader_settings import CASE_SENSITIVE, CHANGES, HARMLESS, is_of, keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from lakebloom.store.records import TableRecord

__all__ = ["configured", "reading_as_built", "session_values"]


def session_values(spark: SparkSession, file_format: str) -> dict[str, str | None]:
    """Return the settings that change how a format is read, and other set keys of the same family."""
    found: dict[str, str | None] = {key: _value(spark, key) for key in keys(file_format)}
    found.update((key, value) for key, value in session_settings(spark).items() if is_of(file_format, key))
    return found


def _value(spark: SparkSession, key: str) -> str | None:
    """Return the value that a reader finds for a key in the session, or in Hadoop's configuration."""
    try:
        value = spark.conf.get(key)  # without our own default, so that Spark returns its default
    except Exception:  # unknown to this version of Spark, and not set
        value = None
    if value is not None or key.startswith("spark."):
        return None if value is None else str(value)
    if hasattr(spark, "_jsparkSession"):
        context: Any = spark.sparkContext
        return context._jsc.hadoopConfiguration().get(key)  # type: ignore[no-any-return]
    return spark.conf.get(f"spark.hadoop.{key}", None)


@contextmanager
def reading_as_built(spark: SparkSession, record: TableRecord) -> Iterator[None]:
    """Make the session read files as when the index was created, until the block ends.

    Raises UnsupportedSessionError if this version or configuration of Spark cannot.
    """
    wanted: dict[str, str | None] = {CASE_SENSITIVE: str(record.case_sensitive).lower()}
    now = session_values(spark, record.format)
    for setting in CHANGES:
        if record.format in setting.formats:
            target = record.settings.get(setting.key, setting.standard)
            if setting.value(now[setting.key]) != target:
                wanted[setting.key] = target
    unlisted = {key for key in {*now, *record.settings} if key not in HARMLESS and is_of(record.format, key)}
    wanted.update((key, record.settings.get(key)) for key in unlisted.difference(keys(record.format)))
    with configured(spark, wanted):
        after = session_values(spark, record.format)
        for setting in CHANGES:
            if record.format in setting.formats:
                found, target = setting.value(after[setting.key]), record.settings.get(setting.key, setting.standard)
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
    """Set or unset keys of the session until the block ends."""
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

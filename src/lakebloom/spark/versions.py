"""What differs between versions of Spark, from 3.5 on. No other module checks the version.

Spark 3.5 has no Python data source, so lakebloom supports its classic sessions without ``read``, and not its Connect
sessions. Features are detected, not derived from version numbers, so that builds of vendors work too. The one exception
is a defect of Spark 4.0.
"""

from __future__ import annotations

import importlib.util
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakebloom.errors import UnsupportedSessionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    import numpy as np
    from pyspark.sql import Column, DataFrame, SparkSession

    Words = np.ndarray[tuple[int], np.dtype[np.int32]]

__all__ = [
    "ctrl_c_interrupts",
    "frame_of",
    "java_source",
    "loses_rows_without_columns",
    "metadata_column",
    "require_columns",
    "require_connect",
    "require_data_source",
    "scala_sequence",
    "session_settings",
    "words_column",
]

_SEPARATOR, _ARROW = "\0", " -> "
"""Scala prints a map as ``key -> value``. Printing takes one call to the JVM; one call for each key takes a second."""
_SCALA_2_12 = {"import scala.collection.immutable.Seq;": "import scala.collection.Seq;"}
"""Scala 2.12 has another Seq than 2.13."""
_SPARK_3 = {
    "org.apache.spark.sql.classic.SparkSession": "org.apache.spark.sql.SparkSession",
    "((StringType) type).supportsBinaryEquality()": "true",
}
"""Spark 3.5 has one kind of session, and no collations."""


def require_connect(spark: SparkSession) -> None:
    """Raise UnsupportedSessionError for a Spark Connect session of Spark 3.5."""
    if not _is_classic(spark) and not _has_data_sources():
        raise UnsupportedSessionError(
            "lakebloom works on Spark Connect from Spark 4.0 on",
            found=f"a Spark Connect session of pyspark {_version()}",
            hint="with Spark 3.5 use a classic session, as SparkSession.builder.master(...) makes one; "
            "Lakebloom(location=...) looks keys up without Spark",
        )


def require_data_source() -> None:
    """Raise UnsupportedSessionError if Spark has no Python data sources."""
    if not _has_data_sources():
        raise UnsupportedSessionError(
            "reading through the data source, with lake.read or format('lakebloom'), needs Spark 4.0 or newer",
            found=f"pyspark {_version()}",
            hint="after lake.enable() every query of this session skips files; "
            "lake.lookup(name, predicate) returns rows without a Spark job",
        )


def require_columns(names: Sequence[str]) -> None:
    """Raise UnsupportedSessionError for a scan without columns by a data source, where Spark would lose its rows."""
    if not names and loses_rows_without_columns(_version()):
        raise UnsupportedSessionError(
            "the data source cannot read rows without columns with Spark 4.0, which loses them",
            found=f"no columns, and pyspark {_version()}",
            hint="name a column, or call lake.read(name, predicate, columns=[])",
        )


def loses_rows_without_columns(version: str) -> bool:
    """Whether this Spark, the server's on Spark Connect, reads no rows from a data source without columns.

    >>> [loses_rows_without_columns(version) for version in ("4.0.5", "4.0.2-amzn-0", "4.1.4")]
    [True, True, False]
    """
    return version.startswith("4.0.")


def _is_classic(spark: SparkSession) -> bool:
    return hasattr(spark, "_jsparkSession")


def _has_data_sources() -> bool:
    return importlib.util.find_spec("pyspark.sql.datasource") is not None


def _version() -> str:
    import pyspark

    return str(pyspark.__version__)


def session_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session."""
    session: Any = spark
    if not _is_classic(spark):
        return {key: str(value) for key, value in session.conf.getAll.items()}
    text = str(session._jsparkSession.conf().getAll().mkString(_SEPARATOR))
    pairs = (each.partition(_ARROW) for each in text.split(_SEPARATOR) if each)
    return {key: value for key, _, value in pairs}


def metadata_column(frame: DataFrame) -> Column:
    """Return Spark's metadata column about the file of each row, even if the table has a column of this name."""
    anything: Any = frame
    if hasattr(frame, "metadataColumn"):
        found: Column = anything.metadataColumn("_metadata")
        return found
    return _column(anything._jdf.metadataColumn("_metadata"))


def frame_of(frame: DataFrame, plan: Any) -> DataFrame:
    """Return a DataFrame of the same classic session with a plan from Java."""
    like: Any = frame
    made: DataFrame = type(like)(like._jdf.ofRows(like.sparkSession._jsparkSession, plan), like.sparkSession)
    return made


def scala_sequence(spark: SparkSession, items: list[Any]) -> Any:
    """Return Java objects as Scala's Seq. Spark's gateway makes Java's list of a Python list."""
    session: Any = spark
    return session._jvm.PythonUtils.toSeq(items)


class _CtrlC:
    """A handler of SIGINT that raises KeyboardInterrupt, and counts how often it did."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        signal.default_int_handler(number, frame)


@contextmanager
def ctrl_c_interrupts() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt in a block, which may be inside of another such block.

    Spark's handler asks Java to cancel all jobs. While Python waits for Java this call fails, and in older versions its
    error takes the place of KeyboardInterrupt. An interrupt of another call of py4j, as when it frees an object, can
    end the connection: an error that follows is the interrupt, too. A handler that is not Spark's stays.
    """
    before = signal.getsignal(signal.SIGINT)
    is_spark_own = str(getattr(before, "__module__", None)).startswith("pyspark.")
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not (is_spark_own or isinstance(before, _CtrlC)):
        yield
        return
    handler = before if isinstance(before, _CtrlC) else _CtrlC()
    count = handler.count
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    except Exception as error:
        if handler.count > count:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def java_source(text: str, scala: str, session: str) -> str:
    """Return a Java source for a version of Scala and a class of sessions.

    >>> java_source("import scala.collection.immutable.Seq;", "2.12.18", "org.apache.spark.sql.SparkSession")
    'import scala.collection.Seq;'
    """
    swaps = {
        **(_SCALA_2_12 if scala.startswith("2.12.") else {}),
        **(_SPARK_3 if session == "org.apache.spark.sql.SparkSession" else {}),
    }
    for newer, older in swaps.items():
        text = text.replace(newer, older)
    return text


def words_column(spark: SparkSession, words: Words) -> Column:
    """Return the words of a filter, an array of int, as a scalar subquery, to keep them out of plans and logs."""
    import pyarrow as pa
    from pyspark.sql import DataFrame

    session: Any = spark
    if hasattr(DataFrame, "scalar"):
        array = pa.ListArray.from_arrays(pa.array([0, len(words)], pa.int32()), pa.array(words))
        found: Column = session.createDataFrame(pa.table({"words": array})).scalar()
        return found
    sql = session._jvm.org.apache.spark.sql
    offset = session._jvm.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET
    array = sql.catalyst.expressions.UnsafeArrayData.fromPrimitiveArray(words.tobytes(), offset, len(words), 4)
    values = session.sparkContext._gateway.new_array(session._jvm.java.lang.Object, 1)
    values[0] = array
    row = sql.catalyst.expressions.GenericInternalRow(values)
    columns = sql.catalyst.types.DataTypeUtils.toAttributes(sql.types.StructType.fromDDL("words array<int>"))
    plan = sql.catalyst.plans.logical.LocalRelation(columns, scala_sequence(spark, [row]), False)
    subquery = session._jsparkSession.sessionState().sqlParser().parseExpression("(SELECT 1)")
    return _column(sql.Column(subquery.withNewPlan(plan)))


def _column(java_column: Any) -> Column:
    from pyspark.sql import Column

    return Column(java_column)

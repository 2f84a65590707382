"""Finding the cause in what Spark says."""

from __future__ import annotations

import pytest

from lakebloom.spark.error_cause import cause

TRACEBACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
Traceback (most recent call last):
  File "build.py", line 7, in run
    raise ValueError("[x] is wrong")
ValueError: [x] is wrong

	at org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:583)
	at java.lang.Error.x(y)
"""
JAVA = """An error occurred while calling o361.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///t/bad.orc.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:920)
"""
LOST = "Lost task 1.0 in stage 2.0 (TID 8) (localhost executor driver): java.io.IOException: Malformed ORC file x"
SPARK_3 = f"""An error occurred while calling o37668.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 failed 1 times, most recent failure: {LOST}
\tat org.apache.orc.impl.ReaderImpl.ensureOrcFooter(ReaderImpl.java:277)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TRACEBACK, "ValueError: [x] is wrong"),
        (JAVA, "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///t/bad.orc."),
        ("[PATH_NOT_FOUND] Path does not exist: x\nmore", "[PATH_NOT_FOUND] Path does not exist: x"),
        ("Job aborted\nand more", "Job aborted"),
        (SPARK_3, "java.io.IOException: Malformed ORC file x"),
        ("An error occurred while calling o1.x.\n: java.io.IOException: no", "java.io.IOException: no"),
        ("", "RuntimeError"),
    ],
)
def test_cause(text: str, expected: str) -> None:
    assert cause(RuntimeError(text)) == expected

"""Spark Connect: the same indexes without a JVM in the client. A classic session may not be in the same process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark import processes
from tests.spark.needs import needs_connect

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_connect]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a client reports."""
    directory = tmp_path_factory.mktemp("connect")
    with processes.connect_server(directory) as remote:
        return processes.run("tests.spark.on_connect", str(directory), remote)


def test_connect(found: dict[str, Any]) -> None:
    assert found["session"].startswith("pyspark.sql.connect")
    assert found["path"] == [3, 300, ["1.parquet"]]
    assert found["refresh"] == [1, False]
    assert found["new"] == ["3.parquet"]
    assert found["global"][0] == pytest.approx(400, rel=0.05)
    assert found["lookup"] == [{"k": 350}]
    assert found["source"] == [[150, 350], "struct<k:bigint>"]
    assert found["view"] == [1, 400]
    assert (
        "[INVALID_ARGUMENT] unknown option of the lakebloom data source; found colums. Hint: did you mean columns"
        in (found["misspelt"])
    )
    assert found["table"] == ["by_name", 4, 4]
    assert found["catalog"] == [True] * 12
    assert found["orc"] == [100, ["p"], "x=*"]
    assert found["sql_indexes"] == ["by_frame", "by_name", "by_orc", "by_path", "parts"]
    assert found["sql_candidates"] == [["3.parquet", 100]]
    assert found["sql_history"] == 2
    assert found["advise"] == [["k", "no"]]
    assert found["lance"] == [2500, 1, True]
    assert found["join"] == [True, True]
    assert "[UNSUPPORTED_SESSION]" in found["enable"]
    assert 'spark.read.format("lakebloom")' in found["enable"]
    assert "[UNSUPPORTED_SESSION] auto_refresh" in found["auto_refresh"]
    assert "lakebloom refresh --all" in found["auto_refresh"]
    assert found["replaced"] == ["replace", ["3.parquet"]]
    assert "filter in its plan" in found["filter"]
    assert "range in its plan" in found["range"]
    assert "sql in its plan" in found["sql"]
    assert "the option pathGlobFilter" in found["option"]
    assert "[NOT_FOUND]" in found["missing"]
    assert "does not show which files a binaryfile source reads" in found["format"]
    assert "cannot have a Bloom index" in found["char"]
    assert found["indexes"] == ["by_frame", "by_name", "by_orc", "by_path", "parts"]


def test_connect_reads_versions_of_tables_with_logs(found: dict[str, Any]) -> None:
    """By ``lake.read`` and by the format, with deletes and names of columns applied."""
    tables = found["tables"]
    assert len(tables["delta"]) == 6 * 7
    assert len(tables.get("iceberg", [])) in (0, 3 * 7)
    wrong = {kind: [at for at, same in enumerate(each) if not same] for kind, each in tables.items()}
    assert not any(wrong.values()), wrong


def test_connect_tells_what_was_read(found: dict[str, Any]) -> None:
    told, errors = found["explained"]
    assert told == {
        "claims": [[3, 2], [3, 2], [3, 1]],
        "figures": [True, 2, [3, 2, 2], [None, None, 2]],  # what a later plan would read is not what was read
        "joins": [[3, [7, 150, 399]], [3, [7, 150, 399]], [2, [150, 399]]],
        "many": True,
    }
    remedies = [
        'lake.read("by_user", "user_id = 42")',
        'lake.explain("by_user", "user_id = 42")',
        'lake.explain("by_user", "user_id = 42")',
        "explained is an index: add a condition",
        "lake.read('explained', col('k').isin(",
        "lake.read('explained', col('k').isin(values))",
        "run the small side alone to see the error",
        "did you mean k?",
    ]
    for refusal, remedy in zip(errors, remedies, strict=True):
        assert remedy in refusal
        assert "\n" not in refusal
        assert len(refusal) < 600

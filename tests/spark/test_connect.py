"""Spark Connect: the same indexes without a JVM in the client. A classic session may not be in the same process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark import processes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spark
@pytest.mark.slow
def test_connect(tmp_path: Path) -> None:
    found = processes.run("tests.spark.on_connect", str(tmp_path))
    assert found["session"].startswith("pyspark.sql.connect")
    assert found["path"] == [3, 300, ["1.parquet"]]
    assert found["refresh"] == [1, False]
    assert found["new"] == ["3.parquet"]
    assert found["global"][0] == pytest.approx(400, rel=0.05)
    assert found["lookup"] == [{"k": 350}]
    assert found["source"] == [[150, 350], "struct<k:bigint>"]
    assert found["view"] == [1, 400]
    assert (
        "[INVALID_ARGUMENT] unknown option of the source lakebloom; found colums. Hint: did you mean columns"
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
    assert len(found["enable"]) == 2
    for refusal in found["enable"]:
        assert "[UNSUPPORTED_SESSION]" in refusal
        assert 'spark.read.format("lakebloom")' in refusal
    assert "[UNSUPPORTED_SESSION] auto_refresh" in found["auto_refresh"]
    assert "lakebloom refresh --all" in found["auto_refresh"]
    assert found["replaced"] == ["replace", ["3.parquet"]]
    assert "filter in its plan" in found["filter"]
    assert "range in its plan" in found["range"]
    assert "sql in its plan" in found["sql"]
    assert "the option pathGlobFilter" in found["option"]
    assert "[NOT_FOUND]" in found["missing"]
    assert "does not tell which files a binaryfile source reads" in found["format"]
    assert "cannot have a Bloom index" in found["char"]
    assert found["indexes"] == ["by_frame", "by_name", "by_orc", "by_path", "parts"]

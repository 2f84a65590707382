"""lakebloom as installed without extras: there is no pyspark, and everything that needs none works.

`make test` runs this, and tests of indexes and of the store, in a small environment of its own (`make core`).
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

import pytest

import lakebloom
from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import LakebloomError
from tests.index.lake import NAME, Lake

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is not None, reason="pyspark is installed here; `make core` has none"
)


def test_questions_need_no_spark(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(4))
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=1e-6))
    reader = Lakebloom(location=lake.location)
    assert reader.candidates(NAME, col("k") == 25).num_rows == 1
    assert reader.lookup(NAME, col("k").isin([5, 25]))["s"].to_pylist() == ["s5", "s25"]
    assert reader.index(NAME).files == 4
    assert len(reader.history(NAME)) == 1
    assert reader.verify_index(NAME).ok
    reader.delete_index(NAME)
    reader.restore_index(NAME)
    reader.optimize_index(NAME)
    reader.vacuum_index(NAME)


def test_what_needs_spark_says_so(tmp_path: Path) -> None:
    reader = Lakebloom(location=tmp_path)
    for verb in (
        lambda: reader.create_index("t", BloomIndexConfig("i", ["k"])),
        lambda: reader.refresh_index("i"),
        lambda: reader.enable(),
    ):
        with pytest.raises(LakebloomError, match="Spark"):
            verb()


def test_public_names_load() -> None:
    for name in lakebloom.__all__:
        getattr(lakebloom, name)
    for module in ("lance", "parquet", "sizing"):
        importlib.import_module(f"lakebloom.{module}")


def test_a_table_is_looked_at_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(10))
    main = importlib.import_module("lakebloom.cli.main").main
    assert main(["advise", str(lake.table)]) == 0
    assert main(["create", "i", str(lake.table), "-c", "k", "--dry-run", "--location", lake.location]) == 0
    printed = capsys.readouterr().out
    assert "index it" in printed
    assert "one key" in printed

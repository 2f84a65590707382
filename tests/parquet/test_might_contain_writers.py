"""Every type, by every writer: what is in a file is found, what is not is refused at about the promised rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebloom.parquet
from tests.parquet.writers import ABSENT, FPP, PRESENT, UNSUPPORTED, WRITERS

if TYPE_CHECKING:
    from pathlib import Path

MATRIX = [(writer, column) for writer in WRITERS for column in PRESENT if column not in UNSUPPORTED[writer]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One file by each writer."""
    return {name: write(tmp_path_factory.mktemp("written")) for name, write in WRITERS.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("writer", "column"), MATRIX)
def test_present_is_found_and_absent_refused(writer: str, column: str, files: dict[str, Path]) -> None:
    path = files[writer]
    assert len(lakebloom.parquet.filters(path, column)) == 1
    assert lakebloom.parquet.might_contain(path, column, PRESENT[column]).all()
    refused = 1 - lakebloom.parquet.might_contain(path, column, ABSENT[column]).mean()
    assert 1 - 2.5 * FPP < refused < 1 - FPP / 4


@pytest.mark.slow
@pytest.mark.parametrize(("writer", "column"), MATRIX)
def test_what_arrow_reads_is_found(writer: str, column: str, files: dict[str, Path]) -> None:
    """Whatever Arrow makes of a file's own values, they are asked for in the file's terms, as Python objects too."""
    read = pq.read_table(files[writer], columns=[column])[column]
    assert lakebloom.parquet.might_contain(files[writer], column, read).all()
    if column != "nanos":  # which Python's own datetime does not have
        assert lakebloom.parquet.might_contain(files[writer], column, read[:100].to_pylist()).all()


def test_what_duckdb_makes_no_filter_for(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "file.parquet"
    present = pa.table({"decimal38": PRESENT["decimal38"]})
    with duckdb.connect() as connection:
        connection.register("present", present)
        connection.execute(f"COPY present TO '{path}' (FORMAT parquet, DICTIONARY_SIZE_LIMIT 100000)")
    assert lakebloom.parquet.filters(path) == []
    assert lakebloom.parquet.might_contain(path, "decimal38", [1, 2, None]).tolist() == [[True, True, False]]

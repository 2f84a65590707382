"""explain(name, predicate) without Spark: it tells exactly what lookup reads, and what candidates names."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import LakebloomError
from lakebloom.index.lookup.file_reads import reads_of
from lakebloom.index.query.scan_reports import FileState, Use
from lakebloom.predicate.reasons import Reason
from lakebloom.tables.listing.listing import list_files
from tests.index.lake import Lake, columns_of

if TYPE_CHECKING:
    from pathlib import Path

TYPES = {"k": "bigint", "s": "string", "n": "int"}
CONDITIONS = {
    "k = 25": col("k") == 25,
    "k IN (3, 45) AND s <> 's3'": col("k").isin([3, 45]) & (col("s") != "s3"),
    "k = 25 OR s = 's41'": (col("k") == 25) | (col("s") == "s41"),
    "k = 25 OR n > 7": (col("k") == 25) | (col("n") > 7),
    "k BETWEEN 5 AND 20": (col("k") >= 5) & (col("k") <= 20),
    "n > 3": col("n") > 3,
    "k IS NULL": col("k").is_null(),
    "k = 1000": col("k") == 1000,
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, TYPES)
    lake.fill(range(6))
    return lake


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["file", "row_group", 3])
@pytest.mark.parametrize("changed", [False, True])
def test_it_tells_what_is_read(lake: Lake, granularity: Any, changed: bool) -> None:
    lake.create(BloomIndexConfig("i", ["k", "s"], fpp=1e-4, granularity=granularity))
    if changed:
        lake.fill([8])  # new
        lake.write("f2", columns_of(range(3)))  # another one
        (lake.table / "f5.parquet").unlink()
    user, files = lake.open(), list_files([f"file://{lake.table}"])
    for text, predicate in CONDITIONS.items():
        report = user.explain("i", text)
        (scan,) = report.scans
        reads = {read.file.uri for read in reads_of(lake.snapshot(), predicate, files)}
        read = [file.uri for file, state in zip(files, scan.states, strict=True) if state is not FileState.SKIPPED]
        assert set(read) == reads, text
        assert (scan.files_not_covered, scan.files_stale) == ((2, 1) if changed else (0, 0))
        listed = {file.uri.removeprefix("file://") for file in files}
        current = [path for path in user.candidates("i", predicate)["path"].to_pylist() if path in listed]
        stale = str(lake.table / "f2.parquet") if changed else ""
        assert scan.units_kept == len([path for path in current if path != stale]), text
        for part in scan.parts:
            assert part.units_asked <= scan.units
        assert (scan.use is Use.UNUSED) == (text in ("n > 3", "k = 25 OR n > 7"))
        assert user.lookup("i", predicate).num_rows == lake.open().lookup("i", text).num_rows


def test_text_and_col_are_one_language(lake: Lake) -> None:
    lake.create()
    for text, predicate in CONDITIONS.items():
        first, second = (lake.open().explain("i", given).scans[0] for given in (text, predicate))
        assert (first.states, first.parts, first.reasons) == (second.states, second.parts, second.reasons)


def test_the_side_of_an_or_that_nothing_answers_is_named(lake: Lake) -> None:
    lake.create(BloomIndexConfig("i", ["k"], fpp=1e-4))
    (scan,) = lake.open().explain("i", "k = 25 OR n > 7").scans
    assert scan.reasons == (Reason.OR_NOT_ANSWERED,)
    assert {part.text: part.reason for part in scan.parts} == {
        "k = 25": Reason.OR_NOT_ANSWERED,
        "n > 7": Reason.NO_INDEX,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nonsense",), "UNSUPPORTED_SESSION", 'lake.explain("by_user", "user_id = 42")'),
        (("select * from t where k = 1",), "UNSUPPORTED_SESSION", 'lake.explain("by_user", "user_id = 42")'),
        (("i",), "INVALID_ARGUMENT", "i is an index: add a condition"),
        ((42,), "INVALID_ARGUMENT", "lake.explain(df)"),
        ((None,), "INVALID_ARGUMENT", "found None"),
        ((42, "k = 1"), "INVALID_ARGUMENT", 'lake.explain("by_user", "user_id = 42")'),
        (("i", 42), "INVALID_ARGUMENT", 'col("user_id") == 42'),
        (("nope", "k = 1"), "INDEX_NOT_FOUND", "nope"),
        (("i", "kk = 1"), "PREDICATE_SYNTAX", "did you mean k?"),
        (("i", "k = "), "PREDICATE_SYNTAX", "k = "),
    ],
)
def test_what_cannot_be_explained(lake: Lake, arguments: tuple[Any, ...], code: str, words: str) -> None:
    lake.create()
    with pytest.raises(LakebloomError) as caught:
        lake.open().explain(*arguments)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.slow
def test_no_spark_is_loaded(lake: Lake) -> None:
    lake.create()
    code = f"""
import sys
from lakebloom import Lakebloom
print(Lakebloom(location={lake.location!r}).explain("i", "k = 25"))
assert not any(name.startswith(("pyspark", "py4j", "pandas")) for name in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "5 of 6 files skipped; 1 file to read" in done.stdout


def test_a_table_without_spark(tmp_path: Path) -> None:
    with pytest.raises(LakebloomError, match="explain takes a query"):
        Lakebloom(location=tmp_path).explain(object())  # type: ignore[arg-type]

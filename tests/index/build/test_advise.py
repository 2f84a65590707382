"""PrunedFiles and prices without Spark: what they predict is what is then built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError, LakebloomError, NoFilesError
from lakebloom.index.build.advise import advise_on_path
from lakebloom.index.build.column_sampling import sampled_columns
from lakebloom.tables.access import LOCAL
from lakebloom.tables.listing.listing import list_files
from lakebloom.tables.parquet.columns import ColumnSpec
from lakebloom.tuning import ADVISED_KEYS

if TYPE_CHECKING:
    from pathlib import Path

FILES, ROWS = 30, 2000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("advised")
    rng = np.random.default_rng(5)
    for number in range(FILES):
        columns = {
            "unique": rng.integers(0, 1 << 60, ROWS),
            "user": [f"u{key}" for key in rng.integers(0, 20_000, ROWS)],
            "country": np.array(["de", "fr"])[rng.integers(0, 2, ROWS)],
            "seq": np.arange(number * ROWS, (number + 1) * ROWS),
            "amount": np.where(rng.random(ROWS) < 0.1, np.nan, rng.random(ROWS)),
            "flag": rng.random(ROWS) < 0.5,
            "nothing": pa.nulls(ROWS, pa.int64()),
        }
        pq.write_table(pa.table(columns), home / f"{number:03d}.parquet", row_group_size=ROWS // 2)
    return home


@pytest.mark.slow
def test_verdicts(table: Path) -> None:
    said = {advice.column: advice.verdict.value for advice in advise_on_path(table)}
    assert said == {
        "unique": "yes",
        "user": "yes",
        "country": "no",
        "seq": "no",
        "amount": "maybe",
        "flag": "no",
        "nothing": "no",
    }


@pytest.mark.slow
def test_counts_are_those_of_the_files(table: Path) -> None:
    files = list_files([str(table)])
    specs = [ColumnSpec(("unique",), "bigint"), ColumnSpec(("user",), "string"), ColumnSpec(("nothing",), "bigint")]
    for sample, spec in zip(sampled_columns(files, specs, LOCAL), specs, strict=True):
        for file, found in zip(files, sample.files, strict=True):
            values = pq.read_table(file.uri.removeprefix("file://"), columns=[spec.path[0]])[spec.path[0]].to_pylist()
            known = [value for value in values if value is not None]
            assert (found.rows, found.nulls, found.distinct) == (ROWS, ROWS - len(known), len(set(known)))
            assert (found.least, found.greatest) == ((min(known), max(known)) if known else (None, None))
            assert found.keys <= set(known)
            assert bool(found.keys) == bool(known)
            assert len(found.keys) < 4 * ADVISED_KEYS


def test_a_value_chosen_in_one_file_is_chosen_in_all_that_hold_it(table: Path) -> None:
    files = list_files([str(table)])
    (sample,) = sampled_columns(files, [ColumnSpec(("user",), "string")], LOCAL)
    held = [set(pq.read_table(file.uri.removeprefix("file://"))["user"].to_pylist()) for file in files]
    everywhere = frozenset().union(*(found.keys for found in sample.files))
    for found, values in zip(sample.files, held, strict=True):
        assert found.keys == everywhere & values


def test_a_file_that_cannot_be_read_is_left_out(table: Path, tmp_path: Path) -> None:
    for path in sorted(table.iterdir())[:9]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "004.parquet").write_bytes(b"PAR1 is not a whole file")
    pq.write_table(pa.table({"unique": ["text"]}), tmp_path / "005.parquet")
    (advice,) = advise_on_path(tmp_path, ["UNIQUE"])
    assert (advice.column, advice.verdict.value) == ("unique", "yes")


def test_a_price_is_that_of_a_session(table: Path, tmp_path: Path) -> None:
    price = Lakebloom(location=tmp_path).price_index(table, BloomIndexConfig("i", ["unique"]))
    assert (price.files, price.rows, price.units) == (FILES, FILES * ROWS, FILES)
    assert not list(tmp_path.iterdir())


def test_what_is_no_table_of_parquet_files(table: Path, tmp_path: Path) -> None:
    lake = Lakebloom(location=tmp_path / "indexes")
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.csv").write_text("k\n1\n")
    for wrong, error in [
        (tmp_path / "empty", NoFilesError),
        (tmp_path / "text", LakebloomError),
        (tmp_path / "missing", LakebloomError),
        ("hdfs://nn/t", LakebloomError),
        (5, InvalidArgumentError),
    ]:
        with pytest.raises(error):
            lake.advise(wrong)
    with pytest.raises(ColumnNotFoundError, match="did you mean unique"):
        lake.advise(table, ["unikue"])

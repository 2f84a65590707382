"""What the page says is what the API and the data say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lakebloom import BloomIndexConfig, Sbbf, col, hash_values
from lakebloom.index.catalog import Catalog
from lakebloom.index.maintain.lifecycle import delete_index
from lakebloom.report import gather
from lakebloom.sbbf import estimates
from tests.index.delta_lake import DeltaIndexes, Model
from tests.index.lake import Lake
from tests.index.logged_lake import NAME

if TYPE_CHECKING:
    from pathlib import Path

    from lakebloom.predicate.tree import Predicate
    from lakebloom.report import Facts


@pytest.mark.slow
def test_the_index_and_its_history_are_those_of_the_api(facts: Facts, aged: Lake) -> None:
    api = aged.open()
    assert facts.index == api.index("i")
    assert list(facts.history) == list(api.history("i"))
    assert [version.operation for version in facts.history] == ["optimize", "refresh", "create"]


def test_files_out_of_step_are_those_of_verify(facts: Facts, aged: Lake) -> None:
    report = aged.open().verify_index("i", 0)
    assert facts.freshness is not None
    assert set(facts.freshness.new) == set(report.not_indexed)
    assert set(facts.freshness.stale) == set(report.stale)
    assert set(facts.freshness.missing) == set(report.missing)
    assert (len(report.not_indexed), len(report.stale), len(report.missing)) == (3, 2, 1)
    assert facts.freshness.coverage == 27 / 32
    assert {file.uri for file in facts.freshness.current} == aged.indexed()


def test_the_skip_map_is_that_of_candidates(facts: Facts, aged: Lake, predicate: Predicate) -> None:
    found = {f"file://{path}" for path in aged.open().candidates("i", predicate)["path"].to_pylist()}
    skip_map = facts.skip_map
    assert skip_map is not None
    read = {file.uri for file, state in zip(skip_map.files, skip_map.scan.states, strict=True) if state.value == "#"}
    assert read == found & aged.indexed()
    assert {f"{aged.table}/f3.parquet", f"{aged.table}/f29.parquet"} & {uri.removeprefix("file://") for uri in found}
    assert skip_map.scan.files_not_covered == 5
    assert skip_map.scan.files == 32
    assert skip_map.scan.predicate == "k = 1234 OR s = 's11999'"


def test_units_are_counted_by_the_columns_of_a_tables_version(tmp_path: Path) -> None:
    model = Model(tmp_path / "t")
    for number in range(8):
        model.append([{"k": number, "s": f"s{number}"}])
    indexes = DeltaIndexes(tmp_path, tmp_path / "t")
    indexes.create("k")
    model.columns[0].name = "key"
    model.alter()
    skip_map = gather(Catalog(indexes.location), NAME, col("key") == 3).skip_map
    assert skip_map is not None
    assert (skip_map.units_kept, skip_map.scan.files_kept) == (1, 1)


def test_the_measured_rate_is_what_absent_keys_meet(facts: Facts, aged: Lake) -> None:
    """The filters alone: min and max would exclude keys that lie outside the table's."""
    snapshot = aged.snapshot()
    asked = 300
    for column, values in (("k", range(10**9, 10**9 + asked)), ("s", [f"absent{i}" for i in range(asked)])):
        hits = sum(
            np.count_nonzero(segment.might_contain_any((column,), hash_values([value])) & current)
            for segment, current in zip(snapshot.segments, snapshot.current, strict=True)
            for value in values
        )
        measured = next(found.fpp_measured for found in facts.columns if found.column == column)
        expected = measured * asked * facts.index.units
        assert hits == pytest.approx(expected, abs=4 * math.sqrt(expected))
    assert facts.fpp == 0.01
    assert 0.006 < facts.fpp_measured < 0.0105  # sizes are rounded up
    assert facts.false_positives == pytest.approx(30 * max(column.fpp_measured for column in facts.columns))


def test_sizes_are_those_on_disk(facts: Facts, aged: Lake) -> None:
    stored = aged.catalog().index("i").storage
    tiles = {path for path in aged.entry().paths if path.endswith(".tile")}
    assert facts.filter_bytes == sum(len(bytes(stored.read(path))) for path in tiles)
    import pyarrow.parquet as pq

    files = list(aged.table.iterdir())
    chunks = [
        pq.read_metadata(path).row_group(group).column(0) for path in files for group in range(2)
    ]  # fill() writes two row groups
    (k, _) = facts.stored
    assert k.column_bytes == pytest.approx(sum(chunk.total_compressed_size for chunk in chunks), rel=0.05)
    pages = [chunk.data_page_offset - chunk.dictionary_page_offset for chunk in chunks if chunk.has_dictionary_page]
    assert k.dictionary_bytes == pytest.approx(sum(pages), rel=0.05)
    assert 0 < k.dictionary_bytes < k.column_bytes


def test_estimates_of_many_filters_are_those_of_each() -> None:
    filters = []
    for items in (10, 100, 400):
        f = Sbbf(32)
        f.insert(np.arange(items))
        filters.append(f)
    words = np.stack([f.words.reshape(32, 8) for f in filters], axis=1)
    assert estimates.fpps(words).tolist() == pytest.approx([f.fpp for f in filters])
    assert estimates.fills(words).tolist() == pytest.approx(
        [np.bitwise_count(f.words).sum() / (32 * 256) for f in filters]
    )


def steps_of(lake: Lake) -> list[str]:
    return [step.command for step in gather(lake.catalog(), "i").steps]


def test_next_steps(aged: Lake, facts: Facts) -> None:
    assert [step.command for step in facts.steps] == ["lakebloom refresh i", "lakebloom refresh i --mode full"]


def test_a_sound_index_needs_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(4), rows=300)
    lake.create(BloomIndexConfig("i", ["k"]))
    assert steps_of(lake) == []
    delete_index(lake.catalog(), "i")
    assert steps_of(lake) == ["lakebloom restore i"]


def test_filters_that_are_too_small_are_noticed(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(4), rows=2000)
    lake.create(BloomIndexConfig("i", ["k"], expected_items=100))
    (column,) = gather(lake.catalog(), "i").columns
    assert column.fpp_measured > 0.5 > 0.02 > column.fpp
    assert [command.startswith("lakebloom create i_2 ") for command in steps_of(lake)] == [True]

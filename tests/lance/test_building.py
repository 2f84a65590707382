"""What is built against what Lance builds: the same bytes by its rule, the same answers by any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakebloom.lance
from lakebloom import sizing
from lakebloom.errors import InvalidArgumentError
from lakebloom.lance.building import ZonePlan, ZoneRule, build_segment
from lakebloom.lance.committing import commit_segments, existing, merged, remove_segments, segment_record
from lakebloom.lance.segments import find_column
from tests.lance.datasets import (
    COLUMNS,
    FPP,
    ROWS_PER_ZONE,
    SOME_DELETED,
    index_by_lance,
    index_file,
    literal,
    numbers,
    size_of,
    uses_index,
    with_nulls,
    write,
)  # fmt: skip

if TYPE_CHECKING:
    from pathlib import Path

    from lance import LanceDataset

lance = pytest.importorskip("lance")


def build(
    dataset: LanceDataset,
    rule: ZoneRule,
    column: str = "c",
    name: str = "ours",
    groups: list[list[int]] | None = None,
    segments: int | None = 1,
    rows_per_zone: int = ROWS_PER_ZONE,
    fpp: float = FPP,
) -> LanceDataset:
    """Build and commit an index as the Spark job does, in this process."""
    if groups is None:
        groups = [[fragment.fragment_id for fragment in dataset.get_fragments()]]
    found = find_column(dataset, column)
    plan = ZonePlan(rows_per_zone, fpp, rule)
    built = [build_segment(dataset, found, group, plan) for group in groups]
    records = [segment_record(dataset, name, found, segment) for segment in built]
    final = merged(dataset, records, segments)
    commit_segments(dataset, final, existing(dataset, name))
    kept = {record.uuid for record in final}
    remove_segments(dataset, [record.uuid for record in records if record.uuid not in kept])
    return lance.dataset(dataset.uri)


@pytest.mark.slow
@pytest.mark.parametrize("deleted", [None, SOME_DELETED], ids=["whole", "with deletions"])
@pytest.mark.parametrize("nullable", [False, True], ids=["full", "with nulls"])
@pytest.mark.parametrize("name", COLUMNS)
def test_by_lances_rule_it_is_lances_file(name: str, nullable: bool, deleted: str | None, tmp_path: Path) -> None:
    column = with_nulls(COLUMNS[name]) if nullable else COLUMNS[name]
    dataset = build(index_by_lance(write(tmp_path / "d", column, deleted=deleted)), "lance")
    assert index_file(dataset, "ours") == index_file(dataset, "theirs")
    assert size_of(dataset, "ours") == size_of(dataset, "theirs")


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["lance", "putze"])
@pytest.mark.parametrize("name", COLUMNS)
def test_lance_answers_the_same_with_it(name: str, rule: ZoneRule, tmp_path: Path) -> None:
    """With Lance's own index, with ours, and with none: the same rows."""
    column = with_nulls(COLUMNS[name])
    bare = write(tmp_path / "d", column, deleted="i % 3 = 0")
    conditions = ["c IS NULL"]
    found = [column[i] for i in (1, 301, 1100, 2005, 2239) if column[i].is_valid]
    assert len(found) >= 4
    for value in found:
        conditions.append(f"c = {literal(value)}")
    conditions.append(f"c IN ({', '.join(literal(value) for value in found)})")
    conditions.append(f"c = {literal(found[0])} OR c IS NULL")
    expected = {condition: numbers(bare, condition, with_index=False) for condition in conditions}
    assert all(expected.values())
    theirs = index_by_lance(bare)
    for condition in conditions:
        assert uses_index(theirs, condition, "theirs")
        assert numbers(theirs, condition) == expected[condition]
    theirs.drop_index("theirs")
    ours = build(lance.dataset(bare.uri), rule)
    for condition in conditions:
        assert uses_index(ours, condition, "ours")
        assert numbers(ours, condition) == expected[condition]
    negated = f"NOT (c = {literal(found[0])})"
    assert numbers(ours, negated) == numbers(ours, negated, with_index=False)


def test_sizes_follow_what_a_zone_holds(tmp_path: Path) -> None:
    """One value, 50 values, 256 values and none: sizes of their own in one index, which Lance takes."""
    parts = [
        pa.array([7] * 256),
        pa.array([i % 50 for i in range(256)]),
        pa.array(range(256)),
        pa.nulls(232, pa.int64()),
    ]
    dataset = write(tmp_path / "d", pa.concat_arrays(parts))
    dataset = build(dataset, "putze")
    zones = lakebloom.lance.filters(dataset, "ours")
    assert [zone.filter.num_blocks for zone in zones] == [sizing.num_blocks(n, FPP) for n in (1, 50, 256, 0)]
    assert len({zone.filter.num_blocks for zone in zones}) == 3
    for value in (7, 49, 255, 1000):
        assert numbers(dataset, f"c = {value}") == numbers(dataset, f"c = {value}", with_index=False)
    assert len(numbers(dataset, "c IS NULL")) == 232
    assert size_of(dataset, "ours") < size_of(build(dataset, "lance", name="large"), "large")


@pytest.mark.parametrize(
    ("groups", "segments", "files"), [([[0], [1], [2]], 1, 1), ([[0], [1, 2]], None, 2), ([[0], [1], [2]], 2, 2)]
)
def test_segments(groups: list[list[int]], segments: int | None, files: int, tmp_path: Path) -> None:
    """However many tasks wrote it, and however many files it has: the zones are those of Lance, and nothing is left."""
    dataset = index_by_lance(write(tmp_path / "d", with_nulls(COLUMNS["int32"])))
    dataset = build(dataset, "lance", groups=groups, segments=segments)
    index = lakebloom.lance.open_index(dataset, "ours")
    assert index.zones == lakebloom.lance.open_index(dataset, "theirs").zones
    assert len(index.files) == files
    assert len(list(tmp_path.glob("d/_indices/*/bloomfilter.lance"))) == files + 1
    assert index.unindexed_fragments == ()
    if files == 1:
        assert index_file(dataset, "ours") == index_file(dataset, "theirs")
    dataset.drop_index("theirs")
    dataset = lance.dataset(dataset.uri)
    value = COLUMNS["int32"][2005]
    for condition in (f"c = {value}", "c IS NULL"):
        assert uses_index(dataset, condition, "ours")
        assert numbers(dataset, condition) == numbers(dataset, condition, with_index=False) != []


def test_a_leaf_of_a_struct(tmp_path: Path) -> None:
    leaf, whole = with_nulls(COLUMNS["int32"]), pc.equal(pc.bit_wise_and(pa.array(range(2500)), 15), 3)
    column = pa.StructArray.from_arrays([leaf, COLUMNS["string"]], ["k", "a b"], mask=whole)
    dataset = write(tmp_path / "d", column)
    for name in ("c.k", "c.a b"):
        dataset = index_by_lance(dataset, "c.k" if name == "c.k" else "c.`a b`", f"theirs {name}")
        dataset = build(dataset, "lance", name, f"ours {name}")
        assert index_file(dataset, f"ours {name}") == index_file(dataset, f"theirs {name}")
    index = lakebloom.lance.open_index(dataset, "ours c.k")
    assert (index.column, index.type) == ("c.k", pa.int32())


def test_stable_row_ids_and_missing_fragments(tmp_path: Path) -> None:
    dataset = write(
        tmp_path / "d", with_nulls(COLUMNS["int64"]), deleted="i >= 1000 AND i < 2000", enable_stable_row_ids=True
    )
    assert [fragment.fragment_id for fragment in dataset.get_fragments()] == [0, 2]
    dataset = build(index_by_lance(dataset), "lance")
    assert index_file(dataset, "ours") == index_file(dataset, "theirs")


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
def test_files_have_the_format_of_the_dataset(version: str, tmp_path: Path) -> None:
    dataset = write(tmp_path / "d", with_nulls(COLUMNS["int64"]), data_storage_version=version)
    dataset = build(index_by_lance(dataset), "lance")
    assert index_file(dataset, "ours") == index_file(dataset, "theirs")


def test_a_default_zone_and_a_tiny_rate(tmp_path: Path) -> None:
    dataset = write(tmp_path / "d", pa.array(range(9000)))
    dataset = index_by_lance(dataset, number_of_items=8192, probability=1e-7)
    dataset = build(dataset, "lance", rows_per_zone=8192, fpp=1e-7)
    assert index_file(dataset, "ours") == index_file(dataset, "theirs")


def test_a_plan_is_checked() -> None:
    for wrong in ({"rows_per_zone": 0}, {"fpp": 1.0}, {"rule": "parquet"}):
        with pytest.raises(InvalidArgumentError):
            ZonePlan(**{"rows_per_zone": 8192, "fpp": 0.01, "rule": "lance", **wrong})  # type: ignore[arg-type]

"""Embedding filters: what is added, and that nothing else changes."""

from __future__ import annotations

import copy
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thrift.Thrift import TType

from lakebloom import Sbbf, hash_values
from lakebloom.errors import (
    ColumnNotFoundError,
    DataFileError,
    EncryptedFileError,
    InvalidArgumentError,
    LakebloomError,
    NotFoundError,
    NotParquetError,
    StorageError,
    UnsupportedTypeError,
)
from lakebloom.parquet import embed
from lakebloom.parquet.footer import Footer, read_footer
from lakebloom.parquet.thrift_tree import Struct, serialise
from lakebloom.sbbf.hashing.encoding import PARQUET, Parquet
from tests.parquet.files import NAMES, all_types, embedded, leaf_values, write

if TYPE_CHECKING:
    from collections.abc import Callable


def without_filters(footer: Footer, *numbers: int) -> Struct:
    """Return all of a footer but where the filters of these columns are."""
    tree = copy.deepcopy(footer.tree)
    for group in tree.get(4, TType.LIST).values:
        for number in numbers:
            group.get(1, TType.LIST).values[number].get(3, TType.STRUCT).drop(14, 15)
    return tree


def numbers_of(footer: Footer, *names: str) -> list[int]:
    paths = [".".join(leaf.path) for leaf in footer.leaves]
    return [paths.index(name.replace("`", "")) for name in names]


@pytest.mark.slow
def test_all_types_and_everything_else_unchanged(tmp_path: Path) -> None:
    source = write(
        tmp_path / "a.parquet",
        sorting_columns=[pq.SortingColumn(2)],
        bloom_filter_options={"text": {"ndv": 50, "fpp": 0.01}, "int64": True},
    )
    before, old = source.read_bytes(), read_footer(source)
    names = [name for name in NAMES if name != "text"]
    report = embed(source, tmp_path / "b.parquet", names)
    after, new = (tmp_path / "b.parquet").read_bytes(), read_footer(tmp_path / "b.parquet")

    assert source.read_bytes() == before
    assert after[: old.start] == before[: old.start]  # pages, indexes and the filter of another column
    changed = numbers_of(old, *names)
    assert without_filters(new, *changed) == without_filters(old, *changed)
    assert pq.read_table(tmp_path / "b.parquet").equals(all_types())
    assert (report.rows, report.row_groups, report.filters) == (120, 3, 3 * len(names))
    assert report.bytes_before == len(before)
    assert report.bytes_before + report.bytes_added == report.bytes_after == len(after)
    assert "bytes added" in str(report)
    arrow = pq.read_metadata(tmp_path / "b.parquet")
    for group in range(3):
        for number in range(arrow.num_columns):
            assert arrow.row_group(group).column(number).bloom_filter_offset is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "physical"),
    [
        ({}, {}),
        ({"version": "1.0"}, {}),
        ({"store_decimal_as_integer": True}, {"decimal9": "INT32"}),
        ({"store_schema": False, "data_page_version": "2.0", "compression": "zstd"}, {}),
        ({"use_dictionary": False}, {}),
    ],
)
def test_every_value_is_in_the_filter_and_nothing_else(
    tmp_path: Path, options: dict[str, object], physical: dict[str, str]
) -> None:
    path = write(tmp_path / "a.parquet", **options)
    embed(path, columns=NAMES)
    footer = read_footer(path)
    for name in NAMES:
        (number,) = numbers_of(footer, name)
        leaf = footer.leaves[number]
        assert leaf.physical_type == physical.get(name, leaf.physical_type)
        length = leaf.element.type_length if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else None
        encoding = Parquet(leaf.physical_type, length)
        for group, f in enumerate(embedded(path, number)):
            assert f is not None
            assert f.num_blocks & (f.num_blocks - 1) == 0
            present = leaf_values(all_types().slice(group * 50, 50), name)
            if name == "ns" and options.get("version") == "1.0":
                present = present.cast(pa.timestamp("us"))
            assert np.all(f.might_contain(present, encoding=encoding))
            built = Sbbf(f.num_blocks)
            built.insert(present, encoding=encoding)
            assert f == built


def test_rate_and_size(tmp_path: Path) -> None:
    rows = 40_000
    keys = pa.array([f"key-{i}" for i in range(rows)])
    few = pa.array([f"few-{i % 10}" for i in range(rows)])
    path = write(tmp_path / "a.parquet", pa.table({"key": keys, "few": few}), row_group_size=10_000)
    report = embed(path, columns=["key", "few"], fpp=0.01)
    absent = hash_values(pa.array([f"absent-{i}" for i in range(20_000)]), encoding=PARQUET)
    for f in embedded(path, 0):
        assert f is not None
        assert f.might_contain_hashes(absent).mean() <= 0.0125
        assert f.num_blocks == 512
    assert [f.num_blocks for f in embedded(path, 1) if f is not None] == [1, 1, 1, 1]
    assert report.filter_bytes == 4 * (512 * 32 + 17) + 4 * (32 + 15)


def test_dictionaries_that_end_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a dictionary grows too large the writer goes on without: the values of both parts count."""
    from lakebloom.parquet import stored_values
    from lakebloom.tables.parquet.batches import BatchPlan

    texts = pa.array([f"few-{i % 5}" for i in range(2000)] + [f"many-{i}" for i in range(3000)])
    path = write(tmp_path / "a.parquet", pa.table({"t": texts}), row_group_size=5000, dictionary_pagesize_limit=2000)
    assert "PLAIN" in pq.read_metadata(path).row_group(0).column(0).encodings
    monkeypatch.setattr(stored_values, "plan_batches", lambda rows, chunks: BatchPlan(700, tuple(chunks)))
    embed(path, columns=["t"])
    (f,) = embedded(path, 0)
    assert f is not None
    assert np.all(f.might_contain(texts))


def test_filters_of_other_columns_stay_and_the_named_are_replaced(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", bloom_filter_options={"text": {"ndv": 9, "fpp": 0.5}, "int64": True})
    text, int64 = numbers_of(read_footer(path), "text", "int64")
    old_text, old_int64 = embedded(path, text), embedded(path, int64)
    embed(path, columns=["text"])
    assert embedded(path, int64) == old_int64
    assert embedded(path, text) != old_text
    old_text = embedded(path, text)
    embed(path, columns=["int64"])
    assert embedded(path, text) == old_text
    assert pq.read_table(path).equals(all_types())


def test_embedding_again_does_not_grow_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    embed(path, columns=["text", "int64"])
    once = path.read_bytes()
    assert embed(path, columns=["text", "int64"]).bytes_added == 0
    assert path.read_bytes() == once
    # These are the last before the footer in part only: what is of another column stays.
    embed(path, columns=["int64"])
    assert embedded(path, numbers_of(read_footer(path), "text")[0]) != [None] * 3
    assert pq.read_table(path).equals(all_types())


def test_unknown_fields_survive(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    footer = read_footer(path)
    for tree in (footer.tree, footer.row_groups[0].tree, footer.row_groups[1].columns[3].tree):
        tree.put(31_000, TType.STRUCT, Struct([(1, TType.STRING, b"from the future"), (-3, TType.BOOL, True)]))
    metadata = footer.row_groups[2].columns[0].metadata
    assert metadata is not None
    metadata.put(30_000, TType.DOUBLE, 0.5)
    tail = serialise(footer.tree)
    path.write_bytes(path.read_bytes()[: footer.start] + tail + len(tail).to_bytes(4, "little") + b"PAR1")
    embed(path, columns=["text"])
    number = numbers_of(footer, "text")[0]
    assert without_filters(read_footer(path), number) == without_filters(footer, number)


def test_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    assert embed(path, columns=["S.K", "`Text`"]).columns == ("s.k", "text")
    for name, error in (
        ("absent", ColumnNotFoundError),
        ("s", UnsupportedTypeError),
        ("text.k", UnsupportedTypeError),
        ("a..b", InvalidArgumentError),
    ):
        with pytest.raises(error):
            embed(path, columns=[name])
    for columns in ([], (), "text", None, {"text"}):
        with pytest.raises(InvalidArgumentError, match="list of at least one name"):
            embed(path, columns=columns)  # type: ignore[arg-type]
    for fpp in (0, 1, "0.1"):
        with pytest.raises(InvalidArgumentError, match="fpp"):
            embed(path, columns=["text"], fpp=fpp)  # type: ignore[arg-type]


def test_refused_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "float": pa.array([0.5], pa.float32()),
            "double": [0.5],
            "half": pa.array(np.array([0.5], dtype=np.float16)),
            "boolean": [True],
            "moment": pa.array([0], pa.timestamp("us")),
        }
    )
    path = write(tmp_path / "a.parquet", table, use_deprecated_int96_timestamps=True)
    before = path.read_bytes()
    for name, reason in {
        "float": "-0.0",
        "double": "-0.0",
        "half": "DuckDB",
        "boolean": "two values",
        "moment": "engines hash different bytes",
    }.items():
        with pytest.raises(UnsupportedTypeError, match=reason):
            embed(path, columns=[name])
    for name in ("half", "boolean", "moment"):
        with pytest.raises(UnsupportedTypeError):
            embed(path, columns=[name], force=True)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert embed(path, columns=["float", "double"], force=True).filters == 2


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_forced_floats_hold_both_zeros_and_the_usual_nan(tmp_path: Path, kind: pa.DataType) -> None:
    odd_nan = np.array([0xFFF8_0000_0000_0123], dtype=np.uint64).view(np.float64)
    numbers = pa.concat_arrays([pa.array([1.5, -0.0, None], kind), pa.array(odd_nan).cast(kind, safe=False)])
    path = write(tmp_path / "a.parquet", pa.table({"x": numbers, "y": pa.array([1.5] * 4, kind)}))
    embed(path, columns=["x", "y"], force=True)
    asked = pa.array([0.0, -0.0, float("nan"), 1.5, 2.5], kind)
    for number, expected in ((0, [True, True, True, True, False]), (1, [False, False, False, True, False])):
        (f,) = embedded(path, number)
        assert f is not None
        found = [bool(f.might_contain(asked[i : i + 1], encoding=PARQUET)[0]) for i in range(5)]  # type: ignore[index]
        assert found == expected


def test_permissions_links_and_checksums(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    path.chmod(0o640)
    checksum = tmp_path / ".a.parquet.crc"
    checksum.write_bytes(b"crc\x00")
    link = tmp_path / "link.parquet"
    link.symlink_to(path)
    embed(link, columns=["text"])
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert not checksum.exists()  # Hadoop would refuse the file
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.parquet", "link.parquet"]
    assert embedded(path, numbers_of(read_footer(path), "text")[0])[0] is not None
    target = tmp_path / "b.parquet"
    embed(path, target, ["text"])
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_files_without_rows(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.parquet", all_types().slice(0, 0))
    report = embed(empty, columns=["text"])
    assert (report.rows, report.filters) == (0, read_footer(empty).row_groups.__len__())
    assert pq.read_table(empty).equals(all_types().slice(0, 0))


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda data: b"", NotParquetError),
        (lambda data: b"name,age\nann,5\n", NotParquetError),
        (lambda data: data[:-1], NotParquetError),
        (lambda data: data[: len(data) // 2], NotParquetError),
        (lambda data: data[:-4] + b"PARE", EncryptedFileError),
        (lambda data: data[:4] + b"\xff" * 2000 + data[2004:], DataFileError),  # the first pages
        (lambda data: data[:-2000] + data[-1500:], DataFileError),
    ],
)
def test_damaged_files_stay_as_they_are(
    tmp_path: Path, spoil: Callable[[bytes], bytes], error: type[LakebloomError]
) -> None:
    path = write(tmp_path / "a.parquet")
    spoilt = spoil(path.read_bytes())
    path.write_bytes(spoilt)
    with pytest.raises(error):
        embed(path, columns=["int8", "text"])
    assert path.read_bytes() == spoilt
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_are_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    with pytest.raises(NotFoundError):
        embed(tmp_path / "none.parquet", columns=["text"])
    with pytest.raises(NotFoundError):
        embed(path, tmp_path / "none" / "b.parquet", ["text"])
    with pytest.raises(LakebloomError):
        embed(tmp_path, columns=["text"])


def test_a_file_that_changes_meanwhile_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet")
    other = write(tmp_path / "b.parquet", all_types(10)).read_bytes()
    (tmp_path / "b.parquet").unlink()
    change_mode = os.fchmod

    def replace_first(descriptor: int, mode: int) -> None:
        path.write_bytes(other)
        change_mode(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", replace_first)
    with pytest.raises(StorageError, match="changed"):
        embed(path, columns=["text"])
    assert path.read_bytes() == other
    assert list(tmp_path.iterdir()) == [path]


def test_objects(tmp_path: Path) -> None:
    from lakebloom.storage import open_storage

    path = write(tmp_path / "a.parquet")
    storage = open_storage("memory://embed/lake")
    storage.write("a.parquet", path.read_bytes())
    embed("memory://embed/lake/a.parquet", columns=["text", "s.k"])
    expected = tmp_path / "b.parquet"
    embed(path, expected, ["text", "s.k"])
    assert bytes(storage.read("a.parquet")) == expected.read_bytes()
    embed(path, "memory://embed/lake/c.parquet", ["text", "s.k"])
    assert bytes(storage.read("c.parquet")) == expected.read_bytes()
    embed("memory://embed/lake/a.parquet", tmp_path / "d.parquet", ["text", "s.k"])
    assert (tmp_path / "d.parquet").read_bytes() == expected.read_bytes()


def test_a_system_that_cannot_copy_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet")
    embed(path, tmp_path / "b.parquet", ["text"])

    def refuse(*arguments: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    monkeypatch.setattr("lakebloom.parquet.rewriting.COPIED_BYTES", 1000)
    embed(path, tmp_path / "c.parquet", ["text"])
    assert (tmp_path / "c.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()

"""Reading columns: shapes, names, nesting, batches, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.errors import ColumnNotFoundError, InvalidArgumentError, NotFoundError, UnsupportedTypeError
from lakebloom.storage import normalise
from lakebloom.tables.parquet import batches
from lakebloom.tables.parquet.columns import ColumnSpec, ParquetColumns
from lakebloom.tables.parquet.paths import find_leaf
from tests.tables.reading import read, read_columns

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def write(path: Path, columns: dict[str, object], **options: object) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_row_groups(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"x": range(10)}, row_group_size=4)
    with ParquetColumns(normalise(path), [ColumnSpec(("x",), "bigint")]) as columns:
        assert [(shape.row_start, shape.row_count) for shape in columns.row_groups] == [(0, 4), (4, 4), (8, 2)]
        assert columns.num_rows == 10
        ((first_row, (array,)),) = columns.batches(1)
    assert (first_row, array.to_pylist()) == (4, [4, 5, 6, 7])


def test_a_file_without_rows(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.parquet", {"x": pa.array([], pa.int64())}), x="bigint", y="string") == [
        pa.array([], pa.int64()),
        pa.array([], pa.string()),
    ]


def test_missing_columns_are_null(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"x": range(5), "s": [{"a": 1}] * 5}, row_group_size=2)
    arrays = read(path, x="bigint", y="decimal(9,2)", **{"s.b": "string", "no.such": "date"})
    assert [array.to_pylist() for array in arrays] == [[0, 1, 2, 3, 4], [None] * 5, [None] * 5, [None] * 5]
    assert read(path, y="string")[0].to_pylist() == [None] * 5


def test_batches_of_nothing_but_null_are_bounded(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"x": pa.nulls(200_000, pa.int64())})
    with ParquetColumns(normalise(path), [ColumnSpec(("y",), "string")]) as columns:
        assert [(row, len(array)) for row, (array,) in columns.batches(0)] == [
            (0, 65536), (65536, 65536), (131072, 65536), (196608, 3392)
        ]  # fmt: skip


def test_a_leaf_is_null_where_its_struct_is(tmp_path: Path) -> None:
    rows = [None, {"b": None}, {"b": {"c": None, "d": "x"}}, {"b": {"c": "y", "d": "z"}}, {"b": {"c": "y", "d": None}}]
    for use_dictionary in (True, False):
        path = write(tmp_path / f"{use_dictionary}.parquet", {"a": rows * 100}, use_dictionary=use_dictionary)
        c, d = read(path, **{"a.b.c": "string", "A.B.D": "binary"})
        assert c.to_pylist() == [None, None, None, "y", "y"] * 100
        assert d.to_pylist() == [None, None, b"x", b"z", None] * 100


def test_names_with_dots(tmp_path: Path) -> None:
    """A column called "a.b", the leaf b of a struct a, and a struct called "a.b" are three things."""
    path = write(tmp_path / "a.parquet", {"a.b": ["dotted"], "a": [{"b": "nested", "c.d": "both"}]})
    arrays = read(path, **{"`a.b`": "string", "a.b": "string", "a.`c.d`": "string"})
    assert [array.to_pylist() for array in arrays] == [["dotted"], ["nested"], ["both"]]
    path = write(tmp_path / "b.parquet", {"a.b": [{"c": "x"}]})
    arrays = read(path, **{"`a.b`.c": "string", "a.b.c": "string"})
    assert [array.to_pylist() for array in arrays] == [["x"], [None]]


def test_one_column_may_be_asked_for_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"x": pa.array([1, 2], pa.int32())})
    columns = [ColumnSpec(("x",), "int"), ColumnSpec(("X",), "bigint")]
    assert [array.to_pylist() for array in read_columns(path, columns)] == [[1, 2], [1, 2]]


LEAVES = [
    ["id"],
    ["Name"],
    ["s", "k"],
    ["s", "K2"],
    ["S2", "k"],
    ["l", "list", "element"],
    ["dup"],
    ["DUP"],
    ["s", "K"],
]


@pytest.mark.parametrize(
    ("name", "any_case", "exact"),
    [
        (("id",), 0, 0),
        (("ID",), 0, None),
        (("name",), 1, None),
        (("Name",), 1, 1),
        (("s", "k2"), 3, None),
        (("s2", "K"), 4, None),
        (("S2", "k"), 4, 4),
        (("none",), None, None),
        (("s", "none"), None, None),
        (("dup",), ColumnNotFoundError, 6),
        (("s", "k"), ColumnNotFoundError, 2),
        (("s",), UnsupportedTypeError, UnsupportedTypeError),
        (("l",), UnsupportedTypeError, UnsupportedTypeError),
        (("id", "x"), UnsupportedTypeError, UnsupportedTypeError),
        (("s", "k2", "x"), UnsupportedTypeError, None),
    ],
)
def test_names_are_resolved_as_spark_does(
    name: tuple[str, ...], any_case: int | type[Exception] | None, exact: int | type[Exception] | None
) -> None:
    for case_sensitive, expected in ((False, any_case), (True, exact)):
        if isinstance(expected, type):
            with pytest.raises(expected):
                find_leaf(LEAVES, name, case_sensitive=case_sensitive)
        else:
            assert find_leaf(LEAVES, name, case_sensitive=case_sensitive) == expected


@pytest.mark.spark
def test_spark_finds_ambiguous_names_ambiguous(tmp_path: Path, spark: SparkSession) -> None:
    path = write(tmp_path / "a.parquet", {"x": [1], "X": [2], "y": [3]})
    with pytest.raises(Exception, match="duplicate field"):
        spark.read.schema("x bigint").parquet(str(path)).collect()
    with pytest.raises(ColumnNotFoundError, match="several columns"):
        read(path, x="bigint")
    (exact,) = read_columns(path, [ColumnSpec(("X",), "bigint")], case_sensitive=True)
    assert exact.to_pylist() == [2]


def test_lists_have_no_leaf(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"l": [[1]], "m": pa.array([{"k": 1}], pa.map_(pa.string(), pa.int64()))})
    for name in ("l", "l.list.element", "m", "m.key_value.key"):
        with pytest.raises(UnsupportedTypeError):
            read(path, **{name: "bigint"})


def test_types_that_no_index_has_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"x": [True]})
    with pytest.raises(UnsupportedTypeError, match="boolean"):
        read(path, x="boolean")
    with pytest.raises(InvalidArgumentError, match="no columns"):
        ParquetColumns(normalise(path), [])


def types_of(path: Path, *names: str) -> list[list[pa.DataType]]:
    with ParquetColumns(normalise(path), [ColumnSpec((name,), "string") for name in names]) as columns:
        return [
            [array.type for array in arrays] for g in range(len(columns.row_groups)) for _, arrays in columns.batches(g)
        ]


def test_few_distinct_strings_come_as_dictionaries(tmp_path: Path) -> None:
    few, many = [f"value {i % 10}" for i in range(20_000)], [f"value {i}" for i in range(20_000)]
    path = write(
        tmp_path / "a.parquet", {"few": few, "many": many, "mixed": few[:10_000] + many[:10_000]}, row_group_size=10_000
    )
    dictionary = pa.dictionary(pa.int32(), pa.string())
    assert types_of(path, "few", "many", "mixed") == [
        [dictionary, pa.string(), dictionary],
        [dictionary, pa.string(), pa.string()],
    ]
    assert [array.to_pylist() for array in read(path, few="string", many="string")] == [few, many]


@pytest.mark.slow
def test_large_values_make_small_batches(tmp_path: Path) -> None:
    """Memory stays bounded whatever the size of values and row groups, dictionaries included."""
    values = [f"{i % 40:05}" * 20_000 for i in range(1000)]
    for use_dictionary in (False, True):
        path = write(tmp_path / f"{use_dictionary}.parquet", {"x": values}, use_dictionary=use_dictionary)
        with ParquetColumns(normalise(path), [ColumnSpec(("x",), "string")]) as columns:
            sizes = [array.nbytes for _, (array,) in columns.batches(0)]
        assert max(sizes) <= 40 << 20


@given(
    values=st.lists(st.one_of(st.none(), st.text(max_size=8), st.sampled_from(["few", "values"])), max_size=300),
    group_rows=st.integers(1, 100),
    batch_rows=st.integers(1, 64),
    use_dictionary=st.booleans(),
)
@pytest.mark.slow
def test_whatever_the_batches_the_rows_are_the_same(
    values: list[str | None],
    group_rows: int,
    batch_rows: int,
    use_dictionary: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("batches") / "a.parquet"
    numbers = pa.array([{"n": i} for i in range(len(values))], pa.struct([("n", pa.int64())]))
    table = {"v": pa.array(values, pa.string()), "s": numbers}
    write(path, table, row_group_size=group_rows, use_dictionary=use_dictionary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "BUILD_BATCH_ROWS", batch_rows)
        v, n = read(path, v="string", **{"s.n": "bigint"})
    assert v.to_pylist() == values
    assert n.to_pylist() == list(range(len(values)))


def test_only_the_named_columns_are_read(tmp_path: Path) -> None:
    wide = ["x" * 1000 + str(i) for i in range(1000)]
    path = write(tmp_path / "a.parquet", {"x": range(1000), "wide": wide}, compression="none")
    with ParquetColumns(normalise(path), [ColumnSpec(("x",), "bigint")]) as columns:
        list(columns.batches(0))
        assert columns.bytes_read < path.stat().st_size / 10


def test_arrays_outlive_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"x": ["a", "b"]})
    with ParquetColumns(normalise(path), [ColumnSpec(("x",), "string")]) as columns:
        ((_, (array,)),) = columns.batches(0)
    path.unlink()
    assert array.to_pylist() == ["a", "b"]


def test_odd_file_names(tmp_path: Path) -> None:
    for name in ("a b%20#?.parquet", "k=ü", "[x]*.parquet"):
        assert read(write(tmp_path / name, {"x": [1]}), x="bigint")[0].to_pylist() == [1]


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read(tmp_path / "gone.parquet", x="bigint")
    with pytest.raises(InvalidArgumentError, match="through Spark"):
        ParquetColumns("hdfs://namenode/a.parquet", [ColumnSpec(("x",), "bigint")])

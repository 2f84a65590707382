"""What people really pass: whatever it is, the answer is a typed error that says what to pass instead."""

from __future__ import annotations

import inspect
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

import lakebloom.parquet
from lakebloom import BloomIndexConfig, Lakebloom, Sbbf, col
from lakebloom.errors import (
    IndexNotFoundError,
    InvalidArgumentError,
    LakebloomError,
    WrongCallError,
)
from lakebloom.index.arguments import KINDS
from lakebloom.index.settings import Settings
from tests.index.lake import NAME, Lake

if TYPE_CHECKING:
    from collections.abc import Callable

STRANGE = [
    None, 5, -1, 3.5, float("nan"), True, "", "I", "no such", b"x", object(), {"k": 1}, ["k"], [1], ("k", None), {1},
    pd.DataFrame({"k": [1]}), pa.table({"k": [1]}), BloomIndexConfig("x", ["k"]), Path("/nowhere"), print, Lakebloom,
]  # fmt: skip
CALLS = [
    name
    for name, _ in inspect.getmembers(Lakebloom, inspect.isfunction)
    if not name.startswith("_") and name not in ("delete_index", "close")
]
GOOD: dict[str, Any] = {
    "name": NAME, "predicate": col("k") == 5, "config": BloomIndexConfig("x", ["k"]), "column": "k",
    "spark_column": "k", "text": "SHOW BLOOM INDEXES", "on": "k", "keys": [1],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is taken for the path of a file is one of the test's own directory."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def open_lake(lake: Lake) -> Lakebloom:
    lake.fill(range(3))
    lake.create()
    return lake.open()


def assert_typed(call: Callable[..., object], given: dict[str, Any]) -> None:
    """Anything but an error of lakebloom fails: an AttributeError from within tells nobody what to pass."""
    with suppress(LakebloomError):
        call(**given)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_every_argument_of_every_call(open_lake: Lakebloom, lake: Lake, tmp_path: Path, name: str) -> None:
    call = getattr(open_lake, name)
    parameters = inspect.signature(call).parameters.values()
    good = {**GOOD, "source": str(lake.table), "path": str(tmp_path / "page.html")}
    needed = {each.name: good.get(each.name) for each in parameters if each.default is inspect.Parameter.empty}
    for parameter in parameters:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        for value in STRANGE:
            assert_typed(call, {**needed, parameter.name: value})
    with pytest.raises(InvalidArgumentError):
        call(**needed, no_such_argument=1)


@pytest.mark.parametrize("field", inspect.signature(BloomIndexConfig).parameters)
def test_every_field_of_a_config(field: str) -> None:
    for value in STRANGE:
        assert_typed(BloomIndexConfig, {"name": "x", "columns": ["k"], field: value})
        assert_typed(BloomIndexConfig.lance, {"name": "x", "columns": ["k"], field: value})


@pytest.mark.parametrize("argument", ["spark", "location", "options"])
def test_every_argument_of_a_lake(lake: Lake, argument: str) -> None:
    for value in STRANGE:
        assert_typed(Lakebloom, {"location": lake.location, argument: value})


MISTAKES: list[tuple[Callable[[Lakebloom], object], type[LakebloomError], str]] = [
    (lambda lake: lake.price_index("/t", "by_user"), InvalidArgumentError, r"BloomIndexConfig\('by_user', \["),
    (lambda lake: lake.create_index("/t", "by_user", "user_id"), InvalidArgumentError, r"BloomIndexConfig\('by_user'"),
    (lambda lake: lake.create_index("/t", {"name": "x"}), InvalidArgumentError, "config of create_index.*a dict"),
    (lambda lake: lake.create_index("/t"), WrongCallError, "missing 1 required.*BloomIndexConfig"),
    (lambda lake: lake.create_index("/t", columns=["k"]), WrongCallError, "no argument columns.*belong to its config"),
    (lambda lake: lake.create_index("/t", GOOD["config"], progres=print), WrongCallError, "did you mean progress"),
    (lambda lake: lake.refresh_index("i", allowShrink=True), WrongCallError, "did you mean allow_shrink"),
    (lambda lake: lake.lookup("i", where="k = 5"), WrongCallError, "no argument where; found where. Hint: its arg"),
    (lambda lake: lake.lookup("i", "k = 5", column=["k"]), WrongCallError, r"did you mean columns\?"),
    (lambda lake: lake.lookup("i", "k = 5", limit="10"), InvalidArgumentError, "limit of lookup.*a whole number.*'10'"),
    (lambda lake: lake.lookup("I", "k = 5"), IndexNotFoundError, "did you mean 'i'"),
    (lambda lake: lake.refresh_index(BloomIndexConfig("by_user", ["k"])), InvalidArgumentError, "its name: 'by_user'"),
    (lambda lake: lake.lookup("i", pd.DataFrame({"k": [1]})), InvalidArgumentError, "made with col, or be SQL"),
    (lambda lake: lake.advise(pd.DataFrame({"k": [1]})), InvalidArgumentError, "DataFrame.*pass a path"),
    (lambda lake: lake.vacuum_index("i", retention=7), InvalidArgumentError, r"timedelta\(days=7\)"),
    (lambda lake: lake.prune_join(pd.DataFrame(), pd.DataFrame(), "k"), InvalidArgumentError, r"createDataFrame"),
    (lambda lake: Lakebloom(loction="/x"), WrongCallError, "did you mean location"),
    (lambda lake: Lakebloom("orders"), InvalidArgumentError, "argument must be a Spark session; found orders"),
    (lambda lake: Lakebloom(pd.DataFrame()), InvalidArgumentError, "the first argument must be a Spark session"),
    (lambda lake: Lakebloom(location=None), InvalidArgumentError, "must be given"),
    (lambda lake: lakebloom.parquet.embed("/x", colums=["k"]), WrongCallError, r"embed\(\) has no.*mean columns"),
    (lambda lake: lakebloom.parquet.filters(), WrongCallError, r"filters\(\) was called with the wrong.*missing 1"),
    (lambda lake: Sbbf.for_items(10, fp=0.1), WrongCallError, r"for_items\(\) has no argument fp.*mean fpp"),
    (lambda lake: BloomIndexConfig("x", ["k"], fp=0.1), WrongCallError, r"BloomIndexConfig\(\) has no.*mean fpp"),
    (lambda lake: BloomIndexConfig("x", ["k"], globalFilter=True), WrongCallError, "did you mean global_filter"),
    (lambda lake: BloomIndexConfig("x", column=["k"]), WrongCallError, "did you mean columns"),
    (lambda lake: BloomIndexConfig("x"), WrongCallError, "missing 1 required positional argument: 'columns'"),
    (lambda lake: BloomIndexConfig.lance("x", ["k"], granularty=1), WrongCallError, "did you mean granularity"),
    (lambda lake: BloomIndexConfig("x", None), InvalidArgumentError, r"columns=\["),
    (lambda lake: BloomIndexConfig("x", ["k"], fpp=10), InvalidArgumentError, "a fraction: 10 % is fpp=0.1"),
    (lambda lake: BloomIndexConfig("x", ["k"], fpp=1), InvalidArgumentError, "a fraction: 1 % is fpp=0.01"),
    (lambda lake: BloomIndexConfig("x", ["k"], fpp="1%"), InvalidArgumentError, "a fraction: 1 % is fpp=0.01"),
    (lambda lake: BloomIndexConfig("x", ["k"], fpp="0.01"), InvalidArgumentError, "the number itself: fpp=0.01"),
    (lambda lake: BloomIndexConfig("x", ["k"], granularity="Row Groups"), InvalidArgumentError, 'mean.*"row_group"'),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("call", "error", "text"), MISTAKES, ids=[text for *_, text in MISTAKES])
def test_the_mistakes_of_a_first_day(
    open_lake: Lakebloom, call: Callable[[Lakebloom], object], error: type[LakebloomError], text: str
) -> None:
    with pytest.raises(error, match=f"(?s){text}"):
        call(open_lake)


def test_what_is_right_stays_right(open_lake: Lakebloom, lake: Lake) -> None:
    assert open_lake.lookup(NAME, "k = 5", columns="s").column_names == ["s"]
    assert [advice.column for advice in open_lake.advise(lake.table, "k")] == ["k"]
    assert BloomIndexConfig("x", "user_id").columns == ("user_id",)
    assert BloomIndexConfig("x", pd.DataFrame({"k": [1]}).columns).columns == ("k",)
    assert inspect.signature(Lakebloom.lookup).parameters.keys() >= {"name", "predicate", "columns", "limit"}
    assert Lakebloom.lookup.__doc__


def test_errors_from_inside_stay_what_they_are(open_lake: Lakebloom, lake: Lake) -> None:
    """A TypeError of a callback is the caller's own, and no wrong call of ours."""

    def quoted(_: object) -> None:
        raise TypeError("mine")

    from lakebloom.index.build.create import create_index
    from tests.index.local_builder import source_of, workshop

    with pytest.raises(TypeError, match="mine"):
        create_index(workshop(lake.catalog()), source_of(lake.table, lake.types), BloomIndexConfig("y", ["k"]), quoted)


def test_names_of_kinds_are_used() -> None:
    used = {
        name
        for _, call in inspect.getmembers(Lakebloom, inspect.isfunction)
        for name in inspect.signature(call).parameters
    } | set(inspect.signature(BloomIndexConfig).parameters)
    assert set(KINDS) <= used


@pytest.mark.parametrize(
    ("text", "size"),
    [("64m", 64 << 20), ("64MB", 64 << 20), ("64 mb", 64 << 20), (" 1k ", 1024), ("1K", 1024), ("2g", 2 << 30)],
)  # fmt: skip
def test_sizes_in_settings(text: str, size: int) -> None:
    assert Settings.parse({"spark.lakebloom.global.maxBytes": text}).global_max_bytes == size


@pytest.mark.parametrize("text", ["", "m", "-1m", "1.5m", "64 M B", "1x", "one", "1e3", "٣m", "1 m b"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"must be a size such as 67108864, 64m or 64MB; found"):
        Settings.parse({"spark.lakebloom.global.maxBytes": text})

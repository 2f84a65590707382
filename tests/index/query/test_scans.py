"""A scan that reads files in another way than its indexes did never loses a row, and a usual one skips all it can.

The judge reads every row of every file as Spark would read it with that schema, and evaluates the predicate on it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebloom import BloomIndexConfig, col
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.catalog import Catalog
from lakebloom.index.query.scans import PrunedFiles
from lakebloom.predicate.python_literals import literal
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.tree import (
    NULL,
    And,
    Equals,
    EqualsNullSafe,
    If,
    IsIn,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    TruthIs,
)
from lakebloom.store.records import TableRecord
from tests.examples import most
from tests.index.local_builder import workshop, write_parquet
from tests.index.query.scanning import LONG_S, names_of, reading, scan_pruner, schema_json, short_name, skipped, told
from tests.predicate.evaluator import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from lakebloom.index.query.scans import Reading, ScanPruner
    from lakebloom.store.records import Granularity
    from lakebloom.tables.columns import ColumnPath

D = Decimal
STORED: dict[str, pa.DataType] = {
    "i": pa.int32(),
    "h": pa.int16(),
    "f": pa.float32(),
    "d": pa.decimal128(5, 2),
    "t": pa.string(),
    "day": pa.date32(),
    "p": pa.struct([("x", pa.int64())]),
}
BUILT = {
    "i": "int",
    "h": "smallint",
    "f": "float",
    "d": "decimal(5,2)",
    "t": "string",
    "day": "date",
    "p": {"x": "bigint"},
}
FILES: dict[str, dict[str, list[Any]]] = {
    "f0": {
        "i": [7, 1], "h": [7, 1], "f": [0.5, 0.1], "d": [D("1.25"), D("7.00")], "t": ["a", "b"],
        "day": [0, 2], "p": [{"x": 7}, {"x": None}],
    },
    "f1": {
        "i": [65543, 8], "h": [263, 2], "f": [7.0, None], "d": [D("1.50"), None], "t": ["A", None],
        "day": [5, 6], "p": [{"x": 1}, None],
    },
    "f2": {"i": [None, None], "h": [3, 4], "t": ["a", "é"], "p": [None, None]},  # f, d and day are not there
    "f3": {"h": [None, 5], "f": [-0.0, 3.0], "d": [D("-9.99"), D("0.10")], "day": [None, 1]},
    "f4": {
        "i": [2, 3], "h": [6, 7], "f": [float("nan"), 9.0], "d": [D("2.00"), D("3.00")], "t": ["", "x"],
        "day": [None, None], "p": [{"x": 2}, {"x": 3}],
    },
}  # fmt: skip
INDEXES = {"a": ["i", "f", "t"], "b": ["h", "d", "day", "p.x"]}


class Anything:
    """A value of which the judge knows only that Spark may find anything there, or fail."""


ANYTHING = Anything()


def wrapped(bits: int) -> Callable[[int], int]:
    return lambda value: int(np.array(value, np.int64).astype(f"int{bits}"))


# What a query that reads a stored column as this type finds in it.
READ_AS: dict[str, dict[Any, Callable[[Any], Any]]] = {
    "i": {"int": int, "bigint": int, "decimal(12,2)": Fraction, "double": float, "smallint": wrapped(16)},
    "h": {"smallint": int, "int": int, "bigint": int, "tinyint": wrapped(8)},
    "f": {"float": float, "double": float},
    "d": {"decimal(5,2)": Fraction, "decimal(12,4)": Fraction, "decimal(4,1)": lambda _: ANYTHING},
    "t": {"string": str, "binary": lambda value: value.encode()},
    "day": {"date": int, "timestamp": lambda _: ANYTHING},
    "x": {"bigint": int, "int": lambda _: ANYTHING, "decimal(20,0)": Fraction},
}
NUMBERS = [
    *(Literal("int", value) for value in (1, 2, 7, 65543, 99)),
    *(Literal("bigint", value) for value in (3, 7, 263, 2**40)),
    *(Literal("double", repr(value)) for value in (0.5, 0.1, float(np.float32(0.1)), 0.0, float("nan"), 7.0)),
    *(literal(D(value)) for value in ("1.25", "7.00", "0.1", "-9.99")),
]
LITERALS: dict[str, list[Literal]] = {
    "string": [Literal("string", value) for value in ("a", "A", "é", "", "absent")],
    "binary": [],
    "date": [Literal("date", value) for value in (0, 5, 1, 3)],
    "timestamp": [],
}
DEFAULTS: dict[str, tuple[str, Any]] = {
    "string": ("'a'", "a"),
    "date": ("DATE'1970-01-06'", 5),
    "binary": ("X'61'", b"a"),
}
"""What is read from files without a column of these types, as SQL and as a value; 7 for numbers."""
LEGACY = "spark.sql.parquet.datetimeRebaseModeInRead"


@dataclass(frozen=True)
class Read:
    """A column as a query reads it: its name there, the stored one that the name was made from, its type."""

    name: str
    stored: str
    kind: str
    has_default: bool

    @property
    def path(self) -> ColumnPath:
        return ("p", self.name) if self.stored == "x" else (self.name,)

    @property
    def default(self) -> tuple[str, Any] | None:
        return DEFAULTS.get(self.kind, ("7", 7)) if self.has_default else None


@dataclass(frozen=True)
class Scan:
    """How a query reads the table, and its predicate."""

    columns: tuple[Read, ...]
    case_sensitive: bool
    legacy: bool
    predicate: Predicate

    @property
    def reading(self) -> Reading:
        types = dict(
            ("p", {read.name: read.kind}) if read.stored == "x" else (read.name, read.kind) for read in self.columns
        )
        defaults = {read.name: read.default[0] for read in self.columns if read.default is not None}
        session = {"spark.sql.caseSensitive": str(self.case_sensitive).lower()}
        session |= {LEGACY: "LEGACY"} if self.legacy else {}
        return reading(types, self.predicate, defaults=defaults, session=session)

    def value(self, read: Read, row: Mapping[str, Any]) -> Any:
        """What Spark finds in a row of a file, by the column's name."""
        found = [name for name in row if self._same(name, read.name)]
        if not found:
            return read.default[1] if read.default is not None else None
        value = row[found[0]]
        if value is None:
            return None
        if isinstance(value, dt.date):
            if self.legacy:
                return ANYTHING  # the judge knows one calendar
            value = (value - dt.date(1970, 1, 1)).days
        return READ_AS[found[0]][read.kind](value)

    def _same(self, one: str, other: str) -> bool:
        return one == other or (not self.case_sensitive and one.lower() == other.lower())

    def possible(self, row: Mapping[str, Any]) -> Iterator[dict[ColumnPath, Any]]:
        """What the row may be: several things where the judge does not know."""
        known = {read.path: self.value(read, row) for read in self.columns}
        for guess in [None, 0, 1, 2, 7, 125] if ANYTHING in known.values() else [None]:
            yield {path: guess if value is ANYTHING else value for path, value in known.items()}


def reads_of(stored: str) -> list[Read]:
    """The ways to read a column; the usual spelling is the most frequent."""
    spellings = [stored, stored, stored, stored.upper(), f"{stored}_other"]
    defaults = [False] if stored == "x" else [False, False, True]
    return [Read(name, stored, kind, default) for name in spellings for kind in READ_AS[stored] for default in defaults]


def leaves_of(read: Read) -> list[Predicate]:
    values, here = LITERALS.get(read.kind, NUMBERS), read.path
    return [
        *(Equals(here, value) for value in values),
        *(EqualsNullSafe(here, value) for value in (*values[:2], NULL)),
        *(IsIn(here, (*values[start : start + 2], NULL)) for start in range(len(values))),
        Equals(here, NULL),
        IsIn(here, ()),
        IsNull(here),
        IsNotNull(here),
    ]


Shape: TypeAlias = "Callable[[tuple[Predicate, ...]], Predicate]"
ALTERNATIVES: list[Shape] = [
    Or,
    lambda leaves: Not(And(tuple(map(Not, leaves)))),
    lambda leaves: Or((And(leaves[:1]), *leaves[1:])),
    lambda leaves: And((Or(leaves[:2]), *leaves[2:])),
]
SHAPES: list[Shape] = [
    *ALTERNATIVES,
    And,
    lambda leaves: Not(Or(tuple(map(Not, leaves)))),
    lambda leaves: TruthIs(Or(leaves), ("true",)),
    lambda leaves: If(leaves[0], Or(leaves[1:]), leaves[-1]),
]


@st.composite
def scans(draw: st.DrawFn) -> Scan:
    """A predicate on some columns, each of which is read in some way."""
    chosen = draw(st.lists(st.sampled_from(list(READ_AS)), min_size=1, max_size=3, unique=True))
    reads = [draw(st.sampled_from(reads_of(stored))) for stored in chosen]
    leaves = tuple(draw(st.sampled_from(leaves_of(read))) for read in (*reads, reads[0]))
    predicate = draw(st.sampled_from(SHAPES))(leaves[: draw(st.integers(1, len(leaves)))])
    legacy, case_sensitive = draw(st.sampled_from([(False, False), (False, False), (True, False), (False, True)]))
    return Scan(tuple(reads), case_sensitive, legacy, predicate)


@st.composite
def scans_of_two_indexes(draw: st.DrawFn) -> Scan:
    """Alternatives that no index knows all columns of. What each of them reads may still differ."""
    reads = [draw(st.sampled_from(reads_of(draw(st.sampled_from(of_index))))) for of_index in ("ift", ["h", "d", "x"])]
    leaves = tuple(draw(st.sampled_from(leaves_of(read))) for read in (*reads, draw(st.sampled_from(reads))))
    return Scan(tuple(reads), False, False, draw(st.sampled_from(ALTERNATIVES))(leaves))


@dataclass(frozen=True)
class Table:
    """The files, two indexes of them, and what the files hold."""

    pruner: ScanPruner
    rows: dict[str, list[dict[str, Any]]]
    granularity: Granularity

    def matching(self, scan: Scan) -> set[str]:
        """The files with a row for which the predicate may be true, as the query reads it."""
        return {
            name
            for name, rows in self.rows.items()
            if any(evaluate(scan.predicate, each) is True for row in rows for each in scan.possible(row))
        }


@pytest.fixture(scope="module", params=["file", 1], ids=["files", "rows"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """An index of two segments over every column, and of each column one index has it."""
    home: Path = tmp_path_factory.mktemp("scans")
    record = TableRecord("parquet", (f"file://{home / 'table'}",), schema_json=schema_json(BUILT))
    catalog = Catalog(str(home / "indexes"))
    shop = workshop(catalog)
    for names in (["f0", "f1"], ["f2", "f3", "f4"]):
        for name in names:
            columns = {column: pa.array(values, STORED[column]) for column, values in FILES[name].items()}
            write_parquet(home / f"table/{name}.parquet", columns)
        for index, indexed in INDEXES.items():
            if names[0] == "f0":
                create_index(shop, record, BloomIndexConfig(index, indexed, fpp=1e-7, granularity=request.param))
            else:
                refresh_index(shop, index, "quick")
    rows = {
        short_name(str(path)): [_flat(row) for row in pq.ParquetFile(path).read().to_pylist()]
        for path in (home / "table").glob("*.parquet")
    }
    return Table(scan_pruner(catalog), rows, request.param)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the leaf of the struct beside the other columns."""
    if "p" not in row:
        return row
    return {**{name: value for name, value in row.items() if name != "p"}, "x": (row["p"] or {}).get("x")}


@pytest.mark.slow
@settings(max_examples=most(150))
@given(scan=scans())
def test_no_reading_loses_a_row(table: Table, scan: Scan) -> None:
    answers = table.pruner.prune(list(INDEXES), scan.reading, LONG_S)
    assert not table.matching(scan) & skipped(answers)
    assert set(told(answers).values()) <= {Reason.READ_DIFFERS.value}


@pytest.mark.slow
@settings(max_examples=most(100))
@given(scan=scans_of_two_indexes())
def test_indexes_together_skip_what_each_of_them_skips(table: Table, scan: Scan) -> None:
    answers = table.pruner.prune(list(INDEXES), scan.reading, LONG_S)
    kept = {answer.name: names_of(answer, kept=True) for answer in answers if isinstance(answer, PrunedFiles)}
    assert table.matching(scan) <= set(FILES).intersection(*kept.values())
    if "a + b" in kept and table.granularity == "file":  # they are combined file by file
        assert kept["a + b"] <= kept["a"] & kept["b"]


def one(stored: str, kind: Any, predicate: Predicate, **how: Any) -> Reading:
    return reading({**BUILT, stored: kind}, predicate, **how)


i, h, f, d, t, day, x = (col(name) for name in ("i", "h", "f", "d", "t", "day", "p.x"))
DAY = dt.date(1970, 1, 6)
SENSITIVE = {"spark.sql.caseSensitive": "true"}
EXACT: dict[str, tuple[Reading, str]] = {
    # a reading, and the files that it keeps of 0 to 4
    "as it was built": (one("i", "int", i == 7), "0"),
    "a wider integer": (one("i", "bigint", i == 7), "0"),
    "a value that no file can have": (one("i", "bigint", i == 2**40), "01234"),
    "a decimal for integers": (one("i", "decimal(12,2)", i == D("7.00")), "0"),
    "a double for integers": (one("i", "double", i == 7.0), "01234"),
    "a narrower integer": (one("i", "smallint", i == 7), "01234"),
    "a narrower integer that is NULL": (one("i", "smallint", i.is_null()), "01234"),
    "a double for floats": (one("f", "double", f == 0.5), "0"),
    "a wider decimal": (one("d", "decimal(12,4)", d == D("1.25")), "0"),
    "a decimal that is rounded": (one("d", "decimal(4,1)", d == D("1.3")), "01234"),
    "text as bytes": (one("t", "binary", t == b"a"), "01234"),
    "missing in a file": (one("i", "int", i.is_null()), "23"),
    "in every file but where it is missing": (one("i", "int", i.is_not_null()), "014"),
    "a default that is asked for": (one("i", "int", i == 99, defaults={"i": "99"}), "23"),
    "a default and another value": (one("i", "int", i == 7, defaults={"i": "99"}), "023"),
    "a default instead of NULL": (one("i", "int", i.is_not_null(), defaults={"i": "99"}), "01234"),
    "a default of another column": (one("i", "int", i == 7, defaults={"h": "99"}), "0"),
    "a leaf of a struct": (one("p", {"x": "bigint"}, x == 7), "0"),
    "a leaf at another place": (one("p", {"y": "string", "x": "bigint"}, x == 7), "0"),
    "another order": (reading(dict(reversed(BUILT.items())), i == 7), "0"),
    "another spelling": (reading({"I": "int"}, col("I") == 7), "0"),
    "another name": (reading({"z": "int"}, col("z") == 7), "01234"),
    "names with regard to case": (one("i", "int", i == 7, session=SENSITIVE), "01234"),
    "days of another calendar": (one("day", "date", day == DAY, session={LEGACY: "LEGACY"}), "01234"),
    "numbers beside days of another calendar": (one("i", "int", i == 7, session={LEGACY: "LEGACY"}), "0"),
    "a calendar as an option": (one("day", "date", day == DAY, options={"datetimeRebaseMode": "LEGACY"}), "01234"),
    "either of two columns": (reading(BUILT, (i == 7) | (h == 263)), "01"),
    "either of two, and one is read otherwise": (one("h", "tinyint", (i == 7) | (h == 5)), "01234"),
    "either of two, and one has a default": (one("h", "smallint", (i == 7) | (h == 5), defaults={"h": "5"}), "03"),
    "either of two, and one is missing": (reading(BUILT, (i == 65543) | day.is_null()), "1234"),
    "neither of two": (reading(BUILT, ~((i != 7) & (d != D("2.00")))), "04"),
}  # fmt: skip


@pytest.mark.parametrize("case", EXACT)
def test_what_is_skipped(table: Table, case: str) -> None:
    asked, kept = EXACT[case]
    left = {f"f{number}" for number in range(5)} - skipped(table.pruner.prune(list(INDEXES), asked, LONG_S))
    assert left == {f"f{number}" for number in kept}


@pytest.mark.parametrize("predicate", [None, Or(()), i == 7])
def test_an_index_that_does_not_exist(table: Table, predicate: Predicate | None) -> None:
    answers = table.pruner.prune(["nothing"], reading(BUILT, predicate), LONG_S)
    assert told(answers) == {"nothing": Reason.NO_MATCHING_INDEX.value}
    assert not skipped(answers)

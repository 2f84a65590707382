"""Whether a column is worth a Bloom index: judged from a sample of files, before anything is built.

The measure is how many files hold a given value. A value is drawn from a file; ``shared`` is the
share of other files that hold it, and ``spanned`` is the share of those whose minimum and maximum enclose it. A filter
skips files without the value; minimum and maximum, which Parquet already has, skip files that do not enclose it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakebloom.display.tables import Printable, amount
from lakebloom.index.build import sizes
from lakebloom.sbbf import sizing
from lakebloom.sbbf.blocks import BYTES_PER_BLOCK
from lakebloom.tuning import FEW_FILES, GOOD_SKIP, LARGE_INDEX, LITTLE_GAIN, LITTLE_SKIP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.store.records import Granularity

__all__ = ["ColumnAdvice", "ColumnSample", "FileSample", "TableShape", "Verdict", "refused", "worth"]

_FLOATING = ("float", "double")


class Verdict(str, enum.Enum):
    """The advice in one word."""

    YES = "yes"
    MAYBE = "maybe"
    NO = "no"


@dataclass(frozen=True, slots=True)
class TableShape:
    """Facts about the whole table."""

    files: int
    size_bytes: int
    row_groups: float = 1.0
    """The mean number of row groups of a file; 1 for formats without them."""


@dataclass(frozen=True, slots=True)
class FileSample:
    """One column in one file."""

    rows: int
    nulls: int
    distinct: int
    least: Any
    greatest: Any
    keys: frozenset[Any]
    """Some values of the file. A value chosen in one file is chosen in every file that holds it."""


@dataclass(frozen=True, slots=True)
class ColumnSample:
    """One column in some files."""

    column: str
    type: str
    files: tuple[FileSample, ...]


@dataclass(frozen=True, slots=True)
class ColumnAdvice(Printable):
    """What a Bloom index on a column would give; zeros if it cannot have one."""

    column: str
    type: str
    verdict: Verdict
    why: str
    distinct: int = 0
    """The mean number of distinct values in a file."""
    files_with_a_key: float = 0.0
    """How many files hold a value that is in one of them."""
    minmax_skip: float = 0.0
    """The share of files that minimum and maximum skip for one key."""
    fpp: float = 0.0
    granularity: Granularity = "file"
    index_bytes: int = 0
    predicted_skip: float = 0.0
    """The share of files, or of row groups if that is the granularity, skipped for one key."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        known = self.fpp > 0
        return [
            ("column", self.column),
            ("type", self.type),
            ("index it", self.verdict.value),
            ("one key skips", f"{self.predicted_skip:.1%}" if known else ""),
            ("min/max skip", f"{self.minmax_skip:.1%}" if known else ""),
            ("distinct in a file", f"{self.distinct:,}" if known else ""),
            ("fpp", f"{self.fpp:.2g}" if known else ""),
            ("per", str(self.granularity).replace("_", " ") if known else ""),
            ("size", amount(self.index_bytes) if known else ""),
            ("why", self.why),
        ]


def refused(column: str, type: str, why: str) -> ColumnAdvice:
    """Return the advice for a column that cannot have an index, or needs none."""
    return ColumnAdvice(column, type, Verdict.NO, why)


def worth(sample: ColumnSample, table: TableShape) -> ColumnAdvice:
    """Judge a column by a sample of the table's files."""
    files = [file for file in sample.files if file.distinct]
    if not files:
        return refused(sample.column, sample.type, "all values are NULL in the sampled files")
    by_row_group = table.files < FEW_FILES and table.row_groups >= 2
    groups = table.row_groups if by_row_group else 1.0
    units = table.files * groups
    fpp = sizing.auto_fpp(round(units))
    shared, spanned = _overlap(files)
    holding = 1 + shared * (table.files - 1)
    held_units = holding * _mean([_units_with(file, groups) for file in files])
    skip = max(0.0, 1 - (held_units + fpp * (units - held_units)) / units)
    minmax_skip = 1 - (1 + spanned * (table.files - 1)) / table.files
    index_bytes = round(units * _mean([_filter_bytes(file, groups, fpp) for file in files]))
    verdict, why = _judged(sample.type, table, skip, minmax_skip, holding, index_bytes)
    return ColumnAdvice(
        column=sample.column,
        type=sample.type,
        verdict=verdict,
        why=why,
        distinct=round(_mean([file.distinct for file in files])),
        files_with_a_key=holding,
        minmax_skip=minmax_skip,
        fpp=fpp,
        granularity="row_group" if by_row_group else "file",
        index_bytes=index_bytes,
        predicted_skip=skip,
    )


def _judged(
    type: str, table: TableShape, skip: float, minmax_skip: float, holding: float, index_bytes: int
) -> tuple[Verdict, str]:
    held = f"a value is in {holding:.3g} of {table.files:,} file{'s' * (table.files != 1)}"
    if skip < LITTLE_SKIP:
        return Verdict.NO, f"too few to skip: {held}"
    if skip - minmax_skip < LITTLE_GAIN:
        return Verdict.NO, f"clustered: minimum and maximum skip {minmax_skip:.0%} without it"
    if type in _FLOATING:
        return Verdict.MAYBE, f"{held}, but equality with a {type} is rare in queries"
    if index_bytes > LARGE_INDEX * table.size_bytes:
        return Verdict.MAYBE, f"{held}, but the index takes {index_bytes / max(1, table.size_bytes):.0%} of the data"
    if skip < GOOD_SKIP:
        return Verdict.MAYBE, f"skips about half: {held}"
    return Verdict.YES, f"{held}; minimum and maximum skip {minmax_skip:.0%}"


def _overlap(files: Sequence[FileSample]) -> tuple[float, float]:
    """Return the share of other files that hold a value, and of those whose minimum and maximum enclose it."""
    pairs = held = enclosed = 0
    for number, file in enumerate(files):
        others = [*files[:number], *files[number + 1 :]]
        for key in file.keys:
            pairs += len(others)
            held += sum(key in other.keys for other in others)
            enclosed += sum(bool(other.least <= key <= other.greatest) for other in others)
    return (held / pairs, enclosed / pairs) if pairs else (0.0, 0.0)


def _units_with(file: FileSample, groups: float) -> float:
    """Return how many of a file's units hold one of its values, if the rows are in random order."""
    occurrences = (file.rows - file.nulls) / file.distinct
    missed: float = (1 - 1 / groups) ** occurrences
    return groups * (1 - missed)


def _filter_bytes(file: FileSample, groups: float, fpp: float) -> float:
    # The expected number of distinct values in the rows of a unit, drawn from those of the file.
    rows = (file.rows - file.nulls) / groups
    distinct = file.distinct if groups == 1 else file.distinct * (1 - (1 - 1 / file.distinct) ** rows)
    blocks = sizes.on_grid(sizes.blocks_for(max(1, round(distinct)), fpp))
    return blocks * BYTES_PER_BLOCK * len(sizing.layer_fpps(fpp))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

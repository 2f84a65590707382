"""Planning and proving the erasure of keys."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lakebloom.errors import InvalidArgumentError
from lakebloom.index.arguments import kind_of
from lakebloom.lake.state import LakeState

# Modules that only some methods need are imported where they are used, so that a lookup starts sooner.

if TYPE_CHECKING:
    import os
    import pathlib
    from collections.abc import Iterable

    from lakebloom.index.erasure.erasure import Erasure, MakeKeys
    from lakebloom.index.erasure.records import ErasurePlan, ErasureReport

__all__ = ["Erasing"]


class Erasing(LakeState):
    """Plans erasures."""

    def erasure_plan(self, name: str, keys: Iterable[object], column: str | None = None) -> ErasurePlan:
        """Say which files and how many rows hold some keys, in the newest version of the table and in all that it
        keeps, and what to run to erase them. Needs no Spark.

        ``keys`` are up to a million values of the indexed column: a list, tuple, set or other iterable, a numpy array
        or an Arrow array. ``column`` names the indexed column where there are several. The counts are exact: of units
        that can hold a key the key column is read. ``plan.check()`` proves afterwards that the keys are gone.

        Raises InvalidArgumentError for no keys, for NULL among them, and where the column has to be named,
        ColumnNotFoundError for a column that is not indexed, and ValueConversionError for a key that the column cannot
        hold.
        """
        from lakebloom.index.erasure.keys import keys_of

        given = keys if hasattr(keys, "__len__") or not hasattr(keys, "__next__") else list(keys)
        return self._erasure(name, partial(keys_of, given), column).plan()

    def report_erasure(self, report: ErasureReport, path: str | os.PathLike[str]) -> pathlib.Path:
        """Write an HTML page about a plan, or about the check of one, and return its path.

        Raises InvalidArgumentError for anything else.
        """
        from lakebloom.index.erasure.records import ErasureReport
        from lakebloom.report.erasure_page import write_erasure_page

        if not isinstance(report, ErasureReport):
            raise InvalidArgumentError(
                "report must be a plan or a check", found=kind_of(report), hint="lake.erasure_plan(name, keys)"
            )
        return write_erasure_page(report, path)

    def _erasure(self, name: str, make_keys: MakeKeys, column: str | None) -> Erasure:
        from lakebloom.index.erasure.erasure import Erasure

        return Erasure(name, self._reader(name), self._current, make_keys, column)

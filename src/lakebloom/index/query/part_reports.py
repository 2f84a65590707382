"""What each part of a predicate did, over all segments and indexes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from lakebloom.index.query.scan_reports import (
    PartReport,
    unit_name,
)
from lakebloom.index.query.scans import PrunedFiles
from lakebloom.predicate.reasons import Reason
from lakebloom.tables.columns import format_name

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from lakebloom.predicate.prune.prune import Pruned, Used
    from lakebloom.predicate.prune.unit_filters import BoolArray

__all__ = ["merged", "parts_of"]


def parts_of(pruned_files: Sequence[PrunedFiles], uris: Set[str] | None = None) -> tuple[PartReport, ...]:
    """Return what each part of the predicate did to these files (None: all), over all segments and indexes."""
    used: dict[tuple[str, str], PartReport] = {}
    unused: dict[str, PartReport] = {}
    for answer in pruned_files:
        units = [None] * len(answer.pruned) if uris is None else answer.units_of(uris)
        for pruned, here in zip(answer.pruned, units, strict=True):
            for number, part in enumerate(pruned.used):
                counted = _counted(pruned, number, here)
                key = part.text, answer.name
                so_far = used.get(key) or PartReport(
                    part.text, answer.name, format_name(part.column), unit=_unit_of(answer)
                )
                used[key] = replace(
                    so_far,
                    units_asked=so_far.units_asked + counted.units_asked,
                    units_dropped=so_far.units_dropped + counted.units_dropped,
                    false_positives=so_far.false_positives + counted.false_positives,
                    dropped_by_bounds=so_far.dropped_by_bounds + counted.dropped_by_bounds,
                )
            for missed in pruned.unused:
                column = None if missed.column is None else format_name(missed.column)
                so_far_unused = unused.get(missed.text)
                # An index that has the column decides.
                if so_far_unused is None or so_far_unused.reason is Reason.NO_INDEX:
                    unused[missed.text] = PartReport(missed.text, None, column, missed.reason)
    return _answered_first([*used.values(), *unused.values()])


def _counted(pruned: Pruned, number: int, here: BoolArray | None) -> Used:
    """Return what a part did to the units of these files."""
    part = pruned.used[number]
    if here is None or not part.units_asked:
        return part
    tested, kept = (np.count_nonzero(units & here) for units in pruned.units[number])
    return msgspec.structs.replace(
        part,
        units_asked=int(tested),
        units_dropped=int(tested - kept),
        false_positives=part.false_positives * tested / part.units_asked,
        dropped_by_bounds=int(np.count_nonzero(pruned.by_bounds[number] & here)),
    )


def _unit_of(answer: PrunedFiles) -> str:
    return "file" if answer.snapshot is None else unit_name(answer.snapshot.granularity)


def _answered_first(parts: Sequence[PartReport]) -> tuple[PartReport, ...]:
    used = [part for part in parts if part.reason is None]
    answered = {part.text for part in used}
    return (*used, *(part for part in parts if part.reason is not None and part.text not in answered))


def merged(parts: Sequence[PartReport]) -> tuple[PartReport, ...]:
    """The distinct parts of several predicates about one scan."""
    return _answered_first(list(dict.fromkeys(parts)))

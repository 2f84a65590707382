"""Which units can hold a row that matches: the one place where a unit is dropped.

Unknown means keep, at every step: a column without filters, a value of another type, an unknown null count or bound, a
condition of another form. An OR with such a child keeps everything; an AND works with its other children.

Filters are read last, and only if they can change the result. Among the children of an AND or OR, those that read no
filter come first and long lists last. A child is tested only against the units that it can still change: in an AND
those not dropped yet, in an OR those not kept yet. If there are none, it is not tested. A value is looked for only in
units whose bounds enclose it: if there are none, no filter is read, and values that no unit encloses are left out.

Nothing is caught here. Callers treat an error as "everything matches".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from lakebloom.predicate.prune.hashes import Probes, to_probes, why_kept
from lakebloom.predicate.prune.limits import Limit, limit_of, prefix_of
from lakebloom.predicate.prune.normalise import (
    AllOf,
    AnyOf,
    Beginning,
    Bound,
    HoldsNull,
    HoldsValue,
    Keep,
    Leaf,
    Never,
    Normal,
    OneOf,
    normalise,
)
from lakebloom.predicate.prune.unit_filters import BoolArray, UnitBounds, UnitFacts, UnitFilters
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import Predicate
from lakebloom.tables.columns import ColumnPath
from lakebloom.tuning import FEW_HASHES

__all__ = ["Pruned", "Pruner", "Resolver", "Unused", "Used", "can_match", "exact_name"]


Resolver: TypeAlias = Callable[[ColumnPath], ColumnPath | None]
"""From a predicate's column to the index's; None if there is none. It decides about upper and lower case."""


class Used(msgspec.Struct, frozen=True):
    """A part of the predicate that an index decided, and how many of the tested units it dropped."""

    predicate: Predicate
    column: ColumnPath
    units_asked: int
    units_dropped: int
    false_positives: float = 0.0
    """Expected false positives among the tested units."""
    dropped_by_bounds: int = 0
    """How many of the dropped units min and max dropped."""

    @property
    def text(self) -> str:
        """The part as SQL."""
        return to_text(self.predicate)


class Unused(msgspec.Struct, frozen=True):
    """A part of the predicate that dropped nothing, and why. ``column`` is None if there is no single one."""

    predicate: Predicate
    column: ColumnPath | None
    reason: Reason

    @property
    def text(self) -> str:
        """The part as SQL."""
        return to_text(self.predicate)


class Pruned(msgspec.Struct, frozen=True):
    """Which units can match, and what each leaf of the predicate did. Every leaf is either used or unused."""

    keep: BoolArray
    used: tuple[Used, ...]
    unused: tuple[Unused, ...]
    units: tuple[tuple[BoolArray, BoolArray], ...] = ()
    """For each used part, the units that were tested, and those of them that it kept."""
    by_bounds: tuple[BoolArray, ...] = ()
    """For each used part, the units that min and max dropped."""


def exact_name(column: ColumnPath) -> ColumnPath:
    """Resolve a column to the one with exactly this name."""
    return column


def can_match(predicate: Predicate, filters: UnitFilters, *, resolve: Resolver = exact_name) -> Pruned:
    """Tell which units can contain a row for which the predicate is TRUE. False is certain.

    Errors of the filters are not caught. For several sets of units make one ``Pruner``.
    """
    return Pruner(predicate, resolve=resolve).can_match(filters)


class Pruner:
    """Prunes several sets of units by one predicate. Values are hashed once for each column type.

    A list of values is not probed if more than the share ``hopeless`` of the units would be false positives.
    """

    def __init__(
        self,
        predicate: Predicate,
        *,
        resolve: Resolver = exact_name,
        hopeless: float = math.inf,
    ) -> None:
        self._normal = normalise(predicate)
        self._resolve = resolve
        self._values = _Values()
        self._hopeless = hopeless

    @property
    def num_values(self) -> int:
        """How many values the filters may be probed for."""
        return _num_values(self._normal)

    def can_match(self, filters: UnitFilters) -> Pruned:
        """Tell which of these units can contain a row for which the predicate is TRUE. False is certain."""
        pruning = _Pruning(filters, self._resolve, self._values, self._hopeless)
        keep = pruning.prune(self._normal, np.ones(filters.num_units, dtype=np.bool_))
        return Pruned(
            *(keep, tuple(pruning.used), tuple(pruning.unused), tuple(pruning.units)),
            by_bounds=tuple(pruning.by_bounds),
        )


def _num_values(node: Normal) -> int:
    if isinstance(node, AllOf | AnyOf):
        return sum(map(_num_values, node.children))
    return len(node.values) if isinstance(node, OneOf) else 0


class _Plan(msgspec.Struct, frozen=True):
    """How a leaf is decided: by nulls alone, by bounds, or by bounds and filters."""

    column: ColumnPath
    probes: Probes | None = None
    limit: Limit | None = None
    prefix: bytes | None = None
    is_hopeless: bool = False
    """Whether filters would keep nearly all units, unless bounds leave fewer values."""

    @property
    def num_hashes(self) -> int:
        """How many values the filters would be probed for."""
        return 0 if self.probes is None or self.is_hopeless else len(self.probes.hashes)


class _Values:
    """The values of each leaf in each column type, made when first needed."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, str], Probes | Limit | bytes | Reason] = {}

    def probes(self, leaf: OneOf, column_type: str) -> Probes | Reason:
        """Return the values to look for, or the reason why there are none."""
        made = self._made.get((id(leaf), column_type))  # ids stay valid: the Pruner owns this object and the leaves
        if made is None:
            made = to_probes(leaf.values, column_type) or why_kept(leaf.values, column_type)
            self._made[id(leaf), column_type] = made
        assert isinstance(made, Probes | Reason)
        return made

    def limit(self, leaf: Bound, column_type: str) -> Limit | Reason:
        """Return the limit to compare bounds with, or the reason why there is none."""
        made = self._made.get((id(leaf), column_type))
        if made is None:
            made = limit_of(leaf.op, leaf.value, column_type) or why_kept([leaf.value], column_type)
            self._made[id(leaf), column_type] = made
        assert isinstance(made, Limit | Reason)
        return made


class _Answer(NamedTuple):
    """What a leaf says about each unit."""

    kept: BoolArray
    by_bounds: BoolArray
    """The units that min and max dropped."""
    false_positives: float = 0.0
    """How many units the filters are expected to keep without need."""
    why_unread: Reason | None = None
    """Why filters were not read though there were units left."""
    counts: tuple[int, int, int] | None = None
    """How many units are open, kept and dropped by bounds, if all arrays are about open units only and were counted.
    Each look at a million units takes as long as a quarter of the probe."""

    def among(self, open_units: BoolArray) -> _Answer:
        """Return the same about open units only, and counted."""
        if self.counts is not None:
            return self
        kept, by_bounds = open_units & self.kept, open_units & self.by_bounds
        tested, left, dropped = (int(np.count_nonzero(units)) for units in (open_units, kept, by_bounds))
        return self._replace(kept=kept, by_bounds=by_bounds, counts=(tested, left, dropped))


class _Pruning:
    """Prunes one set of units by one predicate."""

    def __init__(self, filters: UnitFilters, resolve: Resolver, values: _Values, hopeless: float) -> None:
        self._filters, self._resolve, self._values, self._hopeless = filters, resolve, values, hopeless
        self.used: list[Used] = []
        self.unused: list[Unused] = []
        self.units: list[tuple[BoolArray, BoolArray]] = []
        self.by_bounds: list[BoolArray] = []

    def prune(self, node: Normal, open_units: BoolArray, why_not: Reason = Reason.NOT_NEEDED) -> BoolArray:
        """Return the open units that can match. ``why_not`` is the reason if no unit is open."""
        match node:
            case AllOf(children):
                for child in sorted(children, key=self._cost):
                    open_units = self.prune(child, open_units, why_not)
                return open_units
            case AnyOf(children):
                kept = np.zeros_like(open_units)
                # A child that keeps every unit goes first: then no filter is read for the others.
                if open_units.any() and not self._is_answered(node):
                    why_not = Reason.OR_NOT_ANSWERED
                for child in sorted(children, key=lambda child: (self._is_answered(child), self._cost(child))):
                    kept |= self.prune(child, open_units & ~kept, why_not)
                return kept
            case OneOf(bounds=bounds) if bounds and isinstance(self._plan(node), Reason):
                return self.prune(AllOf(bounds), open_units, why_not)
            case _:
                return self._prune_leaf(node, open_units, why_not)

    def _is_answered(self, node: Normal) -> bool:
        """Tell whether a node could drop a unit at all."""
        match node:
            case AllOf(children):
                return any(map(self._is_answered, children))
            case AnyOf(children):
                return all(map(self._is_answered, children))
            case OneOf(bounds=bounds) if bounds and isinstance(self._plan(node), Reason):
                return any(map(self._is_answered, bounds))
            case _:
                return not isinstance(self._plan(node), Reason)

    def _cost(self, node: Normal) -> int:
        """Return how many values the filters would be probed for."""
        match node:
            case AllOf(children) | AnyOf(children):
                return sum(map(self._cost, children))
            case OneOf():
                plan = self._plan(node)
                return 0 if isinstance(plan, Reason) else plan.num_hashes
            case _:
                return 0

    def _prune_leaf(self, leaf: Leaf, open_units: BoolArray, why_not: Reason) -> BoolArray:
        plan = self._plan(leaf)
        if not isinstance(plan, Reason) and not open_units.any():
            plan = why_not
        if isinstance(plan, Reason):
            self.unused.append(Unused(leaf.part, leaf.column, plan))
            return open_units
        answer = self._answer(leaf, plan, open_units).among(open_units)
        assert answer.counts is not None
        tested, kept, by_bounds = answer.counts
        if answer.why_unread is not None and tested == kept:
            self.unused.append(Unused(leaf.part, leaf.column, answer.why_unread))
            return open_units
        self.used.append(
            Used(leaf.part, plan.column, tested, tested - kept, answer.false_positives, dropped_by_bounds=by_bounds)
        )
        self.units.append((open_units, answer.kept))
        self.by_bounds.append(answer.by_bounds)
        return answer.kept

    def _plan(self, leaf: Leaf) -> _Plan | Reason:
        """Return how to decide a leaf, or the reason why it cannot be decided. Reads nothing."""
        if isinstance(leaf, Keep):
            return leaf.reason
        if isinstance(leaf, Never):
            return _Plan(leaf.column)
        column = self._resolve(leaf.column)
        column_type = None if column is None else self._filters.column_type(column)
        if column is None or column_type is None:
            return Reason.NO_INDEX
        match leaf:
            case OneOf():
                return self._plan_values(leaf, column, column_type)
            case Bound():
                limit = self._values.limit(leaf, column_type)
                return limit if isinstance(limit, Reason) else _Plan(column, limit=limit)
            case Beginning(_, _, value):
                prefix = prefix_of(value, column_type)
                return why_kept([value], column_type) if prefix is None else _Plan(column, prefix=prefix)
            case _:
                return _Plan(column)

    def _plan_values(self, leaf: OneOf, column: ColumnPath, column_type: str) -> _Plan | Reason:
        if leaf.whole_numbers and spark_type(column_type).kind not in (Kind.INTEGER, Kind.DATE):
            return Reason.NOT_SUPPORTED
        probes = self._values.probes(leaf, column_type)
        if isinstance(probes, Reason):
            return probes
        hopeless = self._false_positives(column, len(probes.hashes)) > self._hopeless
        return _Plan(column, probes, is_hopeless=hopeless)

    def _false_positives(self, column: ColumnPath, num_hashes: int) -> float:
        """Return the expected share of units that seem to contain one of some values and do not."""
        return -math.expm1(num_hashes * math.log1p(-self._filters.false_positive_rate(column)))

    def _answer(self, leaf: Leaf, plan: _Plan, open_units: BoolArray) -> _Answer:
        nothing = np.zeros(len(open_units), dtype=np.bool_)
        match leaf:
            case Never() | OneOf(values=()):
                return _Answer(nothing, nothing)
            case HoldsNull():
                counts, known = self._filters.null_counts(plan.column)
                without_nulls: BoolArray = known & (counts == 0)
                return _Answer(~without_nulls, nothing)
            case HoldsValue():
                return _Answer(~_entirely_null(self._filters, plan.column), nothing)
        if plan.probes is not None and self._filters.is_wide and self._is_cheap(plan, plan.probes):
            return self._probe_first(plan, plan.probes, open_units)
        possible = open_units & ~_entirely_null(self._filters, plan.column)
        bounds = self._filters.bounds(plan.column) if possible.any() else None
        if plan.probes is not None:
            return self._probe(plan, plan.probes, possible, bounds)
        if bounds is None:
            return _Answer(possible, nothing)
        inside = bounds.starting_with(plan.prefix or b"") if plan.limit is None else plan.limit.of(bounds)
        return _Answer(possible & inside, possible & ~inside)

    def _probe(self, plan: _Plan, probes: Probes, possible: BoolArray, bounds: UnitBounds | None) -> _Answer:
        """Look for values, first in the bounds of units and then in their filters."""
        kept, hashes = possible, probes.hashes
        if bounds is not None:
            inside, covered = bounds.holding(probes.values, possible)
            kept, hashes = possible & inside, hashes if covered.all() else hashes[covered]
        by_bounds = possible & ~kept
        false_positives = self._false_positives(plan.column, len(hashes))
        if not kept.any():
            return _Answer(kept, by_bounds)
        if false_positives > self._hopeless:
            return _Answer(kept, by_bounds, why_unread=Reason.NOT_SELECTIVE)
        expected = int(np.count_nonzero(kept)) * false_positives
        return _Answer(kept & self._filters.might_contain_any(plan.column, hashes), by_bounds, expected)

    @staticmethod
    def _is_cheap(plan: _Plan, probes: Probes) -> bool:
        return not plan.is_hopeless and len(probes.hashes) <= FEW_HASHES

    def _probe_first(self, plan: _Plan, probes: Probes, open_units: BoolArray) -> _Answer:
        """Look for few values among very many units: in the filters first, then in the bounds of units that passed."""
        passed = np.flatnonzero(self._filters.might_contain_any(plan.column, probes.hashes))
        passed = passed[open_units[passed]]
        possible = np.ones(len(passed), dtype=np.bool_)
        inside = possible
        if len(passed):
            facts = self._filters.some(passed)
            possible = ~_entirely_null(facts, plan.column)
            bounds = facts.bounds(plan.column)
            inside = possible if bounds is None else bounds.holding(probes.values, possible)[0]
        left, outside = passed[possible & inside], passed[possible & ~inside]
        # Memory that is zero from the start costs nothing until it is written.
        kept, by_bounds = (np.zeros(len(open_units), dtype=np.bool_) for _ in range(2))
        kept[left] = True
        by_bounds[outside] = True
        tested = int(np.count_nonzero(open_units))
        expected = tested * self._false_positives(plan.column, len(probes.hashes))
        return _Answer(kept, by_bounds, expected, counts=(tested, len(left), len(outside)))


def _entirely_null(facts: UnitFacts, column: ColumnPath) -> BoolArray:
    counts, known = facts.null_counts(column)
    rows = facts.row_counts()
    only_nulls: BoolArray = counts == rows
    return known & (rows >= 0) & only_nulls if only_nulls.any() else only_nulls

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
from lakebloom.predicate.prune.unit_filters import BoolArray, HashArray, UnitBounds, UnitFacts, UnitFilters, WideFilters
from lakebloom.predicate.prune.units import Units
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.spark_types import Kind, spark_type
from lakebloom.predicate.sql.text import to_text
from lakebloom.predicate.tree import Predicate
from lakebloom.tables.columns import ColumnPath
from lakebloom.tuning import FEW_HASHES, MANY_VALUES, SAMPLED_VALUES

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

    kept: Units
    used: tuple[Used, ...]
    unused: tuple[Unused, ...]
    by_part: tuple[tuple[Units, Units, Units], ...] = ()
    """For each used part the units that were tested, those of them that it kept, and those that bounds dropped."""

    @property
    def keep(self) -> BoolArray:
        """For each unit whether it can match."""
        return self.kept.truths

    @property
    def units(self) -> tuple[tuple[BoolArray, BoolArray], ...]:
        """For each used part, the units that were tested, and those of them that it kept."""
        return tuple((tested.truths, kept.truths) for tested, kept, _ in self.by_part)

    @property
    def by_bounds(self) -> tuple[BoolArray, ...]:
        """For each used part, the units that min and max dropped."""
        return tuple(dropped.truths for _, _, dropped in self.by_part)


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

    def prepare(self, filters: UnitFilters) -> None:
        """Hash all values for the column types of these units, before threads prune several sets. Reads nothing."""
        _Pruning(filters, self._resolve, self._values, self._hopeless).cost(self._normal)

    def can_match(self, filters: UnitFilters) -> Pruned:
        """Tell which of these units can contain a row for which the predicate is TRUE. False is certain."""
        pruning = _Pruning(filters, self._resolve, self._values, self._hopeless)
        kept = pruning.prune(self._normal, Units(filters.num_units))
        return Pruned(kept, tuple(pruning.used), tuple(pruning.unused), tuple(pruning.by_part))


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
    """What a leaf says about the open units."""

    kept: Units
    by_bounds: Units
    """The units that min and max dropped."""
    false_positives: float = 0.0
    """How many units the filters are expected to keep without need."""
    why_unread: Reason | None = None
    """Why filters were not read though there were units left."""


class _Pruning:
    """Prunes one set of units by one predicate."""

    def __init__(self, filters: UnitFilters, resolve: Resolver, values: _Values, hopeless: float) -> None:
        self._filters, self._resolve, self._values, self._hopeless = filters, resolve, values, hopeless
        self.used: list[Used] = []
        self.unused: list[Unused] = []
        self.by_part: list[tuple[Units, Units, Units]] = []

    def prune(self, node: Normal, open_units: Units, why_not: Reason = Reason.NOT_NEEDED) -> Units:
        """Return the open units that can match. ``why_not`` is the reason if no unit is open."""
        match node:
            case AllOf(children):
                for child in sorted(children, key=self.cost):
                    open_units = self.prune(child, open_units, why_not)
                return open_units
            case AnyOf(children):
                kept = Units.none(open_units.num_units)
                # A child that keeps every unit goes first: then no filter is read for the others.
                if open_units and not self._is_answered(node):
                    why_not = Reason.OR_NOT_ANSWERED
                for child in sorted(children, key=lambda child: (self._is_answered(child), self.cost(child))):
                    kept = kept | self.prune(child, open_units - kept, why_not)
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

    def cost(self, node: Normal) -> int:
        """Return how many values the filters would be probed for."""
        match node:
            case AllOf(children) | AnyOf(children):
                return sum(map(self.cost, children))
            case OneOf():
                plan = self._plan(node)
                return 0 if isinstance(plan, Reason) else plan.num_hashes
            case _:
                return 0

    def _prune_leaf(self, leaf: Leaf, open_units: Units, why_not: Reason) -> Units:
        plan = self._plan(leaf)
        if not isinstance(plan, Reason) and not open_units:
            plan = why_not
        if isinstance(plan, Reason):
            self.unused.append(Unused(leaf.part, leaf.column, plan))
            return open_units
        answer = self._answer(leaf, plan, open_units)
        tested, kept, by_bounds = len(open_units), len(answer.kept), len(answer.by_bounds)
        if answer.why_unread is not None and tested == kept:
            self.unused.append(Unused(leaf.part, leaf.column, answer.why_unread))
            return open_units
        self.used.append(
            Used(leaf.part, plan.column, tested, tested - kept, answer.false_positives, dropped_by_bounds=by_bounds)
        )
        self.by_part.append((open_units, answer.kept, answer.by_bounds))
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

    def _answer(self, leaf: Leaf, plan: _Plan, open_units: Units) -> _Answer:
        nothing = Units.none(open_units.num_units)
        match leaf:
            case Never() | OneOf(values=()):
                return _Answer(nothing, nothing)
            case HoldsNull():
                counts, known = self._filters.null_counts(plan.column)
                return _Answer(open_units - Units.where(known & (counts == 0)), nothing)
            case HoldsValue():
                return _Answer(open_units - _entirely_null(self._filters, plan.column, open_units.num_units), nothing)
        if plan.probes is not None and self._is_cheap(plan, plan.probes) and (wide := self._filters.wide) is not None:
            return self._probe_first(plan, plan.probes, open_units, wide)
        possible = open_units - _entirely_null(self._filters, plan.column, open_units.num_units)
        bounds = self._filters.bounds(plan.column) if possible else None
        if plan.probes is not None:
            return self._probe(plan, plan.probes, possible, bounds)
        if bounds is None:
            return _Answer(possible, nothing)
        within = bounds.starting_with(plan.prefix or b"") if plan.limit is None else plan.limit.of(bounds)
        inside = Units.where(within)
        return _Answer(possible & inside, possible - inside)

    def _probe(self, plan: _Plan, probes: Probes, possible: Units, bounds: UnitBounds | None) -> _Answer:
        """Look for values, first in the bounds of units and then in their filters."""
        kept, by_bounds, hashes = possible, Units.none(possible.num_units), probes.hashes
        if bounds is not None:
            inside, hashes = _within(bounds, probes, possible)
            kept, by_bounds = possible & inside, possible - inside
        false_positives = self._false_positives(plan.column, len(hashes))
        if not kept:
            return _Answer(kept, by_bounds)
        if false_positives > self._hopeless:
            return _Answer(kept, by_bounds, why_unread=Reason.NOT_SELECTIVE)
        passed = Units.where(self._filters.might_contain_any(plan.column, hashes))
        return _Answer(kept & passed, by_bounds, len(kept) * false_positives)

    @staticmethod
    def _is_cheap(plan: _Plan, probes: Probes) -> bool:
        return not plan.is_hopeless and len(probes.hashes) <= FEW_HASHES

    def _probe_first(self, plan: _Plan, probes: Probes, open_units: Units, wide: WideFilters) -> _Answer:
        """Look for few values among very many units: in the filters first, then in the bounds of units that passed."""
        count = open_units.num_units
        passed = (open_units & Units.numbered(count, wide.holding(plan.column, probes.hashes))).numbers
        kept, outside = passed, passed[:0]
        if len(passed):
            facts = wide.some(passed)
            possible = Units(len(passed)) - _entirely_null(facts, plan.column, len(passed))
            bounds = facts.bounds(plan.column)
            inside = possible
            if bounds is not None:
                inside = possible & _within(bounds, probes, possible)[0]
            kept, outside = passed[inside.numbers], passed[(possible - inside).numbers]
        expected = len(open_units) * self._false_positives(plan.column, len(probes.hashes))
        return _Answer(Units.numbered(count, kept), Units.numbered(count, outside), expected)


def _within(bounds: UnitBounds, probes: Probes, possible: Units) -> tuple[Units, HashArray]:
    """Return the units whose bounds enclose one of some values, and the hashes of values that a possible unit may hold.

    Where no unit is left, the hashes do not matter.
    """
    if probes.single is not None:
        return Units.where(bounds.enclosing(probes.single)), probes.hashes
    if len(probes.hashes) >= MANY_VALUES and bounds.all_enclose(probes.some_values(SAMPLED_VALUES)):
        return Units(possible.num_units), probes.hashes  # then hardly any of the others is outside of all units
    inside, covered = bounds.holding(probes.values, possible.truths)
    return Units.where(inside), probes.hashes if covered.all() else probes.hashes[covered]


def _entirely_null(facts: UnitFacts, column: ColumnPath, num_units: int) -> Units:
    found = facts.entirely_null(column)
    return Units.none(num_units) if found is None else Units.where(found)

"""Which demands yield when not all can be met: the cheapest ones, found through minimal conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from edbatch.memory.alignment import Demand, align

BUDGET = 2000  # demands handed to `align` before the search settles for a good choice: some 0.1 seconds


@dataclass
class Choice:
    """The demands that are met, and why the others are not.

    Attributes:
        order: the variables of all demands, those met being adjacent and aligned.
        dropped: demands that are not met; each with the minimal conflict it was dropped from, itself included.
        cheapest: whether no cheaper set of demands could have been dropped.
    """

    order: list[int] = field(default_factory=list)
    dropped: dict[int, tuple[int, ...]] = field(default_factory=dict)
    cheapest: bool = True


def choose(demands: Sequence[Demand], costs: Sequence[int], budget: int = BUDGET) -> Choice:
    """Drop the cheapest demands so that the others can be met.

    The paper drops a batch when its constraints fail. Here, as long as what is left cannot be met, minimal conflicts
    are taken from it, and the cheapest set that hits all known conflicts is dropped (implicit hitting sets:
    Moreno-Centeno and Karp 2013). Once the rest can be met, no other choice is cheaper. Demands that share neither
    variables nor an operation are independent, and searched one component at a time.

    Args:
        demands: operands that want to be adjacent and aligned.
        costs: of dropping each.
        budget: bounds the search of a component, in demands handed to `align`; beyond it, demands are accepted
            greedily, the dearest first.

    Example:
        >>> choose([Demand(0, (1, 2)), Demand(1, (2, 3)), Demand(2, (1, 3))], [4, 1, 4])
        Choice(order=[2, 1, 3], dropped={1: (0, 1, 2)}, cheapest=True)
    """
    choice = Choice()
    for component in _components(demands):
        search = _Search(demands, costs, budget)
        if not search.exactly(component, choice):
            search.greedily(component, choice)
    return choice


class _Search:
    """The search in one component; demands are numbers."""

    def __init__(self, demands: Sequence[Demand], costs: Sequence[int], budget: int) -> None:
        self._demands = demands
        self._costs = costs
        self._left = budget
        self._conflicts: list[tuple[int, ...]] = []

    def exactly(self, component: list[int], choice: Choice) -> bool:
        """Drop the cheapest hitting set of the conflicts until the others can be met; False beyond the budget."""
        hit: set[int] = set()
        while True:
            kept = [number for number in component if number not in hit]
            order = self._align(kept)
            if order is not None:
                break
            while order is None:  # conflicts without common demands, as many as there are
                if self._left < 0:
                    return False
                conflict = self._conflict(kept)
                self._conflicts.append(tuple(sorted(conflict)))
                kept = [number for number in kept if number not in conflict]
                order = self._align(kept)
            hit = set(cheapest_hitting_set(self._conflicts, self._costs))
        self._record(component, order, hit, choice)
        return True

    def greedily(self, component: list[int], choice: Choice) -> None:
        """Accept demands, the dearest first, as long as they can be met."""
        rest = sorted(component, key=lambda number: (-self._costs[number], number))
        accepted: list[int] = []
        hit = set()
        while rest:
            size = self._longest_prefix(accepted, rest)
            accepted += rest[:size]
            hit.update(rest[size : size + 1])
            rest = rest[size + 1 :]
        order = self._align(accepted)
        assert order is not None
        for number in sorted(hit):
            if not any(number in conflict for conflict in self._conflicts):
                conflict = self._conflict([*accepted, number])
                self._conflicts.append(tuple(sorted(conflict)))
        self._record(component, order, hit, choice)
        choice.cheapest = False

    def _record(self, component: list[int], order: list[int], hit: set[int], choice: Choice) -> None:
        placed = set(order)
        missing = dict.fromkeys(v for number in component for v in self._demands[number].variables if v not in placed)
        choice.order += [*order, *missing]
        for number in sorted(hit):
            why = [conflict for conflict in self._conflicts if number in conflict]
            choice.dropped[number] = min(why, key=lambda conflict: (len(hit.intersection(conflict)), len(conflict)))

    def _align(self, numbers: Sequence[int]) -> list[int] | None:
        self._left -= len(numbers)
        return align([self._demands[number] for number in numbers])

    def _conflict(self, numbers: Iterable[int]) -> set[int]:
        """A minimal part of `numbers` that cannot be met: without any one of it, the rest can.

        Conflicts are local as a rule, so demands join by their distance from those known to take part.
        """
        known: list[int] = []
        rest = list(numbers)
        while not known or self._align(known) is not None:
            rest = self._by_distance(known or rest[:1], rest)
            size = self._longest_prefix(known, rest)
            known.append(rest[size])
            rest = rest[:size]
        return set(known)

    def _longest_prefix(self, base: list[int], rest: list[int]) -> int:
        """How many of `rest` can be met together with `base`: doubling, then halving."""
        low, step = 0, 1
        high = len(rest) + 1  # the first number of demands known to fail
        while low + step < high:
            if self._align(base + rest[: low + step]) is None:
                high = low + step
                break
            low += step
            step = min(2 * step, len(rest) - low) or 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._align(base + rest[:middle]) is None:
                high = middle
            else:
                low = middle
        return low

    def _by_distance(self, sources: list[int], numbers: list[int]) -> list[int]:
        """Breadth-first over shared variables and operations."""
        joints: dict[object, list[int]] = {}
        for number in numbers:
            for joint in _joints(self._demands[number]):
                joints.setdefault(joint, []).append(number)
        queue = list(sources)
        seen = set(sources)
        for number in queue:  # grows
            for joint in _joints(self._demands[number]):
                for other in joints.pop(joint, ()):
                    if other not in seen:
                        seen.add(other)
                        queue.append(other)
        return [number for number in queue if number in set(numbers)] + [n for n in numbers if n not in seen]


def cheapest_hitting_set(conflicts: Sequence[Sequence[int]], costs: Sequence[int]) -> list[int]:
    """The cheapest numbers of which every conflict has one; by branch and bound.

    Example:
        >>> cheapest_hitting_set([(0, 1), (1, 2), (3, 1)], [2, 5, 2, 2])
        [1]
        >>> cheapest_hitting_set([(0, 1), (1, 2), (3, 1)], [1, 5, 2, 1])
        [0, 2, 3]
    """
    best: list[int] = []
    best_cost = float("inf")

    def search(open_conflicts: list[Sequence[int]], chosen: list[int], excluded: frozenset[int], cost: int) -> None:
        nonlocal best, best_cost
        if cost >= best_cost:
            return
        if not open_conflicts:
            best, best_cost = sorted(chosen), cost
            return
        conflict = min(open_conflicts, key=lambda c: sum(number not in excluded for number in c))
        tried = set(excluded)
        for number in sorted(conflict, key=lambda n: (costs[n], -n)):
            if number not in tried:
                rest = [other for other in open_conflicts if number not in other]
                search(rest, [*chosen, number], frozenset(tried), cost + costs[number])
                tried.add(number)

    search(list(conflicts), [], frozenset(), 0)
    return best


def _joints(demand: Demand) -> list[object]:
    """What a demand can share with another: variables, and its operation."""
    return [*demand.variables, ("op", demand.op)]


def _components(demands: Sequence[Demand]) -> list[list[int]]:
    """Demands connected by shared variables or operations."""
    joints: dict[object, list[int]] = {}
    for number, demand in enumerate(demands):
        for joint in _joints(demand):
            joints.setdefault(joint, []).append(number)
    seen: set[int] = set()
    components = []
    for start in range(len(demands)):
        if start not in seen:
            seen.add(start)
            component = [start]
            for number in component:  # grows
                for joint in _joints(demands[number]):
                    fresh = [other for other in joints.pop(joint, ()) if other not in seen]
                    seen.update(fresh)
                    component += fresh
            components.append(sorted(component))
    return components

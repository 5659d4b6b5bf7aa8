"""Which demands yield when not all can be met: the cheapest ones, found through minimal conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from edbatch.memory.layout.alignment import Alignment, Demand
from edbatch.memory.layout.hitting_set import cheapest_hitting_set

BUDGET = 1000  # demands gone through before the search settles for a good choice: some 50 milliseconds


@dataclass
class Choice:
    """The demands that are met, and why the others are not.

    Attributes:
        order: the variables of all demands, those met being adjacent and aligned.
        dropped: demands that are not met; each with a minimal conflict it was dropped from, itself included.
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
        costs: of dropping each, positive.
        budget: bounds the search of a component, in demands gone through; what is dropped beyond it need not be
            the cheapest, though it mostly is.

    Example:
        >>> choose([Demand(0, (1, 2)), Demand(1, (2, 3)), Demand(2, (1, 3))], [4, 1, 4])
        Choice(order=[2, 1, 3], dropped={1: (0, 1, 2)}, cheapest=True)
    """
    choice = Choice()
    for component in _components(demands):
        search = _Search(demands, costs, component, budget)
        if not search.exactly(choice):
            search.nearly(choice)
    return choice


class _Search:
    """The search in one component; demands are numbers."""

    def __init__(self, demands: Sequence[Demand], costs: Sequence[int], component: list[int], budget: int) -> None:
        self._demands = demands
        self._costs = costs
        self._component = component
        self._left = budget
        self._conflicts: list[tuple[int, ...]] = []
        self._hit: set[int] = set()  # the cheapest hitting set so far
        self._nothing = Alignment(variable for number in component for variable in demands[number].variables)

    def exactly(self, choice: Choice) -> bool:
        """Drop the cheapest hitting set of the conflicts until the others can be met; False beyond the budget."""
        while True:
            kept = [number for number in self._component if number not in self._hit]
            met = self._extend(self._nothing, kept)
            if met is not None:
                self._record(met, self._hit, choice)
                return True
            while met is None:  # conflicts without common demands, as many as there are
                if self._left < 0:
                    return False
                conflict = self._conflict(kept)
                kept = [number for number in kept if number not in conflict]
                met = self._extend(self._nothing, kept)
            cheapest, steps = cheapest_hitting_set(self._conflicts, self._costs, self._left)
            self._left -= steps
            if cheapest is None:
                return False
            self._hit = set(cheapest)

    def nearly(self, choice: Choice) -> None:
        """Go on from the cheapest hitting set so far, or from nothing, whichever turns out cheaper."""
        found = [self._pay(start) for start in (self._hit, set())]
        met, hit = min(found, key=lambda result: sum(self._costs[number] for number in result[1]))
        self._record(met, hit, choice)
        choice.cheapest = False

    def _pay(self, dropped: set[int]) -> tuple[Alignment, set[int]]:
        """Drop further demands until the others can be met, then take back what still fits: (what is met, what is not).

        The primal-dual rule for hitting sets: every conflict is paid for by all its members alike, and who has paid
        its whole cost is dropped.
        """
        unpaid = {number: 0 if number in dropped else self._costs[number] for number in self._component}
        conflicts = iter(self._conflicts[:])
        met: Alignment | None = None
        while met is None:
            kept = [number for number in self._component if unpaid[number]]
            conflict = next(conflicts, ())
            if not conflict:
                met = self._extend(self._nothing, kept)
                conflict = self._conflict(kept) if met is None else ()
            paid = min((unpaid[number] for number in conflict), default=0)
            for number in conflict:
                unpaid[number] -= paid
        hit = {number for number in self._component if not unpaid[number]}
        for number in sorted(hit, key=lambda number: (-self._costs[number], number)):
            wider = self._extend(met, [number])
            if wider is not None:
                met = wider
                hit.remove(number)
        return met, hit

    def _record(self, met: Alignment, hit: set[int], choice: Choice) -> None:
        choice.order += met.order()
        for number in sorted(hit):
            why = [conflict for conflict in self._conflicts if number in conflict]
            choice.dropped[number] = min(why, key=lambda conflict: (len(hit.intersection(conflict)), len(conflict)))

    def _extend(self, met: Alignment, numbers: Sequence[int]) -> Alignment | None:
        self._left -= len(met.demands) + len(numbers)
        return met.extended([self._demands[number] for number in numbers])

    def _conflict(self, numbers: list[int]) -> tuple[int, ...]:
        """Note and return a minimal part of `numbers` that cannot be met: without any one of it, the rest can."""
        conflict = self._adjacency_conflict(numbers)
        if conflict is None:
            conflict = self._alignment_conflict(numbers)
        else:
            for number in conflict[:]:
                smaller = [other for other in conflict if other != number]
                if self._extend(self._nothing, smaller) is None:
                    conflict = smaller
        self._conflicts.append(tuple(sorted(conflict)))
        return self._conflicts[-1]

    def _alignment_conflict(self, numbers: list[int]) -> list[int]:
        """A minimal part of `numbers` that cannot be met.

        The last demand that must join for the rest to fail takes part; so does the last one that must join that one...
        Conflicts are local as a rule, so demands join by their distance from those known to take part.
        """
        known: list[int] = []
        rest = numbers
        met: Alignment | None = self._nothing
        while met is not None:
            rest = self._by_distance(known or rest[:1], rest)
            size, _ = self._longest_prefix(met, rest)
            known.append(rest[size])
            met = self._extend(met, rest[size : size + 1])
            rest = rest[:size]
        return known

    def _adjacency_conflict(self, numbers: list[int]) -> list[int] | None:
        """The same for adjacency alone, which is much cheaper; None if all are adjacent."""
        known: list[int] = []
        rest = numbers
        while self._adjacent_prefix(self._nothing, known) == len(known):
            rest = self._by_distance(known or rest[:1], rest)
            size = self._adjacent_prefix(self._nothing, known + rest) - len(known)
            if size == len(rest):
                return None
            known.append(rest[size])
            rest = rest[:size]
        return known

    def _longest_prefix(self, met: Alignment, rest: list[int]) -> tuple[int, Alignment]:
        """How many of `rest` can be met too, and that alignment.

        Most conflicts are of adjacency alone, which one tree finds at once; others by doubling, then halving.
        """
        low, high, step, doubling = 0, self._adjacent_prefix(met, rest), 1, True
        whole = self._extend(met, rest[:high])
        if whole is not None:
            return high, whole
        while high - low > 1:  # `low` can be met, `high` cannot
            step = step if doubling and low + step < high else (high - low) // 2
            wider = self._extend(met, rest[low : low + step])
            if wider is None:
                high, doubling = low + step, False
            else:
                met, low, step = wider, low + step, 2 * step
        return low, met

    def _adjacent_prefix(self, met: Alignment, rest: list[int]) -> int:
        """How many of `rest` can be made adjacent, one after the other."""
        self._left -= len(rest) // 4  # much cheaper than to extend an alignment
        tree = met.tree.copy()
        for size, number in enumerate(rest):
            if not tree.reduce(self._demands[number].variables):
                return size
        return len(rest)

    def _by_distance(self, sources: list[int], numbers: list[int]) -> list[int]:
        """Breadth-first over shared variables and operations."""
        near = _reached(sources, _by_joint(self._demands, numbers), self._demands)
        members, seen = set(numbers), set(near)
        return [number for number in near if number in members] + [n for n in numbers if n not in seen]


def _joints(demand: Demand) -> list[object]:
    """What a demand can share with another: variables, and its operation."""
    return [*demand.variables, ("op", demand.op)]


def _by_joint(demands: Sequence[Demand], numbers: Iterable[int]) -> dict[object, list[int]]:
    """Per joint the demands that have it, of these."""
    joints: dict[object, list[int]] = {}
    for number in numbers:
        for joint in _joints(demands[number]):
            joints.setdefault(joint, []).append(number)
    return joints


def _reached(sources: Sequence[int], joints: dict[object, list[int]], demands: Sequence[Demand]) -> list[int]:
    """The sources and, breadth-first, what they are connected with by joints, which are taken out."""
    found, seen = list(sources), set(sources)
    for number in found:  # grows
        for joint in _joints(demands[number]):
            fresh = [other for other in joints.pop(joint, ()) if other not in seen]
            seen.update(fresh)
            found += fresh
    return found


def _components(demands: Sequence[Demand]) -> list[list[int]]:
    """Demands connected by shared variables or operations."""
    joints = _by_joint(demands, range(len(demands)))
    seen: set[int] = set()
    components = []
    for start in range(len(demands)):
        if start not in seen:
            components.append(sorted(_reached([start], joints, demands)))
            seen.update(components[-1])
    return components

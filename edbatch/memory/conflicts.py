"""Which demands yield when not all can be met: the cheapest ones, found through minimal conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from edbatch.memory.alignment import Alignment, Demand

BUDGET = 1000  # demands gone through before the search settles for a good choice: some 50 milliseconds


@dataclass
class Choice:
    """The demands that are met, and why the others are not.

    Attributes:
        order: the variables of all demands, those met being adjacent and aligned.
        dropped: demands that are not met; each with a minimal conflict it was dropped from, itself
            included; or with none, where the search was cut short.
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
        budget: bounds the search of a component, in demands gone through; beyond it, demands are accepted
            one after the other.

    Example:
        >>> choose([Demand(0, (1, 2)), Demand(1, (2, 3)), Demand(2, (1, 3))], [4, 1, 4])
        Choice(order=[2, 1, 3], dropped={1: (0, 1, 2)}, cheapest=True)
    """
    choice = Choice()
    for component in _components(demands):
        search = _Search(demands, costs, component, budget)
        if not search.exactly(choice):
            search.greedily(choice)
    return choice


class _Search:
    """The search in one component; demands are numbers."""

    def __init__(self, demands: Sequence[Demand], costs: Sequence[int], component: list[int], budget: int) -> None:
        self._demands = demands
        self._costs = costs
        self._component = component
        self._left = budget
        self._conflicts: list[tuple[int, ...]] = []
        self._hit: set[int] = set()
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

    def greedily(self, choice: Choice) -> None:
        """Accept demands as long as they can be met: the dearest first, or first those that were nearly kept."""
        dearest = sorted(self._component, key=lambda number: (-self._costs[number], number))
        nearly_kept = sorted(dearest, key=self._hit.__contains__)
        met, hit = min(map(self._accept, (dearest, nearly_kept)), key=lambda found: self._cost(found[1]))
        self._record(met, hit, choice)
        choice.cheapest = False

    def _accept(self, rest: list[int]) -> tuple[Alignment, set[int]]:
        """Accept each demand that can be met with those before it: (what is met, what is not)."""
        met, hit = self._nothing, set[int]()
        while rest:
            adjacent = self._adjacent(met, rest)
            size, met = self._longest_prefix(met, adjacent)
            passed = rest.index(adjacent[size]) + 1 if size < len(adjacent) else len(rest)
            hit.update(set(rest[:passed]).difference(adjacent[:size]))
            rest = [number for number in rest[passed:] if number not in adjacent[:size]]
        return met, hit

    def _cost(self, numbers: set[int]) -> int:
        return sum(self._costs[number] for number in numbers)

    def _record(self, met: Alignment, hit: set[int], choice: Choice) -> None:
        choice.order += met.order()
        for number in sorted(hit):
            why = [conflict for conflict in self._conflicts if number in conflict]
            choice.dropped[number] = min(
                why, key=lambda conflict: (len(hit.intersection(conflict)), len(conflict)), default=()
            )

    def _extend(self, met: Alignment, numbers: Sequence[int]) -> Alignment | None:
        self._left -= len(met.demands) + len(numbers)
        return met.extended([self._demands[number] for number in numbers])

    def _conflict(self, numbers: list[int]) -> list[int]:
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
        return conflict

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
        while len(self._adjacent(self._nothing, known)) == len(known):
            rest = self._by_distance(known or rest[:1], rest)
            size = len(self._adjacent(self._nothing, known + rest, first_only=True)) - len(known)
            if size == len(rest):
                return None
            known.append(rest[size])
            rest = rest[:size]
        return known

    def _longest_prefix(self, met: Alignment, rest: list[int]) -> tuple[int, Alignment]:
        """How many of `rest` can be met too, and that alignment.

        Most conflicts are of adjacency alone, which one tree finds at once; others by doubling, then halving.
        """
        adjacent = self._adjacent(met, rest, first_only=True)
        whole = self._extend(met, adjacent)
        if whole is not None:
            return len(adjacent), whole
        low, high, step, doubling = 0, len(adjacent), 1, True  # `low` can be met, `high` cannot
        while high - low > 1:
            step = step if doubling and low + step < high else (high - low) // 2
            wider = self._extend(met, rest[low : low + step])
            if wider is None:
                high, doubling = low + step, False
            else:
                met, low, step = wider, low + step, 2 * step
        return low, met

    def _adjacent(self, met: Alignment, rest: list[int], first_only: bool = False) -> list[int]:
        """Those of `rest` that can be made adjacent, one after the other; or those before the first that cannot."""
        self._left -= len(rest) // 4  # much cheaper than to extend an alignment
        tree = met.tree.copy()
        found = []
        for number in rest:
            if tree.reduce(self._demands[number].variables):
                found.append(number)
            elif first_only:
                break
        return found

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
                fresh = [other for other in joints.pop(joint, ()) if other not in seen]
                seen.update(fresh)
                queue += fresh
        members = set(numbers)
        return [number for number in queue if number in members] + [n for n in numbers if n not in seen]


def cheapest_hitting_set(
    conflicts: Sequence[Sequence[int]], costs: Sequence[int], limit: int
) -> tuple[list[int] | None, int]:
    """The cheapest numbers of which every conflict has one, by branch and bound; and the steps this took.

    None instead of the numbers where it takes more than `limit` steps.

    Example:
        >>> cheapest_hitting_set([(0, 1), (1, 2), (3, 1)], [2, 5, 2, 2], limit=100)[0]
        [1]
        >>> cheapest_hitting_set([(0, 1), (1, 2), (3, 1)], [1, 5, 2, 1], limit=100)[0]
        [0, 2, 3]
    """
    best: list[int] = []
    best_cost = float("inf")
    steps = 0

    def search(still: list[Sequence[int]], chosen: list[int], excluded: frozenset[int], cost: int) -> None:
        """Hit the conflicts `still` there; `excluded` numbers have been tried before."""
        nonlocal best, best_cost, steps
        steps += 1
        least = cost
        apart: set[int] = set()  # conflicts without common members each cost at least their cheapest one
        smallest: list[int] = []
        for conflict in still:
            left = [number for number in conflict if number not in excluded]
            if not left:
                return
            if apart.isdisjoint(left):
                apart.update(left)
                least += min(costs[number] for number in left)
            if not smallest or len(left) < len(smallest):
                smallest = left
        if least >= best_cost or steps > limit:
            return
        if not still:
            best, best_cost = sorted(chosen), cost
        for number in sorted(smallest, key=lambda number: (costs[number], -number)):
            search([other for other in still if number not in other], [*chosen, number], excluded, cost + costs[number])
            excluded |= {number}

    search(list(conflicts), [], frozenset(), 0)
    return (best if steps <= limit else None), steps


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

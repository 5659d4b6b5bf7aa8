"""Cheapest hitting sets: numbers of which every one of several sets has at least one."""

from __future__ import annotations

from collections.abc import Sequence


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

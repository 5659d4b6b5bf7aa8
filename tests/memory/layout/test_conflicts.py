import random
from itertools import chain, combinations

import pytest

from edbatch.memory.layout.alignment import Demand
from edbatch.memory.layout.conflicts import choose
from tests.memory.layout.cells import align


def random_demands(seed):
    rng = random.Random(seed)
    n = rng.randint(3, 6)
    demands = []
    for op in range(rng.randint(2, 4)):
        k = rng.randint(2, min(4, n))
        demands += [Demand(op, tuple(rng.sample(range(n), k))) for _ in range(rng.randint(1, 2))]
    return demands, [rng.randint(1, 5) for _ in demands]


def subsets(numbers):
    return chain.from_iterable(combinations(numbers, size) for size in range(len(numbers) + 1))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("budget", [0, 10**6])
def test_what_is_dropped_is_the_cheapest_and_the_conflicts_are_minimal(seed, budget):
    demands, costs = random_demands(seed)
    choice = choose(demands, costs, budget)
    kept = [demand for number, demand in enumerate(demands) if number not in choice.dropped]
    assert align(kept) is not None
    cost = sum(costs[number] for number in choice.dropped)
    least = min(
        sum(costs) - sum(costs[number] for number in subset)
        for subset in subsets(range(len(demands)))
        if align([demands[number] for number in subset]) is not None
    )
    assert cost >= least
    if choice.cheapest:
        assert cost == least
    else:
        assert cost <= 2 * least
    for number, conflict in choice.dropped.items():
        assert number in conflict
        assert align([demands[n] for n in conflict]) is None
        for left_out in conflict:
            assert align([demands[n] for n in conflict if n != left_out]) is not None
    assert sorted(choice.order) == sorted({variable for demand in demands for variable in demand.variables})

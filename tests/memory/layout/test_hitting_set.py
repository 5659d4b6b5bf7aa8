import random
from itertools import chain, combinations

from edbatch.memory.layout.hitting_set import cheapest_hitting_set


def subsets(numbers):
    return chain.from_iterable(combinations(numbers, size) for size in range(len(numbers) + 1))


def test_the_cheapest_hitting_set_is_that_of_brute_force():
    rng = random.Random(0)
    for _ in range(200):
        conflicts = [rng.sample(range(7), rng.randint(1, 4)) for _ in range(rng.randint(0, 6))]
        costs = [rng.randint(1, 9) for _ in range(7)]
        found, steps = cheapest_hitting_set(conflicts, costs, 10**6)
        assert cheapest_hitting_set(conflicts, costs, steps - 1) == (None, steps)
        assert all(set(found) & set(conflict) for conflict in conflicts)
        assert sum(costs[number] for number in found) == min(
            sum(costs[number] for number in subset)
            for subset in subsets(range(7))
            if all(set(subset) & set(conflict) for conflict in conflicts)
        )

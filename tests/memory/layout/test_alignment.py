import random
from itertools import permutations

import pytest

from edbatch.memory.layout.alignment import Demand
from tests.memory.layout.cells import align


def meets(order, demands):
    """Whether an order meets all demands, by its definition."""
    place = {variable: at for at, variable in enumerate(order)}
    batch_orders = {}
    for op, variables in demands:
        run = tuple(sorted(range(len(variables)), key=lambda i: place[variables[i]]))
        places = [place[variables[i]] for i in run]
        if places[-1] - places[0] != len(places) - 1 or batch_orders.setdefault(op, run) != run:
            return False
    return True


@pytest.mark.parametrize("seed", range(150))
def test_an_order_is_found_exactly_where_there_is_one(seed):
    rng = random.Random(seed)
    n = rng.randint(2, 6)
    hidden = rng.sample(range(n), n)
    demands = []
    for op in range(rng.randint(1, 4)):
        k = rng.randint(2, n)
        run = rng.sample(range(k), k)
        for _ in range(rng.randint(1, 3)):
            start = rng.randint(0, n - k)
            variables = rng.sample(range(n), k) if rng.random() < 0.1 else [hidden[start : start + k][i] for i in run]
            demands.append(Demand(op, tuple(variables)))
    mentioned = sorted({variable for demand in demands for variable in demand.variables})
    order = align(demands)
    if order is None:
        assert not any(meets(order, demands) for order in permutations(mentioned))
    else:
        assert sorted(order) == mentioned
        assert meets(order, demands)


def test_free_nodes_keep_the_order_of_the_variables():
    assert align([Demand(0, (3, 1)), Demand(1, (5, 2, 4))]) == [1, 3, 2, 4, 5]

import random
from itertools import permutations

import pytest

from edbatch.memory.layout.alignment import Demand
from edbatch.memory.layout.node_orders import NodeOrders
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


def test_no_demands_have_an_order():
    assert align([]) == []


def test_structure_travels_from_operand_to_operand():
    """An adjacency inside the last of a row of operands is found in the first."""
    rows = [tuple(range(5 * i, 5 * i + 5)) for i in range(6)]
    demands = [Demand(i, row) for i in range(5) for row in rows[i : i + 2]]
    order = align([*demands, Demand(9, (26, 29)), Demand(10, (29, 25))])
    assert order is not None
    first = [variable for variable in order if variable < 5]
    assert abs(first.index(1) - first.index(4)) == abs(first.index(4) - first.index(0)) == 1


def test_free_nodes_keep_the_order_of_the_variables():
    assert align([Demand(0, (3, 1)), Demand(1, (5, 2, 4))]) == [1, 3, 2, 4, 5]


def test_a_cycle_of_permutations_is_solved_or_refused():
    def after(second, first):
        return tuple(second[at] for at in first)

    rng = random.Random(0)
    for _ in range(200):
        size, n = rng.randint(2, 5), rng.randint(2, 8)
        truth = [tuple(rng.sample(range(size), size)) for _ in range(n)]
        orders = NodeOrders()
        for _ in range(3 * n):
            left, right = rng.randrange(n), rng.randrange(n)
            inverse = tuple(sorted(range(size), key=truth[left].__getitem__))
            carried = after(truth[right], inverse)
            assert orders.relate(left, right, carried)
            wrong = carried[1:] + carried[:1]
            assert not orders.relate(left, right, wrong)
            left_order, right_order = orders.order(left), orders.order(right)
            assert after(carried, left_order) == right_order

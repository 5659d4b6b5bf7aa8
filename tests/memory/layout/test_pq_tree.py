import inspect
import random
import sys
from copy import copy
from itertools import permutations, product
from math import factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.memory.layout.pq_tree import PQTree


def orders_of(tree, number=0):
    """All orders of a tree, each once."""
    kind, children, element = tree.nodes[number]
    if kind == "leaf":
        return [(element,)]
    arranged = permutations(children) if kind == "P" else (children, children[::-1])
    below = {child: orders_of(tree, child) for child in children}
    return [sum(parts, ()) for several in arranged for parts in product(*(below[child] for child in several))]


def consecutive(order, subset):
    places = sorted(order.index(element) for element in set(subset))
    return not places or places[-1] - places[0] == len(places) - 1


def check_against_brute_force(n, subsets):
    tree = PQTree(range(n))
    orders = set(permutations(range(n)))
    for subset in subsets:
        left = {order for order in orders if consecutive(order, subset)}
        before = str(tree)
        assert tree.reduce(subset) == bool(left)
        if left:
            orders = left
        else:
            assert str(tree) == before
        found = orders_of(tree)
        assert len(found) == len(set(found))
        assert set(found) == orders
        assert tuple(tree.frontier()) in orders
        check_form(tree)


def check_form(tree):
    """P nodes have two children or more, Q nodes three or more, and leaves are the elements."""
    nodes = tree.nodes
    for node in nodes:
        assert len(node.children) >= {"P": 2, "Q": 3, "leaf": 0}[node.kind]
    assert sorted(child for node in nodes for child in node.children) == list(range(1, len(nodes)))


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 6).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.sets(st.integers(0, n - 1)), max_size=8))))
def test_orders_are_those_of_brute_force(case):
    check_against_brute_force(*case)


def test_every_sequence_of_small_subsets_of_five():
    """All pairs and triples in a thousand orders: every template meets every other."""
    rng = random.Random(0)
    small = [s for s in range(1, 32) if 2 <= s.bit_count() <= 4]
    for _ in range(1000):
        masks = rng.sample(small, 6)
        check_against_brute_force(5, [[i for i in range(5) if mask >> i & 1] for mask in masks])


def planted(n, rows, seed, longest):
    """Intervals of a hidden order, each shuffled."""
    rng = random.Random(seed)
    hidden = list(range(n))
    rng.shuffle(hidden)
    found = []
    for _ in range(rows):
        size = rng.randint(2, longest)
        start = rng.randint(0, n - size)
        found.append(rng.sample(hidden[start : start + size], size))
    return found


def check_planted(n, rows):
    tree = PQTree(range(n))
    for row in rows:
        assert tree.reduce(row)
    place = {element: at for at, element in enumerate(tree.frontier())}
    assert sorted(place) == list(range(n))
    for row in rows:
        places = [place[element] for element in row]
        assert max(places) - min(places) == len(row) - 1
    check_form(tree)
    return tree


@pytest.mark.parametrize(
    ("n", "rows", "longest"), [(30, 60, 30), (200, 300, 10), (500, 100, 500), (2000, 300, 20), (2000, 60, 2000)]
)
@pytest.mark.parametrize("seed", range(3))
def test_planted_consecutive_ones_are_found(n, rows, longest, seed):
    check_planted(n, planted(n, rows, seed, longest))


@pytest.fixture
def shallow():
    """In the test, calls may be 100 deep."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    yield
    sys.setrecursionlimit(before)


def test_deep_trees_do_not_recurse(shallow):
    chain = PQTree(range(300))
    for size in range(2, 300):
        assert chain.reduce(range(size))
    assert str(chain).count("{") == 299
    assert copy(chain).frontier() == chain.frontier()
    assert chain.reduce([0, 299])  # from the innermost leaf to the outermost: all levels become one Q node
    assert [node.kind for node in chain.nodes].count("Q") == 1
    assert not chain.reduce([5, 299])


def test_small_sets():
    assert PQTree([]).frontier() == []
    assert PQTree([]).reduce([])
    one = PQTree(["x"])
    assert (str(one), one.frontier()) == ("PQTree(x)", ["x"])
    assert one.reduce(["x"])
    two = PQTree("ab")
    assert two.reduce("ab")
    assert str(two) == "PQTree({a b})"


def test_a_copy_is_independent():
    tree = PQTree("abcdef")
    assert tree.reduce("abc")
    assert tree.reduce("bcd")
    twin = copy(tree)
    assert str(twin) == str(tree)
    assert twin.reduce("de")
    assert twin.reduce("ab")
    assert not twin.reduce("ae")
    assert tree.reduce("ab")
    assert len(orders_of(tree)) == 2 * factorial(3)
    assert len(orders_of(twin)) == 4

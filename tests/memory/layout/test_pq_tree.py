import random
import sys
from itertools import islice, permutations
from math import factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.errors import EdBatchError
from edbatch.memory.layout import pq_reduction, pq_tree
from edbatch.memory.layout.pq_tree import PQTree


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
        found = [tuple(order) for order in tree.orders()]
        assert len(found) == len(set(found)) == tree.count_orders()
        assert set(found) == orders
        assert tuple(tree.frontier()) in orders
        check_form(tree)


def check_form(tree):
    """P nodes have two children or more, Q nodes three or more, and leaves are the elements."""
    nodes = tree.nodes()
    for node in nodes:
        assert len(node.children) >= {"P": 2, "Q": 3, "leaf": 0}[node.kind]
    assert sorted(child for node in nodes for child in node.children) == list(range(1, len(nodes)))
    assert sum(node.kind == "leaf" for node in nodes) == len(tree)


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 6).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.sets(st.integers(0, n - 1)), max_size=8))))
def test_orders_are_those_of_brute_force(case):
    check_against_brute_force(*case)


@pytest.mark.parametrize("seed", range(12))
def test_orders_are_those_of_brute_force_for_eight_elements(seed):
    rng = random.Random(seed)
    hidden = list(range(8))
    rng.shuffle(hidden)
    subsets = []
    for _ in range(5):  # small intervals keep the tree interesting; one in four subsets is arbitrary
        size = rng.randint(2, 4)
        start = rng.randint(0, 8 - size)
        subsets.append(rng.sample(range(8), size) if rng.random() < 0.25 else hidden[start : start + size])
    check_against_brute_force(8, subsets)


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
    ("n", "rows", "longest"), [(30, 60, 30), (200, 300, 10), (500, 100, 500), (2000, 1500, 20), (2000, 60, 2000)]
)
@pytest.mark.parametrize("seed", range(3))
def test_planted_consecutive_ones_are_found(n, rows, longest, seed):
    check_planted(n, planted(n, rows, seed, longest))


def test_a_failed_reduction_in_a_large_tree_changes_nothing():
    tree = check_planted(300, planted(300, 200, 0, 40))
    rng = random.Random(1)
    failed = 0
    for _ in range(200):
        before, order, text = tree.nodes(), tree.frontier(), str(tree)
        if tree.reduce(rng.sample(range(300), rng.randint(2, 30))):
            break
        failed += 1
        assert (tree.nodes(), tree.frontier(), str(tree)) == (before, order, text)
    assert failed > 10
    for row in planted(300, 200, 0, 40):  # and what was there still holds
        assert tree.reduce(row)


def test_deep_trees_do_not_recurse():
    chain = PQTree(range(700))
    for size in range(2, 700):
        assert chain.reduce(range(size))
    assert str(chain).count("{") == 699
    assert chain.count_orders() == 2**699
    assert len(list(islice(chain.orders(), 3))) == 3
    assert chain.copy().frontier() == chain.frontier()
    assert chain.reduce([0, 699])  # from the innermost leaf to the outermost: all levels become one Q node
    assert chain.count_orders() == 2
    assert not chain.reduce([5, 699])


def steps(function):
    """Lines of the tree's modules that a call runs: a measure of work that no machine disturbs.

    What comes in between, as a callback of the garbage collector does, is no part of it.
    """
    count = 0
    files = {module.__file__ for module in (pq_tree, pq_reduction)}

    def trace(frame, event, argument):
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def test_work_is_linear_in_the_input():
    def work(n):
        rows = planted(n, n // 2, 0, 14)
        tree = PQTree(range(n))
        return steps(lambda: [tree.reduce(row) for row in rows]) / sum(map(len, rows))

    assert work(4000) < 1.15 * work(250)


@pytest.mark.parametrize(("kind", "place"), [("P", 0), ("Q", 0), ("Q", 0.5), ("Q", 1)])
def test_a_small_subset_costs_the_same_however_large_the_node_is(kind, place):
    def work(n):
        tree = PQTree([*range(n), "x", "y"])
        if kind == "Q":
            for i in range(n - 1):
                assert tree.reduce((i, i + 1))
        start = int(place * (n - 3))
        assert tree.reduce([start, start + 1, start + 2, *"x" * (place != 0.5)])
        return steps(lambda: tree.reduce([start, start + 1, start + 2])) + steps(lambda: tree.reduce([n // 2, "y"]))

    assert work(2000) == work(50)


def test_a_path_of_pairs_is_one_q_node():
    tree = PQTree(range(3000))
    pairs = [(i, i + 1) for i in range(2999)]
    random.Random(0).shuffle(pairs)
    for pair in pairs:
        assert tree.reduce(pair)
    assert tree.count_orders() == 2
    assert tree.frontier() in (list(range(3000)), list(range(2999, -1, -1)))


def test_small_sets():
    assert PQTree([]).frontier() == []
    assert list(PQTree([]).orders()) == [[]]
    assert PQTree([]).reduce([])
    one = PQTree(["x"])
    assert (str(one), one.frontier(), one.count_orders(), list(one.orders())) == ("x", ["x"], 1, [["x"]])
    assert one.reduce(["x"])
    two = PQTree("ab")
    assert two.reduce("ab")
    assert two.count_orders() == 2


def test_subsets_that_say_nothing():
    tree = PQTree("abcd")
    for subset in ("", "a", "aa", "abcd", "dcbaabcd"):
        assert tree.reduce(subset)
        assert str(tree) == "{a b c d}"
        assert tree.count_orders() == factorial(4)


def test_an_element_named_twice_counts_once():
    tree = PQTree("abcd")
    assert tree.reduce("abab")
    assert tree.count_orders() == 2 * factorial(3)


def test_none_may_be_an_element():
    tree = PQTree([None, 0, 1])
    assert tree.reduce([None, 1])
    assert set(tree.frontier()) == {None, 0, 1}
    assert str(tree) == "{0 {None 1}}"


def test_a_copy_is_independent():
    tree = PQTree("abcdef")
    assert tree.reduce("abc")
    assert tree.reduce("bcd")
    twin = tree.copy()
    assert str(twin) == str(tree)
    assert twin.reduce("de")
    assert twin.reduce("ab")
    assert not twin.reduce("ae")
    assert tree.reduce("ab")
    assert tree.count_orders() == 2 * factorial(3)
    assert twin.count_orders() == 4


def test_bad_input_names_the_element():
    with pytest.raises(EdBatchError, match="'a' is there twice"):
        PQTree("abca")
    tree = PQTree("abc")
    with pytest.raises(EdBatchError, match="'z' is no element"):
        tree.reduce("abz")
    assert str(tree) == "{a b c}"

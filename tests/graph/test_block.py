"""Blocks that are put: what the loop in C writes is what its twin in Python does, instance after instance."""

import gc
import weakref

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph import recorder
from edbatch.graph.block import ARGUMENTS, DRAW, FIRST, NOTHING, Block, Instances, packed, place, place_in_python
from edbatch.graph.columns import Columns

WIDTH = 3  # results of an instance


def put(loop, *given, n=7):
    """The columns of a graph that has some nodes already."""
    graph = Columns()
    graph.n = n
    first = loop(graph, *given)
    assert first == n
    taken = graph.take()
    assert graph.n == n + len(taken.types)
    return [column.tolist() for column in taken[:3]]


def test_an_instance():
    """Two nodes: one reads an argument and its own instance, the other has an integer and a drawn number."""
    operands = packed([(2, NOTHING), (1 << 32, ARGUMENTS), (1, FIRST)])
    integers = packed([(4, NOTHING), (1, DRAW)])
    block = Block(np.array([5, 6], np.int32).tobytes(), operands, integers, b"", packed([(-1, 1)]), 2)
    assert put(place, (block,), [0, 30], 100, None) == [[5, 6], [2, 30 + (1 << 32), 8], [4, 101]]


def test_nothing_is_put():
    assert put(place, (), [], 0, Instances([])) == [[], [], []]


def random_blocks(rng, n):
    """Blocks with as many children as their number says, some of whose results are a child's."""
    made = []
    for children in range(n):
        arguments = [(child, int(rng.integers(WIDTH))) for child in range(children)] + [(-1, 0), (-1, 1)]
        sizes = rng.integers(0, 4, 3)

        def pairs(count, bases):
            return packed([(int(rng.integers(9)) << 32, int(rng.choice(bases))) for _ in range(count)])

        bases = [NOTHING, FIRST, *range(ARGUMENTS, ARGUMENTS + len(arguments))]
        types = rng.integers(0, 50, sizes[0]).astype(np.int32).tobytes()
        operands, integers = pairs(sizes[1], bases), pairs(sizes[2], [*bases, DRAW])
        results = pairs(WIDTH, bases)
        made.append(Block(types, operands, integers, results, packed(arguments), int(rng.integers(3))))
    return tuple(made)


@pytest.mark.skipif(not recorder.IN_C, reason="there is no extension")
@pytest.mark.parametrize("n", [1, 2, 50, 2048, 5000])
@pytest.mark.parametrize("in_order", [True, False])
def test_many_instances_are_as_in_python(n, in_order):
    rng = np.random.default_rng(n)
    blocks = random_blocks(rng, 4)
    position = np.arange(n) if in_order else rng.permutation(n)
    which = np.where(position > 0, rng.integers(0, 4, n), 0).astype(np.int32)  # the first has no child
    offsets = np.concatenate([[0], np.cumsum(which)])
    order = np.argsort(position)
    children = np.array([order[rng.integers(position[at])] for at in range(n) for _ in range(which[at])], np.int64)
    columns = [rng.integers(0, 99, n), 1 << 33]
    found = []
    for loop in (place, place_in_python):
        results = np.zeros((n, WIDTH), np.int64)
        times = np.bincount(which, minlength=4).tolist()
        instances = Instances(times, which, position, order, offsets, children, results)
        found.append((put(loop, blocks, columns, 10, instances), results.tolist()))
    assert found[0] == found[1]


def test_a_vertex_function_leaves_no_cycle_that_holds_the_graph():
    graph = eb.Graph()
    with graph:
        apart = eb.InputGraph.of_chains([1, 1])
        out = eb.vertex(lambda v: v.scatter(eb.tanh(v.pull())))(apart, np.ones((2, 2)))
    ended = []
    weakref.finalize(graph, ended.append, True)
    gc.disable()
    try:
        del graph, out
        assert ended
    finally:
        gc.enable()

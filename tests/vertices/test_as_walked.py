"""Vertex functions compute what a recursive function does, and record the same nodes in the same order."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.tree import flatten
from edbatch.models import TreeLSTM
from tests.graph.array_uses import BITS, POLICIES, Model
from tests.vertices.structures import STRUCTURES, dags, tree, walk

SIZE = 8


def assert_alike(found, expected, dtype="float64"):
    """Values, gradients, nodes and batches."""
    for a, b in zip(found[0], expected[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert found[1].keys() == expected[1].keys()
    for name, gradient in expected[1].items():
        np.testing.assert_allclose(found[1][name], gradient, rtol=10 * BITS[dtype], atol=10 * BITS[dtype])
    assert (found[2].nodes, found[2].batches) == (expected[2].nodes, expected[2].batches)


def ran(model, losses, policy="sufficient", dtype="float64", **options):
    """What `losses` lists: values, the gradients of their sum, and the report."""
    eb.seed(7)
    model.zero_grad()
    with eb.options(**options), eb.Graph(policy, dtype) as graph:
        found = losses()
        loss = eb.sum(found) if len(found) else eb.scalar(0) * eb.sum(eb.parameter(next(iter(model))))
        values = [x.value() for x in found]
        loss.backward()
    return values, {p.name: np.array(p.grad()) for p in model}, graph.report()


class Random:
    """A random vertex function of each kind: it computes the same of all vertices with as many children."""

    def __init__(self, seed, dtype):
        self.seed = seed
        self.model = Model(dtype)
        model = self.model

        @eb.cell
        def mixed(x, y, k: int):
            h = eb.tanh(model.W @ x + y)
            return h, eb.pick(model.W, k) * h + eb.dropout(x, 0.25)

        self.cell = mixed

    def functions(self, kinds):
        return [lambda v: self.of_vertex(v) for kind in range(kinds)]

    def of_vertex(self, v):
        rng = np.random.default_rng((self.seed, v.kind, v.n_children))
        k, inputs = v.pull()["k"], flatten(v.pull()["x"])[0]
        own = [*inputs, *flatten(v.gather())[0]]
        others = [self.bias, eb.zeros(SIZE), eb.input(np.arange(SIZE) / SIZE), self.model.b]
        for _ in range(6):
            x = own[rng.integers(len(own))]
            y = (own + others)[rng.integers(len(own) + len(others))]
            match rng.integers(9):
                case 0:
                    made = [eb.tanh(x + y)]
                case 1:
                    made = [self.model.W @ x, x * 0.5]
                case 2:
                    made = self.cell(x, y, k)
                case 3:
                    made = [eb.concatenate([x[4:], x[:4]]), x[::-1]]
                case 4:
                    made = [eb.dropout(x, 0.5) + eb.lookup(self.model.table, k)]
                case 5:
                    made = [eb.sum([x, y, *own]), eb.reshape(x, (2, 4)).T.reshape(-1)]
                case 6:
                    made = [x * eb.pick(x, k), eb.softmax(x)[::-1]]
                case 7:
                    made = [eb.max([x, x * 2]), eb.array([x, x * 3])[1]]
                case 8:
                    made = [eb.sum(eb.array([x, x * 3, x])[:2] + y), x]
            own += made
        v.scatter(*(own[at] for at in rng.integers(0, len(own), 1 + v.kind)))
        v.push(eb.cross_entropy(own[-1], k), eb.sum(own[-2] * np.arange(SIZE)))

    def inputs(self, graph):
        rng = np.random.default_rng(self.seed)
        found = []
        for kind in range(2):
            n = int((graph.kinds == kind).sum())
            rows = eb.array(rng.normal(size=(n, SIZE)))
            if n > 3:  # seen in several ways
                rows = eb.array([rows[:1], rows[1:2, ::-1], eb.lookup(self.model.table, np.arange(n - 2) % SIZE)])
            found.append({"k": rng.integers(0, SIZE, n), "x": (rows, rng.normal(size=(n, SIZE)))[: 1 + kind]})
        return found

    def by_arrays(self, graph):
        self.bias = eb.lookup(self.model.table, 1)
        out = eb.vertex(*self.functions(2))(graph, *self.inputs(graph))
        losses, sums = out.pushed
        return [x for pair in zip(losses, sums, strict=True) for x in pair]

    def by_walking(self, graph):
        self.bias = eb.lookup(self.model.table, 1)
        return [x for v in walk(self.functions(2), graph, *self.inputs(graph)) for x in v.pushed]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", STRUCTURES)
def test_random_functions(name, seed):
    dtype = ("float32", "float64")[seed % 2]
    graph, random = STRUCTURES[name](np.random.default_rng(seed)), Random(seed, dtype)
    found = ran(random.model.all, lambda: random.by_arrays(graph), dtype=dtype)
    assert_alike(found, ran(random.model.all, lambda: random.by_walking(graph), dtype=dtype), dtype)


WAYS = [{"policy": policy} for policy in POLICIES] + [
    {"cells": False}, {"recompute": True}, {"training": False}, {"trace_lines": True},
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_all_policies_and_options(way):
    graph, random = dags(np.random.default_rng(100)), Random(100, "float64")
    found = ran(random.model.all, lambda: random.by_arrays(graph), **way)
    assert_alike(found, ran(random.model.all, lambda: random.by_walking(graph), **way))


def test_models_written_as_recursion():
    rng = np.random.default_rng(3)
    samples = [tree(rng, leaves) for leaves in rng.integers(1, 12, 20)]
    graph, words = eb.InputGraph.of_tuples(samples)
    collection = eb.ParameterCollection(seed=1, dtype="float64")
    model = TreeLSTM(collection, 8, 5, 6, recurrent_dropout=0.3)

    def recursive():
        found = []

        def go(part):
            state = model.compose(*go(part[0]), *go(part[1])) if isinstance(part, tuple) else model.leaf(part)
            found.append(state[0])
            return state

        for sample in samples:
            go(sample)
        return [eb.sum(h) for h in found]

    def leaf(v):
        v.scatter(*model.leaf(v.pull()))

    def inner(v):
        v.scatter(*model.compose(*v.gather(0), *v.gather(1)))

    def by_arrays():
        h, _ = eb.vertex(leaf, inner)(graph, words).scattered
        return list(eb.sum(h, axis=0))

    assert_alike(ran(collection, by_arrays), ran(collection, recursive))

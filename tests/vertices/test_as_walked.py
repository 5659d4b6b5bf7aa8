"""Vertex functions compute what a recursive function does, and record the same nodes in the same order."""

import numpy as np

import edbatch as eb
from edbatch.models import TreeLSTM
from tests.graph.array_uses import BITS
from tests.vertices.structures import tree


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

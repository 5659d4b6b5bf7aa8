"""What a vertex function has recorded twice is kept for other calls, and recorded anew where it may be another."""

import copy
import gc
import itertools
import threading
import weakref

import numpy as np
import pytest

import edbatch as eb

CHAIN = eb.InputGraph.of_chains([3, 2])
FLAT = eb.InputGraph.of_chains([1] * 5)
X = np.arange(10.0).reshape(5, 2)


class Calls:
    """Counts calls of a function of a vertex, in a way that is none of its state."""

    def __init__(self, body):
        counter = itertools.count()

        def function(v):
            next(counter)
            body(v)

        self.function = eb.vertex(function)
        self.made = lambda: int(repr(counter)[6:-1])

    def value(self, graph=FLAT, given=X, **options):
        """Of what was pushed, and how often the function was called for it."""
        before = self.made()
        with eb.options(**options), eb.Graph("depth", "float64"):
            found = self.function(graph, given).pushed.value()
        return found, self.made() - before


def folded(v, scale=1.0):
    y = v.pull() * scale
    for child in v.gather():
        y = y + child
    v.scatter(y)
    v.push(y)


def of_chain(x, scale=1.0):
    return scale * np.concatenate([np.cumsum(x[:3], 0), np.cumsum(x[3:], 0)])


def test_from_the_third_call_on_nothing_is_called():
    calls = Calls(folded)
    assert [calls.value(CHAIN)[1] for _ in range(4)] == [2, 4, 0, 0]  # of each class once; twice; kept
    rng = np.random.default_rng(0)
    for n in (4, 1, 7):
        x = rng.normal(size=(n + 2, 2))
        found, count = calls.value(eb.InputGraph.of_chains([n, 2]), x)
        assert count == 0
        np.testing.assert_allclose(found, np.concatenate([np.cumsum(x[:n], 0), np.cumsum(x[n:], 0)]))
    found, count = calls.value(eb.InputGraph.of_lists([[(), (), (0, 1)]]), X[:3])  # a new class of vertices
    assert count == 2
    np.testing.assert_allclose(found[2], X[:3].sum(0))
    assert calls.value(eb.InputGraph.of_lists([[(), (), (0, 1)]]), X[:3])[1] == 0


def test_other_inputs_and_options_are_recorded_by_themselves():
    calls = Calls(lambda v: v.push(eb.dropout(v.pull(), 0.5) * 2))
    for _ in range(3):
        calls.value()
    assert calls.value(given=X[:, :1])[1] == 1
    assert calls.value(training=False)[1] == 1
    assert calls.value(check=True)[1] == 1
    assert calls.value(check=True)[1] == 1
    masks = {calls.value()[0].tobytes() for _ in range(8)}
    assert calls.value()[1] == 0
    assert len(masks) > 1  # each vertex and call draws anew


def test_integers_are_those_of_the_call():
    rows = np.arange(8.0).reshape(4, 2)
    table = eb.ParameterCollection(dtype="float64").add_lookup_parameters((4, 2), init=rows)
    calls = Calls(lambda v: v.push(eb.lookup(table, v.pull()) + eb.cross_entropy(eb.zeros(2), 1)))
    graph = eb.InputGraph.of_chains([1, 1])
    for given in ([0, 1], [2, 3], [3, 3], [-1, 0]):
        found = calls.value(graph, given)[0]
        np.testing.assert_allclose(found, rows[given] + np.log(2))
    with pytest.raises(eb.EdBatchError, match=r"vertex 1: .*4 is out of range for 4 entries"):
        calls.value(graph, [0, 4])
    assert calls.value(graph, [1, 0])[1] == 0


def test_what_may_be_another_is_recorded_at_each_call():
    rng = np.random.default_rng(0)
    weights = eb.ParameterCollection(dtype="float64").add_parameters(2, init=1.0)
    noisy = Calls(lambda v: v.push(v.pull() + eb.input(rng.normal(size=2))))
    reading = Calls(lambda v: v.push(v.pull() * float(weights.value()[0])))
    assert len({noisy.value()[0].tobytes() for _ in range(6)}) == 6
    for scale in range(1, 7):
        weights.set_value([scale, 0.0])
        np.testing.assert_allclose(reading.value()[0], scale * X)


def test_an_expression_from_outside_is_that_of_its_graph():
    for scale in range(1, 6):
        with eb.Graph("depth", "float64"):
            outside = eb.scalar(scale)
            np.testing.assert_allclose(eb.vertex(Outside(outside).body)(FLAT, X).pushed.value(), scale * X)


class Outside:
    def __init__(self, value):
        self.value = value

    @eb.vertex
    def decorated(self, v):
        v.push(v.pull() * self.value)

    def body(self, v):
        v.push(v.pull() * self.value)


def test_methods_of_several_owners():
    owners = [Outside(scale) for scale in (2.0, 3.0)]
    for _ in range(4):
        for owner in owners:
            with eb.Graph("depth", "float64"):
                np.testing.assert_allclose(owner.decorated(FLAT, X).pushed.value(), owner.value * X)
    copied = copy.deepcopy(owners[0])
    copied.value = 5.0
    with eb.Graph("depth", "float64"):
        np.testing.assert_allclose(copied.decorated(FLAT, X).pushed.value(), 5 * X)
    del owner
    gone = weakref.ref(owners.pop())
    gc.collect()
    assert gone() is None


def test_arrays_with_as_many_rows_as_vertices_are_refused_then_only():
    calls = Calls(lambda v: v.push(eb.concatenate([v.pull(), np.ones(3)])))
    for _ in range(4):
        assert calls.value()[0].shape == (5, 5)
    with pytest.raises(eb.EdBatchError, match="is the same for each of 3 vertices"):
        calls.value(eb.InputGraph.of_chains([1] * 3), X[:3])
    assert calls.value()[0].shape == (5, 5)


def test_an_error_leaves_nothing_behind():
    limit = [2]

    def body(v):
        if v.n_children > limit[0]:
            raise RuntimeError("too many")
        folded(v)

    calls = Calls(body)
    wide = eb.InputGraph.of_lists([[(), (), (), (0, 1, 2)]])
    for _ in range(3):
        calls.value(CHAIN)
        with pytest.raises(RuntimeError, match="too many"):
            calls.value(wide, X[:4])
    limit[0] = 3
    for _ in range(3):
        np.testing.assert_allclose(calls.value(wide, X[:4])[0][3], X[:4].sum(0))
        np.testing.assert_allclose(calls.value(CHAIN)[0], of_chain(X))


def test_threads_share_what_is_kept():
    calls = Calls(folded)
    rng = np.random.default_rng(0)
    given = [rng.integers(1, 6, size=3).tolist() for _ in range(40)]
    found = [None] * len(given)

    def run(first):
        for at in range(first, len(given), 4):
            x = np.full((sum(given[at]), 2), at + 1.0)
            found[at] = calls.value(eb.InputGraph.of_chains(given[at]), x)[0]

    threads = [threading.Thread(target=run, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at, lengths in enumerate(given):
        expected = np.concatenate([np.arange(1, n + 1) * (at + 1.0) for n in lengths])
        np.testing.assert_allclose(found[at][:, 0], expected)

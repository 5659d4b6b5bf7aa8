"""Few pending nodes, in the order in which they were recorded; and going back through many runs as one plan."""

import gc

import numpy as np
import pytest

import edbatch as eb
from edbatch.runtime import evaluation as running
from edbatch.runtime import store as stores
from edbatch.runtime.backward import backward as backwards
from edbatch.runtime.planning import FEW
from edbatch.runtime.type_table import shared_table

DIM = 5


@pytest.fixture
def model():
    found = eb.ParameterCollection(seed=0)
    found.add_parameters((DIM, DIM), name="W")
    found.add_parameters(DIM, name="b")
    return found


@pytest.fixture
def scheduled(monkeypatch):
    """The graphs that a policy was asked about."""
    found = []
    schedule_of = running.schedule_of
    monkeypatch.setattr(running, "schedule_of", lambda policy, graph: found.append(graph) or schedule_of(policy, graph))
    return found


def chain(model, length, x=None):
    """Two nodes a link."""
    h = eb.input(np.linspace(-1, 1, DIM)) if x is None else x
    for _ in range(length):
        h = eb.tanh(model["W"] @ h)
    return h


def test_a_chain_asks_no_policy(model, scheduled):
    with eb.Graph() as graph:
        h = chain(model, 5)
    got = h.value()
    assert not scheduled
    report = graph.report()
    assert (report.nodes, report.batches, report.lower_bound, report.policy) == (10, 10, 10, "none needed")
    assert [(use.batches, use.nodes) for use in report.uses.values()] == [(5, 5), (5, 5)]
    with eb.Graph(policy=eb.get_policy("none")):
        np.testing.assert_array_equal(chain(model, 5).value(), got)
    assert not scheduled


def test_nodes_that_could_run_together_are_scheduled(model, scheduled):
    with eb.Graph(policy="sufficient") as graph:
        eb.forward([chain(model, 2), chain(model, 3)])
    assert len(scheduled) == 1
    assert graph.report().batches == 6


@pytest.mark.parametrize("nodes", [FEW - 1, FEW, FEW + 1, FEW + 2])
def test_the_most_that_are_few(model, scheduled, nodes):
    """An input, and a chain of single ops."""
    with eb.Graph(policy="sufficient") as graph:
        h = eb.input(np.ones(DIM))
        for _ in range(nodes - 1):
            h = eb.tanh(h)
    want = np.ones(DIM, np.float32)
    for _ in range(nodes - 1):
        want = np.tanh(want)
    np.testing.assert_allclose(h.value(), want, rtol=1e-5)
    assert len(scheduled) == (nodes > FEW)
    assert graph.report().batches == nodes - 1


def test_a_policy_of_the_users_is_asked(model):
    """It may be wrong, and is told so."""

    class Wrong:
        name = "wrong"

        def schedule(self, graph):
            return None

    with eb.Graph(policy=Wrong()):
        h = chain(model, 1)
    with pytest.raises(eb.EdBatchError, match="expected a Schedule"):
        h.value()


def test_what_a_sum_reads_twice_and_sources_of_every_kind(model):
    with eb.Graph():
        x, ones, p = eb.input(np.arange(DIM)), eb.ones(DIM), eb.parameter(model["b"])
        h = eb.tanh(model["W"] @ (x * p + ones))
        loss = eb.sum([eb.sum(h), eb.sum(h * h * 2), eb.dot(h, x)])
        values = eb.forward([h, loss])
    W, b = model["W"].value(), model["b"].value()
    want = np.tanh(W @ (np.arange(DIM) * b + 1))
    np.testing.assert_allclose(values[0], want, rtol=1e-5)
    np.testing.assert_allclose(values[1], want.sum() + 2 * (want**2).sum() + want @ np.arange(DIM), rtol=1e-5)


def test_arenas_grow_while_values_are_read():
    found, want = [], np.linspace(-1, 1, DIM)
    with eb.Graph():
        h = eb.input(want)
        for _ in range(700):
            h = eb.tanh(h * 1.1)
            found.append(h)
            want = np.tanh(want * 1.1)
            np.testing.assert_allclose(h.value(), want, rtol=1e-4, atol=1e-6)
        again = eb.forward(found)
    np.testing.assert_allclose(again[-1], want, rtol=1e-4, atol=1e-6)
    assert all(np.isfinite(x).all() for x in again)


def gradients(model, reads, saves):
    """Of a chain that is read link by link, or not; and of its input."""
    with eb.Graph(policy="sufficient"):
        x = h = eb.input(np.linspace(-1, 1, DIM))
        for _ in range(6):
            h = chain(model, 1, h) + eb.parameter(model["b"])
            if reads:
                h.value()
        loss = eb.sum(eb.square(h))
        if not saves:
            loss.value()
        loss.backward()
        found = [model["W"].grad(), model["b"].grad(), x.gradient(), h.gradient()]
    model.zero_grad()
    return found


@pytest.mark.parametrize("saves", [False, True])
def test_reads_in_between_change_no_gradient(model, saves):
    wants = gradients(model, False, True)
    for got, want in zip(gradients(model, True, saves), wants, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_many_runs_are_gone_back_through_as_one_plan(model, monkeypatch):
    plans = []
    made = backwards.BackwardPlan
    monkeypatch.setattr(backwards, "BackwardPlan", lambda *given: plans.append(given) or made(*given))
    gradients(model, True, False)
    assert len(plans) == 2  # the parameters' and the input's
    plans.clear()

    @eb.cell
    def gated(h):
        return eb.tanh(model["W"] @ h) * eb.sigmoid(model["W"] @ h + model["b"])

    with eb.Graph(policy="sufficient"):
        h = eb.input(np.ones(DIM))
        for _ in range(4):
            h = gated(h)
            h.value()
        loss = eb.sum(gated(h))
        loss.backward()  # runs the last call, which saves
    assert len(plans) == 2


def test_a_parameter_that_changed_after_the_first_of_many_runs(model):
    with eb.Graph(policy="sufficient"):
        h = chain(model, 1)
        h.value()
        h = eb.tanh(h * 2)
        h.value()
        model["b"].set_value(np.zeros(DIM))
        h = h + model["b"]
        h.value()
        loss = eb.sum(h)
        loss.backward()  # which reads no b
        model.zero_grad()
        model["W"].set_value(np.zeros((DIM, DIM)))
        y = eb.sum(eb.tanh(model["W"] @ h))
        y.value()
        y.backward()  # going back to the first W needs no value of it: nothing wants the gradient of the input
        z = eb.sum(model["W"] @ (model["W"] @ h))
        z.value()
        model["W"].set_value(np.ones((DIM, DIM)))
        with pytest.raises(eb.EdBatchError, match="W changed after the graph had run"):
            z.backward()


def test_records_are_used_again_but_not_after_a_failure(model):
    def store_of(fails):
        with eb.Graph() as graph:
            chain(model, 2).value()
        if fails:
            graph._fail(RuntimeError("interrupted"))
        return graph._evaluation._store

    gc.collect()
    store = store_of(fails=False)
    assert store_of(fails=True) is store
    assert store_of(fails=False) is not store
    assert store not in shared_table(eb.devices.current_device()).stores._free


def test_values_lie_where_those_of_the_last_graph_lay_unless_they_were_many(model, monkeypatch):
    def arenas_of(nodes):
        with eb.Graph(policy="sufficient") as graph:
            eb.forward([eb.ones(DIM) * i for i in range(nodes)])
        return graph._evaluation.arenas

    gc.collect()
    arenas = arenas_of(3)
    buffers = list(map(id, arenas.flats))
    assert arenas_of(3) is arenas
    assert list(map(id, arenas.flats)) == buffers
    monkeypatch.setattr(stores, "MOST_BYTES", arenas.room + 2**16)
    assert arenas_of(1000) is arenas
    assert arenas.room == 0
    assert arenas_of(3) is not arenas


def test_a_value_is_the_callers_own(model):
    with eb.Graph():
        h, s = chain(model, 1), eb.sum(chain(model, 1))
        whole, part, number = h.value(), h[1:3].value(), s.value()
        whole[...] = part[...] = 7
        assert isinstance(number, np.float32)
        assert (h.value() != 7).all()
        assert h.T.value().flags.owndata

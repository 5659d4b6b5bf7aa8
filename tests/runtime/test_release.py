"""A graph that is released gives its memory back while its expressions are held, and says so to who asks."""

import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import edbatch as eb
from edbatch.testing import poisoned_memory

MODEL = eb.ParameterCollection(seed=0)
W, TABLE = MODEL.add_parameters((2, 2), name="W"), MODEL.add_lookup_parameters((5, 2))


@eb.cell
def cell(x):
    return W @ x


NO_VALUES = r"this graph has no values: release\(\) has given its memory back"
CLOSED = r"this graph records nothing more: release\(\) has given its memory back"
READS = {
    "value": lambda x, xs: x.value(),
    "of a view": lambda x, xs: x[0].value(),
    "of an array": lambda x, xs: xs.value(),
    "float": lambda x, xs: float(x[0]),
    "forward": lambda x, xs: eb.forward([x, xs]),
    "gradient": lambda x, xs: x.gradient(),
    "backward": lambda x, xs: x[0].backward(),
    "run": lambda x, xs: x.graph.run(),
    "report": lambda x, xs: x.graph.report(),
}
RECORDS = {
    "an op": lambda x, xs: eb.tanh(x),
    "a product": lambda x, xs: W @ x,
    "with a number": lambda x, xs: x * 3.0,
    "of an array": lambda x, xs: xs + 1.0,
    "a list": lambda x, xs: eb.sum([x, x]),
    "a cell": lambda x, xs: cell(x),
    "zeros": lambda x, xs: eb.zeros(2),
    "an input": lambda x, xs: eb.input([1.0]),
    "a look-up": lambda x, xs: eb.lookup(TABLE, 1),
    "several": lambda x, xs: eb.lookup(TABLE, np.array([1, 2, 3, 4])),
}


@pytest.mark.parametrize("backward", [False, True])
def test_what_is_asked_for_later_is_refused(backward):
    with eb.Graph() as graph:
        x = eb.input([1.0, 2.0])
        xs = eb.lookup(TABLE, np.array([1, 2])) * 2.0
        for call in RECORDS.values():
            call(x, xs)
        loss = eb.sum(cell(x) * 3.0) + eb.sum(eb.sum(xs))
        if backward:
            loss.backward()
            assert graph.memory_bytes
        waiting = xs + 5.0  # nothing of it has run
        for _ in range(2):
            graph.release()
            assert graph.memory_bytes == 0
        for call in READS.values():
            for several in (xs, waiting):
                with pytest.raises(eb.EdBatchError, match=NO_VALUES):
                    call(x, several)
        for call in RECORDS.values():
            with pytest.raises(eb.EdBatchError, match=CLOSED):
                call(x, xs)
        assert repr(x) == "Expression(shape=(2,))"
        assert x[:1].shape == (1,)  # which records nothing
    if backward:
        expected = 3 * np.tile([1.0, 2.0], (2, 1))
        np.testing.assert_allclose(W.grad(), expected)
    MODEL.zero_grad()


def test_others_get_its_memory_and_keep_their_own():
    def made(scale):
        with eb.Graph():
            xs = [eb.input(np.full(300, scale)) * n for n in range(1, 9)]
            return eb.sum([eb.sum(x) for x in xs])

    def work(scale):
        before, loss = made(scale), made(scale)
        loss.backward()
        before.value()
        loss.graph.release()
        after = made(2 * scale)
        return after.value() / scale, before.value() / scale, loss

    with poisoned_memory(), ThreadPoolExecutor(3) as pool:
        found = list(pool.map(work, [1.0, 2.0, 4.0] * 9))
    assert {(after, before) for after, before, _ in found} == {(300 * 36 * 2, 300 * 36)}


@pytest.mark.cpu
def test_graphs_that_are_held_take_no_more_memory():
    def made():
        with eb.Graph():
            loss = eb.sum(eb.tanh(eb.ones((1000, 1000))) * 2.0)
        loss.backward()
        loss.graph.release()
        return loss

    held = [made() for _ in range(3)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    held += [made() for _ in range(20)]  # of 12 MB each
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
    assert len(held) == 23


def test_a_policy_may_not_release_what_it_schedules():
    class Releasing:
        name = "releasing"

        def schedule(self, typed):
            with pytest.raises(eb.EdBatchError, match="release: a policy is scheduling this graph"):
                graph.release()
            return eb.get_policy("depth").schedule(typed)

        def save(self, path):
            raise NotImplementedError

    with eb.Graph(policy=Releasing()) as graph:
        y = eb.tanh(eb.scalar(0.0))
    assert y.value() == 0
    graph.release()


def test_a_graph_that_failed_and_one_that_never_ran():
    with suppress(ZeroDivisionError), eb.Graph() as graph:
        x = eb.scalar(1.0)
        raise ZeroDivisionError
    with eb.Graph() as empty:
        empty.release()
    graph.release()
    with pytest.raises(eb.EdBatchError, match=NO_VALUES):
        x.value()
    with empty, pytest.raises(eb.EdBatchError, match=CLOSED):
        eb.scalar(1.0)

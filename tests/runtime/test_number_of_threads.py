"""Values and gradients have the same bits for every number of threads: every op in large batches, models, updates."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.op import OPS, Kind
from edbatch.kernels.cpu import thread_pool
from edbatch.models.workloads import WORKLOADS
from tests.graph.nodes import added, chosen, shapes_of
from tests.graph.test_ops import cases_of, draw, one_of_each
from tests.threads import bits_by_threads

pytestmark = pytest.mark.cpu

ENTRIES = 20_000  # of a batch, about: enough to be cut


def large_batch(op, sample):
    """A function that computes an op for many nodes, forward and back; returns all values and gradients."""
    shapes = shapes_of(op, sample)
    n = max(50, min(700, ENTRIES // max(1, *(int(np.prod(shape)) for shape in shapes))))

    def run():
        random = np.random.default_rng(3)
        columns = [draw(random, (n, *shape), sample) for shape in shapes]
        with eb.Graph(policy="sufficient"):
            places = [list(eb.array([eb.input(value) for value in column])) for column in columns]
            nodes = []
            for number in range(n):
                payload = [int(random.integers(bound)) for bound in sample.payload]
                operands = [places[slot][number] for slot in chosen(op, sample, number)]
                nodes.append(added(op, tuple(dict(sample.attributes).items()), operands, payload))
            total = eb.sum([eb.sum(x) for x in nodes])
        total.backward()
        values = eb.forward(nodes)
        inputs = [place[number].gradient() for place in places for number in range(0, n, 13)]
        return [*values, *inputs]

    return run


# Of element-wise ops, which are all cut alike, two.
COMPUTED = cases_of(
    op for op in OPS.values() if op.kind is Kind.COMPUTE and (not op.elementwise or op.name in ("tanh", "where"))
)


@pytest.mark.parametrize(("op", "sample"), one_of_each(COMPUTED, -1))
def test_every_op_in_a_large_batch(op, sample):
    assert len(set(bits_by_threads(large_batch(op, sample)))) == 1


def steps_of(name, hidden, size, n_steps=2):
    """A function that trains a model; values, gradients and parameters after each step."""
    workload = WORKLOADS[name]
    samples, sizes, _ = workload.number(workload.generate(size, 1))

    def run():
        model = eb.ParameterCollection(seed=3)
        network = workload.network(model, *sizes, hidden)
        trainer, found = eb.Adam(model, lr=1e-3), []
        for _ in range(n_steps):
            with eb.Graph(policy="sufficient"):
                values = [p for sample in samples for p in workload.probabilities(network, sample)]
                loss = eb.sum([eb.log(p[0]) for p in values])
            loss.backward()
            found += [loss.value(), *eb.forward(values), *(parameter.grad() for parameter in model)]
            trainer.update()
            found += [parameter.value() for parameter in model]
        return found

    return run


@pytest.mark.parametrize(
    ("name", "cells"), [("tree-lstm", True), ("tagger", False), ("lattice-lstm", True), ("mv-rnn", False)]
)
def test_models(name, cells):
    with eb.options(cells=cells):
        run = steps_of(name, 12 if name == "mv-rnn" else 128, 24)
        assert len(set(bits_by_threads(run))) == 1


def test_checks_for_nan_find_what_threads_computed():
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((400, 400), name="W")
    for threads in (1, 3):
        with eb.options(threads=threads), eb.Graph(policy="sufficient", check_nan=True) as graph:
            xs = [eb.input(np.full(400, np.nan if number == 70 else 1.0)) for number in range(100)]
            for x in xs:
                eb.sqrt(eb.square(W @ x))
        with pytest.raises(eb.EdBatchError, match=r"1 of 100 in its batch"):
            graph.run()


def large():
    """The bits of a large graph."""
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((300, 300), name="W")
    with eb.Graph(policy="sufficient"):
        hs = [eb.tanh(W @ eb.input(np.arange(300) / (300 + k))) for k in range(200)]
        for _ in range(4):
            hs = [eb.tanh(W @ h) for h in hs]
        total = eb.sum([eb.sum(h) for h in hs])
    total.backward()
    return np.append(W.grad().ravel(), total.value()).tobytes()


def test_threads_that_run_graphs_lend_the_pool_to_one_at_a_time():
    want, found = large(), []

    def work(threads):
        with eb.options(threads=threads):
            found.extend(large() for _ in range(4))

    workers = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3, 4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [want] * 16


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_a_pool_of_its_own():
    with eb.options(threads=3):
        want = large()
        child = os.fork()
        if not child:
            same = False
            try:
                before = thread_pool._pool
                same = large() == want and before is None and thread_pool._pool.threads == 3
            finally:
                os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert large() == want


def test_an_interrupt_waits_and_threads_go_on():
    want, interrupted = large(), 0
    with eb.options(threads=3):
        for _ in range(5):
            timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()  # waits for its thread, on a busy machine for longer than that
                for _ in range(1000):
                    large()
            except KeyboardInterrupt:
                interrupted += 1
            timer.join()
            assert large() == want
    assert interrupted == 5


PROGRAM = """
import threading
import numpy as np
import edbatch as eb
from edbatch.kernels.cpu import thread_pool
model = eb.ParameterCollection(seed=0)
W = model.add_parameters((300, 300), name="W")
with eb.options(threads=3), eb.Graph(policy="sufficient") as graph:
    xs = [eb.tanh(W @ eb.input(np.full(300, k / 99))) for k in range(200)]
    total = eb.sum([eb.sum(x) for x in xs])
    total.value()
    print(graph.report().threads, threading.active_count())
"""


def test_python_ends_while_threads_wait():
    for how, status in ("import sys; sys.exit(3)", 3), ("import os; os.kill(os.getpid(), 15)", -15):
        done = subprocess.run([sys.executable, "-c", PROGRAM + how], capture_output=True, text=True, timeout=120)
        assert done.returncode == status
        assert done.stdout.split()[-1:] in (["3"], []), done.stderr


def test_memory_is_traced_while_threads_compute():
    """The tracer takes Python's lock at each allocation, and the thread that waits for the others holds it."""
    traced = """
import tracemalloc
tracemalloc.start()
with eb.options(threads=3):
    for _ in range(5):
        with eb.Graph(policy="sufficient"):
            xs = [eb.softmax(W[:64, :64] @ eb.tanh(W @ eb.input(np.full(300, k / 99)))[:64]) for k in range(400)]
            eb.sum([eb.sum(x * W[3, :64]) for x in xs]).backward()
"""
    subprocess.run([sys.executable, "-c", PROGRAM + traced], timeout=120, check=True)


@pytest.mark.parametrize("wrong", [-1, 1.5, "2", True, 65])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(eb.EdBatchError, match="options: threads="):
        eb.options(threads=wrong)

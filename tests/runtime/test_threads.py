"""Graphs in several threads: each has its own current graph; types, windows and buffers are shared safely."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import edbatch as eb


def test_a_graph_is_open_in_one_thread_at_a_time():
    """Two that record into it would give nodes each other's numbers; a thread that comes later may go on with it."""
    graph, opened, done = eb.Graph(), threading.Event(), threading.Event()
    one = []

    def hold():
        with graph:
            one.append(eb.input([1.0, 2.0]))
            opened.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    opened.wait()
    try:
        with (
            pytest.raises(eb.EdBatchError, match="this graph is open in another thread; expected a graph for each"),
            graph,
        ):
            pass
        with pytest.raises(eb.EdBatchError, match="no graph"):
            eb.input([1.0])
    finally:
        done.set()
        thread.join()
    with graph, graph:
        assert (one[0] + 1).value().tolist() == [2, 3]


def test_threads_do_not_mix():
    model = eb.ParameterCollection(seed=0, dtype="float64")
    weights = [model.add_parameters((n, n), name=f"W{n}") for n in range(2, 12)]

    @eb.cell
    def step(W, x):
        return eb.tanh(W @ x), x[:2]

    def work(seed):
        random = np.random.default_rng(seed)
        with eb.Graph(policy="sufficient", dtype="float64"):
            got, want = [], []
            for _ in range(60):
                W = weights[random.integers(len(weights))]
                x = random.normal(size=W.shape[0])
                y, head = step(W, eb.input(x))
                got += [eb.sum(y), eb.concatenate([head, y[-1:]])]
                full = np.tanh(W.value() @ x)
                want += [full.sum(), np.append(x[:2], full[-1])]
                if random.random() < 0.1:
                    y.value()
            got = eb.forward(got)
        for value, other in zip(got, want, strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-10)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))


COLD = '''
"""Eight threads in a process that has seen no type yet: each trains a model of its own, and adds to the gradient of a
parameter that all share; garbage collection ends graphs in the middle. All must be what one thread computes."""
import gc, sys, threading
import numpy as np
import edbatch as eb

N, STEPS = 8, 3
sys.setswitchinterval(float(sys.argv[1]))
gc.set_threshold(50)  # often


class Model:
    def __init__(self, dim, seed):
        self.dim, self.random = dim, np.random.default_rng(seed)
        self.model = eb.ParameterCollection(seed=seed)
        self.W, self.U, self.V = (self.model.add_parameters((dim, dim), name=name) for name in "WUV")
        self.table = self.model.add_lookup_parameters((7, dim), name="table")
        self.trainer = eb.Adam(self.model)

    @eb.cell
    def step(self, h, word: int):
        x = eb.lookup(self.table, word)
        return eb.tanh(self.W @ h + x) * eb.sigmoid(self.U @ h)

    def loss(self, shared, seed):
        random = np.random.default_rng(seed)
        losses = []
        for _ in range(4):
            h = eb.input(random.normal(size=self.dim))
            for word in random.integers(7, size=random.integers(1, 5)):
                h = self.step(h, int(word))
            other = eb.concatenate([h[: self.dim // 2], h[1:]])[: self.dim]
            losses.append(eb.cross_entropy(self.V @ other, 1) + eb.sum(eb.square(shared[:3] * h[:3])))
        self.cycle = [losses]
        self.cycle.append(self.cycle)  # a graph that the garbage collector ends
        return eb.sum(losses)


def work(number, shared, found):
    model = Model(4 + number % 5, number)
    values = []
    for step in range(STEPS):
        with eb.Graph(policy=("sufficient", "agenda", "depth", None)[(number + step) % 4] if LEARN else "sufficient"):
            loss = model.loss(shared, 10 * number + step)
        if step % 2:
            loss.backward()
            values.append(loss.value())
        else:
            values.append(loss.value())
            loss.backward()
        model.trainer.update()
    found[number] = values, [p.value() for p in model.model]


LEARN = len(sys.argv) > 2


def run(together):
    gc.collect()
    shared = eb.ParameterCollection(seed=0).add_parameters((5,), name="shared", init=0.5)
    found, failed = {}, []

    def caught(number):
        try:
            work(number, shared, found)
        except BaseException as error:
            failed.append(error)
            raise

    if together:
        start = threading.Barrier(N)
        threads = [threading.Thread(target=lambda n=n: (start.wait(), caught(n))) for n in range(N)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    else:
        for n in range(N): caught(n)
    assert not failed, failed
    return found, shared.grad().copy()


mine, gradient = run(True)
theirs, expected = run(False)
np.testing.assert_allclose(gradient, expected, rtol=1e-4)
for n in range(N):
    np.testing.assert_allclose(mine[n][0], theirs[n][0], rtol=1e-4)
    for a, b in zip(mine[n][1], theirs[n][1]):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
'''


def run_cold(tmp_path, *arguments):
    script = tmp_path / "cold.py"
    script.write_text(COLD)
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.cpu
def test_a_cold_process_with_eight_threads(tmp_path):
    run_cold(tmp_path, "1e-5")


@pytest.mark.cpu
@pytest.mark.slow
def test_fifty_cold_processes_with_eight_threads(tmp_path):
    for number in range(50):
        run_cold(tmp_path, f"1e-{3 + number % 4}", *["learn"] * (number % 5 == 0))


@pytest.mark.cpu
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_runs_graphs():
    def compute():
        with eb.Graph(policy="sufficient"):
            return eb.sum([eb.tanh(eb.ones(2) * k) for k in range(20)]).value()

    want, over = compute(), threading.Event()

    def go_on():
        while not over.is_set():
            compute()

    other = threading.Thread(target=go_on)
    other.start()
    try:
        for _ in range(8):
            time.sleep(0.01)
            child = os.fork()
            if not child:
                signal.alarm(20)  # a child that hangs is killed
                os._exit(0 if (compute() == want).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        over.set()
        other.join()


LOADER = """
import threading

import numpy as np

import edbatch as eb

model, found = eb.ParameterCollection(), []
W, E = model.add_parameters((4, 4)), model.add_lookup_parameters((9, 4))
loader = threading.Thread(target=lambda: found.append(eb.InputGraph.of_tuples([((1, 2), 3)])))
loader.start()
with eb.Graph():
    loss = eb.sum(eb.sum(eb.tanh(W @ eb.lookup(E, np.arange(9)))))
loss.backward()
loader.join()
assert found
"""


@pytest.mark.cpu
def test_a_thread_that_loads_as_another_takes_the_first_step(tmp_path):
    """Both import what compiles, by other modules: nobody finds it half made."""
    script = tmp_path / "loader.py"
    script.write_text(LOADER)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]

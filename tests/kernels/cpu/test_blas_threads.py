import os
import subprocess
import sys
import threading
from signal import SIGINT, raise_signal

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import edbatch as eb
from edbatch.kernels.cpu import blas_threads, emitter
from edbatch.kernels.cpu.blas_threads import Control, controls
from edbatch.kernels.cpu.thread_pool import Computing

pytestmark = pytest.mark.cpu


def counts():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads():
    controls()  # loads all
    with threadpool_limits(2, user_api="blas"):
        assert set(counts()) == {2}
        yield


@pytest.fixture
def seen(monkeypatch):
    """What there is while batches run."""
    found = []

    def spy(module, name):
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **named: (found.append(counts()), function(*args, **named))[1])

    spy(emitter, "run_batches")
    spy(eb.device("cpu").backend, "add_product")
    spy(np, "matmul")
    return found


def program(dtype="float32"):
    model = eb.ParameterCollection(seed=0, dtype=dtype)
    W = model.add_parameters((4, 4), name="W")
    with eb.Graph(dtype=dtype) as graph:
        total = eb.sum([eb.dot(eb.tanh(W @ eb.input([i, 1.0, 2.0, 3.0])), eb.ones(4)) for i in range(3)])
    return model, graph, total


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_runs_have_one_thread_and_leave_the_number_as_it_was(seen, dtype):
    model, _, total = program(dtype)
    total.value()
    assert counts() == [2] * len(counts())
    total.backward()
    assert counts() == [2] * len(counts())
    eb.Adam(model).update()
    assert counts() == [2] * len(counts())
    assert seen
    assert {number for found in seen for number in found} == {1}


def test_an_interrupt_while_the_number_is_set_back(monkeypatch):
    sent = []

    def interrupting(control):
        def set_number(number):
            control.set(number)
            if number > 1 and not sent:
                sent.append(number)
                raise_signal(SIGINT)

        return Control(control.get, set_number)

    found = [interrupting(control) for control in controls()]
    monkeypatch.setattr(blas_threads, "controls", lambda: found)
    with pytest.raises(KeyboardInterrupt), Computing(1):
        assert set(counts()) == {1}
    assert set(counts()) == {2}


def test_two_threads_that_run_graphs_leave_the_number_as_it_was(seen):
    def run():
        for _ in range(20):
            _model, _, total = program()
            total.value()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number for found in seen for number in found} == {1}
    assert set(counts()) == {2}


def test_every_loaded_blas_is_known():
    assert len(controls()) == len(counts()) >= 1


def test_the_environment_does_not_matter():
    code = (
        "import edbatch as eb\n"
        "from edbatch.kernels.cpu.blas_threads import controls\n"
        "with eb.Graph(policy='sufficient'): eb.exp(eb.zeros(2)).value()\n"
        "print({control.get() for control in controls()})"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "{2}\n"

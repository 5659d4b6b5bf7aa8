"""Threads that use one GPU at once: what one records, or has gone wrong, is not another's."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import edbatch as eb
from edbatch.kernels.cuda.recordings import Recordings


@pytest.fixture
def often():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_values_are_those_of_one_thread(cuda, often):
    """Structures come again, so that they are recorded; each thread has options of its own."""
    model = eb.ParameterCollection(seed=0, device=cuda)
    W = model.add_parameters((8, 8))
    random = np.random.default_rng(0)
    inputs = random.normal(size=(4, 8)).astype(np.float32)

    def run(precision, length):
        with eb.options(precision=precision), eb.Graph(policy="sufficient"):
            outputs = []
            for x in inputs[: 2 + length % 3]:
                h = eb.input(x)
                for _ in range(length):
                    h = eb.tanh(W @ h)
                outputs.append(h)
            return np.array(eb.forward(outputs))

    cases = [(precision, length) for precision in ("float32", "bf16") for length in (1, 2, 5)]
    wanted = {case: run(*case) for case in cases}
    assert not np.array_equal(wanted["float32", 5], wanted["bf16", 5])
    # How many graphs are alive at once, and so where each finds its buffers, depends on how threads take turns: room
    # for the recordings of all, or a busy machine drops some as fast as they are made, which is a warning.
    recordings = cuda.backend.recordings = Recordings(cuda.backend._driver, capacity=10_000)

    def work(seed):
        for at in np.random.default_rng(seed).integers(len(cases), size=40):
            np.testing.assert_array_equal(run(*cases[at]), wanted[cases[at]])
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))
    for case in 3 * cases:  # how often threads come upon the buffers of a recording depends on their turns, too
        np.testing.assert_array_equal(run(*case), wanted[case])
    assert recordings.recorded > 0
    assert recordings.replayed > 0
    assert recordings.dropped == 0

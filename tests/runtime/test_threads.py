"""Graphs in several threads: each has its own current graph; types, windows and buffers are shared safely."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import edbatch as eb


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

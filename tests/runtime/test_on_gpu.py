"""Whole models on a GPU (an emulated one, unless there is one) compute what they compute on the CPU."""

from functools import cache

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import device
from edbatch.models import ChildSumTreeLSTM
from edbatch.models.workloads import WORKLOADS
from tests.emulated.driver import EmulatedDriver

DIM = 5
MODELS = ["tree-lstm", "tagger", "lattice-lstm", "encoder-decoder", "mv-rnn", "child-sum"]


class Sums:
    """Child-sum TreeLSTM over trees of any width."""

    def __init__(self, model):
        self.model = model
        self.lstm = ChildSumTreeLSTM(model, 3, DIM)

    def probabilities(self, seed):
        states = []
        for at, children in enumerate([(), (), (0, 1), (), (2, 3, 0, 3), (4,)]):
            x = eb.input(np.cos(np.arange(3) * (at + 1 + seed)))
            states.append(self.lstm.node(x, [states[child] for child in children]))
        return [eb.softmax(h) for h, _ in states]


class Made:
    """A workload's network, with samples: `probabilities(number of a sample)`."""

    def __init__(self, name, model, samples=None):
        self.model = model
        self.workload = WORKLOADS[name]
        self.samples, sizes, _ = self.workload.number(samples or self.workload.generate(12, 3))
        self.network = self.workload.network(model, *sizes, DIM)

    def probabilities(self, number):
        return self.workload.probabilities(self.network, self.samples[number])


def make(name, where="cpu", dtype="float32", samples=None):
    model = eb.ParameterCollection(seed=1, dtype=dtype, device=where)
    made = Sums(model) if name == "child-sum" else Made(name, model, samples)
    random = np.random.default_rng(5)
    for parameter in model:
        parameter.set_value(random.normal(0, 0.5, parameter.shape))
    return made


def loss_of(made, numbers, policy="sufficient", check_nan=False):
    """A graph, the probabilities of samples, and a loss that no two of their entries enter alike."""
    graph = eb.Graph(policy=policy, dtype=made.model.dtype, check_nan=check_nan)
    with graph:
        outputs = [p for number in numbers for p in made.probabilities(number)]
        weights = [eb.input(np.cos(np.arange(p.shape[0]) + at)) for at, p in enumerate(outputs)]
        loss = eb.sum([eb.sum(p * p * w) for p, w in zip(outputs, weights, strict=True)])
    return graph, outputs, loss


def results(made, numbers=(0, 1, 2), backward=True, **how):
    """Probabilities, loss and gradients of all parameters."""
    policy = how.pop("policy", "sufficient")
    made.model.zero_grad()
    with eb.options(**how):
        _, outputs, loss = loss_of(made, numbers, policy)
        if backward:
            loss.backward()
        found = {str(at): value for at, value in enumerate(eb.forward(outputs))} | {"loss": loss.value()}
    return found | ({parameter.name: parameter.grad() for parameter in made.model} if backward else {})


@cache
def on_cpu(name, dtype="float32"):
    return results(make(name, dtype=dtype))


def compare(got, want, dtype="float32"):
    tolerance = {"rtol": 2e-4, "atol": 2e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}
    assert got.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, **tolerance, err_msg=name)


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x in ("tagger", "encoder-decoder"))) for x in MODELS]
)
def test_models(cuda, name):
    """Forward alone, and back; in another order; again, when it has been recorded."""
    made = make(name, cuda)
    want = on_cpu(name)
    outputs = {key: want[key] for key in want if key.isdecimal() or key == "loss"}
    compare(results(made, backward=False), outputs)
    for _ in range(4):
        compare(results(made), want)
    compare(results(made, policy="agenda"), want)
    cuda.synchronize()


def trained(where, name, dtype="float32", optimizer=eb.Adam):
    """Losses of a few steps, and the parameters that they lead to."""
    made = make(name, where, dtype)
    trainer, losses = optimizer(made.model, lr=0.01, clip=0.5), []
    for step in (0, 1, 0, 1):
        _, _, loss = loss_of(made, (step, step + 1))
        loss.backward()
        losses.append(loss.value())
        trainer.update()
    return losses + [parameter.value() for parameter in made.model]


@pytest.mark.parametrize("name", ["tree-lstm", "tagger", "lattice-lstm"])
def test_training(cuda, name):
    for got, want in zip(trained(cuda, name), trained("cpu", name), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


WAYS = {
    "one at a time": {"policy": "none"},
    "depth": {"policy": "depth"},
    "learned": {"policy": None},
    "not split": {"split": False},
    "recomputed": {"recompute": True},
    "no cells": {"cells": False},
    "not recorded": {"record": False},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [pytest.param("tree-lstm", marks=pytest.mark.slow), "lattice-lstm"])
def test_every_way(cuda, name, way):
    compare(results(make(name, cuda), **WAYS[way]), on_cpu(name))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in ("tree-lstm", "child-sum"))) for name in MODELS]
)
def test_float64(cuda, name):
    compare(results(make(name, cuda, "float64")), on_cpu(name, "float64"), "float64")


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_precisions(cuda, precision):
    """Less than float32 where it is asked for, and not much less."""
    got, want = results(make("tagger", cuda), precision=precision), on_cpu("tagger")
    differences = [np.abs(got[name] - want[name]).max() for name in want if name.isdecimal()]
    assert 1e-6 < max(differences) < {"tf32": 2e-3, "bf16": 2e-2}[precision]


def test_real_data(cuda, data_folder):
    workload = WORKLOADS["tree-lstm"]
    samples = workload.read(*(data_folder / path for path in workload.folder), limit=8)
    mine, peer = (results(make("tree-lstm", where, samples=samples), range(8)) for where in (cuda, "cpu"))
    compare(mine, peer)


@pytest.mark.parametrize("name", ["lattice-lstm", "mv-rnn"])
def test_two_runs_give_the_same_bits(cuda, name):
    """Whatever the order of threads, enqueued or recorded."""
    runs = [results(make(name, cuda), range(6), record=record) for record in (False, True, True, True)]
    for other in runs[1:]:
        for key, value in runs[0].items():
            np.testing.assert_array_equal(other[key], value, err_msg=key)


# What a graph may do.


def both(cuda, build, dtype="float32"):
    """What `build(W, table)` returns, a list of values, must be the same on both devices."""
    found = []
    for where in (cuda, "cpu"):
        model = eb.ParameterCollection(seed=4, device=where, dtype=dtype)
        W, table = model.add_parameters((4, 4), name="W"), model.add_lookup_parameters((6, 4), name="table")
        values = build(W, table)
        found.append([*values, W.grad(), table.grad()])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_batches_of_which_some_take_part(cuda):
    """Gradients flow into every third call of a batch only, and of a sum over lists."""

    for dtype in ("float32", "float64"):

        def build(W, table, dtype=dtype):
            @eb.cell
            def step(x, word: int):
                return eb.tanh(W @ x + eb.lookup(table, word))

            with eb.Graph(policy="sufficient", dtype=dtype):
                xs = [eb.input(np.cos(np.arange(4) + at)) for at in range(9)]
                hs = [step(x, at % 6) for at, x in enumerate(xs)]
                sums = [eb.sum(hs[at : at + 3]) for at in range(7)]
                kept = [eb.tanh(x) for x in sums]
                loss = eb.sum([eb.sum(x * h) for x, h in zip(kept[::3], hs[::3], strict=True)])
                loss.backward()
                return [loss.value(), *(x.gradient() for x in xs), *(x.gradient() for x in sums)]

        both(cuda, build, dtype)


def test_operands_from_anywhere(cuda):
    """Rows of several windows in one batch, views that are not contiguous, shared operands, lists with shared rows."""

    def build(W, table):
        with eb.Graph(policy="sufficient"):
            x = [eb.input(np.cos(np.arange(4) + at)) for at in range(3)]
            wide = [eb.concatenate([W @ y, y]) for y in x]
            parts = [y[2:6] for y in wide] + [y[::2] for y in wide] + [eb.tanh(y) for y in x] + [table[1], table[1]]
            mixed = [eb.square(parts[at % len(parts)] * parts[(3 * at) % len(parts)]) for at in range(12)]
            lists = [eb.sum([parts[at] for at in some]) for some in ([0, 6, 6], [7, 1, 2], [3, 4], [5, 10, 9, 8], [6])]
            tops = [eb.maximum(a, b) for a, b in zip(mixed, lists * 3, strict=False)]
            loss = eb.sum([eb.sum(y * x[0]) for y in tops])
            loss.backward()
            return [loss.value(), *eb.forward(mixed + lists), *(y.gradient() for y in x + wide + parts)]

    both(cuda, build)


def test_nan_in_a_gradient_is_named(cuda):
    for where in (cuda, device("cpu")):
        model = eb.ParameterCollection(device=where)
        p = model.add_parameters(2, init=[0.0, 1.0])
        with eb.Graph(policy="sufficient", check_nan=True):
            loss = eb.sum(eb.sqrt(p * eb.ones(2)) * eb.input([0.0, 1.0]))  # 0 / 0
        with np.errstate(all="ignore"), pytest.raises(eb.EdBatchError, match=r"NaN in the gradient of sqrt"):
            loss.backward()


# One path: the plans, and what is asked of the device.


def steady(made, counts, numbers=range(4)):
    """What a forward run of the third equal-sized mini-batch asks of the device."""
    for _ in range(3):
        with eb.Graph(policy="sufficient") as graph:
            outputs = [p for at in numbers for p in made.probabilities(at)]
        before = counts()
        graph.run()
        after = counts()
        del graph, outputs
    return [b - a for a, b in zip(before, after, strict=True)]


@pytest.mark.parametrize("name", ["lattice-lstm", "encoder-decoder"])
def test_a_forward_run_never_waits(cuda, name):
    """Nothing is allocated, nothing read; one upload: the plan's index buffer."""
    driver = cuda.backend._driver
    if not isinstance(driver, EmulatedDriver):
        pytest.skip("counted by the emulated GPU; see the next test")
    for record in (True, False):
        made = make(name, cuda)
        with eb.options(record=record):
            found = steady(made, lambda: (driver.downloads, driver.allocations, driver.uploads))
        assert found == [0, 0, 1]

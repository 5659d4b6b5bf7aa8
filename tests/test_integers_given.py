"""Whatever counts as an integer does so in every public call that takes one, and what is too large is refused."""

import tempfile

import numpy as np
import pytest

import edbatch as eb


class Index:
    """What has an `__index__`, and nothing else that an integer has."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def program():
    yield from ()
    return 1


def run(epochs=1, **given):
    model = eb.ParameterCollection()
    w = model.add_parameters(2)
    folder = tempfile.mkdtemp()

    def losses(samples):
        return [eb.sum(eb.square(w))] * len(samples)

    found = eb.Run(folder, model, eb.Adam(model), losses, [1, 2, 3], policy="sufficient", **given)
    return [figures["loss"] for figures in found.epochs(epochs)]


def steps(number):
    model = eb.ParameterCollection()
    w, trainer = model.add_parameters(2), eb.Adam(model)
    trainer.steps = number
    w.set_grad([1.0, 1.0])
    trainer.update()
    return trainer.steps


def value(of):
    def call(n):
        with eb.Graph():
            return np.asarray(of(eb.input(np.arange(18.0).reshape(3, 3, 2)), n).value()).tolist()

    return call


CALLS = {
    "Run: batch_size": lambda n: run(batch_size=n),
    "Run: seed": lambda n: run(seed=n),
    "Run: save_every": lambda n: run(save_every=n),
    "Run.epochs": lambda n: run(epochs=n),
    "run: limit": lambda n: eb.run([program() for _ in range(4)], limit=n),
    "Cosine": lambda n: eb.schedules.Cosine(1e-3, n)(1),
    "Step": lambda n: eb.schedules.Step(1e-3, n)(5),
    "WarmupLinear: warmup": lambda n: eb.schedules.WarmupLinear(1e-3, n, 9)(5),
    "WarmupLinear: steps": lambda n: eb.schedules.WarmupLinear(1e-3, 1, n)(1),
    "Trainer.steps": steps,
    "ParameterCollection": lambda n: eb.ParameterCollection(seed=n).add_parameters(3).value().tolist(),
    "add_parameters": lambda n: eb.ParameterCollection().add_parameters((n, n)).shape,
    "seed": eb.seed,
    "Graph": lambda n: eb.Graph(seed=n).dtype,
    "top_k": value(lambda x, n: eb.top_k(x, n, axis=0)[0]),
    "sum": value(lambda x, n: x.sum(axis=n)),
    "concatenate": value(lambda x, n: eb.concatenate([x, x], axis=n)),
    "reshape": value(lambda x, n: eb.reshape(x, (n, 9))),
    "zeros": value(lambda x, n: eb.zeros(n)),
    "one_hot": value(lambda x, n: eb.one_hot(0, n)),
    "x[n]": value(lambda x, n: x[n]),
    "xs[n]": value(lambda x, n: eb.array([x, x, x * 2.0])[n]),
    "max_pool2d": value(lambda x, n: eb.max_pool2d(x, n, stride=n)),
}


@pytest.mark.parametrize("name", CALLS)
def test_whatever_has_an_index_is_an_integer(name):
    wanted = CALLS[name](2)
    for given in (np.uint64(2), np.uint8(2), np.array(2), Index(2)):
        assert CALLS[name](given) == wanted, repr(given)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "sum"])  # of no axes at all, None
def test_others_are_none(name):
    for given in (True, np.True_, 2.5, "2", 2j):
        with pytest.raises(eb.EdBatchError, match=r"expected|no parameter"):
            CALLS[name](given)


ANY_SIZE = ("ParameterCollection",)  # of which all bits count


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ANY_SIZE])
def test_what_is_too_large_is_refused(name):
    for given in (2**64, Index(2**70)):
        with pytest.raises(eb.EdBatchError):
            CALLS[name](given)

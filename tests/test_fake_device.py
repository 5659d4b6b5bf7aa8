"""A device that implements the protocol as literally as can be computes what the CPU computes."""

import numpy as np
import pytest

import edbatch as eb
from edbatch import devices
from edbatch.models.workloads import WORKLOADS
from tests import fake_device
from tests.graph.test_foreign import of_foreign, of_trees
from tests.graph.test_ops import CASES, one_of_each
from tests.kernels.cuda import test_ops as on_gpu
from tests.kernels.cuda.test_ops import SOME
from tests.runtime.test_on_gpu import trained

pytestmark = [pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient"), pytest.mark.cpu]


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setitem(devices.BACKENDS, "fake", fake_device)
    monkeypatch.setattr(devices, "_devices", dict(devices._devices))
    return eb.device("fake")


def check(fake, function, *arguments, unit=1.0):
    """What a function returns on both devices, lists of arrays."""
    with fake, np.errstate(all="ignore"):
        mine = function(*arguments)
    with eb.device("cpu"):
        theirs = function(*arguments)
    assert len(mine) == len(theirs) > 0
    for got, want in zip(mine, theirs, strict=True):
        assert (np.shape(got), np.asarray(got).dtype) == (np.shape(want), np.asarray(want).dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4 * unit, atol=2e-5 * unit)


@pytest.mark.parametrize(("op", "sample"), one_of_each(CASES, -1))
def test_every_op(fake, op, sample):
    for how, dtype in [("rows", "float64"), ("shuffled", "float32")]:
        unit = 1 if dtype == "float32" else 1e-7
        check(fake, lambda how=how, dtype=dtype: on_gpu.values(op, sample, how, dtype)[0], unit=unit)
        check(fake, on_gpu.gradients, op, sample, how, dtype, how == "rows", unit=unit)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in SOME)) for name in WORKLOADS]
)
def test_models(fake, name):
    check(fake, lambda: [x for found in on_gpu.of_workload(name) for x in found])


@pytest.mark.parametrize("how", ["by op", "cell"])
def test_foreign_ops(fake, how):
    check(fake, lambda: of_trees(how, of_foreign, "float64")[0], unit=1e-7)


@pytest.mark.parametrize("optimizer", [eb.Adam, eb.SGD, eb.Adagrad])
def test_training(fake, optimizer):
    """Of a recurrent cell over lists of any length, in float64."""
    check(fake, lambda: trained(None, "child-sum", "float64", optimizer), unit=1e-7)

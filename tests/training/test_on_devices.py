"""Updates on a device: what the CPU does, and no more waiting for the device than once an update."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import Device
from edbatch.kernels.cuda.backend import CudaBackend
from tests.emulated.driver import EmulatedDriver
from tests.emulated.libraries import with_cpp
from tests.training.optimizing import give, gradients_of, model_of
from tests.training.rules import OPTIMIZERS

pytestmark = with_cpp


@pytest.fixture
def gpu():
    """The emulated GPU: its driver is `gpu.driver`."""
    device = Device("cuda", 0)
    device.driver = EmulatedDriver()
    device.backend = CudaBackend(device.driver)
    return device


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_updates_are_the_cpus(optimizer, gpu):
    """On stacks, tables, and where a part of a stack has no gradient; a run goes on from its state."""
    mine = model_of()
    with gpu:
        other = model_of()
    assert other.device is gpu
    trainer, peer = optimizer(mine, clip=1.5, weight_decay=0.1), optimizer(other, clip=1.5, weight_decay=0.1)
    tolerance = {"rtol": 1e-11, "atol": 1e-13}
    for step, gradients in enumerate(gradients_of(mine)):
        if step == 3:
            state = peer.state()
            peer = optimizer(other, clip=1.5, weight_decay=0.1)
            peer.load_state(*state)
        give(mine, gradients)
        give(other, gradients)
        trainer.update()
        before = gpu.driver.downloads
        peer.update()
        assert gpu.driver.downloads - before == 1
        assert peer.gradient_norm == pytest.approx(trainer.gradient_norm, rel=1e-6)
        for parameter in mine:
            np.testing.assert_allclose(other[parameter.name].value(), parameter.value(), **tolerance)
    for name, array in trainer.state()[0].items():
        np.testing.assert_allclose(peer.state()[0][name], array, **tolerance)
    gpu.driver.check_memory()


def test_bad_gradients_are_named(gpu):
    with gpu:
        model = model_of()
    trainer = eb.Adam(model)
    give(model, next(gradients_of(model)))
    model["b"].accumulator()[0][1] = np.nan
    before = model["W"].value()
    with pytest.raises(eb.EdBatchError, match="NaN or infinite gradient of 'b'"):
        trainer.update()
    np.testing.assert_array_equal(model["W"].value(), before)

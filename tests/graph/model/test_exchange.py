"""Arrays to and from other libraries."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.stacking import stacked

NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])


class Tensor:
    """What is known of another library's tensor."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_what_holds_numbers_is_an_array():
    array = np.arange(6.0).reshape(2, 3).T
    for value in (array, Tensor(array)):
        assert np.shares_memory(eb.from_dlpack(value), array)
    array.flags.writeable = False
    assert not eb.from_dlpack(array).flags.writeable
    np.testing.assert_array_equal(eb.from_dlpack([[1, 2], [3, 4]]), [[1, 2], [3, 4]])
    assert eb.from_dlpack(3.5) == 3.5
    swapped = np.arange(3.0).astype(">f8")
    np.testing.assert_array_equal(eb.from_dlpack(swapped), [0, 1, 2])


def test_parameters_take_tensors():
    model = eb.ParameterCollection()
    given = np.arange(6.0).reshape(2, 3)
    W = model.add_parameters((2, 3), init=Tensor(given))
    np.testing.assert_array_equal(W.value(), given)
    W.set_value(Tensor(2 * given))
    np.testing.assert_array_equal(W.value(), 2 * given)
    assert W.dtype == np.float32
    with pytest.raises(eb.EdBatchError, match="init has shape"):
        model.add_parameters((3, 2), init=Tensor(given))
    W.set_value(W)
    np.testing.assert_array_equal(W.value(), 2 * given)


@pytest.mark.cpu
@pytest.mark.skipif(NUMPY < (2, 3), reason="this NumPy's from_dlpack gives arrays that cannot be written")
def test_parameters_share_their_memory():
    model = eb.ParameterCollection()
    a, b = model.add_parameters((2, 3), init=1.0), model.add_parameters((3, 3), init=2.0)
    table = model.add_lookup_parameters((4, 2), init=3.0)
    for parameter in (a, table):
        array = np.from_dlpack(parameter)
        array[1, 1] = 9
        assert parameter.value()[1, 1] == 9
        if parameter is a:
            assert stacked([a.spec, b.spec]) is None
    assert stacked([a.spec, b.spec]) is not None  # nobody holds what a exported
    array = np.from_dlpack(b)
    assert array.strides == (4, 20)  # a part of a stack of 5 rows, stored by columns
    array[...] = 5
    np.testing.assert_array_equal(b.value(), np.full((3, 3), 5))
    assert a.value()[0, 0] == 1
    assert b.__dlpack_device__() == (1, 0)


@pytest.mark.cpu
def test_torch():
    torch = pytest.importorskip("torch")
    model = eb.ParameterCollection()
    given = torch.arange(6.0).reshape(2, 3)
    W = model.add_parameters((2, 3), init=given)
    tensor = torch.from_dlpack(W)
    tensor.mul_(2)
    np.testing.assert_array_equal(W.value(), 2 * given.numpy())
    W.set_value(given.T.contiguous().T)
    np.testing.assert_array_equal(tensor.numpy(), given.numpy())
    W.set_value(given.to(torch.float16))
    for wrong in (torch.nn.Parameter(given), given.to(torch.bfloat16)):
        with pytest.raises(eb.EdBatchError, match="expected numbers in the CPU's memory"):
            W.set_value(wrong)
    with eb.Graph(policy="sufficient"):
        y = W @ eb.input(torch.ones(3))
    assert torch.from_dlpack(y.value()).tolist() == [3.0, 12.0]


class Gates:
    """Two cells that stack weights: each of one vector."""

    def __init__(self):
        self.model = model = eb.ParameterCollection(seed=0)
        self.W, self.V, self.U = (model.add_parameters((3, 3), name=name) for name in "WVU")
        self.b, self.c = (model.add_parameters(3, name=name, init="uniform") for name in "bc")

    @eb.cell
    def step(self, x):
        return eb.tanh(self.W @ x + self.b) * eb.tanh(self.V @ x + self.c)

    @eb.cell
    def other(self, x):
        return eb.sigmoid(self.W @ x) + eb.sigmoid(self.U @ x)

    def train(self, steps=2, cells=("step", "other")):
        trainer = eb.Adam(self.model)
        for _ in range(steps):
            self.run(cells).backward()
            trainer.update()

    def run(self, cells=("step", "other")):
        with eb.Graph(policy="sufficient"):
            x = eb.input([0.1, 0.2, 0.3])
            return eb.sum([eb.sum(getattr(self, name)(x)) for name in cells])


def exported(parameter):
    """The parameter's array in the hands of PyTorch, whose tensors can be written to whatever NumPy there is."""
    return pytest.importorskip("torch").from_dlpack(parameter)


def nothing(gates, tmp_path):
    pass


def call(gates, tmp_path):
    gates.run()


def train(gates, tmp_path):
    gates.train()


def load(gates, tmp_path):
    gates.model.save(tmp_path / "m.safetensors")
    gates.W.set_value(gates.W.value() * 2)
    gates.model.load(tmp_path / "m.safetensors")


def freeze(gates, tmp_path):
    gates.W.freeze()
    gates.train()
    gates.W.freeze(False)


def set_value(gates, tmp_path):
    gates.W.set_value(gates.W.value() * 2)


STEPS = [nothing, call, train, load, freeze, set_value]
ORDERS = [(before, call) for before in STEPS] + [(call, after) for after in STEPS] + [(train, train), (nothing, load)]


@pytest.mark.cpu
@pytest.mark.parametrize(("before", "after"), ORDERS)
def test_what_was_exported_stays_the_parameters_array(before, after, tmp_path):
    """Cells stack parameters when they are first called: whatever comes before and after an export."""
    gates = Gates()
    before(gates, tmp_path)
    tensors = {parameter.name: exported(parameter) for parameter in (gates.W, gates.b)}
    after(gates, tmp_path)
    gates.run()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor.numpy(), gates.model[name].value())
        tensor.mul_(3.0)
        np.testing.assert_array_equal(tensor.numpy(), gates.model[name].value())
    other = Gates()
    for name, parameter in other.model.items():
        parameter.set_value(gates.model[name])
    np.testing.assert_allclose(gates.run().value(), other.run().value(), rtol=1e-6)
    gates.train(1)
    other.train(1)
    for name, parameter in other.model.items():  # an Adam of its own: the same update
        np.testing.assert_allclose(gates.model[name].value(), parameter.value(), rtol=1e-5, atol=1e-6)
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor.numpy(), gates.model[name].value())

"""Parameters in memory that somebody else owns: the numbers are those of parameters that own theirs."""

import copy
import pickle

import numpy as np
import pytest

import edbatch as eb

pytestmark = pytest.mark.cpu  # memory of NumPy's
SIZE = 4


def array(shape, dtype="float64", order="C", seed=0):
    return np.array(np.random.default_rng(seed).normal(size=shape), dtype, order=order)


class Net:
    """Products from both sides, several matrices that a cell would put side by side, a table, and a bias."""

    def __init__(self, dtype, order=None):
        self.model = model = eb.ParameterCollection(dtype=dtype, seed=0)
        shapes = {"W": (SIZE, SIZE), "U": (SIZE, SIZE), "V": (3, SIZE), "b": (SIZE,), "column": (SIZE, 1)}
        self.memory = {name: array(shape, dtype, order or "C", len(name)) for name, shape in shapes.items()}
        self.memory["table"] = array((5, SIZE), dtype)
        for name, values in self.memory.items():
            if order is not None:
                made = model.share(values, name, lookup=name == "table")
            elif name == "table":
                made = model.add_lookup_parameters(values.shape, name, init=values)
            else:
                made = model.add_parameters(values.shape, name, init=values)
            setattr(self, name, made)

    @eb.cell
    def step(self, x, h, word: int):
        gates = eb.sigmoid(self.W @ x + self.U @ h + self.b) * (x @ self.W)
        return gates + eb.lookup(self.table, word) * eb.sum(self.column), eb.stack([h, x]) @ self.U.T

    def loss(self, words):
        h = eb.zeros(SIZE)
        losses = []
        for word in words:
            h, rows = self.step(eb.lookup(self.table, word), h, word)
            losses.append(eb.cross_entropy(self.V @ h, word % 3) + eb.mean(rows) + eb.sum(self.W * self.W))
        return eb.sum(losses)


def trained(net, trainer, cells=True, steps=3):
    values = []
    trainer = trainer(net.model)
    for _ in range(steps):
        with eb.options(cells=cells), eb.Graph("depth", net.model.dtype):
            loss = eb.sum([net.loss(words) for words in ([0, 4, 2], [1], [3, 3])])
        loss.backward()
        values.append(loss.value())
        gradients = {p.name: p.grad() for p in net.model}
        trainer.update()
    return values, gradients, {p.name: p.value() for p in net.model}


@pytest.mark.parametrize(
    ("order", "dtype", "cells", "trainer"),
    [("C", "float32", True, eb.Adam), ("F", "float64", True, eb.SGD), ("F", "float32", False, eb.Adam)],
)
def test_training_is_as_in_own_memory(order, dtype, cells, trainer):
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    own = trained(Net(dtype), trainer, cells)
    net = Net(dtype, order)
    addresses = {name: values.ctypes.data for name, values in net.memory.items()}
    found = trained(net, trainer, cells)
    np.testing.assert_allclose(found[0], own[0], rtol=tolerance)
    for name, values in net.memory.items():
        np.testing.assert_allclose(found[1][name], own[1][name], rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(values, own[2][name], rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(values, found[2][name])
        parameter = net.model[name]
        assert np.from_dlpack(parameter).ctypes.data == addresses[name]
        assert parameter.gradient_array().flags[f"{order if values.ndim == 2 and name != 'table' else 'C'}_CONTIGUOUS"]


def test_writes_are_seen_at_once_and_told_by_touch():
    values = array((2, SIZE))
    model = eb.ParameterCollection(dtype="float64")
    W = model.share(values)
    with eb.Graph(dtype="float64"):
        loss = eb.sum(eb.square(W) * W)
    before = loss.value()
    version = W.version
    values *= 2
    W.touch()
    assert W.version != version
    with pytest.raises(eb.EdBatchError, match="p0 changed after the graph had run"):
        loss.backward()
    with eb.Graph(dtype="float64"):
        np.testing.assert_allclose(eb.sum(eb.square(W) * W).value(), 8 * before)


def test_what_owns_its_memory_moves_unless_cells_have_put_it_beside_others():
    net, shared = Net("float64"), Net("float64", "C")
    for name, values in shared.memory.items():
        net.model[name].move(values)
    assert trained(net, eb.SGD)[0] == pytest.approx(trained(Net("float64"), eb.SGD)[0])
    stacked = eb.ParameterCollection(dtype="float64", seed=0)
    parts = [stacked.add_parameters((SIZE, SIZE)) for _ in range(2)]

    @eb.cell
    def both(x):
        return eb.tanh(parts[0] @ x) * eb.sigmoid(parts[1] @ x)

    with eb.Graph(dtype="float64"):
        both(eb.ones(SIZE)).value()
    with pytest.raises(eb.EdBatchError, match="a cell has stored it beside others"):
        parts[0].move(array((SIZE, SIZE)))


def test_a_move_keeps_the_gradient():
    W = eb.ParameterCollection(dtype="float64").share(array((2, 3)))
    W.set_grad([[1, 2, 3], [4, 5, 6]])
    W.move(array((2, 3), order="F"))
    np.testing.assert_array_equal(W.grad(), [[1, 2, 3], [4, 5, 6]])
    with eb.Graph(dtype="float64"):
        loss = eb.sum(W @ np.ones(3))
    loss.backward()
    np.testing.assert_array_equal(W.grad(), [[2, 3, 4], [5, 6, 7]])


@pytest.mark.parametrize("trainer", [eb.Adam, eb.SGD])
def test_a_trainer_follows(trainer):
    nets = [Net("float64"), Net("float64", "C")]
    trainers = [trainer(net.model, 0.1) for net in nets]
    for step in range(6):
        for net, one in zip(nets, trainers, strict=True):
            with eb.Graph("depth", "float64"):
                loss = net.loss([0, 4, 2])
            loss.backward()
            one.update()
        for name, values in nets[1].memory.items():
            np.testing.assert_allclose(values, nets[0].model[name].value(), rtol=1e-12)
            moved = nets[1].memory[name] = np.array(values, order="FC"[step % 2] if name != "table" else "C")
            nets[1].model[name].move(moved)


def test_copies_own_their_memory(tmp_path):
    net = Net("float64", "C")
    for other in (copy.deepcopy(net.model), pickle.loads(pickle.dumps(net.model))):
        other["W"].set_value(np.zeros((SIZE, SIZE)))
        assert net.memory["W"].any()
    net.model.save(tmp_path / "m.safetensors")
    kept = net.memory["W"].copy()
    net.memory["W"][...] = 0
    net.W.touch()
    net.model.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(net.memory["W"], kept)
    net.W.freeze()
    assert not trained(net, eb.SGD, steps=1)[1]["W"].any()
    np.testing.assert_array_equal(net.memory["W"], kept)


READ_ONLY = np.ones((2, 2), np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (np.ones((2, 2)), {}, "expected an array of float32, got float64"),
        (np.ones((2, 2), np.int32), {}, "expected an array of float32, got int32"),
        (np.ones((4, 4), np.float32)[:, ::2], {}, "expected entries side by side"),
        (np.ones((2, 2, 2), np.float32, order="F").transpose(1, 0, 2), {}, "expected entries side by side"),
        (READ_ONLY, {}, "can be written to"),
        (np.ones((2, 3), np.float32, order="F"), {"lookup": True}, "expected rows that lie side by side"),
        (np.ones(2, np.float32), {"name": "W"}, "exists already"),
        (np.ones(0, np.float32), {}, "expected entries side by side"),
        ("text", {}, "expected numbers"),
        (None, {}, "expected numbers"),
    ],
)
def test_what_cannot_be_shared(given, options, message):
    model = eb.ParameterCollection()
    W = model.add_parameters(2, "W")
    with pytest.raises(eb.EdBatchError, match=message):
        model.share(given, **options)
    assert list(model) == [W]
    shared = model.share(np.ones((2, 3), np.float32))
    with pytest.raises(eb.EdBatchError, match=r"expected shape \(2, 3\), got"):
        shared.move(np.ones((3, 2), np.float32))
    table = model.share(np.ones((2, 3), np.float32), lookup=True)
    with pytest.raises(eb.EdBatchError, match="expected rows that lie side by side"):
        table.move(np.ones((2, 3), np.float32, order="F"))

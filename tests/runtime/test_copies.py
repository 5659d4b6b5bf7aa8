"""Copies and pickles: of what a program keeps, they work; a graph says that it cannot be one."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import edbatch as eb

WAYS = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy, "copy": copy.copy}
ways = pytest.mark.parametrize("copied", WAYS.values(), ids=WAYS)
apart = pytest.mark.parametrize("copied", [WAYS["pickle"], WAYS["deepcopy"]], ids=["pickle", "deepcopy"])


class Net:
    def __init__(self):
        self.model = eb.ParameterCollection(seed=0)
        self.W, self.U = (self.model.add_parameters((3, 3), name=name) for name in "WU")
        self.table = self.model.add_lookup_parameters((5, 3), name="table")

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + self.U @ h + eb.lookup(self.table, word))

    def loss(self):
        with eb.Graph(policy="sufficient"):
            return eb.sum(self.step(self.step(eb.ones(3), 1), 4))


@eb.cell
def double(x):
    return x * 2


def trained():
    net = Net()
    trainer = eb.Adam(net.model, lr=eb.schedules.Cosine(0.1, steps=9))
    net.loss().backward()
    trainer.update()
    return net, trainer


@ways
@pytest.mark.parametrize("ran", [False, True])
def test_graphs_say_that_they_cannot(copied, ran):
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([1.0, 2.0])
        y = x * 3
    if ran:
        assert y.value().tolist() == [3, 6]
    with pytest.raises(
        eb.EdBatchError, match=r"a graph, or an expression of one, cannot be copied, .* expression.value"
    ):
        copied(graph)
    if copied is not copy.copy:  # another handle on the same node
        with pytest.raises(eb.EdBatchError, match="cannot be copied"):
            copied(y)
        with pytest.raises(eb.EdBatchError, match="cannot be copied"):
            copied({"model": [y]})
    assert copy.copy(y).value().tolist() == [3, 6]


@apart
def test_models_that_ran(copied):
    net, _ = trained()
    other = copied(net)
    assert other.loss().value() == pytest.approx(net.loss().value())
    other.W.set_value(other.W.value() * 0)
    assert other.loss().value() != pytest.approx(net.loss().value())
    assert other.model["W"] is other.W


@apart
def test_trainers_go_on_alike(copied):
    both = trained()
    net, trainer = both
    other, again = copied(both)
    for one, update in ((net, trainer), (other, again)):
        one.loss().backward()
        update.update()
    for a, b in zip(net.model, other.model, strict=True):
        np.testing.assert_allclose(a.value(), b.value(), rtol=1e-6)


@ways
def test_what_else_is_kept(copied):
    net, trainer = trained()
    with eb.Graph() as graph:
        values = [eb.tanh(eb.input([float(n)])) for n in range(3)]
        total = eb.sum([double(x) for x in values])
    value = total.value()
    report = graph.report()
    assert str(copied(report)) == str(report)
    learned = copied(graph.policy)
    with eb.Graph(policy=learned):
        total = eb.sum([double(eb.tanh(eb.input([float(n)]))) for n in range(3)])
    np.testing.assert_allclose(total.value(), value)
    assert copied(double) is double
    assert copied(net.model.device) is net.model.device
    assert copied(trainer.lr)(3) == trainer.lr(3)
    assert str(copied(eb.EdBatchError("what"))) == "what"


@pytest.mark.cpu
def test_a_process_that_is_spawned_gets_a_model(tmp_path):
    script = tmp_path / "main.py"
    script.write_text("""
import multiprocessing
import edbatch as eb

def work(model):
    with eb.Graph(policy="sufficient"):
        return (model["W"] @ eb.ones(3)).value()

if __name__ == "__main__":
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((2, 3), name="W")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(work, [model])[0]
    assert abs(found - W.value().sum(1)).max() < 1e-6
""")
    subprocess.run([sys.executable, script], check=True)

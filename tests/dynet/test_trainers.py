"""Trainers, beside what `test_programs` compares with DyNet's own."""

import json
from pathlib import Path

import numpy as np
import pytest

import edbatch as eb
import edbatch.dynet as dy
from tests.dynet import trainings

RECORDED = json.loads((Path(__file__).parent / "data" / "trainers.json").read_text(encoding="utf-8"))
TRAINERS = [
    dy.SimpleSGDTrainer, dy.MomentumSGDTrainer, dy.AdagradTrainer, dy.AdadeltaTrainer,
    dy.RMSPropTrainer, dy.AdamTrainer, dy.AmsgradTrainer,
]  # fmt: skip


@pytest.fixture
def model():
    return dy.ParameterCollection()


def step(W, x=1.0):
    """A gradient of x for every entry."""
    dy.renew_cg()
    dy.sum_elems(W * x).backward()


@pytest.mark.parametrize("case", trainings.CASES, ids=lambda case: " ".join(map(str, case)))
def test_as_in_dynet(case):
    found = trainings.trained(dy, *case)
    np.testing.assert_allclose(found, RECORDED[" ".join(map(str, case))], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("make", TRAINERS)
class TestAll:
    def test_nothing_to_update_is_no_error(self, model, make):
        W = model.add_parameters(2, init=1.0)
        make(model).update()
        assert W.as_array().tolist() == [1.0, 1.0]

    def test_parameters_may_come_later(self, model, make):
        trainer = make(model)
        first = model.add_parameters(2, init=1.0)
        step(first)
        trainer.update()
        second = model.add_parameters(2, init=1.0)
        step(second)
        trainer.update()
        assert (second.as_array() < 1).all()


def test_status(model, capsys):
    W = model.add_parameters(4, init=0.0)
    trainer = dy.SimpleSGDTrainer(model)
    for x in (10.0, 1.0):
        step(W, x)
        trainer.update()
    trainer.status()
    trainer.status()
    assert capsys.readouterr().err == "[lr=0.1 clips=1 updates=2] [lr=0.1 clips=0 updates=0] "


def test_weight_decay(model):
    W, table = model.add_parameters(2, init=1.0), model.add_lookup_parameters((2, 1), init=1.0)
    model.set_weight_decay(0.5)
    assert (model.get_weight_decay(), model.add_subcollection().get_weight_decay()) == (0.5, 0.5)
    step(W, 0.0)
    dy.SimpleSGDTrainer(model).update()
    assert (W.as_array().tolist(), table.as_array().tolist()) == ([0.5, 0.5], [[0.5], [0.5]])


def test_epochs_are_refused_as_in_dynet(model):
    with pytest.raises(DeprecationWarning):
        dy.SimpleSGDTrainer(model).update_epoch(1.0)


def test_gradients_that_another_trainers_loss_left():
    models = [dy.ParameterCollection() for _ in range(2)]
    G, D = (made.add_parameters(2, init=dy.ConstInitializer(1.0)) for made in models)
    generating, judging = (dy.SimpleSGDTrainer(made) for made in models)

    def go_back(*operands):
        dy.renew_cg()
        dy.esum([dy.sum_elems(x) for x in operands]).backward()

    go_back(G, D)
    generating.update()
    models[1].reset_gradient()
    go_back(D)
    judging.update()
    go_back(G, D)
    generating.update()
    go_back(D)
    with pytest.warns(eb.EdBatchWarning, match=r"^SimpleSGDTrainer.update: .* Call reset_gradient\(\)"):
        judging.update()

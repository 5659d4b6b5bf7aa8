"""Optimizers of one's own whose constants are not those of their rule: refused when they are made."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import edbatch as eb
from edbatch.training.rule import Rule
from edbatch.training.trainer import Trainer

RULE = Rule((), ("scale", "lr", "decay"), "p = p - lr * (scale * g + decay * p)")


@dataclass(eq=False, kw_only=True)
class Own(Trainer):
    """What a test says."""

    rule = RULE
    given: ClassVar[Any] = None

    def constants(self, lr, updates):
        return type(self).given(lr, self.weight_decay)


def own(function, of=RULE):
    return type("Own", (Own,), {"given": staticmethod(function), "rule": of})


def model():
    found = eb.ParameterCollection()
    found.add_parameters(2, name="w", init=1.0)
    return found


def updated(trainer):
    w = trainer.model["w"]
    with eb.Graph():
        loss = eb.sum(eb.square(w))
    loss.backward()
    trainer.update()
    return w.value()


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda lr, decay: {"lr": lr}, "got lr"),
        (lambda lr, decay: {}, "got none"),
        (lambda lr, decay: {"lr": lr, "decay": decay, "more": 1.0}, "got lr, decay, more"),
        (lambda lr, decay: {"lr": lr, "decay": decay, "scale": 1.0}, "got lr, decay, scale"),
        (lambda lr, decay: (lr, decay), "got "),
        (lambda lr, decay: None, "got None"),
    ],
)
def test_constants_that_are_not_those_of_the_rule(function, got):
    with pytest.raises(
        eb.EdBatchError, match=rf"Own.constants: expected those of the rule by name \(lr, decay\), {got}"
    ):
        own(function)(model())


@pytest.mark.parametrize("value", [None, "1", [1.0], np.ones(2)])
def test_a_constant_that_is_no_number(value):
    with pytest.raises(eb.EdBatchError, match=r"Own.constants: decay: expected a number, got"):
        own(lambda lr, decay: {"lr": lr, "decay": value})(model())


def test_a_rule_without_scale():
    rule = Rule((), ("lr", "decay"), "p = p - lr * (g + decay * p)")
    with pytest.raises(eb.EdBatchError, match=r"Own.rule: expected a constant 'scale', which it multiplies"):
        own(lambda lr, decay: {"lr": lr, "decay": decay}, rule)(model())


def test_constants_go_by_name():
    rule = Rule((), ("decay", "lr", "scale"), "p = p - lr * (scale * g + decay * p)")
    trainer = own(lambda lr, decay: {"lr": lr, "decay": decay}, rule)(model(), lr=0.1, weight_decay=0.5)
    np.testing.assert_allclose(updated(trainer), [0.75, 0.75])


def test_constants_that_change_their_names():
    found = {"lr": 0.1, "decay": 0.0}
    trainer = own(lambda lr, decay: found)(model())
    found["other"] = 1.0
    with pytest.raises(eb.EdBatchError, match=r"got lr, decay, other"):
        updated(trainer)
    np.testing.assert_array_equal(trainer.model["w"].value(), [1.0, 1.0])


def test_weight_decay_that_no_rule_applies():
    rule = Rule((), ("scale", "lr"), "p = p - lr * (scale * g)")
    kind = own(lambda lr, decay: {"lr": lr}, rule)
    message = r"Own: weight_decay=0.5; expected 0, its rule applies none"
    with pytest.raises(eb.EdBatchError, match=message):
        kind(model(), weight_decay=0.5)
    one = model()
    with pytest.raises(eb.EdBatchError, match=message):
        kind([{"params": one["w"], "weight_decay": 0.5}])
    trainer = kind(one, lr=0.1)
    trainer.weight_decay = 0.5
    with pytest.raises(eb.EdBatchError, match=message):
        updated(trainer)


@pytest.mark.parametrize("kind", [eb.SGD, eb.Momentum, eb.Adagrad, eb.RMSProp, eb.Adadelta, eb.Adam, eb.AdamW])
def test_the_smallest_weight_decay_is_one(kind):
    kind(model(), lr=0.0, weight_decay=1e-30)

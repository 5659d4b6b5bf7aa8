"""What Python runs in the midst of a run: handlers of signals and finalizers; policies and schedules, which may ask."""

import sys
from itertools import count

import numpy as np
import pytest

import edbatch as eb
from tests.interrupts import FOLDER, FOREVER

AGAIN = "while EdBatch was computing"
LENGTHS = count(2)  # new ones, so that all tables change


class Meanwhile:
    """Calls a function before the n-th line that runs inside EdBatch: there Python may run handlers and finalizers.

    Attributes:
        lines: how many have run.
    """

    def __init__(self, at, function):
        self.at, self.function, self.lines = at, function, 0

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(lambda frame, *_: self.line if frame.f_code.co_filename.startswith(FOLDER) else None)

    def __exit__(self, *_):
        sys.settrace(self.before)

    def line(self, frame, event, _):
        self.lines += event == "line"
        if event == "line" and self.lines == self.at:
            self.function()
        return self.line


OUTDATED = "p0 changed after this was recorded and before it ran"


def chain(n):
    return eb.sum(eb.log(eb.ones(n) * 0.5))


def value(n):
    return pytest.approx(n * np.log(0.5), rel=1e-5)


@pytest.mark.parametrize("asks", ["another graph", "the same graph", "records", "updates"])
def test_who_asks_at_any_line(asks):
    """They are answered, or refused; what ran is right afterwards, or says that it has failed."""
    model = eb.ParameterCollection(seed=0)
    w = model.add_parameters(3)
    trainer = eb.SGD(model, lr=0.0)
    refused = []

    def step(at):
        n = next(LENGTHS)
        with eb.Graph(policy="sufficient"):
            there = chain(n)
        with eb.Graph(policy="sufficient") as graph:
            y = chain(n) + eb.sum(w)

        def ask():
            try:
                if asks == "another graph":
                    assert there.value() == value(n)
                elif asks == "the same graph":
                    y.value()
                elif asks == "records":
                    with graph:
                        chain(n)
                else:
                    trainer.update()
            except eb.EdBatchError as error:
                refused.append(str(error))

        meanwhile = Meanwhile(at, ask)
        try:
            with meanwhile:
                y.backward()
            assert y.value() == pytest.approx(n * np.log(0.5) + w.value().sum(), rel=1e-5)
            assert there.value() == value(n)
        except eb.EdBatchError as error:
            too_early = asks == "updates" and OUTDATED in str(error)  # when nothing had run
            if asks != "records" and not too_early:
                raise
        return meanwhile.lines

    for _ in range(3):
        lines = step(FOREVER)
    assert lines > 200
    for at in np.linspace(1, lines, 40).astype(int).tolist():
        step(at)
    assert any(AGAIN in message for message in refused) or asks == "records"


class Asking:
    """A policy that runs a graph of its own before it answers."""

    name = "asking"

    def schedule(self, graph):
        with eb.Graph(policy="sufficient"):
            assert chain(3).value() == value(3)
        return eb.get_policy("depth").schedule(graph)


def test_policies_and_learning_rates_may_ask():
    model = eb.ParameterCollection(seed=0)
    w = model.add_parameters(3)

    def rate(step):
        with eb.Graph():
            return -0.1 * float(chain(1).value())

    trainer = eb.SGD(model, lr=rate)
    with eb.Graph(policy=Asking()):
        x = eb.tanh(w)
        y = eb.sum(x + eb.tanh(eb.ones(3)) + eb.sigmoid(x))
    y.backward()
    before, gradient = w.value(), w.grad()
    trainer.update()
    np.testing.assert_allclose(w.value(), before + 0.1 * np.log(0.5) * gradient, rtol=1e-5)

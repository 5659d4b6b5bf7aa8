"""Parameters of a replayed function, what it draws, and lines that run for a later sample first."""

import random
import sys

import numpy as np
import pytest

import edbatch as eb
from tests.graph.replay.models import Model, loss, same


def gradients(function, model, *args):
    model.model.zero_grad()
    with eb.Graph(dtype="float64"):
        y = function(model, *args)
    y.backward()
    return [p.grad() for p in (model.W, model.table)]


def test_parameters_that_are_updated_or_replaced():
    model, replayed = Model(), eb.replay(loss)
    trainer = eb.SGD(model.model, lr=0.1)
    for _ in range(3):
        for wanted, found in zip(gradients(loss, model, (1, 2)), gradients(replayed, model, (1, 2)), strict=True):
            np.testing.assert_array_equal(found, wanted)
        trainer.update()
    model.W = model.model.add_parameters((3, 3), name="other")
    same(loss, replayed, (model, (1, 2)))


class Net(Model):
    training = True

    def plain(self, words):
        x = eb.lookup(self.table, words[0])
        return eb.sum(eb.dropout(x, 0.5) if self.training else x)

    replayed = eb.replay(plain)


def test_masks_are_drawn_anew():
    net = Net()
    with eb.Graph(dtype="float64", seed=3):
        found = [net.replayed((1,)) for _ in range(20)]
    assert len({float(x.value()) for x in found}) > 1
    with eb.Graph(dtype="float64", seed=3):
        wanted = [net.plain((1,)) for _ in range(20)]
    assert eb.forward(found) == eb.forward(wanted)


def in_a_line(x):
    return eb.scalar(random.random() if x > 5 else x)


def in_another_line(x):
    if x > 5:
        x = random.random()
    return eb.scalar(x)


# fmt: off
def in_one_of_many_lines(x):
    return eb.scalar(
        x if x < 5
        else random.random()
    )
# fmt: on


def in_a_list(x):
    return eb.sum([eb.scalar(y) for y in (x, x) if y < 5 or random.random()])


def after_an_error(x):
    try:
        return eb.scalar(float(x) + (random.random() if float(x) > 5 else 0.0))
    except ValueError:
        return eb.scalar(0.0)


def behind_an_error(x):
    try:
        y = int(x), random.random()
    except ValueError:
        return eb.scalar(0.0)
    return eb.scalar(y[1])


@pytest.mark.parametrize("function", [in_a_line, in_another_line, in_one_of_many_lines, in_a_list])
def test_what_runs_for_a_later_sample_is_looked_into(function):
    replayed = eb.replay(function)
    with eb.Graph():
        for x in (1.0, 2.0, 3.0):
            assert replayed(x).value() in (x, 2 * x)
        for _ in range(2):
            with pytest.raises(eb.EdBatchError, match=r"it calls random.random\(\)"):
                replayed(9.0)
        assert replayed(4.0).value() in (4, 8)


@pytest.mark.parametrize("function", [after_an_error, behind_an_error])
def test_lines_that_an_error_ended_have_not_run(function):
    replayed = eb.replay(function)
    with eb.Graph():
        for x in ("a", "b", "c"):
            assert replayed(x).value() == 0
        with pytest.raises(eb.EdBatchError, match=r"it calls random.random\(\)"):
            replayed("9")


def test_a_debugger_sees_what_runs():
    lines = []

    def trace(frame, kind, about):
        if kind == "line" and frame.f_code is in_another_line.__code__:
            lines.append(frame.f_lineno)
        return trace

    replayed = eb.replay(in_another_line)
    with eb.Graph():
        replayed(0.5)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            replayed(1.0)
            assert sys.gettrace() is trace
        finally:
            sys.settrace(before)
    first = in_another_line.__code__.co_firstlineno
    assert lines == [first + 1, first + 3]

"""Ops of one's own that say something else than they compute, or too little: refused, and never a wrong number."""

import re

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.list_callers import over_lists, variadic
from edbatch.graph.op import OPS, Kind, Op, composite, declare, no_gradient
from edbatch.graph.op_callers import unary
from edbatch.graph.ops.place import CONCATENATE
from edbatch.graph.ops.segments import segment_mean, segment_sum
from edbatch.graph.record import record
from edbatch.graph.views import look


@pytest.fixture(autouse=True)
def declared():
    """What a test declares is taken out again."""
    before = dict(OPS)
    yield
    OPS.clear()
    OPS.update(before)


def made_of(body, says=None, name="made"):
    op = composite(name, lambda shape: shape if says is None else says, body, ())
    return lambda x: record(op, (x,))


def computed(says, attributes=None, **kind):
    op = declare(Op("wrong", lambda *_, **__: says, **kind))
    return lambda x: record(op, (x,), (), **(attributes or {}))


def picked(says):
    op = declare(Op("wrong", lambda *_: says, picks=True, payload=1))
    return lambda x: record(op, (x,), (0,))


def of_lists(body, says=(3,)):
    op = declare(Op("odd", lambda _: says, variadic=True, composite=body))
    return lambda x: over_lists(op, (), ([x, x],))


def every_other(says):
    op = declare(Op("every_other", lambda _: says, forward=lambda rows: rows[:, ::2], kind=Kind.VIEW))
    return lambda x: look(x, op, ())


# What makes a function of a vector of three numbers, and what is said when it is used.
REFUSED = [
    *[(lambda says=says: made_of(lambda x: x * 2, says), f"made([3]): its shape rule gives {text}, but its definition")
      for says, text in (((6,), "[6]"), ((1,), "[1]"), ((), "[]"), ((3, 1), "[3,1]"))],
    *[(lambda body=body: made_of(body), "made([3]): its definition: expected an expression")
      for body in (lambda x: None, lambda x: (x, x), lambda x: 1.0, lambda x: x.value)],
    (lambda: unary(declare(Op("un", lambda s: s, scalar="x", unrolled=lambda x: eb.concatenate([x, x])))),
     "its shape rule gives [3], but its definition gives [6]"),
    (lambda: computed((9,), scalar="x * 2", elementwise=True), "gives [9], but it computes [3]"),
    (lambda: computed((1,), scalar="x * 2", elementwise=True), "gives [1], but it computes [3]"),
    (lambda: computed((9,), scalar="x * 2"), "gives [9], but its operands do not broadcast to it"),
    (lambda: computed((1,), scalar="x * 2"), "gives [1], but it computes [3]"),
    (lambda: computed((2,), {"axes": (0,)}, reduction="sum"), "gives [2], but it computes []"),
    (lambda: picked((2,)), "gives [2], but it computes []"),
    (lambda: computed((2,), places=lambda out, shapes: [out[:, :2]]), "which is not the operands side by side"),
    (lambda: computed((7,), {"axis": 0}, places=CONCATENATE.places), "not the operands side by side"),
    (lambda: computed([3], scalar="x"), "expected a tuple of positive integers, got [3]"),
    (lambda: computed((3.0,), scalar="x"), "expected a tuple of positive integers"),
    (lambda: computed(None, scalar="x"), "expected a tuple of positive integers, got None"),
    (lambda: every_other((3,)), "every_other([3]): its shape rule gives [3], but it shows [2]"),
    (lambda: of_lists(segment_sum, (4,)), "odd([3]...): its shape rule gives [4], but its definition gives [3]"),
    (lambda: of_lists(lambda x: segment_mean(x) + x), "its definition gives a value for each element of a list"),
    (lambda: of_lists(lambda x: x), "its definition gives a value for each element of a list; expected one for all"),
    (lambda: of_lists(lambda x: eb.sum(segment_sum(x))), "its shape rule gives [3], but its definition gives []"),
    (lambda: of_lists(lambda x: None), "odd([3]...): its definition: expected an expression"),
    (lambda: declare(Op("bare", lambda s: s, variadic=True, unrolled=lambda *xs: xs[0])), "op 'bare': expected"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_says_something_else_than_it_computes(make, message):
    with pytest.raises(eb.EdBatchError, match=re.escape(message)), eb.Graph():  # noqa: PT012
        function = make()
        function(eb.input([1.0, 2.0, 3.0])).value()
    if "made(" in message:
        with pytest.raises(eb.EdBatchError, match=re.escape(message)), eb.Graph():
            eb.cell(lambda x: function(x))(eb.input([1.0, 2.0, 3.0])).value()


def test_what_reads_no_more_than_its_operands_may_say_it_again():
    """An op that is not element-wise, as `unpick`: its operand is broadcast to the result."""
    op = declare(Op("again", lambda shape: (2, *shape), scalar="x * 2"))
    with eb.Graph():
        y = record(op, (eb.input([1.0, 2.0]),))
    np.testing.assert_array_equal(y.value(), [[2.0, 4.0], [2.0, 4.0]])


def no_rules():
    """Functions of ops without a gradient, by the op's name."""
    scalar = declare(Op("no_rule", lambda shape: shape, elementwise=True, scalar="x * 2"))
    reduced = declare(Op("no_rule_sum", lambda shape, axes: (), reduction="sum"))
    listed = {"composite": lambda q, x: segment_sum(record(scalar, (x,)) * q)}
    over = declare(Op("no_rule_list", lambda q, x: x, variadic=True, singles=1, **listed))
    view = every_other((2,))
    return {
        "no_rule": lambda x: record(scalar, (x,)),
        "no_rule_sum": lambda x: record(reduced, (x,), axes=(0,)),
        "no_rule_list": lambda x: over_lists(over, (x,), ([x, x],)),
        "every_other": lambda x: view(x * 2),
    }


@pytest.mark.parametrize("in_cell", [False, True])
@pytest.mark.parametrize("name", ["no_rule", "no_rule_sum", "no_rule_list", "every_other"])
def test_backward_through_an_op_without_a_gradient(name, in_cell):
    function = no_rules()[name]
    if name == "every_other" and not in_cell:
        return  # gradients flow through what memory shows
    w = eb.ParameterCollection().add_parameters(4, init=1.0)
    with eb.Graph():
        loss = eb.sum((eb.cell(function) if in_cell else function)(w * eb.input([1.0, 2.0, 3.0, 4.0])))
    named = name.removesuffix("_list")  # which is what it is made of
    with pytest.raises(eb.EdBatchError, match=rf"{named}\(.*op '{named}' has no gradient; .*no_gradient"):
        loss.backward()
    assert not w.has_grad


def test_gradients_of_ones_own():
    jumps = {"composite": lambda x: segment_sum(x > 1.0), "gradient": no_gradient}
    floors = variadic(declare(Op("floors", lambda s: s, variadic=True, **jumps)))
    two = unary(declare(Op("two", lambda s: s, elementwise=True, scalar="x", gradient=lambda g, out, x: (g, g))))
    w = eb.ParameterCollection().add_parameters(2, init=1.5)
    with eb.Graph():
        eb.sum(floors([w * 1.0, w * 2.0]) + w).backward()
        np.testing.assert_array_equal(w.grad(), [1.0, 1.0])
        with pytest.raises(eb.EdBatchError, match=re.escape("two([2]): its gradient: expected 1 results, got 2")):
            eb.sum(two(w * 1.0)).backward()


@pytest.mark.parametrize("in_cell", [False, True])
def test_what_asks_for_a_size_is_compiled_for_each(in_cell):
    """Between others of odd lengths, too: what is found there does not know what an even one does."""
    gradient = {"gradient": lambda g, out, x: g * (3.0 if x.shape[0] % 2 else 5.0)}
    forward = made_of(lambda x: x * 2 if x.shape[0] % 2 else x[::-1] * 2)
    backward = declare(Op("odd_gradient", lambda shape: shape, scalar="x", elementwise=True, **gradient))
    halved = made_of(lambda x: x * 2 if x.shape[0] % 2 else x[::2], name="halved")

    def both(x):
        return forward(record(backward, (x,)))

    function = eb.cell(both) if in_cell else both
    for length in (5, 29, 11, 43, 13, 61, 12, 30, 8, 17):
        data = np.arange(length, dtype=np.float32)
        with eb.Graph():
            x = eb.input(data)
            y = function(x)
            eb.sum(y).backward()
        np.testing.assert_array_equal(y.value(), 2 * (data if length % 2 else data[::-1]))
        np.testing.assert_array_equal(x.gradient(), np.full(length, 6 if length % 2 else 10))
        with eb.Graph():
            if length % 2:
                assert halved(eb.input(data)).value().tolist() == (2 * data).tolist()
                continue
            with pytest.raises(eb.EdBatchError, match=rf"gives \[{length}\], but its definition gives"):
                halved(eb.input(data)).value()

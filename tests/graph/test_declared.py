"""Ops of one's own that say something else than they compute, or too little: refused, and never a wrong number."""

import re

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.fast import unary
from edbatch.graph.fast_lists import over_lists, variadic
from edbatch.graph.op import OPS, Equations, Kind, Op, composite, declare, no_gradient
from edbatch.graph.record import record
from edbatch.graph.views import look


@pytest.fixture(autouse=True)
def declared():
    """What a test declares is taken out again."""
    before = dict(OPS)
    yield
    OPS.clear()
    OPS.update(before)


def doubled(shape):
    return composite("doubled", shape, lambda x: x * 2, ())


@pytest.mark.parametrize("in_cell", [False, True])
@pytest.mark.parametrize(("says", "text"), [((6,), "[6]"), ((1,), "[1]"), ((), "[]"), ((3, 1), "[3,1]")])
def test_a_composite_of_another_shape_than_its_rule_says(says, text, in_cell):
    op = doubled(lambda shape: says)
    function = eb.cell(lambda x: record(op, (x,))) if in_cell else lambda x: record(op, (x,))

    def used():
        with eb.Graph():
            y = function(eb.input([1.0, 2.0, 3.0]))
        y.value()

    message = f"doubled([3]): its shape rule gives {text}, but what it is made of is [3]"
    with pytest.raises(eb.EdBatchError, match=re.escape(message)):
        used()


@pytest.mark.parametrize("body", [lambda x: None, lambda x: (x, x), lambda x: 1.0, lambda x: x.value])
def test_a_composite_that_gives_no_expression(body):
    op = composite("nothing", lambda shape: shape, body, ())
    with eb.Graph():
        y = record(op, (eb.ones(3),))
    with pytest.raises(eb.EdBatchError, match=re.escape("nothing([3]): what it is made of: expected an expression")):
        y.value()


def test_what_an_op_is_unrolled_to_has_its_shape():
    op = Op("unrolled", lambda shape: shape, scalar="x", unrolled=lambda x: eb.concatenate([x, x]))
    f = unary(declare(op))
    with eb.Graph():
        y = f(eb.ones(3))
    with pytest.raises(eb.EdBatchError, match=re.escape("its shape rule gives [3], but what it is made of is [6]")):
        y.value()


@pytest.mark.parametrize(
    ("kind", "says", "message"),
    [
        ({"scalar": "x * 2", "elementwise": True}, (9,), "gives [9], but it computes [2,3]"),
        ({"scalar": "x * 2", "elementwise": True}, (1,), "gives [1], but it computes [2,3]"),
        ({"scalar": "x * 2"}, (9,), "gives [9], but its operands do not broadcast to it"),
        ({"scalar": "x * 2"}, (3,), "gives [3], but it computes [2,3]"),
        ({"reduction": "sum"}, (2,), "gives [2], but it computes [3]"),
        ({"picks": True, "payload": 1}, (2,), "gives [2], but it computes [3]"),
        ({"places": lambda out, shapes: [out[:, :2]]}, (3, 3), "gives [3,3], which is not the operands side by side"),
        ({"scalar": "x"}, [2, 3], "expected a tuple of positive integers, got [2, 3]"),
        ({"scalar": "x"}, (2.0, 3), "expected a tuple of positive integers"),
        ({"scalar": "x"}, None, "expected a tuple of positive integers, got None"),
    ],
)
def test_a_rule_that_says_another_shape(kind, says, message):
    op = declare(Op("wrong", lambda shape, **_: says, **kind))
    attributes = {"axes": (0,)} if "reduction" in kind else {}
    payload = (0,) if "picks" in kind else ()
    with eb.Graph() as graph:
        x = eb.ones((2, 3))
        before = graph.n
        with pytest.raises(eb.EdBatchError, match=r"wrong\(\[2,3\].*: its shape rule.*" + re.escape(message)):
            record(op, (x,), payload, **attributes)
        assert graph.n == before


def test_what_reads_no_more_than_its_operands_may_say_it_again():
    """An op that is not element-wise, as `unpick`: its operand is broadcast to the result."""
    op = declare(Op("again", lambda shape: (2, *shape), scalar="x * 2"))
    with eb.Graph():
        y = record(op, (eb.input([1.0, 2.0]),))
    np.testing.assert_array_equal(y.value(), [[2.0, 4.0], [2.0, 4.0]])


def every_other(rule, **changes):
    return declare(Op("every_other", rule, forward=lambda rows: rows[:, ::2], kind=Kind.VIEW, **changes))


def test_a_view_of_another_shape_than_its_rule_says():
    op = every_other(lambda shape: shape)
    message = "every_other([4]): its shape rule gives [4], but it shows [2]"
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=re.escape(message)):
        look(eb.ones(4), op, ())


def test_backward_through_a_view_without_a_gradient():
    op = every_other(lambda shape: (shape[0] // 2,))
    w = eb.ParameterCollection().add_parameters(4, init=1.0)
    with eb.Graph():
        loss = eb.sum(eb.cell(lambda x: look(x * 2, op, ()))(w * 1.0))
    message = r"every_other\(\[4\]\): op 'every_other' has no gradient; .*no_gradient"
    with pytest.raises(eb.EdBatchError, match=message):
        loss.backward()


def test_equations_of_another_size_than_the_rule_says():
    equations = Equations(("x[e,i]",), "out[i] = sum_e(x)", lambda shape: {"i": shape[0]})
    longer = variadic(declare(Op("longer", lambda shape: (shape[0] + 1,), variadic=True, equations=equations)))
    other = Equations(("x[e,i]",), "out[i] = sum_e(x)", lambda shape: {"i": 2})
    two = variadic(declare(Op("two", lambda shape: shape, variadic=True, equations=other)))
    with eb.Graph():
        xs = [eb.ones(3), eb.ones(3)]
        with pytest.raises(eb.EdBatchError, match=re.escape("'out' has other entries than the axes of its equations")):
            longer(xs).value()
    with eb.Graph():
        xs = [eb.ones(3), eb.ones(3)]
        with pytest.raises(eb.EdBatchError, match=re.escape("'x' has other entries than the axes of its equations")):
            two(xs).value()


@pytest.mark.parametrize(
    ("operands", "text", "message"),
    [
        (("x[e,i]",), "out[i] = mean_e(x) + x", "the equation of 'out': differs along axis e, which 'out' does not"),
        (("x[e,i]",), "out[e,i] = x * 2", "the equation of 'out', the result: expected no axis e, that of the lists"),
        (("x[e,i]",), "out[] = sum_e(x)", "the equation of 'out': differs along axis i, which 'out' does not have"),
        (("x[e,i]",), "", "expected at least one equation"),
        (("q[i]", "x[e,i]"), "out[i] = sum_e(x * q)", "expected 0 operands without axis e, then lists, with it"),
        (("x[i]",), "out[i] = x", "expected 0 operands without axis e, then lists, with it"),
    ],
)
def test_equations_that_say_no_one_number(operands, text, message):
    equations = Equations(operands, text, lambda *shapes: {"i": 3})
    op = declare(Op("odd", lambda *shapes: (3,), variadic=True, equations=equations))
    with eb.Graph():
        y = over_lists(op, (), ([eb.ones(3), eb.ones(3)],) * len(operands))
    with pytest.raises(eb.EdBatchError, match=re.escape(f"op 'odd': {message}")):
        y.value()


def test_an_op_over_lists_without_equations():
    with pytest.raises(eb.EdBatchError, match="op 'bare': expected"):
        declare(Op("bare", lambda shape: shape, variadic=True, unrolled=lambda *xs: xs[0]))


def no_rules():
    """Functions of ops without a gradient, by the op's name."""
    scalar = declare(Op("no_rule", lambda shape: shape, elementwise=True, scalar="x * 2"))
    reduced = declare(Op("no_rule_sum", lambda shape, axes: (), reduction="sum"))
    listed = Equations(("q[i]", "x[e,i]"), "out[i] = sum_e(floor(x) * q)", lambda q, x: {"i": q[0]})
    unrolled = {"unrolled": lambda q, *xs: record(scalar, (q,)) + xs[0]}
    over = declare(Op("no_rule_list", lambda q, x: x, variadic=True, singles=1, equations=listed, **unrolled))
    return {
        "no_rule": lambda x: record(scalar, (x,)),
        "no_rule_sum": lambda x: record(reduced, (x,), axes=(0,)),
        "no_rule_list": lambda x: over_lists(over, (x,), ([x, x],)),
    }


@pytest.mark.parametrize("in_cell", [False, True])
@pytest.mark.parametrize("name", ["no_rule", "no_rule_sum", "no_rule_list"])
def test_backward_through_an_op_without_a_gradient(name, in_cell):
    function = no_rules()[name]
    w = eb.ParameterCollection().add_parameters(2, init=1.0)
    with eb.Graph():
        loss = eb.sum((eb.cell(function) if in_cell else function)(w * eb.input([1.0, 2.0])))
    loss.value()
    named = name if not in_cell else name.removesuffix("_list")  # in a cell it is what it is unrolled to
    with pytest.raises(eb.EdBatchError, match=rf"{named}\(.*op '{named}' has no gradient; .*no_gradient"):
        loss.backward()
    assert not w.has_grad


def test_no_gradient_of_an_op_over_lists():
    equations = Equations(("x[e,i]",), "out[i] = sum_e(floor(x))", lambda shape: {"i": shape[0]})
    floors = variadic(declare(Op("floors", lambda s: s, variadic=True, equations=equations, gradient=no_gradient)))
    w = eb.ParameterCollection().add_parameters(2, init=1.5)
    with eb.Graph():
        loss = eb.sum(floors([w * 1.0, w * 2.0]) + w)
    loss.backward()
    np.testing.assert_array_equal(w.grad(), [1.0, 1.0])


def test_a_gradient_of_too_many_operands():
    op = unary(declare(Op("two", lambda s: s, elementwise=True, scalar="x", gradient=lambda g, out, x: (g, g))))
    w = eb.ParameterCollection().add_parameters(2, init=1.0)
    with eb.Graph():
        loss = eb.sum(op(w * 1.0))
    with pytest.raises(eb.EdBatchError, match=re.escape("two([2]): its gradient: expected 1 results, got 2")):
        loss.backward()


@pytest.mark.parametrize("in_cell", [False, True])
def test_what_asks_for_a_size_is_compiled_for_each(in_cell):
    """Between others of odd lengths, too: what is found there does not know what an even one does."""

    def gradient(g, out, x):
        return g * (3.0 if x.shape[0] % 2 else 5.0)

    forward = composite("turned", lambda shape: shape, lambda x: x * 2 if x.shape[0] % 2 else x[::-1] * 2, ())
    backward = declare(Op("odd_gradient", lambda shape: shape, scalar="x", elementwise=True, gradient=gradient))

    def both(x):
        return record(forward, (record(backward, (x,)),))

    function = eb.cell(both) if in_cell else both
    for length in (5, 29, 11, 43, 13, 61, 12, 30, 8, 17):
        data = np.arange(length, dtype=np.float32)
        with eb.Graph():
            x = eb.input(data)
            y = function(x)
            eb.sum(y).backward()
        np.testing.assert_array_equal(y.value(), 2 * (data if length % 2 else data[::-1]))
        np.testing.assert_array_equal(x.gradient(), np.full(length, 6 if length % 2 else 10))


def test_what_cannot_be_opened_at_some_sizes():
    """It is found out before anything has changed, whatever could be opened before."""

    def halved(x):
        return x * 2 if x.shape[0] % 2 else x[::2]

    op = composite("halved", lambda shape: shape, halved, ())
    with eb.Graph():
        for length in (5, 7, 9, 11, 13):
            assert record(op, (eb.ones(length),)).value().tolist() == [2.0] * length
        wrong = record(op, (eb.ones(8),))
        with pytest.raises(eb.EdBatchError, match=re.escape("its shape rule gives [8], but what it is made of is [4]")):
            wrong.value()
    with eb.Graph():
        assert record(op, (eb.ones(15),)).value().tolist() == [2.0] * 15

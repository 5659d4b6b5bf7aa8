"""Equations of any sort as programs: values are NumPy's, gradients those of finite differences, on both devices."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import device
from edbatch.graph.list_callers import over_lists
from edbatch.graph.op import Equations, Op
from tests.gradients import numeric

pytestmark = pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
D, C = 3, 2
SIZES = {"d": D, "c": C}


def softmax(x):
    power = np.exp(x - x.max(0))
    return power / power.sum(0)


def additive(q, v, k, x):
    return softmax((v * np.tanh(k + q)).sum(1)) @ x


def functions(t, x, y):
    found = np.tanh(x) / (1 + np.exp(-y)) - np.sqrt(y * y + 1) / (2 + np.abs(x)) + np.maximum(x, y) * np.log(y * y + 2)
    return (found + np.minimum(x, 0.3) - (-t) * x).sum(0)


SOFTMAX = "exp({0} - stop_gradient(max_e({0}))) / sum_e(exp({0} - stop_gradient(max_e({0}))))"
# By name: the operands, the lines, and what they mean of operands whose lists are stacked.
CASES = {
    "additive attention": (
        ("q[d]", "v[d]", "k[e,d]", "x[e,c]"),
        f"score[e] = sum_d(v * tanh(k + q))\nweight[e] = {SOFTMAX.format('score')}\nout[c] = sum_e(weight * x)",
        additive,
    ),
    "a temperature": (
        ("t[]", "x[e]"),
        f"weight[e] = {SOFTMAX.format('(t * x)')}\nout[] = sum_e(weight * x)",
        lambda t, x: softmax(t * x) @ x,
    ),
    "read in several lines": (
        ("t[d]", "x[e,d]", "y[e,d]"),
        "a[e,d] = x * t\nb[e] = sum_d(a * y + x)\nc[d] = sum_e(b * x * a)\nout[d] = c * t + tanh(c)",
        lambda t, x, y: (lambda c: c * t + np.tanh(c))(((x * t * y + x).sum(1)[:, None] * x * x * t).sum(0)),
    ),
    "all functions": (
        ("t[d]", "x[e,d]", "y[e,d]"),
        "out[d] = sum_e(tanh(x) * sigmoid(y) - sqrt(y * y + 1) / (2 + abs(x)) + maximum(x, y) * log(y * y + 2)"
        " + minimum(x, 0.3) - (-t) * x)",
        functions,
    ),
    "all reductions": (
        ("t[d]", "x[e,d]"),
        "out[d] = t * mean_e(x * t) + max_e(x * t) * min_e(t - x) + logsumexp_e(2 * x) - sum_e(x)",
        lambda t, x: (
            t * (x * t).mean(0) + (x * t).max(0) * (t - x).min(0) + np.logaddexp.reduce(2 * x, axis=0) - x.sum(0)
        ),
    ),
    "reductions of reductions": (
        ("x[e,d]",),
        "top[e] = max_d(x)\nboth[e,d] = x * top\nleast[d] = min_e(both)\nall[] = logsumexp_ed(x)\n"
        "out[d] = mean_e(both) * least + all",
        lambda x: (lambda y: y.mean(0) * y.min(0) + np.logaddexp.reduce(x, axis=None))(x * x.max(1)[:, None]),
    ),
    "added to all elements": (
        ("s[]", "t[d]", "x[e,d]"),
        "out[d] = sum_e(t) + sum_e(x + t) * logsumexp_e(x - t) + mean_e(x * x - s)",
        lambda s, t, x: len(x) * t + (x + t).sum(0) * np.logaddexp.reduce(x - t, axis=0) + (x * x - s).mean(0),
    ),
    "the same for all elements of one list": (
        ("x[e,d]", "y[e,d]"),
        "out[d] = sum_e(x) * logsumexp_e(y)",
        lambda x, y: x.sum(0) * np.logaddexp.reduce(y, axis=0),
    ),
    "transposed": (
        ("m[d,c]", "x[e,c,d]"),
        "part[e,c] = sum_d(m * x)\nout[c,d] = sum_e(part * x)",
        lambda m, x: np.einsum("dc,ecd,ecf->cf", m, x, x),
    ),
}
LENGTHS = [1, 3, 2, 40]


def op_of(name):
    operands, text, _ = CASES[name]
    axes = text.rpartition("out[")[2].partition("]")[0]
    out = tuple(SIZES[axis] for axis in axes.split(",") if axis)
    equations = Equations(operands, text, lambda *shapes: SIZES)
    singles = sum("e" not in operand.partition("[")[2] for operand in operands)
    return Op(name, lambda *shapes: out, variadic=True, singles=singles, equations=equations)


def shape_of(operand):
    axes = operand.partition("[")[2].strip("]").split(",")
    return tuple(SIZES[axis] for axis in axes if axis not in ("", "e"))


def check(name, where, dtype, tolerance):
    op, (operands, _, meaning) = op_of(name), CASES[name]
    random = np.random.default_rng(4)
    with where, eb.Graph(policy="sufficient", dtype=dtype) as graph:
        given, sources, ys = [], [], []
        for length in LENGTHS:
            values = [
                random.normal(size=(*([length] if at >= op.singles else []), *shape_of(x))) * 0.7
                for at, x in enumerate(operands)
            ]
            singles = [eb.input(x) for x in values[: op.singles]]
            lists = [[eb.input(x) for x in xs] for xs in values[op.singles :]]
            ys.append(over_lists(op, tuple(singles), tuple(lists)))
            given.append(values)
            sources.append([*singles, *lists])
        eb.sum([eb.sum(eb.sin(y)) for y in ys]).backward()
        batches = graph.report().batches
    for values, xs, y in zip(given, sources, ys, strict=True):
        np.testing.assert_allclose(y.value(), meaning(*values), rtol=tolerance, atol=tolerance, err_msg=name)
        for at, x in enumerate(xs):

            def loss(data, at=at, values=values):
                return np.sum(np.sin(meaning(*values[:at], data, *values[at + 1 :])))

            want = numeric(loss, values[at])
            got = np.stack([one.gradient() for one in x]) if isinstance(x, list) else x.gradient()
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 10, err_msg=f"{name} {operands[at]}")
    return batches


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    batches = check(name, device("cpu"), "float64", 2e-6)
    assert batches <= 1 + 3 + 3  # all lengths are one batch
    check(name, device("cpu"), "float32", 5e-3)


@pytest.mark.parametrize("name", CASES)
def test_on_an_emulated_gpu(name, cuda):
    check(name, cuda, "float64", 2e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("out = sum_e(x)", "the equation 'out = sum_e\\(x\\)': expected name\\[axes\\] = expression"),
        ("x[d] = sum_e(x)", "the value 'x\\[d\\]': expected a name of its own"),
        ("out[d] = sum_e(x) + sum_d(x)", "expected all reductions over the same axes"),
        ("out[d] = sum_e(x * z)", "'z' is no value and no number"),
        ("out[d] = sum_e(wave(x))", "no function 'wave'"),
    ],
)
def test_lines_that_are_none(text, message):
    op = Op("odd", lambda x: (D,), variadic=True, equations=Equations(("x[e,d]",), text, lambda x: SIZES))
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=message):
        over_lists(op, (), ([eb.ones(D)],)).value()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("out[d] = sum_e(floor(x))", "no derivative of 'floor' is known"),
        ("a[e] = sum_d(x)\nout[d] = sum_e(a * x) / sum_e(x)", "expected these in equations of their own"),
    ],
)
def test_lines_without_a_derivative(text, message):
    op = Op("odd", lambda x: (D,), variadic=True, equations=Equations(("x[e,d]",), text, lambda x: SIZES))
    with eb.Graph():
        x = eb.input([1.0, 2.0, 3.0])
        eb.sum(over_lists(op, (), ([x, x],))).backward()
        with pytest.raises(eb.EdBatchError, match=message):
            x.gradient()

"""Ops over lists of any sort: values are NumPy's, gradients those of finite differences, on both devices."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import device
from edbatch.graph.list_callers import over_lists
from edbatch.graph.op import Op
from edbatch.graph.ops.segments import (
    segment_count,
    segment_logsumexp,
    segment_max,
    segment_mean,
    segment_min,
    segment_softmax,
    segment_sum,
)
from tests.gradients import numeric

pytestmark = pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
D, C = 3, 2


W = eb.ParameterCollection().add_parameters(D)


def softmax(x):
    power = np.exp(x - x.max(0))
    return power / power.sum(0)


def additive(q, v, k, x):
    return softmax((v * np.tanh(k + q)).sum(1)) @ x


def functions(t, x, y):
    found = np.tanh(x) / (1 + np.exp(-y)) - np.sqrt(y * y + 1) / (2 + np.abs(x)) + np.maximum(x, y) * np.log(y * y + 2)
    return (found + np.minimum(x, 0.3) - (-t) * x).sum(0)


# By name: the shapes of single operands, of elements, and of the result; what is written for an element; and what it
# means of operands whose lists are stacked.
CASES = {
    "additive attention": (
        ((D,), (D,)), ((D,), (C,)), (C,),
        lambda q, v, k, x: segment_sum(segment_softmax(eb.sum(v * eb.tanh(k + q))) * x),
        additive,
    ),
    "a temperature": (
        ((),), ((),), (),
        lambda t, x: segment_sum(segment_softmax(t * x) * x),
        lambda t, x: softmax(t * x) @ x,
    ),
    "read several times": (
        ((D,),), ((D,), (D,)), (D,),
        lambda t, x, y: (lambda c: c * t + eb.tanh(c))(segment_sum(eb.sum(x * t * y + x) * x * (x * t))),
        lambda t, x, y: (lambda c: c * t + np.tanh(c))(((x * t * y + x).sum(1)[:, None] * x * x * t).sum(0)),
    ),
    "many functions": (
        ((D,),), ((D,), (D,)), (D,),
        lambda t, x, y: segment_sum(
            eb.tanh(x) * eb.sigmoid(y) - eb.sqrt(y * y + 1) / (2 + eb.abs(x))
            + eb.maximum(x, y) * eb.log(y * y + 2) + eb.minimum(x, 0.3) - (-t) * x
        ),
        functions,
    ),
    "all reductions": (
        ((D,),), ((D,),), (D,),
        lambda t, x: (
            t * segment_mean(x * t) + segment_max(x * t) * segment_min(t - x)
            + segment_logsumexp(2 * x) - segment_sum(x)
        ),
        lambda t, x: (
            t * (x * t).mean(0) + (x * t).max(0) * (t - x).min(0) + np.logaddexp.reduce(2 * x, axis=0) - x.sum(0)
        ),
    ),
    "reductions of reductions": (
        (), ((D,),), (D,),
        lambda x: (lambda y: segment_mean(y) * segment_min(y) + segment_logsumexp(eb.logsumexp(x)))(x * eb.max(x)),
        lambda x: (lambda y: y.mean(0) * y.min(0) + np.logaddexp.reduce(x, axis=None))(x * x.max(1)[:, None]),
    ),
    "added to all elements": (
        ((), (D,)), ((D,),), (D,),
        lambda s, t, x: (
            segment_sum(t) + segment_sum(x + t) * segment_logsumexp(x - t) + segment_mean(x * x - s)
            + segment_logsumexp(t)
        ),
        lambda s, t, x: (
            len(x) * t + (x + t).sum(0) * np.logaddexp.reduce(x - t, axis=0) + (x * x - s).mean(0)
            + t + np.log(len(x))
        ),
    ),
    "the same for all elements of one list": (
        (), ((D,), (D,)), (D,),
        lambda x, y: segment_sum(x) * segment_logsumexp(y),
        lambda x, y: x.sum(0) * np.logaddexp.reduce(y, axis=0),
    ),
    "the same for both lists": (
        (), ((D,), (D,)), (D,),
        lambda x, y: segment_sum(eb.tanh(x + y)),
        lambda x, y: np.tanh(x + y).sum(0),
    ),
    "transposed": (
        ((D, C),), ((C, D),), (C, D),
        lambda m, x: segment_sum(eb.sum(eb.transpose(m) * x, axis=1, keepdims=True) * x),
        lambda m, x: np.einsum("dc,ecd,ecf->cf", m, x, x),
    ),
    "parts and pairs": (
        ((D,),), ((2 * D,),), (D,),
        lambda t, x: segment_sum(eb.sum([x[:D] * t, x[D:]]) * x[D - 1]),
        lambda t, x: ((x[:, :D] * t + x[:, D:]) * x[:, D - 1 : D]).sum(0),
    ),
    "picked": (
        ((D,),), ((D,),), (D,),
        lambda t, x: segment_sum(eb.pick(x, 1) * x * t),
        lambda t, x: (x[:, 1:2] * x).sum(0) * t,
    ),
}  # fmt: skip


def op_of(name):
    singles, _, out, body, _ = CASES[name]
    return Op(name, lambda *shapes: out, variadic=True, singles=len(singles), composite=body)


def check(name, where, dtype, tolerance, lengths=(1, 3, 2, 40), call=over_lists):
    op, (singles, of_elements, _, _, meaning) = op_of(name), CASES[name]
    random = np.random.default_rng(4)
    with where, eb.Graph(policy="sufficient", dtype=dtype) as graph:
        given, sources, ys = [], [], []
        for length in lengths:
            values = [
                random.normal(size=shape) * 0.7 for shape in (*singles, *((length, *shape) for shape in of_elements))
            ]
            before = [eb.input(x) for x in values[: op.singles]]
            lists = [[eb.input(x) for x in xs] for xs in values[op.singles :]]
            ys.append(call(op, tuple(before), tuple(lists)))
            given.append(values)
            sources.append([*before, *lists])
        eb.sum([eb.sum(eb.sin(y)) for y in ys]).backward()
        batches = graph.report().batches
    for values, xs, y in zip(given, sources, ys, strict=True):
        np.testing.assert_allclose(y.value(), meaning(*values), rtol=tolerance, atol=tolerance, err_msg=name)
        for at, x in enumerate(xs):

            def loss(data, at=at, values=values):
                return np.sum(np.sin(meaning(*values[:at], data, *values[at + 1 :])))

            want = numeric(loss, values[at])
            got = np.stack([one.gradient() for one in x]) if isinstance(x, list) else x.gradient()
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 10, err_msg=f"{name} {at}")
    return batches


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    batches = check(name, device("cpu"), "float64", 2e-6)
    assert batches <= 1 + 3 + 3  # all lengths are one batch


@pytest.mark.parametrize("name", [*CASES][::3])
def test_on_an_emulated_gpu(name, cuda):
    check(name, cuda, "float64", 2e-6)


@pytest.mark.parametrize("name", [*CASES][::2])
def test_in_a_cell(name):
    """Where lists have a fixed length."""

    op = op_of(name)

    @eb.cell
    def cell(*xs, length):
        lists = [xs[begin : begin + length] for begin in range(op.singles, len(xs), length)]
        return over_lists(op, xs[: op.singles], tuple(lists))

    def call(_, before, lists):
        return cell(*before, *(x for xs in lists for x in xs), length=len(lists[0]))

    check(name, device("cpu"), "float64", 2e-6, (1, 3, 2), call)


def test_in_plain_steps():
    with eb.options(compile="plain"):
        check("all reductions", device("cpu"), "float64", 2e-6)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: segment_sum(x * W), "reads a parameter; expected the parameter among its operands"),
        (lambda x: x * 2, "a value for each element of a list; expected one for all"),
        (lambda x: eb.sum(segment_sum(x)), "its shape rule gives .3., but its definition gives .."),
        (
            lambda x: segment_sum(x * (eb.reshape(x, (1, D)) @ x)),
            "of each element of a list: expected element-wise ops",
        ),
    ],
)
def test_what_is_refused(body, message):
    op = Op("odd", lambda x: (D,), variadic=True, composite=body)
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=message):
        over_lists(op, (), ([eb.ones(D)],)).value()


def test_lists_are_none_of_a_cell():
    cell = eb.cell(lambda x: x * segment_count(x))
    with eb.Graph(), pytest.raises(eb.EdBatchError, match="expected them in what an op over lists is written with"):
        cell(eb.ones(D)).value()

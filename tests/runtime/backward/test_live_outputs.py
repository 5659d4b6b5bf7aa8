"""Outputs that no gradient flows into: they are left out, and their infinite derivatives never meet a zero."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import device

# What has an infinite derivative, or is no number: with the entries at which it is, and what is unlike it.
POLES = {
    "sqrt": (eb.sqrt, [0.0, 4.0]),
    "log": (eb.log, [0.0, 4.0]),
    "divide": (lambda x: 1.0 / x, [0.0, 4.0]),
    "quotient": (lambda x: eb.exp(x) / x, [0.0, 4.0]),
    "power": (lambda x: eb.power(x, 0.5), [0.0, 4.0]),
    "powers": (lambda x: x**x, [0.0, 4.0]),
    "norm": (eb.norm, [0.0, 0.0]),
    "std": (lambda x: eb.std(x), [3.0, 3.0]),
    "softmax": (lambda x: eb.softmax(eb.log(x)), [0.0, 0.0]),
    "logsumexp": (lambda x: eb.logsumexp(eb.log(x)), [0.0, 0.0]),
    "overflow": (lambda x: eb.exp(eb.square(x)), [100.0, 4.0]),
    "nan": (lambda x: eb.tanh(eb.log(x)), [-1.0, 4.0]),
    "product": (lambda x: eb.dot(eb.log(x), x), [0.0, 4.0]),
    "list": (lambda x: eb.sum([eb.sqrt(x), x]), [0.0, 4.0]),
    "side by side": (lambda x: eb.concatenate([eb.log(x), eb.sqrt(x)]), [0.0, 4.0]),
    "cross entropy": (lambda x: eb.cross_entropy(eb.log(x), 1), [0.0, 0.0]),
}
POLICIES = [None, "agenda", "depth", "none"]
OPTIONS = [{}, {"recompute": True}, {"split": False}]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(params=["cpu", "cuda"])
def where(request, cuda):
    return device(request.param)


def total(xs):
    return eb.sum([eb.sum(x) for x in xs])


def unread(pole, rest):
    return total([rest])


def stopped(pole, rest):
    return total([rest]) + eb.stop_gradient(eb.sum(pole))


def stopped_before(pole, rest):
    return total([rest]) + eb.sum(eb.tanh(eb.stop_gradient(pole)))


@pytest.mark.parametrize("name", POLES)
def test_what_is_not_read_has_no_gradient(name):
    pole, at = POLES[name]

    @eb.cell
    def both(x):
        return pole(x), x * 2.0

    for read in (unread, stopped, stopped_before):
        with eb.Graph():
            x = eb.input(np.array(at))
            read(*both(x)).backward()
        assert x.gradient().tolist() == [2, 2]


@pytest.mark.parametrize(("policy", "options"), [*zip(POLICIES, [*OPTIONS, {}], strict=True)], ids=str)
def test_one_batch_in_which_some_read_it_and_others_do_not(where, policy, options):
    @eb.cell
    def both(x, y):
        return eb.sqrt(x) * y, x * 2.0, eb.log(y)

    numbers = [1.0, 0.0, 4.0, 0.0, 0.25]
    reads = [(0, 1), (1,), (0,), (1,), (0, 1, 2)]
    with where, eb.options(**options), eb.Graph(policy=policy):
        xs, ys = ([eb.input(np.array([x, x])) for x in numbers] for _ in range(2))
        outs = [both(x, y) for x, y in zip(xs, ys, strict=True)]
        total([out[at] for out, chosen in zip(outs, reads, strict=True) for at in chosen]).backward()
    for x, y, n, chosen in zip(xs, ys, numbers, reads, strict=True):
        root = np.sqrt(n) if n else 1
        by_x = (0 in chosen) * 0.5 * n / root + (1 in chosen) * 2.0
        by_y = (0 in chosen) * root + (2 in chosen) / (n or 1)
        np.testing.assert_allclose(x.gradient(), [by_x] * 2, rtol=1e-5)
        np.testing.assert_allclose(y.gradient(), [by_y] * 2, rtol=1e-5)


def test_nothing_flows_through_it_to_what_lies_below():
    """The operand of an output that is not read gets no gradient, and not one of zero, which a pole below would see."""

    @eb.cell
    def apart(x, y):
        return eb.tanh(x), y * 2.0

    with eb.Graph():
        x, y = (eb.input(np.array([0.0, 4.0])) for _ in range(2))
        total([apart(eb.sqrt(x), y)[1]]).backward()
    assert x.gradient().tolist() == [0, 0]
    assert y.gradient().tolist() == [2, 2]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_last_state_of_a_recurrence(where, options):
    """Nobody reads the last state, whose derivative is infinite; parameters get what flows through the others."""
    with where:
        model = eb.ParameterCollection(seed=0)
        W = model.add_parameters((2, 2), init=np.array([[0.5, 0.0], [0.0, -0.5]]))
        V = model.add_parameters((3, 2), init=np.arange(6.0).reshape(3, 2) / 8)

    @eb.cell
    def step(h, x):
        new = W @ x + eb.sqrt(h)
        return new, V @ (h + x), eb.log(new)

    def gradients(cells):
        model.zero_grad()
        inputs = [[1.0, -1.0], [-2.0, 4.0], [0.25, -0.5]]
        with where, eb.options(cells=cells, **options), eb.Graph():
            read = []
            for _ in range(2):
                h = start = eb.input(np.array([0.25, 0.25]))
                for x in inputs[:2]:
                    h, out, _ = step(h, eb.input(np.array(x)))
                    read.append(out)
            total(read).backward()
        return [start.gradient(), W.grad(), V.grad()]

    found, want = gradients(True), gradients(False)
    for a, b in zip(found, want, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_parameters_that_only_such_an_output_reads_have_no_gradient():
    model = eb.ParameterCollection(seed=0)
    W, b = model.add_parameters((2, 2)), model.add_parameters((3,))

    @eb.cell
    def both(x):
        return eb.tanh(W @ x), eb.sum(eb.tanh(b * eb.sum(x)))

    with eb.Graph():
        total([both(eb.ones(2))[0]]).backward()
    assert W.has_grad
    assert not b.has_grad


def test_more_outputs_than_bits():
    @eb.cell
    def many(x):
        return [eb.sqrt(x * float(at)) for at in range(70)]

    with eb.Graph():
        xs = [eb.input(np.array([1.0, 4.0])) for _ in range(2)]
        total([many(xs[0])[69], many(xs[0])[3], many(xs[1])[1]]).backward()
    np.testing.assert_allclose(xs[0].gradient(), (np.sqrt(69) + np.sqrt(3)) / 2 / np.array([1, 2]), rtol=1e-5)
    np.testing.assert_allclose(xs[1].gradient(), [0.5, 0.25], rtol=1e-5)

"""Parts of a stack that no gradient flows into: they have none, and a gradient of zero is something else."""

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host

DIM = 3
OPTIONS = [{}, {"recompute": True}, {"split": False}]


def model_of(dtype="float64"):
    """Matrices A to F, of which E and F have other rows, vectors a to f, and the wide matrices P and Q."""
    made = eb.ParameterCollection(seed=0, dtype=dtype)
    for name in "ABCD":
        made.add_parameters((DIM, DIM), name=name)
        made.add_parameters((DIM,), name=name.lower(), init="uniform")
    for name, rows in {"E": 2, "F": 5}.items():
        made.add_parameters((rows, DIM), name=name)
        made.add_parameters((rows,), name=name.lower(), init="uniform")
    for name in "PQ":
        made.add_parameters((DIM, 2 * DIM), name=name)
    return made


def stop(x):
    return eb.stop_gradient(x)


def gates(m, x, h):
    i, o, u = (eb.tanh(m[k] @ x + m[k.lower()]) for k in "ABC")
    return eb.sum(i * stop(o) + u), eb.sum(eb.square(m["D"] @ h))


def beside(m, a, b, c):
    """The second result reads, in one batch, what lies side by side in the concatenation of the first."""
    return eb.tanh(eb.concatenate([a, b, c])), eb.sin(a) * eb.sin(b), m["C"] @ eb.cos(c)


CELLS = {
    "stopped": lambda m, x, h: (eb.sum(eb.square(m["A"] @ x - stop(m["C"] @ x))),),
    "heads": lambda m, x, h: (eb.sum(eb.square(m["A"] @ x)), eb.sum(eb.exp(m["C"] @ x))),
    "heads with biases": lambda m, x, h: tuple(eb.sum(eb.tanh(m[k] @ x + m[k.lower()])) for k in "ABCD"),
    "biases": lambda m, x, h: tuple(eb.sum(eb.exp(x * m[k])) for k in "abc"),
    "gates": gates,
    "a bias without its weight": lambda m, x, h: tuple(eb.tanh(stop(m[k] @ x) + m[k.lower()]) for k in "AB"),
    "a weight without its bias": lambda m, x, h: (eb.tanh(m["A"] @ x + stop(m["a"] * 1.0)), m["B"] @ x + m["b"]),
    "a part of a concatenation": lambda m, x, h: (
        eb.exp(eb.concatenate([m["A"] @ x, m["B"] @ x])[0:DIM]),
        eb.tanh(m["C"] @ x),
    ),
    "beside a concatenation": lambda m, x, h: beside(m, eb.exp(m["A"] @ x), x * 2.0, eb.tanh(m["B"] @ x)),
    "of different sizes": lambda m, x, h: (eb.tanh(m["E"] @ x), m["A"] @ x, eb.square(m["F"] @ x) + m["f"]),
}


def gradients(m, cell, used, **options):
    """Of all parameters: whether there is one, and what it is; and of the input."""
    m.zero_grad()
    with eb.options(**options), eb.Graph(dtype="float64"):
        x, h = eb.input(np.linspace(-1.0, 2.0, DIM)), eb.input(np.linspace(0.3, 0.9, DIM))
        results = [*cell(x, h), *cell(h * 2.0, x)]
        n = len(results) // 2
        loss = eb.sum([eb.sum(y) * (at + 1.0) for at, y in enumerate(results) if at % n in used])
        loss.backward()
        return {p.name: (p.has_grad, on_host(p.grad())) for p in m} | {"x": (True, x.gradient())}


def check(got, want):
    assert {k: has for k, (has, _) in got.items()} == {k: has for k, (has, _) in want.items()}
    for name, (_, gradient) in want.items():
        np.testing.assert_allclose(got[name][1], gradient, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_members_have_the_gradients_that_flow_into_them(name, options):
    m = model_of()

    def plain(x, h):
        return CELLS[name](m, x, h)

    cell = eb.cell(plain)
    for used in ({0}, {1}, {0, 1}, {2}, {0, 2}):
        with eb.Graph(dtype="float64"):
            n = len(plain(eb.ones(DIM), eb.ones(DIM)))
        if max(used) < n:
            check(gradients(m, cell, used, **options), gradients(m, plain, used, cells=False))
    assert options or name == "biases" or any(p.stack is not None for p in m)


def test_what_is_done_to_gradients_of_members():
    m = model_of()
    heads = eb.cell(lambda x: tuple(eb.sum(m[k] @ x) for k in "ABC"))

    def back(number):
        with eb.Graph(dtype="float64"):
            heads(eb.input([1.0, 2.0, 3.0]))[number].backward()

    rows = np.tile([1.0, 2.0, 3.0], (DIM, 1))
    back(1)
    m["B"].scale_grad(2.0)
    m["A"].scale_grad(2.0)
    back(1)
    back(0)
    m["C"].set_grad(np.ones((DIM, DIM)))
    for name, want in {"A": rows, "B": 3 * rows, "C": np.ones((DIM, DIM))}.items():
        np.testing.assert_array_equal(on_host(m[name].grad()), want)
    m["B"].zero_grad()
    assert [m[k].has_grad for k in "ABC"] == [True, False, True]
    m["A"].freeze()
    back(0)
    back(2)
    assert [m[k].has_grad for k in "ABC"] == [False, False, True]
    np.testing.assert_array_equal(on_host(m["C"].grad()), rows + 1)
    assert m["A"].stack is not None


@pytest.mark.parametrize(("bad", "member"), [(np.inf, "A"), (np.nan, "B"), (np.inf, "C")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_of_a_member_that_is_not_reached_may_be_no_numbers(bad, member):
    m = model_of()
    m[member].set_value(np.full((DIM, DIM), bad))
    heads = eb.cell(lambda x: tuple(eb.sum(eb.tanh(m[k] @ x)) for k in "ABC"))
    with eb.Graph(dtype="float64"):
        x = eb.input([1.0, 2.0, 3.0])
        losses = dict(zip("ABC", heads(x), strict=True))
        eb.sum([loss for k, loss in losses.items() if k != member]).backward()
        assert np.isfinite(x.gradient()).all()
    assert {k: m[k].has_grad for k in "ABC"} == {k: k != member for k in "ABC"}
    assert all(np.isfinite(on_host(m[k].grad())).all() for k in "ABC")

"""Foreign ops as the graph sees them: what their functions may do, and what is said of what they may not."""

import gc
import weakref

import numpy as np
import pytest

import edbatch as eb


def op(function, out=lambda x: x, gradient=None, **given):
    made = eb.foreign(out, **given)(function)
    if gradient is not None:
        made.gradient(gradient)
    return made


def test_two_of_one_name_never_meet():
    """Nor do calls with other attributes; of equal ones, all are one batch."""

    def make(factor):
        @eb.foreign(out=lambda x, shift, kind: x)
        def scaled(x, shift=0, *, kind="plain"):
            calls.append((factor, shift, kind, len(x)))
            return factor * x + shift

        return scaled

    calls = []
    a, b = make(2), make(3)
    with eb.Graph(policy="critical-path"):
        x = eb.input([1.0, 2.0])
        ys = [f(x, **given) for f in (a, b) for given in ({}, {"shift": 1}, {"shift": 1.0}, {"kind": "other"}, {})]
        ys.append(a(x, 0, kind="plain"))
    assert [y.value()[1] for y in ys] == [4, 5, 5, 4, 4, 6, 7, 7, 6, 6, 4]
    each = [(0, "other", 1), (1, "plain", 1), (1.0, "plain", 1)]
    wanted = [(factor, *one) for factor in (2, 3) for one in ((0, "plain", 5 - factor), *each)]
    assert sorted(map(str, calls)) == sorted(map(str, wanted))
    assert repr(a) == "<foreign op scaled>"


def test_several_results_of_arrays_of_expressions():
    @eb.foreign(out=lambda x, y: (x, ()))
    def both(x, y):
        sizes.append(len(x))
        return x * y[:, None], y

    @both.gradient
    def both_gradient(gradient, x, y, result):
        to_x, to_y = gradient
        assert np.array_equal(result[0], x * y[:, None])
        return to_x * y[:, None], (to_x * x).sum(-1) + to_y

    sizes = []
    random = np.random.default_rng(0)
    X, Y, G = random.normal(size=(5, 3)), random.normal(size=5), random.normal(size=(5, 3))
    with eb.Graph(dtype="float64"):
        xs, ys = eb.array(X), eb.array(Y)
        p, q = both(xs, ys)
        loss = eb.sum(list(eb.dot(p, eb.array(G)) + 2 * q)) + eb.sum(both(eb.input(X[0]), 3.0)[0])
    loss.backward()
    np.testing.assert_allclose(p.value(), X * Y[:, None])
    np.testing.assert_allclose(xs.gradient(), G * Y[:, None])
    np.testing.assert_allclose(ys.gradient(), (G * X).sum(-1) + 2)
    assert set(sizes) == {6}


@pytest.mark.parametrize("in_cell", [False, True])
def test_parameters_as_operands(in_cell):
    """However they are stored."""
    times = op(lambda W, x: np.einsum("nij,nj->ni", W, x), lambda W, x: W[:1])
    times.gradient(lambda g, W, x, out: (g[:, :, None] * x[:, None], np.einsum("nij,ni->nj", W, g)))
    model = eb.ParameterCollection(seed=0)
    W, v = model.add_parameters((3, 2)), model.add_parameters(2)

    def step(x):
        return times(W=W, x=x) + times(W, v)

    with eb.Graph():
        y = eb.sum([eb.sum((eb.cell(step) if in_cell else step)(eb.input([n, 2.0]))) for n in range(3)])
    y.backward()
    total = np.array([3.0, 6.0]) + 3 * v.value()
    assert y.value() == pytest.approx((W.value() @ total).sum(), rel=1e-5)
    np.testing.assert_allclose(W.grad(), np.tile(total, (3, 1)), rtol=1e-5)
    np.testing.assert_allclose(v.grad(), 3 * W.value().sum(0), rtol=1e-5)


def test_functions_may_write_and_keep():
    kept = []

    def spoiling(*arrays):
        for x in arrays:
            assert x.flags.c_contiguous
            assert x.dtype == np.float32
        kept.append(arrays)
        found = arrays[0] * 2
        for x in arrays:
            x[...] = np.nan
        return found

    spoil = op(lambda x: spoiling(x), gradient=lambda g, x, out: spoiling(g, x, out))
    w = eb.ParameterCollection(seed=0).add_parameters((2, 3), init=1.0)
    with eb.Graph():
        x = eb.parameter(w)
        y = eb.sum([eb.sum(spoil(z)) for z in (x[0], x[:, 1:], x[:, ::2], x.T)]) + eb.sum(spoil(x[1]))
    y.backward()
    assert y.value() == 2 * (3 + 4 + 4 + 6 + 3)
    assert w.grad().sum() == 2 * (3 + 4 + 4 + 6 + 3)
    assert all(np.isnan(x).all() for arrays in kept for x in arrays)
    returned = op(lambda x: x)  # what it was given
    with eb.Graph():
        z = returned(eb.input([1.0, 2.0]))
    assert z.value().tolist() == [1, 2]


ERRORS = {
    "ValueError: too bad": lambda x: _raise(ValueError("too bad")),
    "expected an array, got None": lambda x: None,
    "expected an array of the device, got float": lambda x: 1.0,
    r"expected an array float32\[2, 3\], got float64\[2, 3\]": lambda x: x.astype(np.float64),
    r"expected an array float32\[2, 3\], got float32\[3\]": lambda x: x[0],
    r"expected an array float32\[2, 3\], got float32\[1, 3\]": lambda x: x[:1],
    "a result: expected an array without a mask": lambda x: np.ma.masked_array(x, x > 0),
    "results: expected 1, got 2": lambda x: (x, x),
}


def _raise(error):
    raise error


@pytest.mark.parametrize("message", ERRORS)
@pytest.mark.parametrize("where", ["op", "cell", "gradient"])
def test_errors_name_the_op_and_leave_no_wrong_numbers(message, where):
    function = ERRORS[message]
    if where == "gradient":
        if "None" in message:  # which stands for zeros
            return
        bad = op(lambda x: x, gradient=lambda g, x, out: function(x))
        message = message.replace("results", "gradients of operands")
    else:
        bad = op(function)
    w = eb.ParameterCollection().add_parameters(3, init=1.0)
    step = eb.cell(lambda x: eb.tanh(bad(w * x))) if where == "cell" else lambda x: eb.tanh(bad(w * x))
    with eb.Graph():
        ys = [step(eb.input(np.full(3, float(n)))) for n in range(2)]
        loss = eb.sum([eb.sum(y) for y in ys])
    name = "the gradient of foreign op <lambda>" if where == "gradient" else "foreign op <lambda>"
    with pytest.raises(eb.EdBatchError, match=f"^{name}: {message}") as raised:
        loss.backward()
    assert type(raised.value.__cause__) is (ValueError if "ValueError" in message else eb.EdBatchError)
    assert not w.grad().any()
    if where == "gradient":
        assert loss.value() == pytest.approx(3 * np.tanh(1))
    else:
        with pytest.raises(eb.EdBatchError, match=f"this graph has no values: .*{name}"):
            loss.value()
    with eb.Graph():
        assert eb.sum(eb.input([1.0, 2.0])).value() == 3


def test_what_is_no_foreign_op():
    for function in (lambda: 1, lambda *xs: xs, lambda x, **given: x, lambda *, x: x):
        with pytest.raises(eb.EdBatchError, match="foreign op <lambda>: expected a parameter for each operand, then"):
            eb.foreign(out=())(function)
    with pytest.raises(eb.EdBatchError, match="differentiable: expected True or False"):
        eb.foreign((), "no")
    attributed = op(lambda x, k=1: x, lambda x, k: x)
    with eb.Graph():
        x = eb.ones(3)
        with pytest.raises(
            eb.EdBatchError, match=r"<lambda>: k: expected something hashable that is known now .*, got \[1\]"
        ):
            attributed(x, k=[1])
        with pytest.raises(eb.EdBatchError, match="<lambda>: k: expected something hashable that is known now"):
            attributed(x, k=x)
        with pytest.raises(TypeError, match="missing a required argument: 'x'"):
            attributed(k=1)
        with pytest.raises(eb.EdBatchError, match="<lambda>: out: expected"):
            op(lambda x: x, lambda x: "ab")(x)
        with pytest.raises(eb.EdBatchError, match="expected an expression, a parameter, a number or an array, got str"):
            attributed("x")


def test_where_no_gradient_flows():
    w = eb.ParameterCollection().add_parameters(3, init=1.0)
    bare, stopped = op(lambda x: 2 * x), op(lambda x: 2 * x, differentiable=False)
    none = op(lambda x, y: x * y, lambda x, y: x, lambda g, x, y, out: (None, g * x))
    with eb.Graph():
        x = w * 1
        for y in (bare(eb.ones(3)) * x, bare(eb.stop_gradient(x)) * x, stopped(x) * x):  # nothing asks for it
            w.zero_grad()
            eb.sum(y).backward()
            assert w.grad().tolist() == [2, 2, 2]
        w.zero_grad()
        eb.sum(none(x, x * 3)).backward()
        assert w.grad().tolist() == [3, 3, 3]
        w.zero_grad()
        for step in (bare, eb.cell(lambda x: eb.tanh(bare(x)))):
            y = eb.sum(step(x))
            with pytest.raises(eb.EdBatchError, match=r"the gradient of foreign op <lambda>: there is none; give one"):
                y.backward()
            assert not w.grad().any()
            assert np.isfinite(y.value())


def test_check_nan_names_the_op():
    bad = op(lambda x: x * np.float32(np.nan))
    with eb.Graph(check_nan=True):
        y = bad(eb.ones(3))
    with pytest.raises(eb.EdBatchError, match=r"NaN in a result of <lambda>\(\[3\]\)"):
        y.value()
    back = op(lambda x: x, gradient=lambda g, x, out: g * np.float32(np.nan))
    w = eb.ParameterCollection().add_parameters(3)
    with eb.Graph(check_nan=True):
        y = eb.sum(back(w))
    with pytest.raises(eb.EdBatchError, match=r"NaN in the gradient of <lambda>\(\[3\]\)"):
        y.backward()


def network(w, x, f):
    """The same types inside and outside."""
    return eb.sum(eb.square(f(eb.tanh(w * x)) + eb.tanh(x)))


@pytest.mark.parametrize("in_cell", [False, True])
def test_functions_run_graphs_of_their_own(in_cell):
    """There and back, of the same types and of new ones each time, while the graph around them runs."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    w = model.add_parameters(3, init=0.5)
    lengths = iter(range(2, 100))

    def inner(x):
        """3 x, and the gradient of a network."""
        other = eb.ParameterCollection(seed=0, dtype="float64").add_parameters(3, init=0.5)
        n = next(lengths)
        with eb.Graph(dtype="float64"):
            new = eb.sum(eb.log(eb.ones(n)))
            rows = x.get() if hasattr(x, "get") else x  # of a GPU
            losses = [network(other, eb.input(row), lambda x: nested(x) if depth[0] < 2 else 3 * x) for row in rows]
            loss = eb.sum(losses) + new
        depth[0] += 1
        loss.backward()
        depth[0] -= 1
        gradients.append(other.grad())
        return 3 * x

    depth, gradients = [0], []
    nested = op(lambda x: inner(x), gradient=lambda g, x, out: inner(x) * 0 + 3 * g)
    f = eb.cell(lambda x: nested(x * 1)) if in_cell else nested
    X = np.random.default_rng(0).normal(size=(6, 3))
    with eb.Graph(dtype="float64"):
        xs = eb.array(X)
        ys = [network(w, x, f) for x in xs]
        loss = eb.sum(ys)
    loss.backward()
    got = [loss.value(), w.grad(), xs.gradient()]
    w.zero_grad()
    with eb.Graph(dtype="float64"):
        xs = eb.array(X)
        loss = eb.sum([network(w, x, lambda x: 3 * x) for x in xs])
    loss.backward()
    for mine, other in zip(got, [loss.value(), w.grad(), xs.gradient()], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10)
    assert len(gradients) > 10
    assert all(np.isfinite(one).all() for one in gradients)


def test_functions_do_not_ask_the_graph_that_calls_them():
    def ask(what):
        with pytest.raises(
            eb.EdBatchError, match="a foreign op asks the graph that calls it for a value or a gradient"
        ):
            what()

    asking = op(lambda x: (ask(lambda: y.value()), ask(lambda: y.backward()), ask(graph.release), x)[-1])
    asking.gradient(lambda g, x, out: (ask(y.backward), ask(z.gradient), ask(graph.release), g)[-1])
    w = eb.ParameterCollection().add_parameters(3, init=1.0)
    with eb.Graph() as graph:
        z = eb.ones(3) * w
        y = eb.sum(asking(z))
    y.backward()
    assert z.gradient().tolist() == [1, 1, 1]
    graph.reset({})
    assert y.value() == 3
    recording = op(lambda x: (eb.ones(7), x)[-1])
    with eb.Graph():
        y = recording(eb.ones(2))
        with pytest.raises(eb.EdBatchError, match="a policy or a foreign op recorded nodes in it meanwhile"):
            y.value()


def test_an_interrupt_inside_a_function():
    times = [0]

    def interrupted(x):
        times[0] += 1
        if times[0] == 1:
            raise KeyboardInterrupt
        return x

    f = op(interrupted)
    with eb.Graph():
        y = f(eb.ones(3))
        with pytest.raises(KeyboardInterrupt):
            y.value()
        with pytest.raises(eb.EdBatchError, match="running it failed with KeyboardInterrupt"):
            y.value()
    with eb.Graph():
        assert f(eb.ones(3)).value().tolist() == [1, 1, 1]


def test_what_is_kept_ends_with_the_values():
    """Of each graph by itself, also where one runs inside another."""

    class Kept:
        pass

    made = []

    def keeping(x):
        run = eb.foreign_run()
        with eb.Graph():  # of its own
            inner(eb.ones(2)).value()
        assert eb.foreign_run() is run
        one = run.kept[len(run.kept)] = Kept()
        made.append(weakref.ref(one))
        return x

    def alive():
        gc.collect()
        return [one() is not None for one in made]

    inner = op(lambda x: (eb.foreign_run().kept.update(inner=Kept()), x)[1])
    f = op(keeping, gradient=lambda g, x, out: g * len(eb.foreign_run().kept))
    with eb.Graph() as graph:
        x = eb.input([1.0, 2.0])
        y = eb.sum(f(x))
        y.value()
        z = y + eb.sum(f(x * 2))
    z.backward()
    assert (alive(), x.gradient().tolist()) == ([True] * 2, [6, 6])
    graph.reset({})
    assert alive() == [False, False, True, True]
    with eb.Graph() as other:
        f(eb.ones(2)).value()
    graph.release()
    assert alive() == [False] * 4 + [True]
    del other
    assert alive() == [False] * 5


def test_what_is_called_at_the_end_of_a_backward_pass():
    """Once parameters have their gradients; not where they get none."""
    seen, found = [], []

    class Sum:
        total = 0

        def __call__(self):
            seen.append((w.grad().tolist(), self.total))

    def flowing(g, x, out):
        at_end = eb.foreign_run().at_end
        found.append(len(at_end))
        at_end.setdefault("sum", Sum()).total += len(g)
        return g

    f = op(lambda x: x, gradient=flowing)
    bad = op(lambda x: x, gradient=lambda g, x, out: _raise(ValueError("too bad")))
    w = eb.ParameterCollection().add_parameters(2, init=1.0)
    with eb.Graph():
        xs = [f(w * n) for n in range(3)]
        loss = eb.sum([eb.sum(f(x)) for x in xs])
        wrong = eb.sum(f(bad(w * 1)))
    loss.backward()
    assert seen == [([3, 3], 6)]
    eb.gradients(loss, w)
    xs[0].gradient()
    with pytest.raises(eb.EdBatchError, match="too bad"):
        wrong.backward()
    assert len(seen) == 1
    loss.backward()
    assert seen[1:] == [([6, 6], 6)]
    assert found[:2] == [0, 1]
    with pytest.raises(eb.EdBatchError, match="expected a call in a function of a foreign op"):
        eb.foreign_run()

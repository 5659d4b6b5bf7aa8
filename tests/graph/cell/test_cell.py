"""Cells give the numbers of their bodies, whatever they are given and return."""

import copy
import itertools
import math
from collections import namedtuple
from functools import partial

import numpy as np
import pytest

import edbatch as eb

Pair = namedtuple("Pair", "h c")


class LSTM:
    def __init__(self, model, dim, rows=9):
        for gate in "iofu":
            setattr(self, f"W_{gate}", model.add_parameters((dim, 2 * dim), name=f"W_{gate}"))
            setattr(self, f"b_{gate}", model.add_parameters((dim,), name=f"b_{gate}", init=0.1))
        self.table = model.add_lookup_parameters((rows, dim), name="table", init="glorot")

    @eb.cell
    def step(self, h, c, word: int):
        """One step."""
        e = eb.concatenate([h, eb.lookup(self.table, word)])
        i, o = eb.sigmoid(self.W_i @ e + self.b_i), eb.sigmoid(self.W_o @ e + self.b_o)
        f, u = eb.sigmoid(self.W_f @ e + self.b_f), eb.tanh(self.W_u @ e + self.b_u)
        c = i * u + f * c
        return o * eb.tanh(c), c


def chains(policy, cells, dtype="float64", dim=5):
    """Hidden states of three LSTM chains, fetched in between."""
    model = eb.ParameterCollection(seed=4, dtype=dtype)
    lstm = LSTM(model, dim)
    with eb.options(cells=cells), eb.Graph(policy=policy, dtype=dtype):
        out = []
        for length in (7, 2, 5):
            h, c = eb.zeros(dim), eb.zeros(dim)
            for word in range(length):
                h, c = lstm.step(h, c, word)
                out += [h * 2, c[1:3]]
            if length == 2:
                h.value()
            out += [h, c]
        return eb.forward(out)


@pytest.mark.parametrize(("policy", "dtype"), [("agenda", "float32"), ("sufficient", "float64")])
def test_a_cell_gives_the_numbers_of_its_body(policy, dtype):
    got, want = chains(policy, True, dtype), chains("none", False, dtype)
    for value, other in zip(got, want, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-12 if dtype == "float64" else 2e-5, atol=1e-6)


def test_any_structure_is_returned():
    @eb.cell
    def make(x):
        y = eb.exp(x)
        return {
            "first": y,
            "rest": [Pair(x, y[0]), (eb.sum(y), y, 3.0)],
            "matrix": eb.reshape(eb.concatenate([x, y]), (2, 2)),
        }

    with eb.Graph(policy="sufficient"):
        made = make(eb.input([0.0, 1.0]))
        assert list(made) == ["first", "rest", "matrix"]
        pair, (total, again, three) = made["rest"]
        assert isinstance(pair, Pair)
        values = eb.forward([made["first"], pair.h, pair.c, total, again, three, made["matrix"]])
    y = np.exp([0.0, 1.0])
    for value, want in zip(values, [y, [0, 1], y[0], y.sum(), y, 3.0, [[0, 1], y]], strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6)


def test_cells_nest_and_are_free_functions_or_methods():
    @eb.cell
    def inner(x):
        return eb.tanh(x), x * 2

    @eb.cell
    def outer(x, y):
        a, b = inner(x)
        return inner(a + b + y)[0]

    with eb.Graph(policy="sufficient") as graph:
        value = outer(eb.input([0.5]), eb.input([0.25])).value()
    np.testing.assert_allclose(value, np.tanh(np.tanh(0.5) + 1.0 + 0.25), rtol=1e-6)
    assert graph.report().nodes == 1


def test_integer_arguments_are_read_at_run_time():
    @eb.cell
    def loss(x, label: int, other):
        return eb.cross_entropy(x, label) + eb.pick(x, other) + eb.pick(x, 1)

    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([1.0, 2.0, 4.0])
        got = eb.forward([loss(x, label, other) for label, other in [(0, 2), (2, 1), (2, -3)]])
    log_p = np.log(np.exp([1, 2, 4]) / np.exp([1, 2, 4]).sum())
    np.testing.assert_allclose(got, [-log_p[0] + 4 + 2, -log_p[2] + 2 + 2, -log_p[2] + 1 + 2], rtol=1e-6)
    assert graph.report().batches == 1
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"loss, argument label: index 3 is out of range for 3"):
        loss(eb.input([1.0, 2.0, 4.0]), 3, 0)


def test_words_in_numpy_arrays_and_without_annotations():
    model = eb.ParameterCollection(seed=0)
    table = model.add_lookup_parameters((5, 2))

    def annotated(x, word: int):
        return x + table[word]

    def plain(x, word):
        return x + table[word]

    words = np.array([3, 1, 4, 0], np.int32)
    for function in (annotated, plain):
        step = eb.cell(function)
        for _ in range(2):
            with eb.Graph(policy="sufficient"):
                x = y = eb.zeros(2)
                for word in (*words, 2, 1, np.uint8(1)):
                    x, y = step(x, word), function(y, word)
                assert x.value().tolist() == y.value().tolist()


def test_arguments_with_defaults_and_of_any_number():
    model = eb.ParameterCollection(seed=0)
    table = model.add_lookup_parameters((5, 2))

    def with_default(x, word: int = 2, *, by=1.0):
        return x * by + table[word]

    def of_any_number(first, *others, by=1.0):
        return eb.sum([first, *others]) * by + len(others)

    class Owner:
        scale = 3.0

        def method(self, x, *others):
            return (x + eb.sum(others, like=x)) * self.scale

        cell = eb.cell(method)

    owner = Owner()
    steps = [
        (with_default, eb.cell(with_default), [(), (3,), (4,), (np.int64(1),)]),
        (of_any_number, eb.cell(of_any_number), [(), (1,), (1, 2), (2, 1), (1, 2, 3)]),
    ]
    for scale in (3.0, 5.0, 3.0):
        owner.scale = scale
        with eb.Graph(policy="sufficient"):
            xs = [eb.input([1.0, number]) for number in range(4)]
            for _ in range(3):
                for function, step, calls in steps:
                    for call in calls:
                        given = [xs[at] for at in call] if step is steps[1][1] else call
                        for by in ({}, {"by": 2.0}):
                            found, right = step(xs[0], *given, **by), function(xs[0], *given, **by)
                            assert found.value().tolist() == right.value().tolist()
                for count in range(1, 4):
                    assert owner.cell(*xs[:count]).value().tolist() == owner.method(*xs[:count]).value().tolist()
    with eb.Graph():
        for wrong in (lambda: steps[0][1](), lambda: steps[0][1](eb.ones(2), 1, 2), lambda: steps[1][1](of=eb.ones(2))):
            with pytest.raises(TypeError, match="argument"):
                wrong()


def test_a_function_of_one_argument_may_be_given_an_owner_or_an_expression():
    twice = eb.cell(lambda x: x * 2 if isinstance(x, eb.Expression) else eb.ones(2) * x.size)
    with eb.Graph():
        for _ in range(3):
            found = twice(Sized(3.0)), twice(eb.ones(2))
            assert [y.value().tolist() for y in found] == [[3, 3], [2, 2]]


class Sized:
    def __init__(self, size):
        self.size = size


def test_calls_alternate_between_numbers_of_arguments_options_dtypes_and_graphs():
    class Owner:
        @eb.cell
        def step(self, x, *others, by=2.0):
            return eb.dropout(eb.sum([x, *others]) * by, 0.999)

    owners = Owner(), Owner()
    for number in range(3):
        with eb.options(training=False), eb.Graph() as graph, eb.Graph(dtype="float64") as double:
            x, y = eb.ones(2), eb.zeros(3)  # of the inner one
        with graph:
            z = eb.ones(2)
        for owner in owners * 2:
            for given in ((x,), (x, x, x), (z, z), (y,), (z,), (z, z, z)):
                value = owner.step(*given).value()
                assert value.dtype == given[0].dtype
                assert value.tolist() == [2 * len(given) * float(given[0] is not y)] * len(value)
                assert owner.step(*given, by=0.5).value().tolist() == (value / 4).tolist()
        assert double.report().nodes > 0
        with eb.Graph():  # trains
            assert owners[number % 2].step(eb.ones(64)).value().max() in (0.0, 2000.0)


def test_an_argument_that_is_an_integer_here_and_a_value_there():
    model = eb.ParameterCollection(seed=0)
    table = model.add_lookup_parameters((5, 2))

    def function(x, w):
        return x * w if isinstance(w, eb.Expression) else x + table[w]

    step = eb.cell(function)
    for given in ((1, 2), (1, 0.5), (0.5, 2), (np.int64(4), 1), (1.5, 2.5), (3, 3)):
        with eb.Graph(policy="sufficient"):
            x = y = eb.ones(2)
            for w in (*given, *given):
                x, y = step(x, w), function(y, eb.scalar(w) if isinstance(w, float) else w)
            assert x.value().tolist() == y.value().tolist()
    with eb.Graph(), pytest.raises(eb.EdBatchError, match="argument w: index 5 is out of range"):
        step(eb.ones(2), 5)


def test_what_is_given_by_keyword_is_told_apart_exactly():
    def function(x, *, by, also=None):
        factor = {int: 2, bool: 3, str: 5, float: 7, type(None): 11}[type(by)] * (13 if also else 17)
        return x * factor * math.copysign(1.0, by if isinstance(by, float) else 1.0) * (1 + len(str(by)))

    step = eb.cell(function)
    values = [1, True, 1.0, "1", 0.0, -0.0, 0, False, None, 2, 2.0]
    for _ in range(3):
        with eb.Graph(policy="sufficient"):
            calls = [*({"by": by} for by in values), {"by": 1, "also": "a"}, {"also": "a", "by": 0.0}]
            right, found = ([how(eb.ones(2), **call) for call in calls] for how in (function, step))
            for one, other in zip(right, found, strict=True):
                assert one.value().tolist() == other.value().tolist()


def test_a_shallow_copy_has_what_it_was_given_since():
    class Layer:
        def __init__(self, model, init):
            self.W = model.add_parameters((2, 2), init=init)

        @eb.cell
        def step(self, x):
            return self.W @ x

    model = eb.ParameterCollection()
    layer = Layer(model, 1.0)
    with eb.Graph(policy="sufficient"):
        layer.step(eb.ones(2))
    other = copy.copy(layer)
    other.W = model.add_parameters((2, 2), init=5.0)
    for _ in range(2):
        with eb.Graph(policy="sufficient"):
            found = eb.forward([which.step(eb.ones(2)) for which in (layer, other, layer)])
        assert [x[0] for x in found] == [2, 10, 2]


@pytest.mark.parametrize("cells", [True, False])
def test_what_is_returned_is_an_expression(cells):
    W = eb.ParameterCollection().add_parameters(2, init=3.0)

    @eb.cell
    def one(x):
        return W

    @eb.cell
    def several(x, *, n=2):
        return {"W": W, "rest": (x, [2.0, np.ones(2, np.float32)])}

    @eb.cell
    def nested(x):
        return one(x).sum() + several(x)["rest"][1][0]

    with eb.options(cells=cells), eb.Graph():
        x = eb.ones(2)
        found = [one(x), *one(x=x), one(eb.array([x, x])), nested(x)]
        for kind in (several(x), several(x, n=3)):
            found += [kind["W"], kind["rest"][0], *kind["rest"][1]]
    assert all(isinstance(y, eb.Expression) for y in found)
    values = [y.value().tolist() for y in found]
    assert values == [[3, 3], 3, 3, [[3, 3]] * 2, 8, *[[3, 3], [1, 1], 2, [1, 1]] * 2]


def part_of(parameter, axes, key, x):
    return eb.transpose(eb.parameter(parameter), axes)[key], x * 2


@pytest.mark.parametrize(("shape", "share"), [((4, 3), False), ((3, 4), True), ((2, 3, 5), False)])
def test_parts_of_parameters_are_returned(share, shape):
    """Of every k-th entry, in every order of the axes, however the parameter lies: by columns, or by rows."""
    values = np.arange(float(np.prod(shape))).reshape(shape)
    model = eb.ParameterCollection(dtype="float64")
    W = model.share(values.copy()) if share else model.add_parameters(shape, init=values)
    for axes in itertools.permutations(range(len(shape))):
        for steps in itertools.product((1, 2, -1, 3), repeat=2):
            key = (..., slice(None, None, steps[0]), slice(None, None, steps[1]))

            part = eb.cell(partial(part_of, W, axes, key))
            with eb.Graph(dtype="float64"):
                found = part(eb.scalar(2.0))[0].value()
            np.testing.assert_array_equal(found, values.transpose(axes)[key])

"""What cells and replayed functions refuse, and what they say about it."""

import gc
import traceback
from typing import NamedTuple

import numpy as np
import pytest

import edbatch as eb
from tests.refused import Error, check, rows_of

ADVICE = "must be a keyword-only parameter, as s is of `def c(x, *, s=...)`"

# fmt: off
CELLS = [
    ("eb.cell(lambda x: x.value())(x)", Error, "reads a value"),
    ("eb.cell(lambda x: x * float(x[0]))(x)", Error, "reads a value"),
    ("eb.cell(lambda x: x * W.value())(x)", Error, "reads a value"),
    ("eb.cell(lambda x: x * float(W.grad()[0, 0]))(x)", Error, "reads a value"),
    ("eb.cell(lambda x: x * y.value())(x)", Error, "reads a value"),
    ("eb.cell(lambda x: x * eb.forward([y])[0])(x)", Error, "reads a value"),
    ("eb.cell(lambda x: x if x else -x)(x)", Error, "not known before it runs"),
    ("eb.cell(lambda x: x if x > 0 else -x)(eb.scalar(1.0))", Error, "must be a keyword-only parameter"),
    ("eb.cell(lambda x, n: x if n > 3 else -x)(x, 5)", Error, "known at run time only"),
    ("eb.cell(lambda x: (count.append(0), x * len(count))[1])(x)", Error, "keeps state"),
    ("eb.cell(lambda x: ())(x)", Error, "returns no expression"),
    ("eb.cell(lambda x: 'text')(x)", Error, "expected an expression"),
    ("eb.cell(lambda x: x + y)(x)", Error, "another graph; a cell computes with its arguments: give it as one"),
    ("eb.cell(lambda x: y)(x)", Error, "did not compute"),
    ("eb.cell(lambda x: x + eb.ones(3))(x)", Error, "do not broadcast"),
    ("eb.cell(3)", Error, "cell: expected a function, got"),
    ("eb.cell(Owner)", Error, "cell: expected a function, got"),
    ("eb.cell(property(lambda self: self))", Error, "cell: expected a function, got"),
    ("Bare().step(x)", Error, "with a __dict__…'__weakref__' among"),
    ("Pair(1.0).step(x)", Error, "with a __dict__…'__weakref__' among"),
    ("eb.cell(lambda x: x)(x, x)", TypeError, "argument"), ("eb.cell(lambda x, y: x)(x)", TypeError, "argument"),
    ("eb.cell(lambda x, *, sizes: x)(x, sizes=[1, 2])", Error, "given by keyword must be hashable"),
    ("deep = ()\nfor _ in range(100_000): deep = (deep,)\neb.cell(lambda x, *, sizes: x * 2)(x, sizes=deep)", Error,
        "given by keyword must be hashable (tuples in tuples, more than 100 deep)"),
    ("eb.cell(lambda x: x)(Owner())", Error, "result: expected an expression…got Owner"),
    ("def endless(x): return cell(x)\ncell = eb.cell(endless)\ncell(x)", Error, "it calls itself…without an end"),
    ("eb.cell(lambda x: x).layout()", Error, "has not been traced yet; call it once"),
    ("eb.cell(lambda x: x).explain()", Error, "has not been traced yet; call it once"),
    # arguments
    *((f"look(x, {index})", Error, "look, argument word: expected an integer, got") for index in (
        "2.0", "2.5", "True", "np.float32(1)", "None", "'1'", "np.ones(2)",
    )),
    ("look(x, 3)", Error, "look, argument word: index 3 is out of range for 3"),
    ("eb.cell(lambda x, n: x + E[n])(x, 2.5)", Error, "expected an integer, got …an index of a cell is given"),
    *((f"eb.cell(lambda x, mode: x)(x, {given})", Error, "argument mode: expected an expression…got …by keyword")
      for given in ("None", "'text'", "[]", "(1, 2)", "{}", "Owner()")),
    ("eb.cell(lambda x, s='a': x)(x, 'b')", Error, ADVICE), ("eb.cell(lambda x, s='a': x)(x, s='b')", Error, ADVICE),
    ("eb.cell(lambda x, flag=False: x if flag else -x)(x, flag=True)", Error, f"truth of …{ADVICE}"),
    ("eb.cell(lambda x, n: x if n else -x)(x, 2)", Error, ADVICE),
    ("step((x, x), x)", Error, "got tuple; pass its parts as arguments: step(*state, ...)"),
    ("step([x, x], x)", Error, "got list; pass its parts as arguments: step(*state, ...)"),
    ("step({'h': x}, x)", Error, "got dict; pass its parts as arguments: step(*state.values(), ...)"),
    # integers that are known at run time only
    ("call(lambda x, label: x[:, label])", Error, "argument label is an integer, …swapaxes(x, 0, axis)[label]"),
    ("call(lambda x, label: x[label:])", Error, "argument label is an integer, known at run time only…index"),
    ("call(lambda x, label: x[[label, 0]])", Error, "list of integers"),
    ("call(lambda x, label: x * label)", Error, "argument label is an integer, known at run time only…give a float"),
    ("call(lambda x, label: label * x)", Error, "argument label is an integer, known at run time only…give a float"),
    ("call(lambda x, label: eb.tanh(label))", Error, "argument label is an integer…give a float"),
    *((f"call(lambda x, label: {use})", Error, "argument label is an integer, known at run time only…by keyword")
      for use in ("eb.leaky_relu(x, label)", "eb.softmax(x, label)", "x if label else -x", "{label: x}[label]",
                  "[x, -x][label]", "eb.zeros(label)", "x.reshape(label)")),
    # labels and seeds
    ("loss(x, -1)", Error, "argument y: label -1 is negative, expected one in [0, 2)"),
    ("loss(x, 2)", Error, "argument y…out of range"),
    ("eb.cell(lambda x, y: eb.hinge(x * 2, y))(x, -1)", Error, "argument y: label -1 is negative"),
    ("eb.cell(lambda x, y: eb.cross_entropy(x, y) + eb.sum(E[y]))(x, -1)", Error, "argument y: label -1 is negative"),
    ("eb.cell(lambda x, seed: eb.dropout(x, 0.5, seed))(x, -1)", Error, "argument seed: …-1 is negative"),
    ("eb.cell(lambda x, k: eb.pick(x, k) + eb.sum(E[k]))(x, 2)", Error, "out of range"),
    ("eb.cell(lambda x, k: eb.pick(x, k) + eb.sum(E[k]))(x, -3)", Error, "out of range"),
    # arrays
    ("look(xs, np.array([0.0, 1.0, 1.0]))", Error, "argument word: expected an integer, got ndarray"),
    ("look(xs, np.array([0, 1, 5]))", Error, "the integer 5 of entry 2 is"),
    ("loss(xs, np.array([0, -1, 1]))", Error, "the integer -1 of entry 1 is no label, expected one in [0, 2)"),
]

REPLAYED = [
    ("eb.replay(lambda words, o: eb.sum(o.W))((1, 2), Owner())", Error, "expected a model as the first argument"),
    ("eb.replay(lambda holder: holder.x)(Holder())", Error, "got an object that holds an expression"),
    ("eb.replay(lambda number: y)(1)", Error, "was there before"),
    ("eb.replay(lambda n: eb.scalar(n), key=lambda n: [n])(1)", Error, "key= gave list; expected a number"),
    ("eb.replay(lambda x: eb.scalar(1.0))(iter([1]))", Error, "key="),
    ("eb.replay(key=3)", Error, "replay: key: expected a function of the arguments, got 3"),
    ("eb.replay(lambda slim, n: eb.sum(slim.W) * n)(Slim(), 2.0)", Error, "'__weakref__' among the __slots__ of Slim"),
    ("eb.replay(eb.Graph)", Error, "expected a function"), ("eb.replay(3)", Error, "expected a function"),
    ("async def f(x): pass\neb.replay(f)", Error, "expected a function"),
    ("eb.replay(lambda n: np.ones(3) * n)(1.0)", Error, "it returns ndarray; expected expressions"),
    ("eb.replay(lambda x: eb.scalar(float(eb.scalar(x))))(1.0)", Error, "reads a value"),
    ("eb.replay(lambda x: eb.scalar(rng.normal()) * x)(1.0)", Error, "two different things…random"),
    *((f"eb.replay(memory={memory})", Error, "replay: memory=") for memory in (
        "0", "-1", "1.5", "float('nan')", "None", "'a'", "True",
    )),
]
# fmt: on


class Owner:
    def __init__(self):
        self.model = eb.ParameterCollection()
        self.W = self.model.add_parameters(2)


class Holder:
    def __init__(self):
        self.x = eb.scalar(1.0)


class Slim:
    __slots__ = ("W",)

    def __init__(self):
        self.W = eb.ParameterCollection().add_parameters(2)


class Bare:
    __slots__ = ()

    @eb.cell
    def step(self, x):
        return x + 1


class Pair(NamedTuple):
    x: float

    step = eb.cell(lambda self, x: x * self.x)


@pytest.mark.parametrize(("code", "error", "message"), rows_of(CELLS + REPLAYED))
def test_what_does_not_fit_is_refused(code, error, message):
    model = eb.ParameterCollection()
    E = model.add_lookup_parameters((3, 2), name="E")
    with eb.Graph(policy="none"):
        y = eb.ones(2)
    if "did not compute" in message or "was there before" in message:
        y = None  # of the graph that is open

    @eb.cell
    def look(x, word: int):
        return x + eb.lookup(E, word)

    @eb.cell
    def loss(x, y: int):
        return eb.cross_entropy(x * 2, y)

    @eb.cell
    def step(state, x):
        return x

    with eb.Graph(policy="none"):
        x = eb.input([1.0, 2.0])
        names = {
            "x": x, "y": eb.ones(2) if y is None else y, "E": E, "W": model.add_parameters((2, 2), name="W"),
            "xs": eb.array(np.ones((3, 2))), "count": [], "rng": np.random.default_rng(0),
            "call": lambda use: eb.cell(use)(eb.ones((2, 2)), 1), "look": look, "loss": loss, "step": step,
            "Owner": Owner, "Holder": Holder, "Slim": Slim, "Bare": Bare, "Pair": Pair,
        }  # fmt: skip
        for _ in range(2):
            check(code, error, message, **names)
        assert look(x, -1).value().tolist() == (x + E[2]).value().tolist()


def test_what_outlives_the_trace():
    leaked = []

    @eb.cell
    def leaky(x):
        leaked.append(eb.tanh(x))
        return leaked[-1] * 2

    with eb.Graph():
        leaky(eb.ones(2))
    with eb.Graph():
        names = {"h": leaked[0], "x": eb.tanh(eb.ones(2)), "leaky": leaky}
        message = "an expression that cell …leaky computed while it was traced is used outside of the cell"
        for use in (
            "h.value()", "h[0].item()", "eb.sum(h).backward()", "h.gradient()", "h + x", "x * h", "eb.sum([x, h])",
            "eb.forward([x, h])", "eb.forward([h])", "(h * 3).value()", "leaky(h).value()",
        ):  # fmt: skip
            check(use, Error, message, **names)


def test_an_error_in_a_cell_shows_the_line_in_its_function():
    W = eb.ParameterCollection().add_parameters((3, 3), name="W")

    @eb.cell
    def step(x):
        h = eb.tanh(x)
        return W @ h

    with pytest.raises(eb.EdBatchError, match=r"step: matmul\(W\[3,3\]") as caught, eb.Graph():
        step(eb.ones(2))
    assert "return W @ h" in "".join(traceback.format_exception(caught.value))


def test_errors_of_replayed_functions_come_from_the_users_line():
    def function(x, numbers):
        return x + eb.input(np.ones(len(numbers)))

    replayed = eb.replay(function)
    for _ in range(2):
        with eb.Graph() as graph:
            x = eb.ones(3)
            with pytest.raises(eb.EdBatchError) as plain:
                function(x, [1, 2])
            with pytest.raises(eb.EdBatchError) as caught:
                replayed(x, [1, 2])
            assert str(caught.value) == str(plain.value)
            lines = [frame.lineno for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
            assert lines[-1] == function.__code__.co_firstlineno + 1
            assert replayed(x, [1, 2, 3]).value().tolist() == [2, 2, 2]
            assert graph.report().nodes > 0
    with pytest.raises(eb.EdBatchError, match="no graph"):
        replayed(None, [1, 2])


@pytest.mark.filterwarnings("error")
def test_a_coroutine_is_refused_and_closed():
    @eb.cell
    async def cell(x):
        return x * 2

    with eb.Graph(), pytest.raises(eb.EdBatchError, match="result: expected an expression"):
        cell(eb.ones(3))
    gc.collect()  # says of one that is open that nobody has waited for it

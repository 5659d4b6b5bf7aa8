"""What calls read changes between two calls in one graph: the numbers are those without traces, or an error."""

from dataclasses import dataclass

import numpy as np
import pytest

import edbatch as eb

K = 1.0


@dataclass
class Config:
    rate: float = 1.0


class Base:
    shared = 1.0


class Net(Base):
    own = 1.0

    def __init__(self):
        self.model = eb.ParameterCollection(seed=0)
        self.layers = [self.model.add_parameters((2, 2), init=float(value)) for value in (1, 2, 3)]
        self.W = self.layers[0]
        self.k = self.far = 1.0
        self.config = Config()
        self.items, self.table, self.array = [1.0], {"k": 1.0}, np.ones(2, np.float32)
        self.training = True

    @property
    def doubled(self):
        return 2 * self.config.rate


def number_of_a_closure():
    value = 1.0

    def put(_, to):
        nonlocal value
        value = to

    return lambda net, x: x * value, put


def put_global(_, to):
    global K
    K = to


def setting(name, of=lambda net: net):
    return lambda net, to: setattr(of(net), name, to)


def item(name, key):
    return lambda net, to: getattr(net, name).__setitem__(key, to)


def swap(net, to):
    net.W = net.layers[int(to) - 1]


def freeze(net, to):
    net.W.freeze(to > 1.0)


# What is read, what changes it, and how an error names it.
CASES = {
    "attribute": (lambda net, x: x * net.k, setting("k"), "k"),
    "nested attribute": (lambda net, x: x * net.config.rate, setting("rate", lambda net: net.config), "config.rate"),
    "object": (lambda net, x: x * net.config.rate, lambda net, to: setattr(net, "config", Config(to)), "config"),
    "list item": (lambda net, x: x * net.items[0], item("items", 0), "items"),
    "dict item": (lambda net, x: x * net.table["k"], item("table", "k"), "table"),
    "array entry": (lambda net, x: x * net.array, item("array", 0), "array"),
    "property": (lambda net, x: x * net.doubled, setting("rate", lambda net: net.config), "config.rate"),
    "global": (lambda net, x: x * K, put_global, "K"),
    "class attribute": (lambda net, x: x * net.own, setting("own", type), "own"),
    "attribute of a base": (lambda net, x: x * net.shared, setting("shared", lambda net: Base), "shared"),
    "shadowed class attribute": (lambda net, x: x * net.shared, setting("shared"), "shared"),
    "swapped parameter": (lambda net, x: net.W @ x, swap, "W"),
    "frozen": (lambda net, x: x * (2 if net.W.frozen else 1), freeze, "frozen"),
    "train and eval": (
        lambda net, x: x * 2 if net.training else x,
        lambda net, to: setattr(net, "training", to < 2),
        "training",
    ),
    "closure": (*number_of_a_closure(), "value"),
}


def as_cell(function):
    cell = eb.cell(lambda self, x: function(self, x))
    return lambda net, x: cell(net, x)


def as_cell_of_arrays(function):
    cell = eb.cell(lambda self, x: function(self, x))
    return lambda net, x: eb.sum(cell(net, eb.array([x, x * 2]))) / 3  # all are linear


def as_vertices(function):
    def called(net, x):
        vertex = eb.vertex(lambda v: v.scatter(function(net, v.pull())))
        return vertex(eb.InputGraph([0, 0], []), eb.array([x])).scattered[0]

    return called


def as_cell_in_vertices(function):
    cell = as_cell(function)
    return as_vertices(cell)


def as_replay(function):
    replayed = eb.replay(lambda self, sample: function(self, eb.input(sample)))
    return lambda net, x: replayed(net, (0.5, 0.25)) + 0 * x


def as_cell_in_replay(function):
    return as_replay(as_cell(function))


KINDS = {
    "cell": as_cell,
    "cell of arrays": as_cell_of_arrays,
    "vertices": as_vertices,
    "cell in vertices": as_cell_in_vertices,
    "replay": as_replay,
    "cell in replay": as_cell_in_replay,
}


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    put_global(None, 1.0)
    CASES["closure"][1](None, 1.0)
    Net.own = Base.shared = 1.0


def numbers(call, net, change, cells, between=False):
    """Of three calls in one graph, before each of which something changes."""
    with eb.options(cells=cells), eb.Graph(policy="sufficient"):
        x = eb.input([0.5, 0.25])
        found = []
        for value in (1.0, 2.0, 3.0):
            change(net, value)
            found.append(call(net, x))
            if between:
                found[-1] = found[-1].value()
    return np.array(found if between else eb.forward(found))


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_between_two_calls(kind, case, between):
    function, change, name = CASES[case]
    call = KINDS[kind](function)
    want = numbers(function, Net(), change, False)
    assert np.abs(want[1] - want[0]).max() > 0.1
    net = Net()
    change(net, 1.0)
    with eb.Graph(policy="sufficient"):  # every trace is there
        call(net, eb.input([0.5, 0.25])).value()
    try:
        got = numbers(call, net, change, True, between)
    except eb.EdBatchError as raised:
        error = str(raised)
    else:
        error = ""
        np.testing.assert_allclose(got, want, rtol=1e-5)
    assert not error or (name in error and "Pass it as an argument" in error)
    change(net, 2.0)
    np.testing.assert_allclose(numbers(call, net, lambda *_: None, True)[0], want[1], rtol=1e-5)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["cell", "cell of arrays", "cell in vertices", "replay"])
def test_a_change_after_the_block_is_none_of_its_business(kind, case):
    function, change, _ = CASES[case]
    call, net = KINDS[kind](function), Net()
    change(net, 1.0)
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([0.5, 0.25])
        first = eb.sum(call(net, x) + call(net, x))
    change(net, 2.0)
    with graph:
        second = eb.sum(call(net, x) + call(net, x))
    found = eb.forward([first, second])
    change(net, 3.0)
    assert float(first) == found[0].sum()
    with eb.options(cells=False), eb.Graph(policy="sufficient"):
        change(net, 2.0)
        want = eb.sum(function(net, eb.input([0.5, 0.25])))
        np.testing.assert_allclose(found[1], 2 * want.value(), rtol=1e-5)


def test_what_the_error_says():
    net = Net()

    @eb.cell
    def step(self, x):
        return self.W @ x * self.config.rate

    said = r"step reads self\.config\.rate, which was 1\.0 when it was first called in this graph, and is 2\.5 now"
    with pytest.raises(eb.EdBatchError, match=said), eb.Graph():  # noqa: PT012
        x = y = eb.ones(2)
        for net.config.rate in (1.0, 2.5):
            y = step(net, y)
    with pytest.raises(eb.EdBatchError, match=r"has no values: .* reads self\.config\.rate"):
        x.value()
    with pytest.raises(eb.EdBatchError, match=r"has no values"):
        y.backward(np.ones(2))
    with eb.Graph():
        y = eb.ones(2)
        for layer in net.layers:
            net.W = layer
            y = step(net, y)
        with pytest.raises(eb.EdBatchError, match=r"reads self\.W, .* is Parameter\(p2\[2,2\]\) now"):
            y.value()


def test_an_error_in_the_block_comes_first():
    net = Net()
    step = as_cell(CASES["nested attribute"][0])
    with pytest.raises(ZeroDivisionError), eb.Graph():  # noqa: PT012
        for net.config.rate in (1.0, 2.0):
            step(net, eb.ones(2))
        raise ZeroDivisionError


def test_numbers_of_objects_in_turn():
    """Whether of their own or of their class, they are looked at in every call."""

    class Defaults:
        a = b = c = d = 1.0

        @eb.cell
        def step(self, x):
            return x * self.a * self.b * self.c * self.d

    class Mixed(Defaults):
        def __init__(self):
            self.d = 1.0

    for _ in range(2):
        ones, counts = [Defaults(), Mixed(), Defaults()], [0, 0, 0]
        got, want = [], []
        with eb.Graph(policy="none"):
            x = eb.ones(1)
            turns = [(0, "a"), (1, "d"), (2, "c"), (1, "b"), (0, "d"), (2, "a"), (1, "a"), (0, "b"), (0, "a")]
            for at, name in turns:
                if (at, name) == (0, "a") and counts[0]:
                    del ones[at].a
                    counts[at] -= 1
                else:
                    setattr(ones[at], name, 2.0)
                    counts[at] += 1
                got += [one.step(x) for one in ones]
                want += [2.0**count for count in counts]
        assert [y.value().item() for y in got] == want

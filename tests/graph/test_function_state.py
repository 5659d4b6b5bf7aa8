"""What functions depend on may change: their numbers are those of the same code without a trace, or an error."""

import copy
import gc
import pickle
import random
import threading
import warnings
import weakref

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.function_state import LEAVES, function_state
from edbatch.graph.number_warnings import MANY
from tests.graph.mutations import MUTATIONS, Program

X = (0.3, -0.2)
LOCAL = threading.local()  # in which nobody looks


def as_cell(program):
    return eb.cell(program.read)


def as_method(program):
    type(program.net).method = eb.cell(program.method)
    return lambda x: program.net.method(x)


def as_cell_of_arrays(program):
    cell = eb.cell(program.read)
    return lambda x: cell(eb.array([x, x]))[0]


def as_vertices(program):
    function = eb.vertex(lambda v: v.scatter(program.read(v.pull())))
    return lambda x: function(eb.InputGraph([0, 0], []), eb.array([x])).scattered[0]


def often(function):
    """What has come twice is kept."""

    def call(x):
        for _ in range(3):
            found = function(eb.InputGraph([0, 0], []), eb.array([x])).scattered[0]
        return found

    return call


def as_kept_vertices(program):
    return often(eb.vertex(lambda v: v.scatter(program.read(v.pull()))))


def as_cell_in_kept_vertices(program):
    cell = eb.cell(program.read)
    return often(eb.vertex(lambda v: v.scatter(cell(v.pull()))))


def as_cell_in_vertices(program):
    cell = eb.cell(program.read)
    function = eb.vertex(lambda v: v.scatter(cell(v.pull())))
    return lambda x: function(eb.InputGraph([0, 0], []), eb.array([x])).scattered[0]


def as_replay(program):
    replayed = eb.replay(lambda sample: program.read(eb.input(sample)))
    return lambda x: replayed(X) + 0 * x


def as_replayed_method(program):
    replayed = eb.replay(lambda net, sample: program.method(net, eb.input(sample)))
    return lambda x: replayed(program.net, X) + 0 * x


def as_cell_in_replay(program):
    cell = eb.cell(program.read)
    replayed = eb.replay(lambda sample: cell(eb.input(sample)))
    return lambda x: replayed(X) + 0 * x


KINDS = [
    as_cell, as_method, as_cell_of_arrays, as_vertices, as_cell_in_vertices, as_kept_vertices,
    as_cell_in_kept_vertices, as_replay, as_replayed_method,
    as_cell_in_replay,
]  # fmt: skip
# Each in cells and in some of the other kinds, in turn.
CALLS = [
    pytest.param(name, kind, id=f"{name}, {kind.__name__}")
    for at, (name, (_, _, expression, *_)) in enumerate(MUTATIONS.items())
    for number, kind in enumerate(KINDS)
    if kind is as_cell or (at + number) % 4 == 0 or (kind is as_method and "net" in expression)
    if "net" in expression or kind not in (as_method, as_replayed_method)
]


def value_of(call, **options):
    with eb.options(**options), eb.Graph(policy="depth"):
        return call(eb.input(X)).value()


@pytest.mark.parametrize(("name", "kind"), CALLS)
def test_a_change_between_two_graphs(name, kind):
    _, setup, expression, *changes = MUTATIONS[name]
    program = Program(setup, expression)
    call = kind(program)
    before = value_of(call)
    np.testing.assert_allclose(before, value_of(program.read, cells=False), rtol=1e-6)
    for change in changes:
        program.change(change)
        want = value_of(program.read, cells=False)
        assert np.shape(want) != np.shape(before) or np.abs(want - before).max() > 0.01 or "(" in change, change
        for _ in range(2):
            np.testing.assert_allclose(value_of(call), want, rtol=1e-6, err_msg=change)
        before = want


@pytest.mark.parametrize(("name", "kind"), CALLS)
def test_a_change_inside_one_graph(name, kind):
    """Of every second one what was computed before the change is read before it."""
    between = (len(name) + KINDS.index(kind)) % 2
    called, setup, expression, change, *_ = MUTATIONS[name]
    program = Program(setup, expression)
    call = kind(program)
    before = value_of(call)
    got, error = [], ""
    try:
        with eb.Graph(policy="depth"):
            got.append(call(eb.input(X)))
            if between:
                got[0].value()
            program.change(change)
            got.append(call(eb.input(X)))
        got = [y.value() for y in got]
    except eb.EdBatchError as raised:
        error = str(raised)
    if len(got) < 2:  # the second call itself
        program.change(change)
    after = value_of(program.read, cells=False)
    if error:
        assert "Pass it as an argument" in error
        assert any(name in error.partition("which was")[0] for name in called.split("|")), error
    else:
        np.testing.assert_allclose(got[0], before, rtol=1e-6)
        np.testing.assert_allclose(got[1], after, rtol=1e-6)
    np.testing.assert_allclose(value_of(call), after, rtol=1e-6)


@pytest.mark.parametrize("name", MUTATIONS)
def test_identities_and_values_are_compared_alike(name):
    """What the extension in C finds to be unchanged is so, and nothing is left out of it."""
    _, setup, expression, *changes = MUTATIONS[name]
    program = Program(setup, expression)
    value_of(program.method.__get__(program.net))
    net = program.net
    guard = function_state("f", program.method, net)
    assert guard.holds(net)
    for change in changes:
        program.change(change)
        found = guard.change(program.net)
        assert guard.holds(program.net) == (found is None)
        guard = function_state("f", program.method, program.net)


class Scaled:
    rate = 1.0

    @eb.cell
    def step(self, x):
        return x * self.rate

    @eb.cell
    def keyed(self, x, *, rate):
        return x * rate


def test_every_shape_object_and_graph_is_checked():
    a, b = Scaled(), Scaled()
    for rate in (1.0, 2.0, 1.0):
        a.rate = rate
        with eb.Graph(policy="depth"):
            got = [one.step(eb.ones(n)).value().tolist() for one, n in [(a, 1), (b, 1), (a, 2), (a, 1), (b, 2)]]
        assert got == [[rate], [1], [rate] * 2, [rate], [1] * 2]
    first, second = eb.Graph(policy="depth"), eb.Graph(policy="depth")
    with first:
        one = a.step(eb.ones(1))
    a.rate = 3.0
    with second:
        other = a.step(eb.ones(1))
    assert (one.value(), other.value()) == (1, 3)


def test_attributes_of_the_owner_may_change_between_two_calls():
    """All that its cell names: also for objects that have them in other places, and a flag that is back at the end."""

    class Layers:
        a = b = c = 1.0

        def __init__(self, *first):
            for name in first:
                setattr(self, name, 1.0)
            self.model = eb.ParameterCollection(seed=0)
            self.layers = [self.model.add_parameters((1, 1), init=float(value)) for value in (1, 2, 3)]
            self.W = self.layers[0]

        @eb.cell
        def step(self, x):
            return self.W @ x * self.a * self.b * self.c

    nets = [Layers(), Layers("c"), Layers()]
    changes = [("a", 2.0), ("W", 1), ("c", 3.0), ("W", 2), ("b", 2.0), ("a", 1.0), ("W", 0), ("c", 1.0)]
    for _ in range(2):
        got, want = [], []
        with eb.Graph(policy="none"):
            x = eb.ones(1)
            for name, value in changes:
                for net in nets:
                    setattr(net, name, net.layers[value] if name == "W" else value)
                    got.append(net.step(x))
                    want.append(net.W.value().item() * net.a * net.b * net.c)
        assert [y.value().item() for y in got] == want


def test_what_does_not_matter_or_comes_back_is_not_traced_again():
    LOCAL.traced = []

    class Net:
        def __init__(self):
            self.training, self.calls, self.states = True, 0, []

        @eb.cell
        def step(self, x):
            LOCAL.traced.append(self.training)
            return x if self.training else -x

    net = Net()
    with eb.Graph():
        for net.training in (True, False, True, False):
            net.calls += 1
            net.states.append(net.step(eb.input(X)).value())
    assert LOCAL.traced == [True, True, False, False]
    assert len(Net.step.compiled()) == 2


def test_a_number_that_is_another_each_time_warns():
    net = Scaled()

    def steps(n, how):
        for step in range(n):
            net.rate = 0.5**step
            with eb.Graph(policy="depth"):
                y = how(eb.ones(2))
            assert y.value()[0] == np.float32(net.rate)

    with pytest.warns(
        eb.EdBatchWarning, match=rf"step has been traced {MANY} times: self.rate has become .*expression"
    ):
        steps(MANY, net.step)
    with pytest.warns(eb.EdBatchWarning, match=rf"keyed has been traced {MANY} times: rate is another.*expression"):
        steps(MANY, lambda x: net.keyed(x, rate=net.rate))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        steps(20, net.step)


def test_old_parameters_and_owners_are_let_go():
    class Net:
        def __init__(self):
            self.change(0)

        def change(self, seed):
            self.model = eb.ParameterCollection(seed=seed)
            self.W = self.model.add_parameters((2, 2))
            self.held = [self.W, {"W": self.W}]

        @eb.cell
        def step(self, x):
            listed = [p @ x for p in self.model if not p.frozen and p.name in self.model]
            return self.W @ x + eb.sum([*listed, self.held[0] @ x, self.held[1]["W"] @ x])

    net = Net()
    value_of(net.step)
    old = weakref.ref(net.W)
    net.change(1)
    np.testing.assert_allclose(value_of(net.step), 4 * net.W.value() @ X, rtol=1e-5)
    gc.collect()
    assert old() is None
    gone = weakref.ref(net.W), weakref.ref(net)
    del net
    gc.collect()
    assert [one() for one in gone] == [None, None]


@pytest.mark.parametrize("size", [LEAVES + 1, 30_000])
def test_of_much_it_is_known_which_it_is(size):
    held = eb.__class__("of_a_test")
    held.numbers, held.array = [1.0] * size, np.ones(size, np.float64)
    read = eb.cell(lambda x: x * held.numbers[0] * held.array[0])
    with pytest.warns(
        eb.EdBatchWarning, match=r"more than 256 numbers and objects: changes inside of held.numbers .* not seen"
    ):
        before = value_of(read)
    held.numbers = [2.0] * size
    held.array = np.full(size, 3.0)
    np.testing.assert_allclose(value_of(read), before * 6, rtol=1e-6)


class Counting:
    def __init__(self):
        self.n = 0

    @eb.cell
    def step(self, x):
        self.n += 1
        return x * self.n


@pytest.mark.parametrize(("function", "differs"), [
    (eb.cell(lambda x: x * random.random()), r"a number that was 0\.\d+, then 0\.\d+"),
    (eb.cell(lambda x, seen=[]: eb.sum([x, *map(eb.tanh, [x] * len(seen)), seen.append(0) or x])), r"lts__\[0\]"),
    (Counting().step, r"self\.n changes while it runs"),
    (eb.replay(lambda x: eb.scalar(random.random()) * x), "called twice, it records two different things"),
    (lambda x: eb.replay(lambda n: (eb.ones(2), random.random()))(1)[0] * x, "called twice, it records two different"),
])  # fmt: skip
def test_what_keeps_state_is_refused(function, differs):
    with pytest.raises(eb.EdBatchError, match=f"keeps state: .*{differs}.*pass what is random, or another each time"):
        value_of(lambda x: function(x) * 1)


@pytest.mark.parametrize("replayed", [False, True])
def test_the_option_check_finds_what_is_not_compared(replayed):
    def read(x):
        return eb.input(X) * x * LOCAL.rate if replayed else x * LOCAL.rate

    call = eb.replay(read) if replayed else eb.cell(read)
    LOCAL.rate = 1.0
    given = (lambda x: call(2.0) + 0 * x) if replayed else call
    before = value_of(given)
    for _ in range(2):
        np.testing.assert_array_equal(value_of(given, check=True), before)
    LOCAL.rate = 3.0
    for _ in range(2):
        np.testing.assert_array_equal(value_of(given), before)
        with pytest.raises(eb.EdBatchError, match=r"(something else than when it was traced|recorded once more)"):
            value_of(given, check=True)


def replayed_like_a_cell(function):
    replayed = eb.replay(lambda sample: function(eb.input(sample)))
    return lambda x: replayed(X)


@pytest.mark.parametrize("kind", [eb.cell, replayed_like_a_cell])
@pytest.mark.parametrize("made", ["add_parameters", "add_lookup_parameters"])
@pytest.mark.parametrize("read", [
    lambda p: 1.0 if p.has_grad else 2.0,
    lambda p: float(p.gradient_array()[0, 0]),
    lambda p: float(p.grad()[0, 0]),
    lambda p: float(p.value()[0, 0]),
    lambda p: float(np.from_dlpack(p)[0, 0]),
    lambda p: 1.0 if getattr(p, "sparse_grad", p.grad)() is None else 2.0,
    lambda p: float(OUTER[0]),
    lambda p: float(OUTER[0].value()),
])  # fmt: skip
def test_values_are_not_read_in_a_trace(made, read, kind):
    p = getattr(eb.ParameterCollection(), made)((2, 2), name="W", init=1.0)
    with eb.Graph():
        OUTER[:] = [eb.scalar(2.0) * 1]
        OUTER[0].value()
    with pytest.raises(eb.EdBatchError, match=r"reads a value, by .*; .*argument"):
        value_of(kind(lambda x: x * read(p)))


OUTER = []


class Config:
    rate = 1.0


class Net:
    def __init__(self):
        self.config = Config()

    @eb.cell
    def step(self, x):
        return x * self.config.rate


def test_what_the_error_says_and_when():
    net = Net()
    said = r"step reads self\.config\.rate, which was 1\.0 when it was first called in this graph, and is 2\.5 now"
    with pytest.raises(eb.EdBatchError, match=said), eb.Graph():  # noqa: PT012
        x = y = eb.ones(2)
        for net.config.rate in (1.0, 2.5):
            y = net.step(y)
    with pytest.raises(eb.EdBatchError, match=r"has no values: .* reads self\.config\.rate"):
        x.value()
    with pytest.raises(eb.EdBatchError, match=r"has no values"):
        y.backward(np.ones(2))
    with pytest.raises(ZeroDivisionError), eb.Graph():  # noqa: PT012
        for net.config.rate in (1.0, 2.5):
            net.step(eb.ones(2))
        raise ZeroDivisionError
    with eb.Graph(policy="depth") as graph:
        first = net.step(eb.ones(1))
    net.config.rate = 3.0  # after the block it is none of its business
    with graph:
        second = net.step(eb.ones(1))
    assert [y.item() for y in eb.forward([first, second])] == [2.5, 3.0]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_of_collections_list_what_is_added_to_them(copied):
    model = eb.ParameterCollection()
    model.add_parameters(2, name="a")
    assert list(model.keys()) == ["a"]
    other = copied(model)
    other.add_parameters(2, name="b")
    assert list(model.keys()) == ["a"]
    assert list(other.keys()) == ["a", "b"]

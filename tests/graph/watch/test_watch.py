"""A cell sees that what it read has changed: its numbers are those of the same code without the decorator."""

import contextvars
import dataclasses
import enum
import functools
import gc
import sys
import time
import types
import warnings
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell import cell
from edbatch.graph.cell.tracing import trace_cell
from edbatch.graph.many_numbers import MANY

GLOBAL = 2.0
LAYERS = [1.0, 2.0]
CONFIG = types.SimpleNamespace(rate=0.5, inner=types.SimpleNamespace(depth=2))
MODULE = types.ModuleType("some_module")
MODULE.rate = 0.5
VARIABLE = contextvars.ContextVar("VARIABLE", default=1.0)


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Sizes:
    rate: float = 0.5
    depths: tuple = (1, 2)


@dataclasses.dataclass(frozen=True)
class Frozen:
    rate: float = 0.5


class Slotted:
    __slots__ = ("__weakref__", "rate")

    def __init__(self, rate):
        self.rate = rate


class Base:
    FACTOR = 3.0
    shared = [1.0]  # noqa: RUF012

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def scale(self, x):
        return x * self.factor

    @property
    def doubled(self):
        return self.half * 2

    @functools.cached_property
    def cached(self):
        return self.half * 2


class Dynamic:
    def __init__(self, **items):
        vars(self)["items"] = items

    def __getattr__(self, name):
        try:
            return vars(self)["items"][name]
        except KeyError:
            raise AttributeError(name) from None


class Callable:
    rate = 0.5

    def __call__(self, x):
        return x * self.rate


def helper(x):
    return x * GLOBAL + len(LAYERS)


def default_of(x, config=CONFIG):
    return x * config.rate


def setting(name, value):
    """A change of an attribute of `self`, by its path."""

    def change(net):
        *path, last = name.split(".")
        for part in path:
            net = getattr(net, part)
        setattr(net, last, value)

    return change


def with_global(name, value):
    return lambda net: globals().__setitem__(name, value)


def item(path, key, value):
    def change(net):
        for part in path.split("."):
            net = getattr(net, part)
        net[key] = value

    return change


# What a cell computes, what is changed, and how it is changed back.
CASES = {
    "attribute": (lambda self, x: x * self.rate, setting("rate", 3.0), setting("rate", 0.5)),
    "bool": (lambda self, x: x if self.training else -x, setting("training", False), setting("training", True)),
    "type of a number": (
        lambda self, x: x * 2 if self.one is True else x * 3 if isinstance(self.one, float) else x,
        setting("one", True),
        setting("one", 1.0),
    ),
    "sign of a zero": (
        lambda self, x: x * float(np.copysign(1, self.zero)),
        setting("zero", -0.0),
        setting("zero", 0.0),
    ),
    "integer": (
        lambda self, x: functools.reduce(lambda y, _: eb.tanh(y + 1), range(self.n), x),
        setting("n", 3),
        setting("n", 1),
    ),
    "nested": (lambda self, x: x * self.sub.rate, setting("sub.rate", 4.0), setting("sub.rate", 1.5)),
    "nested twice": (lambda self, x: x * self.sub.sub.rate, setting("sub.sub.rate", 4.0), setting("sub.sub.rate", 1.0)),
    "another object": (
        lambda self, x: x * self.sub.rate,
        setting("sub", Base(rate=9.0)),
        setting("sub", Base(rate=1.5)),
    ),
    "list": (lambda self, x: x * sum(self.items), item("items", 1, 7.0), item("items", 1, 2.0)),
    "longer list": (
        lambda self, x: x * len(self.items),
        lambda net: net.items.append(1.0),
        lambda net: net.items.pop(),
    ),
    "objects in a list": (
        lambda self, x: functools.reduce(lambda y, layer: layer.scale(y), self.layers, x),
        lambda net: setattr(net.layers[0], "factor", 5.0),
        lambda net: setattr(net.layers[0], "factor", 2.0),
    ),
    "dictionary": (lambda self, x: x * self.table["b"], item("table", "b", 7.0), item("table", "b", 2.0)),
    "nested containers": (
        lambda self, x: x * self.table["deep"][0]["c"],
        lambda net: net.table["deep"][0].update(c=8.0),
        lambda net: net.table["deep"][0].update(c=3.0),
    ),
    "tuple": (lambda self, x: x * self.pair[1], setting("pair", (1.0, 5.0)), setting("pair", (1.0, 2.0))),
    "named tuple": (
        lambda self, x: x * self.point.y,
        setting("point", Point(1.0, 5.0)),
        setting("point", Point(1.0, 2.0)),
    ),
    "dataclass": (lambda self, x: x * self.sizes.rate, setting("sizes.rate", 5.0), setting("sizes.rate", 0.5)),
    "frozen dataclass": (
        lambda self, x: x * self.frozen.rate,
        setting("frozen", Frozen(3.0)),
        setting("frozen", Frozen(0.5)),
    ),
    "enum": (
        lambda self, x: x if self.mode is Mode.TRAIN else -x,
        setting("mode", Mode.TEST),
        setting("mode", Mode.TRAIN),
    ),
    "value of an enum": (lambda self, x: x * self.mode.value, setting("mode", Mode.TEST), setting("mode", Mode.TRAIN)),
    "slots": (lambda self, x: x * self.slotted.rate, setting("slotted.rate", 5.0), setting("slotted.rate", 0.5)),
    "array in place": (lambda self, x: x * self.array, item("array", 0, 9.0), item("array", 0, 1.0)),
    "array": (
        lambda self, x: x * self.array,
        setting("array", np.full(2, 4.0)),
        setting("array", np.array([1.0, 2.0])),
    ),
    "class attribute": (
        lambda self, x: x * self.FACTOR,
        lambda net: setattr(Base, "FACTOR", 8.0),
        lambda net: setattr(Base, "FACTOR", 3.0),
    ),
    "attribute before the class's": (
        lambda self, x: x * self.FACTOR,
        setting("FACTOR", 8.0),
        lambda net: delattr(net, "FACTOR"),
    ),
    "list of a class": (
        lambda self, x: x * self.shared[0],
        lambda net: Base.shared.__setitem__(0, 4.0),
        lambda net: Base.shared.__setitem__(0, 1.0),
    ),
    "property": (lambda self, x: x * self.doubled, setting("half", 2.0), setting("half", 0.25)),
    "cached property": (lambda self, x: x * self.cached, setting("cached", 2.0), setting("cached", 0.5)),
    "other class": (
        lambda self, x: x * self.FACTOR,
        setting("__class__", type("Other", (Base,), {"FACTOR": 6.0})),
        setting("__class__", Base),
    ),
    "method": (lambda self, x: self.scale(x), setting("factor", 7.0), setting("factor", 2.0)),
    "other function": (lambda self, x: self.act(x), setting("act", eb.relu), setting("act", eb.tanh)),
    "callable object": (lambda self, x: self.callable(x), setting("callable.rate", 5.0), setting("callable.rate", 0.5)),
    "partial": (
        lambda self, x: self.partial(x),
        setting("partial", functools.partial(eb.clip, low=0.2, high=0.4)),
        setting("partial", functools.partial(eb.clip, low=0.1, high=0.3)),
    ),
    "slice": (
        lambda self, x: x * x[self.part],
        setting("part", slice(0, 1)),
        setting("part", slice(1, None)),
    ),
    "slices in a tuple": (
        lambda self, x: x * x[self.parts],
        setting("parts", np.s_[..., :1]),
        setting("parts", np.s_[..., 1:]),
    ),
    "bound method": (lambda self, x: self.bound(x), setting("sub.factor", 7.0), setting("sub.factor", 2.0)),
    "weak reference": (lambda self, x: x * self.weak().rate, setting("sub.rate", 4.0), setting("sub.rate", 1.5)),
    "getattr": (
        lambda self, x: x * getattr(self, "_".join(["rate", "b"])),
        setting("rate_b", 5.0),
        setting("rate_b", 2.0),
    ),
    "getattr with a default": (
        lambda self, x: x * getattr(self, "absent", 2.0),
        setting("absent", 5.0),
        lambda net: delattr(net, "absent"),
    ),
    "hasattr": (
        lambda self, x: x * 2 if hasattr(self, "absent") else x,
        setting("absent", 5.0),
        lambda net: delattr(net, "absent"),
    ),
    "vars": (lambda self, x: x * vars(self)["rate"], setting("rate", 3.0), setting("rate", 0.5)),
    "__getattr__": (
        lambda self, x: x * self.dynamic.rate,
        lambda net: vars(net.dynamic)["items"].update(rate=5.0),
        lambda net: vars(net.dynamic)["items"].update(rate=0.5),
    ),
    "global": (lambda self, x: x * GLOBAL, with_global("GLOBAL", 5.0), with_global("GLOBAL", 2.0)),
    "global of a helper": (lambda self, x: helper(x), with_global("GLOBAL", 5.0), with_global("GLOBAL", 2.0)),
    "list of a helper": (
        lambda self, x: helper(x),
        lambda net: LAYERS.append(1.0),
        lambda net: LAYERS.pop(),
    ),
    "attribute of a global": (
        lambda self, x: x * CONFIG.inner.depth,
        lambda net: setattr(CONFIG.inner, "depth", 5),
        lambda net: setattr(CONFIG.inner, "depth", 2),
    ),
    "attribute of a module": (
        lambda self, x: x * MODULE.rate,
        lambda net: setattr(MODULE, "rate", 5.0),
        lambda net: setattr(MODULE, "rate", 0.5),
    ),
    "default argument": (
        lambda self, x: default_of(x),
        lambda net: setattr(CONFIG, "rate", 5.0),
        lambda net: setattr(CONFIG, "rate", 0.5),
    ),
    "other defaults": (
        lambda self, x: default_of(x),
        lambda net: setattr(default_of, "__defaults__", (Frozen(5.0),)),
        lambda net: setattr(default_of, "__defaults__", (CONFIG,)),
    ),
    "context variable": (
        lambda self, x: x * VARIABLE.get(),
        lambda net: VARIABLE.set(5.0),
        lambda net: VARIABLE.set(1.0),
    ),
    "returned object": (
        lambda self, x: x * (lambda: CONFIG)().rate,
        lambda net: setattr(CONFIG, "rate", 5.0),
        lambda net: setattr(CONFIG, "rate", 0.5),
    ),
    "comprehension": (
        lambda self, x: eb.sum([x * layer.factor for layer in self.layers if layer.factor > 0]),
        lambda net: setattr(net.layers[1], "factor", 5.0),
        lambda net: setattr(net.layers[1], "factor", 3.0),
    ),
}  # fmt: skip


def make():
    sub = Base(rate=1.5, factor=2.0, sub=Base(rate=1.0))
    return Base(
        rate=0.5, training=True, one=1.0, zero=0.0, n=1, sub=sub, items=[1.0, 2.0],
        layers=[Base(factor=2.0), Base(factor=3.0)], table={"b": 2.0, "deep": [{"c": 3.0}]}, pair=(1.0, 2.0),
        point=Point(1.0, 2.0), sizes=Sizes(), frozen=Frozen(), mode=Mode.TRAIN, slotted=Slotted(0.5),
        array=np.array([1.0, 2.0]), half=0.25, factor=2.0, act=eb.tanh, callable=Callable(),
        partial=functools.partial(eb.clip, low=0.1, high=0.3), bound=sub.scale, weak=weakref.ref(sub), rate_b=2.0,
        dynamic=Dynamic(rate=0.5), part=slice(1, None), parts=np.s_[..., 1:],
    )  # fmt: skip


def numbers(function, net, cells):
    with eb.options(cells=cells), eb.Graph(policy="depth"):
        x = eb.input([0.3, -0.2])
        y = function(net, x)
        eb.sum(y).backward()
        return np.array([y.value(), x.gradient()])


@pytest.mark.parametrize("case", CASES)
def test_what_changes_is_seen_and_what_comes_back_is_found(case, monkeypatch):
    traces = []
    monkeypatch.setattr(cell, "trace_cell", lambda *given: (traces.append(given[0]), trace_cell(*given))[1])
    function, change, back = CASES[case]
    net, step = make(), eb.cell(function)
    before = numbers(step, net, True)
    np.testing.assert_allclose(before, numbers(function, net, False), rtol=1e-5)
    assert len(traces) == 1
    for _ in range(2):
        change(net)
        try:
            got, want = numbers(step, net, True), numbers(function, net, False)
        finally:
            back(net)
        np.testing.assert_allclose(got, want, rtol=1e-5)
        assert np.abs(got - before).max() > 0.05
        np.testing.assert_array_equal(numbers(step, net, True), before)
    found = len(step.compiled())
    assert found == 2
    assert len(traces) <= 3  # objects that are made anew, and hold what was there before, are traced once more


def test_closures():
    def make_cell(rate, config):
        def set_rate(value):
            nonlocal rate
            rate = value

        def inner(x):
            return x * rate

        @eb.cell
        def step(x):
            return inner(x) + x * config["rate"]

        return step, set_rate, config

    step, set_rate, config = make_cell(2.0, {"rate": 1.0})
    other, _, _ = make_cell(7.0, {"rate": 0.0})

    def run(step):
        with eb.Graph(policy="depth"):
            return float(step(eb.scalar(1.0)).value())

    assert (run(step), run(other)) == (3.0, 7.0)
    set_rate(4.0)
    assert run(step) == 5.0
    config["rate"] = 3.0
    assert (run(step), run(other)) == (7.0, 7.0)


def test_cells_in_cells():
    class Net:
        rate = 1.0

        @eb.cell
        def inner(self, x):
            return x * self.rate

        @eb.cell
        def outer(self, x):
            return self.inner(x) + helper(x)

    net = Net()
    assert float(numbers(Net.outer, net, True)[0, 0]) == pytest.approx(0.3 * 3 + 2)
    net.rate = 5.0
    np.testing.assert_array_equal(numbers(Net.outer, net, True), numbers(Net.outer, net, False))


def test_another_parameter():
    model = eb.ParameterCollection(seed=0)
    a, b = (model.add_parameters((2, 2), name=name) for name in "ab")

    class Net:
        W = a

        @eb.cell
        def step(self, x):
            return eb.tanh(self.W @ x)

    net = Net()
    for W in (a, b, a, b):
        net.W = W
        model.zero_grad()
        got = numbers(Net.step, net, True), a.grad(), b.grad()
        model.zero_grad()
        want = numbers(Net.step, net, False), a.grad(), b.grad()
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5)
    assert len(Net.step.compiled()) == 2


def test_training_and_evaluation():
    class Net:
        training = True

        @eb.cell
        def step(self, x):
            return eb.dropout(x, 0.5) if self.training else x * 1

    net = Net()
    for training in (True, False, True, False):
        net.training = training
        with eb.Graph(policy="depth"):
            y = net.step(eb.ones(100)).value()
        assert (y == 1).all() != training
    assert len(Net.step.compiled()) == 2


def test_every_shape_and_object_is_checked():
    class Net:
        rate = 1.0

        @eb.cell
        def step(self, x):
            return x * self.rate

    a, b = Net(), Net()
    for rate in (1.0, 2.0, 1.0):
        a.rate = rate
        with eb.Graph(policy="depth"):
            got = [net.step(eb.ones(n)).value().tolist() for net, n in [(a, 1), (b, 1), (a, 2), (a, 1), (b, 2)]]
        assert got == [[rate], [1], [rate] * 2, [rate], [1] * 2]


def test_numbers_of_the_object_are_checked_at_every_call():
    class Net:
        def __init__(self):
            self.training, self.n, self.name, self.rate = True, 1, "a", 2.0

        @eb.cell
        def step(self, x):
            for _ in range(self.n):
                x = x * 2
            return x if self.training else -x

        @eb.cell
        def other(self, x):
            return x * self.rate if self.name == "a" else -x

    def run(cells):
        nets = Net(), Net()
        with eb.options(cells=cells), eb.Graph(policy="depth"):
            x, got = eb.ones(1), []
            for change in ({}, {"n": 3}, {"training": False}, {"n": 1}, {"rate": 5.0}, {"name": "b"}, {"training": 1}):
                vars(nets[0]).update(change)
                got += [getattr(net, name)(x) for net in nets for name in ("step", "other")]
            return [float(value[0]) for value in eb.forward(got)]

    assert run(True) == run(False) == run(True)


def test_graphs_that_alternate_are_checked():
    class Net:
        rate = 1.0

        @eb.cell
        def step(self, x):
            return x * self.rate

    net = Net()
    first, second = eb.Graph(policy="depth"), eb.Graph(policy="depth")
    with first:
        a = net.step(eb.ones(1))
    net.rate = 3.0
    with second:
        b = net.step(eb.ones(1))
    assert (a.value(), b.value()) == (1, 3)


def test_what_does_not_matter_is_not_compiled_again():
    class Net:
        calls = 0
        width = 2.0

        @eb.cell
        def step(self, x):
            return x * 2 if self.calls >= 0 else x

    net = Net()
    for calls in range(5):
        net.calls = calls
        np.testing.assert_allclose(numbers(Net.step, net, True), numbers(Net.step, net, False))
    assert len(Net.step.compiled()) == 1


class TestRefused:
    def expect(self, function, match, net=None):
        with eb.Graph(), pytest.raises(eb.EdBatchError, match=match):
            eb.cell(function)(net or Base(), eb.ones(2))

    def test_objects_that_cannot_be_looked_into(self):
        class Net(Base):
            pass

        net = Net(stream=iter([1.0]), data=memoryview(b"abc"))
        self.expect(lambda self, x: x * 2 if self.stream else x, r"self\.stream, of type builtins.list_iterator", net)
        self.expect(lambda self, x: x * self.data[0], r"cell .*: it reads self\.data, of type builtins.memoryview", net)

    def test_tensors(self):
        torch = pytest.importorskip("torch")
        self.expect(lambda self, x: x * float(self.t[0]), r"self\.t, of type torch.Tensor", Base(t=torch.ones(1)))

    def test_values_of_parameters_and_expressions(self):
        W = eb.ParameterCollection().add_parameters(2)
        self.expect(lambda self, x: x * W.value(), "reads a value")
        self.expect(lambda self, x: x * float(W.grad()[0]), "reads a value")
        with eb.Graph(policy="depth"):
            y = eb.ones(2)
        self.expect(lambda self, x: x * y.value(), "reads a value")
        self.expect(lambda self, x: x * eb.forward([y])[0], "reads a value")

    def test_files(self, tmp_path):
        path = tmp_path / "rate.txt"
        path.write_text("0.5")

        def read(self, x):
            with open(path) as file:
                return x * float(file.read())

        self.expect(read, r"calls open\(\)")


def test_a_number_that_is_another_each_time_warns():
    class Net:
        rate = 1.0

        @eb.cell
        def step(self, x):
            return x * self.rate

        @eb.cell
        def keyed(self, x, *, rate):
            return x * rate

        @eb.cell
        def right(self, x, rate):
            return x * rate

    net = Net()

    def steps(n, how):
        for step in range(n):
            net.rate = 0.5**step
            with eb.Graph(policy="depth"):
                y = how(eb.ones(2))
            assert y.value()[0] == np.float32(net.rate)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps(30, lambda x: net.right(x, net.rate))
        assert len(Net.right.compiled()) == 1
    with pytest.warns(
        eb.EdBatchWarning, match=rf"step has been traced {MANY} times: self.rate has become .*expression"
    ):
        steps(MANY, net.step)
    with pytest.warns(eb.EdBatchWarning, match=rf"keyed has been traced {MANY} times: rate is another.*expression"):
        steps(MANY, lambda x: net.keyed(x, rate=net.rate))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        steps(20, net.step)


def test_old_models_are_let_go():
    class Net:
        def __init__(self):
            self.W = eb.ParameterCollection(seed=0).add_parameters((2, 2))
            self.sub = Base(W=self.W)

        @eb.cell
        def step(self, x):
            return self.W @ x + self.sub.W @ x

    net = Net()
    numbers(Net.step, net, True)
    old = weakref.ref(net.W)
    net.W = eb.ParameterCollection(seed=1).add_parameters((2, 2))
    net.sub = Base(W=net.W)
    np.testing.assert_allclose(numbers(Net.step, net, True), numbers(Net.step, net, False), rtol=1e-5)
    gc.collect()
    assert old() is None
    gone = weakref.ref(net.W)
    del net
    assert gone() is None  # without a collection: no cycle


def test_a_profiler_goes_on(monkeypatch):
    import cProfile

    seen = []

    @eb.cell
    def step(x):
        return helper(x)

    sys.setprofile(lambda frame, event, about: seen.append(frame.f_code.co_name))
    try:
        with eb.Graph():
            step(eb.ones(2))
    finally:
        found = sys.getprofile()
        sys.setprofile(None)
    assert found is not None
    assert "helper" in seen
    profiler = cProfile.Profile()
    with profiler, eb.Graph():
        step(eb.ones(3))
        sorted([1])
    assert any("sorted" in str(entry.code) for entry in profiler.getstats())


def test_what_import_hooks_do_is_not_read(monkeypatch, tmp_path):
    """Setuptools and pytest have some, in Python, with state; the first trace alone imports something."""
    asked, traces = [], []

    class Hook:
        def find_spec(self, name, path=None, target=None):
            asked.append(name)

    @eb.cell
    def step(x):
        import imported_by_the_first_trace

        return x * imported_by_the_first_trace.FACTOR

    (tmp_path / "imported_by_the_first_trace.py").write_text("FACTOR = 2.0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [Hook(), *sys.meta_path])
    monkeypatch.setattr(cell, "trace_cell", lambda *given: (traces.append(given[0]), trace_cell(*given))[1])
    for _ in range(3):
        with eb.Graph():
            assert step(eb.ones(1)).value() == [2]
        asked.append("something else")
    assert asked[0] == "imported_by_the_first_trace"
    assert len(traces) == 1


def test_what_the_garbage_collector_calls_is_not_read():
    """Its callbacks come at any time: those of a test runner measure how long it takes."""
    started = []

    def callback(phase, info):
        started.append(time.perf_counter())

    @eb.cell
    def waste(x):
        for _ in range(2000):
            x = x + 0.0 * len([[]])
            cycle = []
            cycle.append(cycle)
        return x

    gc.callbacks.append(callback)
    threshold = gc.get_threshold()
    gc.set_threshold(5)
    try:
        with eb.Graph(policy="sufficient"):
            y = waste(eb.input([1.0]))
        assert gc.isenabled()
        assert y.value() == 1
    finally:
        gc.callbacks.remove(callback)
        gc.set_threshold(*threshold)
    assert started

"""What functions read may change: their numbers are those of the same code that nothing is kept of, or an error."""

import gc
import os
import sys
import time
import types
import warnings
import weakref

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.many_numbers import MANY
from edbatch.graph.watch.state import READS_STATE
from tests.graph.watch.mutations import MUTATIONS, REFUSED, Program


def as_cell(program):
    return eb.cell(program.read)


def as_method(program):
    net = program.names["net"]
    type(net).method = eb.cell(program.method)
    return lambda x: program.names["net"].method(x)


def as_vertices(program):
    function = eb.vertex(lambda v: v.scatter(program.read(v.pull())))
    return lambda x: function(eb.InputGraph([0, 0], []), eb.array([x])).scattered[0]


def as_replay(program):
    replayed = eb.replay(lambda sample: program.read(eb.input(sample)))
    return lambda x: replayed((0.3, -0.2)) + 0 * x


def as_replayed_method(program):
    replayed = eb.replay(lambda net, sample: program.method(net, eb.input(sample)))
    return lambda x: replayed(program.names["net"], (0.3, -0.2)) + 0 * x


KINDS = [as_cell, as_method, as_vertices, as_replay, as_replayed_method]


def value_of(call, **options):
    with eb.options(**options), eb.Graph(policy="depth"):
        return call(eb.input([0.3, -0.2])).value()


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    os.environ.pop("OF_A_TEST", None)
    sys.modules.pop("of_a_test", None)


CALLS = [
    pytest.param(name, kind, id=f"{name}, {kind.__name__}")
    for name, (_, expression, *_) in MUTATIONS.items()
    for kind in KINDS
    if "net." in expression or kind not in (as_method, as_replayed_method)
]
# Objects that hold what nobody can see the changes of are no samples.
NO_SAMPLES = {"weak reference", "method", "another function", "bound method", "partial"}


@pytest.mark.parametrize(("name", "kind"), CALLS)
def test_what_changes_is_seen(name, kind):
    setup, expression, *changes = MUTATIONS[name]
    program = Program(setup, expression)
    call = kind(program)
    if kind is as_replayed_method and name in NO_SAMPLES:
        with pytest.raises(eb.EdBatchError, match="whose changes cannot be seen"):
            [(program.change(change), value_of(call)) for change in ["", *changes]]
        return
    before = value_of(call)
    np.testing.assert_allclose(before, value_of(program.read, cells=False), rtol=1e-6)
    for change in changes:
        program.change(change)
        want = value_of(program.read, cells=False)
        assert np.abs(want - before).max() > 0.01, change
        for _ in range(2):
            np.testing.assert_allclose(value_of(call), want, rtol=1e-6, err_msg=change)
        before = want


@pytest.mark.parametrize("kind", [as_cell, as_vertices, as_replay])
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_watched_is_refused(name, kind):
    setup, number = REFUSED[name]
    if name == "tensor":
        pytest.importorskip("torch")
    program = Program(setup, f"x * {number}")
    if kind is as_vertices:  # nothing is kept of it
        value_of(kind(program))
        return
    for _ in range(2):
        with pytest.raises(eb.EdBatchError, match=r"(it (reads|calls) |random numbers)"):
            value_of(kind(program))


def test_the_library_has_no_other_functions_of_such_names():
    """What Python gets in later versions is put on the list, or here."""
    constant = {
        "getsizeof", "getdefaultencoding", "getfilesystemencoding", "getfilesystemencodeerrors", "getandroidapilevel",
        "getwindowsversion", "getenv", "getenvb", "get_exec_path", "get_handle_inheritable", "get_inheritable", "sleep",
        "tzset", "pthread_getcpuclockid", "clock_settime", "clock_settime_ns", "isabs", "get_debug", "is_tracked",
        "is_finalized", "is_finalizing", "is_stack_trampoline_active", "strptime",
    }  # fmt: skip
    of_python = types.BuiltinFunctionType | types.FunctionType
    for module, begins in (os, ("get", "is")), (os.path, ("get", "is")), (sys, "get"), (time, ""), (gc, ("get", "is")):
        functions = {name for name, value in vars(module).items() if isinstance(value, of_python)}
        known = READS_STATE.get(module.__name__, set()) | constant
        assert {name for name in functions if name.startswith(begins)} - known == set()


class Scaled:
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


def test_what_does_not_matter_or_comes_back_is_not_compiled_again():
    class Net:
        rate, calls = 1.0, 0

        @eb.cell
        def step(self, x):
            return x * self.rate if self.calls >= 0 else x

    net = Net()
    for net.rate in (1.0, 2.0, 1.0, 2.0):
        net.calls += 1
        assert value_of(net.step)[0] == np.float32(0.3) * np.float32(net.rate)
    assert len(Net.step.compiled()) == 2


def test_a_number_that_is_another_each_time_warns():
    net = Scaled()

    def steps(n, how):
        for step in range(n):
            net.rate = 0.5**step
            with eb.Graph(policy="depth"):
                y = how(eb.ones(2))
            assert y.value()[0] == np.float32(net.rate)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps(30, lambda x: net.right(x, net.rate))
    message = rf"step has been traced {MANY} times: self.rate has become .*expression"
    with pytest.warns(eb.EdBatchWarning, match=message):
        steps(MANY, net.step)
    with pytest.warns(eb.EdBatchWarning, match=rf"keyed has been traced {MANY} times: rate is another.*expression"):
        steps(MANY, lambda x: net.keyed(x, rate=net.rate))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        steps(20, net.step)


def test_old_models_are_let_go():
    class Net:
        def __init__(self):
            self.change(0)

        def change(self, seed):
            self.model = eb.ParameterCollection(seed=seed)
            self.W = self.model.add_parameters((2, 2))

        @eb.cell
        def step(self, x):
            return self.W @ x + eb.sum([p @ x for p in self.model if not p.frozen and p.name in self.model])

    net = Net()
    value_of(net.step)
    old = weakref.ref(net.W)
    net.change(1)
    np.testing.assert_allclose(value_of(net.step), 2 * net.W.value() @ [0.3, -0.2], rtol=1e-5)
    gc.collect()
    assert old() is None
    gone = weakref.ref(net.W)
    del net
    gc.collect()
    assert gone() is None


def test_a_profiler_goes_on():
    seen = []

    def helper(x):
        return x * 2

    step = eb.cell(lambda x: helper(x))
    sys.setprofile(lambda frame, event, about: seen.append(frame.f_code.co_name))
    try:
        value_of(step)
    finally:
        found = sys.getprofile()
        sys.setprofile(None)
    assert found is not None
    assert "helper" in seen


def test_what_import_hooks_and_the_garbage_collector_call_is_not_read(monkeypatch, tmp_path):
    """Setuptools and pytest have some, in Python, with state; the first trace alone imports something."""
    asked, started = [], []

    class Hook:
        def find_spec(self, name, path=None, target=None):
            asked.append(name)

    @eb.cell
    def step(x):
        import imported_by_the_first_trace

        for _ in range(200):
            x = x + 0.0 * len([[]])
            cycle = []
            cycle.append(cycle)
        return x * imported_by_the_first_trace.FACTOR

    (tmp_path / "imported_by_the_first_trace.py").write_text("FACTOR = 2.0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [Hook(), *sys.meta_path])
    monkeypatch.setattr(gc, "callbacks", gc.callbacks)
    gc.callbacks.append(lambda phase, info: started.append(time.perf_counter()))
    threshold = gc.get_threshold()
    gc.set_threshold(5)
    try:
        for _ in range(3):
            with eb.Graph(policy="sufficient"):
                assert step(eb.ones(1)).value() == [2]
            asked.append("something else")
        assert gc.isenabled()
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*threshold)
    assert asked[0] == "imported_by_the_first_trace"
    assert started
    assert len(step.compiled()) == 1

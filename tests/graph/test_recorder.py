"""Recording in C: what it is given wrongly it refuses as recording in Python does, and nothing leaks."""

import gc
import os
import random
import subprocess
import sys
import sysconfig
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph import recorder

ROOT = Path(__file__).parents[2]
SIZE = 3
needs_c = pytest.mark.skipif(not recorder.IN_C, reason="recording is in Python")


class Net:
    def __init__(self):
        self.model = eb.ParameterCollection(seed=1)
        self.W, self.b = self.model.add_parameters((SIZE, SIZE)), self.model.add_parameters(SIZE)
        self.table = self.model.add_lookup_parameters((5, SIZE))
        self.scale = 2.0

    @eb.cell
    def step(self, h, x):
        return eb.tanh(self.W @ h + x), h * self.scale

    @eb.cell
    def row(self, word: int, label: int):
        return eb.cross_entropy(eb.tanh(self.table[word]), label)

    @eb.cell
    def drawn(self, x):
        return eb.dropout(x, 0.5)

    @eb.cell
    def keyed(self, x, *, k=1):
        return {"a": x * k, "b": [x]}


NET = Net()
OTHER = eb.ParameterCollection()
OTHERS = OTHER.add_parameters(SIZE)
# Whatever a caller records: with x and y of SIZE entries, m a matrix.
CALLS = {
    "one operand": lambda x, y, m: eb.tanh(x),
    "two": lambda x, y, m: eb.add(x, y),
    "operator": lambda x, y, m: x * y,
    "a number": lambda x, y, m: x * 0.5 + 2,
    "a parameter": lambda x, y, m: NET.W @ x,
    "affine": lambda x, y, m: eb.affine(NET.W, x, NET.b),
    "affine of an expression": lambda x, y, m: eb.affine(NET.W, x, y),
    "axis": lambda x, y, m: eb.softmax(m, 0),
    "default axis": lambda x, y, m: eb.softmax(m),
    "a view": lambda x, y, m: m.T,
    "reshaped": lambda x, y, m: eb.reshape(m, (-1,)),
    "an entry": lambda x, y, m: x[-1],
    "a slice": lambda x, y, m: x[1:],
    "several axes": lambda x, y, m: m[0, 1:],
    "picked": lambda x, y, m: eb.pick(x, 2),
    "a list": lambda x, y, m: eb.sum([x, y, x]),
    "side by side": lambda x, y, m: eb.concatenate([x, y]),
    "stacked": lambda x, y, m: eb.stack((x, y), 1),
    "a row": lambda x, y, m: eb.lookup(NET.table, 4),
    "a row by index": lambda x, y, m: NET.table[3],
    "a cell": lambda x, y, m: NET.step(x, y)[1],
    "a cell of integers": lambda x, y, m: NET.row(3, 1),
    "a cell that draws": lambda x, y, m: NET.drawn(x),
    "a cell with a keyword": lambda x, y, m: NET.keyed(x, k=2)["a"],
}


def operands():
    return eb.input([1.0, 2.0, 3.0]), eb.input([0.5, -1.0, 2.0]), eb.input(np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("name", CALLS)
def test_nothing_leaks(name):
    call = CALLS[name]

    def record(n):
        with eb.Graph(seed=1):
            given = operands()
            for _ in range(n):
                call(*given)

    record(100)
    gc.collect()
    count = getattr(sys, "gettotalrefcount", lambda: 0)
    tracemalloc.start()
    try:
        record(10)
        gc.collect()
        before, references = tracemalloc.get_traced_memory()[0], count()
        record(20_000 if recorder.IN_C else 1000)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 50_000
        assert count() - references < 1000
    finally:
        tracemalloc.stop()


class Odd:
    """Says that it is an integer, and does something else on the way."""

    def __init__(self, act):
        self.act = act

    def __index__(self):
        self.act()
        return 1


def bad_values(random):
    return [
        None, True, 2**70, -(2**70), 1.5, float("nan"), float("inf"), "x", b"x", [], (), {}, object(), int, np.zeros(2),
        np.float64(1), np.int64(1), np.zeros((0, 3)), OTHERS, NET, eb, [1, [2]], slice(None), Ellipsis,
        lambda: 0, Odd(lambda: eb.tanh(eb.zeros(SIZE))), Odd(gc.collect), [None], [eb.ones(2), eb.ones(3)], range(3),
    ]  # fmt: skip


def function_calls(x, y, m):
    """Callers, with arguments that are right."""
    return [
        (eb.tanh, (x,)), (eb.add, (x, y)), (eb.matmul, (NET.W, x)), (eb.affine, (NET.W, x, NET.b)),
        (eb.softmax, (m, 0)), (eb.transpose, (m,)), (eb.reshape, (m, (3, 2))), (type(x).__getitem__, (x, 1)),
        (eb.pick, (x, 1)), (eb.sum, ([x, y],)), (eb.concatenate, ([x, y], 0)), (eb.lookup, (NET.table, 1)),
        (type(NET.table).__getitem__, (NET.table, 1)), (NET.step, (x, y)), (NET.row, (1, 2)), (Net.step, (NET, x, y)),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(8))
def test_wrong_arguments_are_refused_and_leave_the_graph_whole(seed):
    rng = random.Random(seed)
    with eb.Graph() as graph, np.errstate(all="ignore"):
        given = operands()
        want = [call(*given) for call in CALLS.values()]
        refused = 0
        for _ in range(400):
            function, args = rng.choice(function_calls(*given))
            args, keywords = list(args), {}
            for _ in range(rng.randint(1, 2)):
                action = rng.random()
                if action < 0.7 and args:
                    args[rng.randrange(len(args))] = rng.choice(bad_values(rng))
                elif action < 0.8:
                    args.append(rng.choice(bad_values(rng)))
                elif action < 0.9 and args:
                    args.pop()
                else:
                    keywords[rng.choice(["x", "axis", "a", "weight", "nothing"])] = rng.choice(bad_values(rng))
            try:
                function(*args, **keywords)
            except (eb.EdBatchError, TypeError, AttributeError, ValueError, OverflowError, IndexError):
                refused += 1
        assert refused > 100
        again = [call(*given) for call in CALLS.values()]
        for name, one, other in zip(CALLS, eb.forward(want), eb.forward(again), strict=True):
            if name != "a cell that draws":  # masks are other ones
                np.testing.assert_array_equal(one, other)
        assert graph.report().nodes > 0


def test_expressions_of_several_graphs_and_none():
    with eb.Graph():
        a = eb.ones(SIZE)
    with eb.Graph():
        b = eb.ones(SIZE)
        for call in (
            lambda: eb.add(a, b),
            lambda: eb.sum([a, b]),
            lambda: NET.step(a, b),
            lambda: eb.concatenate([a, b]),
        ):
            for _ in range(3):
                with pytest.raises(eb.EdBatchError, match="another graph"):
                    call()
    for call in (lambda: eb.lookup(NET.table, 1), lambda: NET.row(1, 1), lambda: NET.table[2]):
        with pytest.raises(eb.EdBatchError, match="no graph"):
            call()


@pytest.mark.parametrize("attribute", ["graph", "spec", "id"])
def test_what_was_deleted_of_an_expression_is_missed(attribute):
    with eb.Graph():
        x, y, m = operands()
        for call in CALLS.values():
            call(x, y, m)
        for given in (x, m):
            try:
                delattr(given, attribute)
            except TypeError:
                return  # it cannot be
        for name, call in CALLS.items():
            if name not in ("a row", "a row by index", "a cell of integers"):
                with pytest.raises((AttributeError, TypeError, eb.EdBatchError)):
                    call(x, y, m)


def test_subclasses_are_recorded_alike():
    class Special(eb.Expression):
        __slots__ = ()

    class WithAttributes(eb.Expression):
        pass

    for kind in (Special, WithAttributes):
        with eb.Graph(expression_class=kind):
            given = operands()
            for call in list(CALLS.values()) * 2:
                found = call(*given)
            assert isinstance(found, kind)
            assert isinstance(given[0] + given[1], kind)
            assert eb.sum(given[0] + given[1]).value() == pytest.approx(7.5)
            assert not (recorder.IN_C and kind is WithAttributes) or vars(given[0]) == {}


def test_threads_record_graphs_of_their_own():
    def run(seed, found):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            with eb.Graph():
                x, y = eb.input(rng.normal(size=SIZE)), eb.input(rng.normal(size=SIZE))
                for _ in range(50):
                    x, y = NET.step(x, y)
                    x = eb.tanh(x[::-1] + y * 0.1) - eb.lookup(NET.table, 2)
                found.append(float(eb.sum(x).value()))

    several = [[] for _ in range(4)]
    threads = [threading.Thread(target=run, args=(seed, found)) for seed, found in enumerate(several)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, found in enumerate(several):
        want = []
        run(seed, want)
        np.testing.assert_allclose(found, want, rtol=1e-5)


def test_watched_attributes_that_change_or_go():
    net = Net()
    net.W.set_value(NET.W.value())
    for scale in (2.0, 3.0, 2.0):
        net.scale = scale
        for _ in range(2):
            with eb.Graph():
                assert net.step(eb.ones(SIZE), eb.ones(SIZE))[1].value() == pytest.approx(scale)
    del net.scale
    with eb.Graph(), pytest.raises(AttributeError):
        net.step(eb.ones(SIZE), eb.ones(SIZE))


@needs_c
def test_the_extension_compiles_without_a_warning(tmp_path):
    compiler = sysconfig.get_config_var("CC")
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-missing-field-initializers"]
    flags += ["-Wno-cast-function-type", "-fPIC", "-c", f"-I{sysconfig.get_path('include')}"]
    source = ROOT / "edbatch" / "graph" / "_recorder.c"
    done = subprocess.run(
        [*compiler.split(), *flags, str(source), "-o", str(tmp_path / "recorder.o")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.cpu  # another process
def test_without_the_extension_all_is_the_same():
    """Another process records in Python: its numbers are these, and it says so."""
    script = (
        "import edbatch as eb, tests.graph.test_recorder as t\n"
        "assert not t.recorder.IN_C\n"
        "with eb.Graph(seed=1) as graph:\n"
        "    given = t.operands()\n"
        "    found = [call(*given) for call in list(t.CALLS.values()) * 2]\n"
        "    print([x.tolist() for x in eb.forward(found)])\n"
        "    print(graph.report())\n"
        "eb.show_config()\n"
    )
    env = os.environ | {"EDBATCH_PURE_PYTHON": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, cwd=ROOT, check=True)
    values, rest = done.stdout.split("\n", 1)
    with eb.Graph(seed=1):
        given = operands()
        found = [call(*given) for call in list(CALLS.values()) * 2]
        assert values == str([x.tolist() for x in eb.forward(found)])
    assert rest.count("in Python") == 2


def test_callers_free_what_they_know():
    """An inline cache has several entries, which hold specs and types' results."""
    kept = []
    for kind in (recorder.FIXED, recorder.VIEW, recorder.LIST):
        found = recorder.caller(kind, lambda x: x, ("x",), 1)
        for number in range(5):
            with eb.Graph():
                spec = eb.zeros(number + 1).spec
            held = type("Held", (), {})()
            kept.append(weakref.ref(held))
            found.learn((spec,), number, held)
        del found, held
    gc.collect()
    assert not any(one() for one in kept)

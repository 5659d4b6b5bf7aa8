"""An interrupt at any line: what users keep is as before or as after, and the same work done again is right.

Each scenario is interrupted at its lines, one after the other (with `-m slow` at all of them, otherwise at some that
are evenly spread), while memory that is free is full of NaN.
"""

import gc
import itertools
from functools import cache, partial

import numpy as np
import pytest

import edbatch as eb
from edbatch.compiling import compiled
from edbatch.graph.model import writes
from edbatch.graph.recorder import IN_C
from edbatch.testing import poisoned_memory
from tests.interrupts import FOREVER, Interrupt, expect_none_open

pytestmark = [
    pytest.mark.cpu,  # signals of this process
    # Without C, what is raised before a finalizer's first statement is lost: Python says so, and that is all.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <function Builder.__del__:pytest.PytestUnraisableExceptionWarning"
    ),
    # Python closes a file that was opened when nobody had it yet, and says so.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <_io:pytest.PytestUnraisableExceptionWarning"),
]
MOST, OF_AN_UPDATE = 30, 200  # places of a scenario


@pytest.fixture(autouse=True)
def nothing_else_is_compiled(monkeypatch):
    """What begins to pay in the middle would leave later steps with fewer lines than were counted."""
    monkeypatch.setattr(compiled, "PATIENCE", float("inf"))


class Model:
    """Products of parameters that are stacked, a table, a cell in a recurrence, lists, views; and a trainer."""

    def __init__(self):
        self.model = eb.ParameterCollection(seed=0)
        self.W, self.U = (self.model.add_parameters((6, 6), name=name) for name in "WU")
        self.b = self.model.add_parameters((6,), name="b", init=0.1)
        self.table = self.model.add_lookup_parameters((9, 6), name="table")
        self.trainer = eb.Adam(self.model, lr=0.01, clip=1.0)

    @eb.cell
    def step(self, h, word: int):
        x = eb.lookup(self.table, word)
        a, b = self.W @ h + self.b, self.U @ h + self.b
        return eb.tanh(a + x) * eb.sigmoid(b)

    def last(self, words):
        h = eb.zeros(6)
        for word in words:
            h = self.step(h, word)
        return self.W @ h + eb.concatenate([h[3:], h[:3]])

    replayed = eb.replay(last)

    def loss(self, last=last):
        with eb.Graph(policy="sufficient"):
            found = [last(self, words) for words in ([1, 2, 3], [4, 2], [5, 1, 7, 8])]
            return eb.sum([eb.cross_entropy(scores, 2) for scores in found])

    async def decode(self, word):
        h, words = eb.zeros(6), []
        for _ in range(3):
            h = self.step(h, word)
            word = int(np.argmax(await (self.W @ h)))
            words.append(word)
        return words

    def saved(self):
        """All that an update changes."""
        arrays, numbers = self.trainer.state()
        return [*(p.value() for p in self.model), *arrays.values(), *numbers.values()]

    def gradients(self):
        return [p.grad().copy() for p in self.model] if any(p.has_grad for p in self.model) else []


@cache
def known():
    """A model whose types and programs are there, and its first state."""
    return Model(), Model()


def restored():
    """The model that is known, as it was made."""
    gc.collect()
    model, fresh = known()
    for parameter, other in zip(model.model, fresh.model, strict=True):
        parameter.set_value(other.value())
    model.trainer.load_state(*fresh.trainer.state())
    model.model.zero_grad()
    return model


def value(x):
    """What is read after an interrupt is right, or there is an error that says why not."""
    try:
        return [x().value() if callable(x) else x.value()]
    except eb.EdBatchError as error:
        assert "nterrupt" in str(error), error  # noqa: PT017
        return None


# Scenarios: what is interrupted, and a function that returns what there is then, or None where that is refused.


def read(folder):
    loss = restored().loss()
    return loss.value, lambda: value(loss)


def first_read(folder):
    """Traced, stacked, compiled: tables are filled while the interrupt comes."""
    model = Model()
    return lambda: model.loss().value(), lambda: [value(model.loss()), model.saved()]


def backward(folder):
    model = restored()
    loss = model.loss()
    loss.value()
    return loss.backward, model.gradients


def backward_of_a_graph_that_grew(folder):
    model = restored()
    loss = model.loss()
    loss.value()
    with loss.graph:
        more = eb.sum(model.last([3, 2])) + loss
    return more.backward, lambda: [*model.gradients(), value(loss)]


def returned_gradients(folder):
    """Those that are there are left alone."""
    model = restored()
    loss = model.loss()
    loss.backward()
    of = [*model.model, loss]
    return lambda: eb.gradients(loss, of, 2.0), lambda: [*model.gradients(), loss.gradient(), value(loss)]


def update(folder):
    model = restored()
    model.loss().backward()
    return model.trainer.update, model.saved


def step(folder):
    """From its beginning to its end: gradients are whole, too, and gone where they were used."""
    model = restored()

    def work():
        model.loss().backward()
        model.trainer.update()

    return work, lambda: model.saved() if model.trainer.steps else [value(model.loss()), model.saved()]


def replay(folder):
    model = restored()
    return lambda: model.loss(Model.replayed).value(), lambda: value(model.loss(Model.replayed))


def vertices(folder):
    model = restored()
    diamond = eb.InputGraph.of_lists([[(1, 2, 1), (3,), (3,), ()]])

    @eb.vertex
    def states(v):
        v.scatter(eb.tanh(model.W @ eb.sum([v.pull(), *v.gather()])))

    def run():
        with eb.Graph(policy="sufficient"):
            return eb.sum(eb.sum(states(diamond, np.ones((4, 6))).scattered))

    return lambda: run().backward(), lambda: value(run())


def programs(folder):
    model = restored()

    def run():
        with eb.Graph(policy="sufficient"):
            return eb.run([model.decode(word) for word in range(4)], return_exceptions=True)

    return run, lambda: [np.array(run())]


def arrays(folder):
    graph = eb.Graph(policy="sufficient")
    with graph:
        xs = eb.array(np.arange(6.0).reshape(3, 2))

    def work():
        with graph:
            eb.sum(eb.array([xs * 2, xs + 1])).value()

    def total():
        with graph:
            return eb.sum(xs * 3)

    return work, lambda: value(total)


def release(folder):
    """The graph has its values, or has none and says why."""
    loss = restored().loss()
    loss.backward()

    def state():
        try:
            return [loss.value(), *(x.gradient() for x in [loss])]
        except eb.EdBatchError as error:
            assert "release()" in str(error)  # noqa: PT017
            return []

    return loss.graph.release, state


def learning(folder):
    with eb.Graph() as graph:
        eb.sum([eb.tanh(eb.sigmoid(eb.scalar(x))) for x in range(3)])
    known = graph.typed_graph()

    def run():
        return eb.learn([known], progress=False, episodes=2).schedule(known).order

    return run, lambda: [run()]


def saving(folder):
    """The file is the old one or the new one."""
    model, path = restored(), folder / "m.safetensors"
    model.W.set_value(np.zeros((6, 6)))
    model.model.save(path)
    model.W.set_value(np.ones((6, 6)))

    def state():
        found = eb.ParameterCollection()
        found.add_parameters((6, 6), name="W")
        found.load(path, strict=False)
        return [found["W"].value()]

    return partial(model.model.save, path), state


def loading(folder):
    """Parameters and what the trainer remembers are all those of the file, or none is."""
    model, path = restored(), folder / "m.safetensors"
    model.loss().backward()
    model.trainer.update()
    model.model.save(path, trainer=model.trainer)
    model = restored()
    return lambda: model.model.load(path, trainer=model.trainer), model.saved


def new_parameters(folder):
    """A parameter is there with its values, or its name is free."""
    model = eb.ParameterCollection(seed=0)
    model.add_parameters((2, 2), name="A")
    return lambda: model.add_lookup_parameters((3, 2), name="B"), lambda: [x.value() for x in model]


SCENARIOS = [
    read, first_read, backward, backward_of_a_graph_that_grew, returned_gradients, update, step, replay, vertices,
    programs, arrays, release, learning, saving, loading, new_parameters,
]  # fmt: skip


def same(a, b):
    """Two states to the same bits; an interrupt changes no sum. What is refused in the first is of no account."""
    if a is None:
        return True
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b)


def witness():
    """A graph that lives on: nobody else may get its memory."""
    with eb.Graph(policy="sufficient"):
        xs = [eb.input(np.full(6, float(n))) * 2 for n in range(40)]
        loss = eb.sum([eb.sum(x) for x in xs])
    loss.backward()
    return lambda: [*(x.value() for x in xs), xs[3].gradient()]


def check(scenario, folder, most):
    def make(numbers=itertools.count()):  # noqa: B008 (folders of their own)
        (made := folder / str(next(numbers))).mkdir()
        return scenario(made)

    for _ in range(2):  # what is imported, compiled and planned at first takes more lines than any time after it
        work, state = make()
        before = state()
        work, state = make()
        work()
        after = state()
    other = witness()
    there, interrupted = other(), 0
    gc.collect()
    gc.freeze()  # else each collection of what an interrupt left would look at all modules, which takes 0.1 s
    for _ in range(3):  # loops that are compiled meanwhile take fewer lines: these are counted anew
        counted = Interrupt(FOREVER)
        counted.run(make()[0])
        assert counted.passed > 20
        with poisoned_memory():
            for at in range(1, counted.passed + 1, -(-counted.passed // most)):
                work, state = make()
                interrupt = Interrupt(at)
                interrupted += interrupt.run(work)
                if interrupt.passed < at:  # what comes again has its plan, and takes fewer lines
                    break
                expect_none_open()
                left = state()
                assert same(left, before) or same(left, after), at
                work, state = make()
                work()
                assert same(state(), after), at
                assert same(other(), there), at
        if interrupted > 10:
            break
    gc.unfreeze()
    assert interrupted > 10


# The scenario's own coroutines are never awaited where an interrupt comes before they are handed over.
@pytest.mark.filterwarnings("ignore:coroutine 'Model.decode' was never awaited:RuntimeWarning")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_an_interrupt_at_some_lines(scenario, tmp_path):
    check(scenario, tmp_path, OF_AN_UPDATE if scenario is update else MOST)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:coroutine 'Model.decode' was never awaited:RuntimeWarning")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_an_interrupt_at_any_line(scenario, tmp_path):
    check(scenario, tmp_path, FOREVER)


@pytest.mark.skipif(not IN_C, reason="some are lost where there is no C extension")
def test_an_interrupt_in_the_finalizer_of_a_graph_is_heard_of():
    """What Python would only print is raised in what runs next; and the graph gives back what it holds."""
    at, interrupted = 0, True
    while interrupted:
        at += 1
        with eb.Graph() as graph:
            eb.scalar(1.0).value()
        held, number = [graph], id(graph)
        del graph
        interrupt = Interrupt(at)
        interrupted = interrupt.run(held.clear)
        assert interrupted == (interrupt.passed >= at), at
        assert number not in writes._graphs
    assert at > 20

"""An interrupt at any line leaves parameters, gradients and buffers whole, and the next graph right."""

import gc

import numpy as np
import pytest

import edbatch as eb
from edbatch.compiling import compiled
from edbatch.memory.plan.pool import pool_of
from tests.interrupts import FOREVER, Interrupt, end_blocks

pytestmark = [
    pytest.mark.cpu,  # signals of this process
    # What is raised before a finalizer's first statement is lost, in any: Python says so, and that is all.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <function Graph.__del__:pytest.PytestUnraisableExceptionWarning"
    ),
]


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

    def loss(self):
        losses = []
        for words in ([1, 2, 3], [4, 2], [5, 1, 7, 8]):
            h = eb.zeros(6)
            for word in words:
                h = self.step(h, word)
            losses.append(eb.cross_entropy(self.W @ h + eb.concatenate([h[3:], h[:3]]), 2))
        return eb.sum(losses)

    def train(self):
        with eb.Graph(policy="sufficient"):
            loss = self.loss()
        loss.backward()
        self.trainer.update()

    def state(self):
        """Everything that an update changes."""
        arrays, numbers = self.trainer.state()
        return [p.value() for p in self.model] + list(arrays.values()), numbers

    def gradients(self):
        return [p.grad().copy() for p in self.model] if any(p.has_grad for p in self.model) else None

    def restore(self, saved):
        for parameter, value in zip(self.model, saved[0], strict=True):
            parameter.set_value(value)
        self.trainer.load_state(*saved[1])
        self.model.zero_grad()

    def saved(self):
        return [p.value() for p in self.model], self.trainer.state()


def same(a, b):
    """Two states, or lists of arrays, to the same bits; an interrupt changes no sum."""
    if a is None or b is None:
        return a is b
    if isinstance(a, tuple):
        return a[1] == b[1] and same(a[0], b[0])
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


class Case:
    """What a clean run gives, and what is looked at after one that was not."""

    def __init__(self):
        clean = Model()
        self.fresh = clean.saved()
        with eb.Graph(policy="sufficient"):
            loss = clean.loss()
        loss.backward()
        self.value, self.expected = loss.value(), clean.gradients()
        self.before = clean.state()
        clean.trainer.update()
        self.after = clean.state()
        with eb.Graph(policy="sufficient"):  # lives on: nobody else may get its buffers
            self.witness = [eb.input(np.full(6, n)) * 2 for n in range(40)]
            self.witness_loss = eb.sum([eb.sum(x) for x in self.witness])
        self.witness_loss.backward()
        eb.forward(self.witness)

    def check(self, model):
        state, gradients = model.state(), model.gradients()
        updated = same(state, self.after)
        assert updated or same(state, self.before)
        assert gradients is None or (not updated and same(gradients, self.expected))
        self.check_pool()
        model.restore(self.fresh)
        with eb.Graph(policy="sufficient"):
            loss = model.loss()
        loss.backward()
        assert loss.value() == self.value
        assert same(model.gradients(), self.expected)
        model.trainer.update()
        assert same(model.state(), self.after)
        for n, x in enumerate(self.witness):
            np.testing.assert_array_equal(x.value(), np.full(6, 2 * n))
        np.testing.assert_array_equal(self.witness[3].gradient(), np.ones(6))
        self.check_pool()

    @staticmethod
    def check_pool():
        for free in pool_of(eb.device("cpu").backend)._free.values():
            addresses = [address for address, _ in free]
            assert len(set(addresses)) == len(addresses)


def lines_of(function):
    counter = Interrupt(FOREVER)
    counter.run(function)
    return counter.lines


def interrupt_everywhere(case, make, places):
    """Interrupt a training step at about so many places, evenly spread."""
    make().train()  # what is imported and compiled the first time takes more lines than any time after it
    lines = lines_of(make().train)
    step = max(1, lines // places)
    interrupted = 0
    for at in range(1 + step // 2, lines, step):
        model = make()
        interrupted += Interrupt(at).run(model.train)
        end_blocks()
        case.check(model)
    assert interrupted > 0.8 * len(range(1 + step // 2, lines, step))


def warm():
    """A model whose types and programs are there, as it was made."""
    kept = Model()
    kept.train()
    fresh = Model().saved()

    def make():
        gc.collect()
        kept.restore(fresh)
        return kept

    return make


def test_interrupts_of_a_warm_step():
    interrupt_everywhere(Case(), warm(), 60)


def test_interrupts_of_a_first_step():
    """Traced, stacked, compiled: tables are filled while the interrupt comes."""
    interrupt_everywhere(Case(), Model, 20)


def test_an_update_that_goes_on_after_an_interrupt_at_any_line():
    """By the constants of this update: whoever kept the address of others reads NaN, see `interrupts.reuse_memory`."""

    def trained(at):
        model = eb.ParameterCollection(seed=0)
        parameters = [model.add_parameters((4,), init=1.0) for _ in range(2)]
        table, trainer = model.add_lookup_parameters((3, 4)), eb.Adam(model, lr=0.01)
        interrupt = Interrupt(at)
        for step in range(3):
            with eb.Graph(policy="sufficient"):
                loss = eb.sum([eb.sum(eb.square(x)) for x in (*parameters, table[1])])
            loss.backward()
            if step == 1:
                interrupt.run(trainer.update)
                end_blocks()
            if table.has_grad:
                trainer.update()
        return [p.value() for p in model], interrupt.lines

    expected, lines = trained(FOREVER)
    assert lines > 20
    for at in range(1, lines + 1):
        assert same(trained(at)[0], expected), at


@pytest.mark.slow
def test_interrupts_of_a_warm_step_at_every_line():
    interrupt_everywhere(Case(), warm(), FOREVER)


@pytest.mark.slow
def test_interrupts_of_a_first_step_densely():
    interrupt_everywhere(Case(), Model, 2000)


def test_an_interrupt_in_the_finalizer_of_a_graph_is_heard_of():
    """What Python would only print reaches what runs next; and what the graph held is given back."""
    at, interrupted = 2, True  # its first statement begins the block in which an interrupt is caught
    while interrupted:
        at += 1
        with eb.Graph() as graph:
            eb.scalar(1.0).value()
        interrupt = Interrupt(at)
        interrupted = interrupt.run(graph.__del__)
        assert interrupted == (interrupt.lines >= at), at
        assert graph._evaluation is None
    assert at > 20

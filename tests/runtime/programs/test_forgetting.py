"""Values that no program can reach are given back: what can be reached is as before, and memory stays bounded."""

import functools
import itertools
from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.opened import graphs
from edbatch.models import AttentionEncoderDecoder, TransitionParser, generation
from edbatch.runtime.programs import forgetting


@pytest.fixture
def always(monkeypatch):
    """Give back after every round; how often it happened."""
    moves = []
    move = forgetting.Forgetting.move

    def counted(self, roots):
        moves.append(move(self, roots))
        return moves[-1]

    monkeypatch.setattr(forgetting.Forgetting, "due", lambda self: True)
    monkeypatch.setattr(forgetting.Forgetting, "move", counted)
    return moves


def parse(model):
    parser = TransitionParser(model, 9, 3, 5)
    return lambda k: parser.parse([(k * j) % 9 for j in range(1 + k % 5)])


def translate(model):
    network = AttentionEncoderDecoder(model, 9, 7, 6)
    return lambda k: generation.beam(network, [k % 9, 1, 2][: 1 + k % 3], 2, 5)


def draw(model):
    async def program(k):
        return [(await eb.dropout(eb.ones(9), 0.5)).tolist() for _ in range(3)]

    return program


def flat(found):
    """The words and numbers in lists and tuples."""
    return [x for part in found for x in flat(part)] if isinstance(found, list | tuple) else [found]


@pytest.mark.parametrize("make", [parse, translate, draw])
def test_results_are_those_of_a_graph_that_keeps_all(make, always):
    program = make(eb.ParameterCollection(seed=0))
    eb.seed(5)
    with eb.Graph():
        kept = eb.run([program(k) for k in range(9)])
    assert not always
    eb.seed(5)
    # The last bits of a product depend on its rows.
    assert flat(eb.run([program(k) for k in range(9)], limit=4)) == pytest.approx(flat(kept), rel=1e-6)
    assert len(always) > 3


@dataclass
class Kept:
    x: object


class Slots:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


def closure(x):
    def read():
        return x

    return read


def generator(x):
    yield
    yield x


def begun(x):
    found = generator(x)
    next(found)
    return found


def chained(x):
    listed = [[x]]
    listed.append(listed)  # in a circle
    return listed


HOLDERS = {
    "list": (lambda x: [x], lambda h: h[0]),
    "dictionary": (lambda x: {"a": {"b": x}}, lambda h: h["a"]["b"]),
    "deque": (lambda x: deque([x]), lambda h: h[0]),
    "dataclass": (Kept, lambda h: h.x),
    "slots": (Slots, lambda h: h.x),
    "namespace": (lambda x: SimpleNamespace(x=x), lambda h: h.x),
    "closure": (closure, lambda h: h()),
    "default": (lambda x: lambda x=x: x, lambda h: h()),
    "partial": (lambda x: functools.partial(max, [x], key=id), lambda h: h()),
    "generator": (begun, next),
    "iterator": (lambda x: itertools.chain([x]), next),
    "array": (lambda x: np.fromiter([x], object), lambda h: h[0]),
    "circle": (chained, lambda h: h[1][0][0]),
    "method": (lambda x: Kept(x).__eq__, lambda h: h.__self__.x),
    "expression list": (lambda x: eb.ExpressionList([x, x]), lambda h: eb.weighted_sum([1.0, 0.0], h)),
    "array of expressions": (lambda x: eb.array([x, x]) + 0, lambda h: h[1]),
    "view": (lambda x: [eb.stack([x, x]).T], lambda h: h[0][:, 0]),
}


@pytest.mark.parametrize("how", HOLDERS)
def test_what_can_be_reached_stays(how, always):
    hold, read = HOLDERS[how]

    async def program(k):
        held = hold(eb.input([k, 2.0 * k]) * 2)
        for _ in range(3):
            await eb.scalar(k)
        return (await (read(held) + 1)).tolist()

    assert eb.run([program(k) for k in range(3)]) == [[2 * k + 1, 4 * k + 1] for k in range(3)]
    assert len(always) > 2


hidden = {}


def test_what_is_hidden_is_refused(always):
    async def program():
        hidden["x"] = eb.scalar(1.0) * 2
        await hidden["x"]
        await eb.scalar(1.0)
        return 1

    eb.run([program()])
    for use in (lambda x: x.value(), lambda x: (x + 1).value(), lambda x: x.backward()):
        with pytest.raises(eb.EdBatchError, match="its values were given back, as no program of `run` could reach"):
            use(hidden["x"])


def test_memory_is_bounded():
    """Without limits that are lower than usual: buffers are those that the rounds before have used."""
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((64, 64))

    @eb.cell
    def step(h):
        return eb.tanh(W @ h)

    largest = []

    async def program(n):
        h, graph = eb.ones(64), graphs.innermost()
        for k in range(n):
            h = step(h)
            await h
            if k % 100 == 0:
                largest.append(graphs.innermost().memory_bytes)
        return graph is graphs.innermost()

    assert eb.run([program(8_000) for _ in range(8)]) == [False] * 8
    assert max(largest) < 4 * forgetting.LEAST_NODES * 64 * 4

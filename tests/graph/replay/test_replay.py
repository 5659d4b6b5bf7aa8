"""Replayed functions give the values, gradients and batches of those without the decorator."""

import gc
import tracemalloc

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.replay.replay import Replay


class Net:
    def __init__(self, dim=3):
        self.model = eb.ParameterCollection(seed=0, dtype="float64")
        self.table = self.model.add_lookup_parameters((7, dim), name="table")
        self.W = self.model.add_parameters((dim, dim), name="W")
        self.scale = 0.5
        self.rate = 0.0

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + self.scale * eb.lookup(self.table, word))

    def plain(self, words, weight):
        h = eb.zeros(3)
        for word in words:
            h = eb.dropout(self.step(h, word), self.rate)
        ys = eb.lookup(self.table, np.array(words)) * 0.25
        x = eb.input(np.arange(3.0)) * weight[:3]
        return {"loss": eb.sum(h * x) + eb.sum(eb.sum(ys)), "rest": (ys, h[1:], weight[0], len(words))}

    replayed = eb.replay(plain)


SAMPLES = [(1, 2, 3), (4,), (0, 6, 6, 1), (1, 2, 3)]


def run(net, function, samples, seed=3):
    net.model.zero_grad()
    with eb.Graph("sufficient", "float64", seed=seed) as graph:
        weight = eb.input([1.0, 2.0, 3.0, 4.0])[::-1]
        found = [function(net, words, weight) for words in samples]
        total = eb.sum([one["loss"] for one in found])
    total.backward()
    values = [one["loss"].value() for one in found], [x.value() for one in found for x in one["rest"][:3]]
    gradients = [net.W.grad(), net.table.grad(), weight.gradient()]
    return values, gradients, graph.report().batches, [one["rest"][3] for one in found]


def same(net, samples):
    wanted, found = (run(net, function, samples) for function in (Net.plain, Net.replayed))
    for want, got in zip(wanted[0][0] + wanted[0][1] + wanted[1], found[0][0] + found[0][1] + found[1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert found[2:] == wanted[2:]


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_it_is_as_without_the_decorator(rate):
    net = Net()
    net.rate = rate
    for seed in range(4):
        same(net, [SAMPLES[at] for at in np.random.default_rng(seed).permutation(len(SAMPLES))])
    with eb.options(cells=False):
        same(net, SAMPLES)


def summed():
    @eb.replay
    def f(words):
        return eb.sum([eb.scalar(float(word)) for word in words])

    return f


def test_a_sample_that_is_changed_in_place_is_recorded_again():
    f, words = summed(), [1, 2]
    for last in (3, 4, 4):
        words[1] = last
        with eb.Graph():
            assert f(words).value() == 1 + last
    words[0] = True
    with eb.Graph():
        assert f(words).value() == 5
        words[1] = 6
        assert f(words).value() == 7


def test_replays_in_replays():
    inner = summed()

    @eb.replay
    def outer(pair):
        return inner(pair[0]) * inner(pair[1])

    for _ in range(3):
        with eb.Graph():
            assert [outer(((1, 2), (3, 4))).value(), outer(((3, 4), (5,))).value()] == [21, 35]


def test_memory_is_bounded(monkeypatch):
    recorded = []
    record = Replay._recorded
    monkeypatch.setattr(Replay, "_recorded", lambda *given: recorded.append(1) or record(*given))
    samples = [(float(at), "x" * 5_000) for at in range(700)]

    @eb.replay(memory=400_000)
    def f(sample):
        return eb.scalar(sample[0]) * 2

    def call(chosen):
        for at in range(0, len(chosen), 100):
            with eb.Graph():
                found = [f((number, text + "y")) for number, text in chosen[at : at + 100]]
            assert eb.forward(found) == [2 * number for number, _ in chosen[at : at + 100]]

    call(samples[:10])
    tracemalloc.start()
    call(samples)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 200_000 < used < 1_500_000  # with what graphs keep; all samples are 5 MB
    del recorded[:]
    call(samples[-20:])
    assert not recorded
    call(samples[:1])
    assert recorded

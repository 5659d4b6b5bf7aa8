"""What is recorded again, a small graph or a mini-batch of recordings, has the plan that it had."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.policy.heuristics import Heuristic
from edbatch.runtime import evaluation, learned, remembered
from edbatch.runtime.remembered import Plans
from edbatch.runtime.type_table import _shared


class Net:
    def __init__(self, dim=3):
        self.model = eb.ParameterCollection(seed=0, dtype="float64")
        self.W = self.model.add_parameters((dim, dim), name="W")
        self.table = self.model.add_lookup_parameters((9, dim), name="table")
        self.rate = 0.0

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + eb.lookup(self.table, word))

    def plain(self, words):
        h = eb.input(np.linspace(0, 1, self.W.shape[0]))
        for word in words:
            h = self.step(h, word)
        return eb.sum(eb.dropout(h, self.rate) if self.rate else h)

    replayed = eb.replay(plain)


SAMPLES = [(1, 2, 3), (4,), (1, 2, 3, 5, 6, 7), (5, 5)] * 8


@pytest.fixture(autouse=True)
def plans(monkeypatch, nothing_learned):
    own = Plans()
    monkeypatch.setattr(remembered, "of_recordings", own)
    return own


@pytest.fixture
def count(monkeypatch):
    """How many plans were made since it was asked last; of what is not made of recordings, one each time."""
    monkeypatch.setattr(remembered, "MOST_NODES", 0)
    planned = []
    plan = evaluation.Evaluation._planned
    monkeypatch.setattr(evaluation.Evaluation, "_planned", lambda self, policy: planned.append(1) or plan(self, policy))

    def made():
        n = len(planned)
        del planned[:]
        return n

    return made


def run(net, function, samples=SAMPLES, policy="sufficient", scale=1.0, seed=None):
    net.model.zero_grad()
    with eb.Graph(policy, "float64", seed=seed) as graph:
        losses = [function(net, words) for words in samples]
        whole = eb.sum(losses) * scale
    whole.backward()
    values = [*eb.forward(losses), whole.value(), losses[0].gradient(), net.W.grad(), net.table.grad()]
    report = graph.report()
    return values, (report.nodes, report.edges, report.batches, report.policy)


def same(net, **given):
    (wanted, right), (found, report) = run(net, Net.plain, **given), run(net, Net.replayed, **given)
    assert report == right
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


POLICIES = ["none", "depth", "agenda", "sufficient", "standard-sort", None]


@pytest.mark.parametrize("policy", POLICIES)
def test_it_is_planned_once(policy, count):
    net = Net()
    for at in range(4):
        run(net, Net.replayed, policy=policy)
        assert count() == (at == 0)
        same(net, policy=policy)
        assert count() == 1  # the plain one
        net.W.set_value(net.W.value() * 1.1)


OPTIONS = [({"split": False}, 1), ({"trace_lines": True}, 1), ({"profile": True}, 0), ({"cells": False}, 1)]


@pytest.mark.parametrize(("options", "matter"), OPTIONS, ids=str)
def test_options(options, matter, count):
    net = Net()
    for _ in range(2):
        same(net)
    count()
    with eb.options(**options):
        for at in range(3):
            same(net)
            assert count() == 1 + (matter and at == 0)
    same(net)
    assert count() == 1


def test_what_is_else_is_planned_anew(count):
    net = Net()

    def planned(**given):
        same(net, **given)
        return count() - 1

    assert [planned() for _ in range(2)] == [1, 0]
    assert [planned(samples=SAMPLES[:-1]) for _ in range(2)] == [1, 0]
    assert [planned(samples=SAMPLES[1:] + SAMPLES[:1]) for _ in range(2)] == [1, 0]
    assert [planned(scale=3.0) for _ in range(2)] == [0, 0]  # a number is put where another was
    assert [planned(policy="agenda") for _ in range(2)] == [1, 0]
    net.W.trainable = False
    same(net)
    net.W.trainable = True
    net.W = net.model.add_parameters((3, 3), name="other")
    count()
    assert [planned() for _ in range(2)] == [1, 0]
    assert planned(samples=[*SAMPLES[:-1], (5, 6)]) == 1
    net.__dict__ |= vars(Net(5))
    assert [planned() for _ in range(2)] == [1, 0]


def test_masks_are_drawn_anew(count):
    net = Net()
    net.rate = 0.5
    for seed in (1, 2, 1, 2):
        same(net, seed=seed)
    assert count() == 4 + 4


def test_graphs_go_on(count):
    net = Net()
    for at in range(3):
        found = []
        for function in (Net.plain, Net.replayed):
            with eb.Graph("sufficient", "float64"):
                first = [function(net, words) for words in SAMPLES]
                values = eb.forward(first)
                more = eb.sum([function(net, words) * first[0] for words in SAMPLES[:2]])
                more.backward()
                found.append([*values, more.value(), net.W.grad()])
                net.model.zero_grad()
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert count() == 4 - (at > 0)


def test_lines_are_known():
    def bad(number):
        return eb.log(eb.scalar(number))

    bad = eb.replay(bad)
    for _ in range(3):
        with eb.options(trace_lines=True), eb.Graph("sufficient", check_nan=True):
            ys = [bad(x) for x in (1.0, 2.0, -1.0)]
            with pytest.raises(eb.EdBatchError, match=__file__):
                ys[0].value()


class Anyones(Heuristic):
    pass


def test_policies_of_others_are_asked_each_time(count):
    net = Net()
    for _ in range(3):
        same(net, policy=Anyones("depth"))
        assert count() == 2


def test_a_new_table_of_types(count, monkeypatch):
    net = Net()
    same(net)
    for device in list(_shared):
        monkeypatch.delitem(_shared, device)
    count()
    same(net)
    assert count() == 2
    same(net)
    assert count() == 1


def test_memory_is_bounded(monkeypatch, count):
    own = Plans(100_000)
    monkeypatch.setattr(remembered, "of_recordings", own)
    monkeypatch.setattr(remembered, "MOST_IN_VAIN", 5)
    net = Net()
    batches = [SAMPLES[at:] for at in range(24)]
    for batch in batches:
        run(net, Net.replayed, batch)
        assert own.bytes <= 100_000
    assert own.bytes == sum(one.bytes for one in own._plans.values()) > 20_000
    n = len(own._plans)
    count()
    run(net, Net.replayed, SAMPLES[::-1])  # when many were kept in vain, only what was seen is
    assert len(own._plans) == n
    run(net, Net.replayed, SAMPLES[::-1])
    run(net, Net.replayed, SAMPLES[::-1])
    assert count() == 2


def test_until_a_policy_is_learned(count, monkeypatch):
    net = Net()
    net.W = net.model.add_parameters((3, 3), name="a type of its own")
    monkeypatch.setattr(learned, "FIRST_LOOK", 4)
    monkeypatch.setattr(learned, "CLOSE", 0.0)
    monkeypatch.setattr(learned, "TIMES", 0.0)
    policies = []
    for _ in range(20):
        with eb.Graph(dtype="float64") as graph:
            whole = eb.sum([net.replayed(words) for words in SAMPLES])
        whole.value()
        policies.append(graph.policy)
        n_learned = len({id(policy) for policy in policies})
    assert count() == 3  # at first, when learning began, and when it had ended
    assert n_learned == 2  # counted when it came again, too


def test_what_is_planned_is_of_the_process(plans):
    net = Net()
    for _ in range(3):
        run(net, Net.replayed)
    assert plans.hits == 2

"""Policies on rounds: learned from recorded rounds, and no worse than `sufficient` where learned from whole graphs."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models.workloads import get_workload
from edbatch.policy import TypedGraph, get_policy, lower_bound, read_graph
from edbatch.policy.schedule import Schedule
from edbatch.runtime.programs.choice import TRIALS, Choice

EACH, BATCH = 4, 12


class Reader:
    """Reads samples one after the other, and waits for what it has read of each: a round for each sample."""

    def __init__(self, name):
        self.workload = get_workload(name)
        self.samples, sizes, _ = self.workload.number(self.workload.generate(150, 0))
        self.network = self.workload.network(eb.ParameterCollection(seed=0), *sizes, dim=4)

    def whole(self, samples):
        with eb.Graph(policy="critical-path") as graph:
            for k in samples:
                self.workload.probabilities(self.network, self.samples[k])
        return graph.typed_graph()

    async def read(self, samples):
        found = []
        for k in samples:
            found += await eb.values(self.workload.probabilities(self.network, self.samples[k]))
        return found

    def rounds(self, policy, begin):
        """The graph, after it has run, and the values."""
        with eb.Graph(policy=policy) as graph:
            firsts = range(begin, begin + BATCH * EACH, EACH)
            found = eb.run([self.read(range(k, k + 1 + k // EACH % EACH)) for k in firsts])
        return graph, found


@pytest.fixture(scope="module")
def lattices():
    return Reader("lattice-lstm")


@pytest.mark.parametrize("name", ["lattice-lstm", "lattice-gru", "tree-lstm", "tagger-characters"])
def test_what_was_learned_from_whole_graphs_is_no_worse_than_sufficient(name):
    reader = Reader(name)
    policy = eb.learn([reader.whole(range(30))])
    for begin in (40, 100):
        learned, sufficient = (reader.rounds(one, begin)[0].report().batches for one in (policy, "critical-path"))
        assert learned <= sufficient


def test_the_better_of_two_is_chosen():
    """One that decides badly is given up after some rounds, for graphs with these types."""
    chain = TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])
    other = TypedGraph.from_lists(["I", "I"], [[], [0]])
    bad = eb.learn([chain])
    bad.schedule = get_policy("depth").schedule
    assert len(bad.schedule(chain)) == 4 > len(get_policy("critical-path").schedule(chain))
    choice = Choice()
    assert {choice.of(bad, chain).name for _ in range(TRIALS)} == {"critical-path"}
    assert choice.of(bad, other) is bad  # as good
    bad.schedule = None  # asked no more
    assert choice.of(bad, chain).name == "critical-path"


def test_types_that_a_policy_does_not_know_are_left_to_the_rule():
    policy = eb.learn([TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])])
    unknown = TypedGraph.from_lists(["I", "J"], [[], [0]])
    assert Choice().of(policy, unknown).name == "critical-path"  # and it warns of nothing


def test_the_better_is_better_over_all_trials():
    chain = TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])
    policy = eb.learn([chain])
    schedules = [get_policy("depth").schedule] + [policy.schedule] * TRIALS
    policy.schedule = lambda graph: schedules.pop(0)(graph)
    choice = Choice()
    assert choice.of(policy, chain).name == "critical-path"
    assert choice.of(policy, chain) is policy  # in this round it is as good
    for _ in range(TRIALS - 2):
        choice.of(policy, chain)
    assert choice.of(policy, chain).name == "critical-path"  # but not in all


def test_policies_that_were_not_learned_are_taken_as_they_are(lattices):
    class Own:
        name = "own"

        def schedule(self, graph):
            found = get_policy("depth").schedule(graph)
            return Schedule(found.order, found.offsets, found.types)

    batches = {}
    for policy in ("depth", Own(), "critical-path"):
        graph, _ = lattices.rounds(policy, 40)
        batches[getattr(policy, "name", policy)] = graph.report().batches
    assert batches["own"] == batches["depth"] > batches["critical-path"]


def test_the_numbers_are_the_same_each_time(lattices):
    policy = eb.learn([lattices.whole(range(30))])
    (_, first), (_, second) = lattices.rounds(policy, 40), lattices.rounds(policy, 40)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_runs_of_a_graph_are_what_was_scheduled(lattices):
    graph, _ = lattices.rounds("critical-path", 40)
    whole = graph.typed_graph()
    runs = whole.runs()
    report = graph.report()
    assert len(runs) == report.rounds == EACH
    assert sum(map(len, runs)) == len(whole) == report.nodes
    sufficient = get_policy("critical-path")
    assert sum(len(sufficient.schedule(run)) for run in runs) == report.batches
    assert sum(map(lower_bound, runs)) == report.lower_bound
    for run in runs:
        TypedGraph.checked(run.types, run.indptr, run.operands, run.names)
    policy = eb.learn([whole])
    assert policy.training.graphs == EACH
    assert sum(policy.training.batches) <= report.batches


def test_runs_are_recorded(lattices, tmp_path):
    graph, _ = lattices.rounds("critical-path", 40)
    with graph:
        eb.tanh(eb.ones(3))  # pending, and so a run to come
    whole = graph.typed_graph()
    assert len(whole.runs()) == EACH + 1
    graph.save(tmp_path / "rounds.txt")
    found = read_graph(tmp_path / "rounds.txt")
    assert found.ends == whole.ends
    for a, b in zip(found.runs(), whole.runs(), strict=True):
        assert (a.names, a.types.tolist()) == (b.names, b.types.tolist())
        assert (a.indptr.tolist(), a.operands.tolist()) == (b.indptr.tolist(), b.operands.tolist())


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ("# runs 3 1", "expected these to ascend, up to 3"),
        ("# runs 4", "expected these to ascend, up to 3"),
        ("# runs x", "expected integers"),
        ("# runs 1", "node 0: operand 2 is of a later run"),
    ],
)
def test_runs_that_cannot_be(tmp_path, ends, message):
    path = tmp_path / "graph.txt"
    path.write_text(f"3\n0 1 2\n0 0\n1 0\n{ends}\n")
    with pytest.raises(eb.EdBatchError, match=message):
        read_graph(path)

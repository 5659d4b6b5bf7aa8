"""Policies on rounds: learned from recorded rounds, and no worse than `sufficient` where learned from whole graphs."""

import pytest

import edbatch as eb
from edbatch.models.workloads import get_workload
from edbatch.policy import TypedGraph, get_policy, lower_bound, read_graph
from edbatch.policy.rounds import schedule_of_round

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


def test_what_was_learned_from_whole_graphs_is_no_worse_than_sufficient():
    reader = Reader("tree-lstm")
    policy = eb.learn([reader.whole(range(30))])
    for begin in (40, 100):
        learned, sufficient = (reader.rounds(one, begin)[0].report().batches for one in (policy, "critical-path"))
        assert learned <= sufficient


def test_the_better_of_two_schedules_is_taken():
    """One that decides badly is given up where it does, as is one that does not know a type."""
    chain = TypedGraph.from_lists(["I", "O", "I", "O"], [[], [0], [0], [2]])
    other = TypedGraph.from_lists(["I", "I"], [[], [0]])
    bad = eb.learn([chain])
    assert len(schedule_of_round(bad, TypedGraph.from_lists(["new"], [[]]))) == 1
    bad.schedule = get_policy("depth").schedule
    assert len(bad.schedule(chain)) == 4
    assert len(schedule_of_round(bad, chain)) == len(get_policy("critical-path").schedule(chain)) == 3
    assert len(schedule_of_round(bad, other)) == 2


def test_runs_of_a_graph_are_what_was_scheduled():
    graph, _ = Reader("lattice-lstm").rounds("critical-path", 40)
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

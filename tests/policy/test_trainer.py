import pytest
from tqdm import tqdm

from edbatch.policy import TypedGraph
from edbatch.policy.encodings import CRITICAL, SORT
from edbatch.policy.trainer import HOPELESS, Trainer


def side_by_side(graphs):
    """One mini-batch of graphs with the same types."""
    types, operands = [], []
    for graph in graphs:
        base = len(types)
        for node in range(len(graph)):
            row = graph.operands[graph.indptr[node] : graph.indptr[node + 1]].tolist()
            operands.append([base + operand for operand in row])
            types.append(graph.names[graph.types[node]])
    return TypedGraph.from_lists(types, operands)


@pytest.fixture
def trainer(random_graph, request):
    found = Trainer([side_by_side([random_graph(seed, 25, 4) for seed in range(12)])], request.param, seed=0)
    found.bar = tqdm(disable=True)
    found.follow_teachers()
    found.draw()
    return found


@pytest.mark.parametrize("trainer", [SORT, CRITICAL], indirect=True)
def test_tables_are_judged_by_smaller_mini_batches_as_well(trainer):
    graph, *others = [len(arena.graph.types) for arena in trainer.arenas]
    assert others
    assert max(others) < graph
    for candidate in trainer.candidates:
        assert candidate.batches == trainer.check(candidate.table.copied()).batches


@pytest.mark.parametrize("trainer", [SORT, CRITICAL], indirect=True)
def test_what_a_change_does_is_found_where_its_states_are_met_alone(trainer):
    now = trainer.check(trainer.best.table.copied())
    for state in list(now.decided):
        table = now.table.copied()
        options = int(table.start[state + 1] - table.start[state])
        table.choice[state] = (table.choice[state] + 1) % options
        known = int(table.size[0])
        whole = trainer.check(table.copied())
        found = trainer.changed(now._replace(table=table), {state})
        if whole.table.size[0] == known and found.cost <= HOPELESS * now.cost:  # no state is new
            assert (found.batches, found.decided) == (whole.batches, whole.decided)
        assert found.batches == trainer.check(found.table).batches or found.cost > HOPELESS * now.cost


@pytest.mark.parametrize("trainer", [SORT, CRITICAL], indirect=True)
def test_improving_never_costs_batches_and_counts_what_it_tries(trainer):
    before = trainer.best.cost
    trainer.improve(100)
    assert trainer.best.cost <= before
    assert trainer.best.batches == trainer.check(trainer.best.table.copied()).batches
    assert 0 < trainer.spent < 110

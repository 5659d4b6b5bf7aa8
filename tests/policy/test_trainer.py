import pytest
from tqdm import tqdm

from edbatch.policy import TypedGraph
from edbatch.policy.encodings import CRITICAL, SORT
from edbatch.policy.trainer import Trainer


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
    found = Trainer(
        [side_by_side([random_graph(seed + 9 * k, 25, 4) for seed in range(6)]) for k in (0, 1)], request.param, seed=0
    )
    found.bar = tqdm(disable=True)
    found.follow_teachers()
    return found


@pytest.mark.parametrize("trainer", [SORT, CRITICAL], indirect=True)
def test_refining_never_costs_batches_and_counts_what_it_tries(trainer):
    before = trainer.best.cost
    trainer.refine(100)
    assert trainer.best.cost <= before
    assert trainer.best.batches == trainer.check(trainer.best.table.copied()).batches
    assert 0 < trainer.spent < 110

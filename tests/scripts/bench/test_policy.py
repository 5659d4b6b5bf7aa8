"""Tables of policies, on small recorded graphs."""

import pytest

import edbatch as eb
from scripts.bench.policy import ENCODINGS, RULES, policies_on


@pytest.fixture
def folder(tmp_path):
    """Two graphs of every family."""
    (tmp_path / "graphs").mkdir()
    model = eb.ParameterCollection()
    W = model.add_parameters((2, 2), name="W")
    for family in ("treenn", "mvrnn", "bilstm", "seq2seq", "lattice"):
        for number in range(2):
            with eb.Graph(policy="sufficient") as graph:
                for length in range(1, 3 + number):
                    h = eb.zeros(2)
                    for _ in range(length):
                        h = eb.tanh(W @ h) + eb.sigmoid(h)
            graph.save(tmp_path / "graphs" / f"{family}-B64-G{number}.txt")
    return tmp_path


def test_every_graph_under_every_policy(folder):
    figures, batches, costs = policies_on(folder, rounds=1).values()
    assert len(batches) == len(costs) == 10
    learned = {f"fsm {encoding}" for encoding in ENCODINGS}
    assert all(row.keys() == {"graph", "nodes", "bound", *RULES, *learned} for row in batches)
    assert all(row[rule] >= 1 for row in batches for rule in (*RULES, *learned))
    assert all(figure["measured"] > 0 for figure in figures)

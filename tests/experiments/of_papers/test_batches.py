"""Batches of every policy, on small recorded graphs."""

import pytest

import edbatch as eb
from edbatch.experiments.experiment import Setting
from edbatch.experiments.of_papers.batches import drawn, figures, fresh, measure, points
from edbatch.policy import TypedGraph
from edbatch.policy.encodings import ENCODINGS


@pytest.fixture
def folder(tmp_path):
    """Two graphs of two families."""
    (tmp_path / "graphs").mkdir()
    model = eb.ParameterCollection()
    W = model.add_parameters((2, 2), name="W")
    for family in ("treenn", "lattice"):
        for number in range(2):
            with eb.Graph(policy="sufficient") as graph:
                for length in range(1, 3 + number):
                    h = eb.zeros(2)
                    for _ in range(length):
                        h = eb.tanh(W @ h) + eb.sigmoid(h)
            graph.save(tmp_path / "graphs" / f"{family}-B64-G{number}.txt")
    return tmp_path


def test_recorded_graphs_are_scheduled_by_what_has_not_seen_them(folder, monkeypatch):
    setting = Setting(folder=folder)
    names = [point["workload"] for point in points(setting)]
    assert names[-2:] == ["recorded lattice", "recorded treenn"]
    assert "recorded treenn" not in [point["workload"] for point in points(Setting(quick=True, folder=folder))]
    seen = []
    monkeypatch.setattr(
        "edbatch.experiments.of_papers.batches.learn",
        lambda graphs, **how: seen.append([len(graph) for graph in graphs]) or eb.learn(graphs, **how),
    )
    rows = measure(setting, {"workload": "recorded treenn"})
    by_side = {row["side"]: row for row in rows}
    assert {"depth", "sufficient", "critical-path"} < by_side.keys()
    assert {f"learned, {encoding}" for encoding in ENCODINGS} < by_side.keys()
    assert all(row["worst"] >= row["batches / bound"] >= 1 for row in rows)
    assert all(row["batches"] == pytest.approx(row["batches / bound"] * row["bound"]) for row in rows)
    sizes = {len(graphs) for graphs in seen}
    assert sizes == {1}  # of two graphs, one is left out
    assert len({tuple(of) for of in seen}) == 2


def test_what_was_asked_for():
    def row(workload, side, ratio):
        return {"workload": workload, "side": side, "batches / bound": ratio, "ns per node and edge": 7.0}

    rows = [row("tagger", "learned, sort", 1.0), row("tree-lstm", "learned, sort", 1.1)]
    rows += [row("tree-lstm-2type", f"learned, {encoding}", 1.2) for encoding in ("sort", "critical")]
    found = {of["figure"]: of["measured"] for of in figures(rows)}
    assert found["chains and trees, sort, worst / bound"] == 1.1
    assert found["2Type, critical / bound"] == 1.2
    assert found["lattices, sort / bound"] is None
    assert drawn([*rows, row("tagger", "standard-sort", 9.0)]) == rows


def test_a_graph_that_was_just_built_has_not_found_its_users():
    graph = TypedGraph.from_lists(["a", "b"], [[], [0]])
    assert fresh(graph) is not graph
    assert len(fresh(graph)) == 2

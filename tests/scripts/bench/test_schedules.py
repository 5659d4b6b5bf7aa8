"""Schedules over the bound, of mini-batches and of recorded graphs; the fewest batches."""

import pytest

from edbatch.policy import TypedGraph, write_graph
from scripts.bench import schedules


@pytest.mark.slow
def test_tables(tables_of, monkeypatch):
    monkeypatch.setattr(schedules, "NINE", ("tree-lstm-2type",))
    monkeypatch.setattr(schedules, "SMALL", (1,))
    monkeypatch.setattr(schedules, "SMALL_GRAPHS", 1)
    ratios, times, small = tables_of(schedules.main, "--size=2", "--graphs=1").values()
    assert [row["graphs"] for row in ratios] == ["tree-lstm-2type, 2", "tree-lstm-2type, op by op, 2"]
    for row in ratios:
        assert all(row[name] >= 1 for name in (*schedules.RULES, "sort", "learned"))
    assert all(row["critical-path"] > 0 for row in times)
    assert [row["proven"] for row in small] == ["1 of 1", "0 of 1"]  # op by op there are more than 500 nodes
    assert small[0]["critical-path / fewest"] >= 1


def test_recorded_graphs_are_judged_by_what_the_others_teach(tmp_path, monkeypatch):
    monkeypatch.setattr(schedules, "graphs_of", lambda *given, **options: [])
    (tmp_path / "graphs").mkdir()
    for number in range(3):
        graph = TypedGraph.from_lists(
            ["a", "b"] * (1 + number), [[max(0, at - 1)] * (at > 0) for at in range(2 + 2 * number)]
        )
        write_graph(tmp_path / "graphs" / f"chain-{number}.txt", graph)
    found = [one for one in schedules.families(2, 1, tmp_path) if one.name.startswith("recorded")]
    assert [one.name for one in found] == [f"recorded chain {number}" for number in range(3)]
    assert [len(one.graphs[0]) for one in found] == [2, 4, 6]
    assert [sorted(map(len, one.others)) for one in found] == [[4, 6], [2, 6], [2, 4]]


def test_the_fewest_batches():
    """The strings `ab` and `ba`: whichever begins, one type runs twice."""
    found = schedules.fewest(TypedGraph.from_lists(["a", "b", "b", "a"], [[], [0], [], [2]]))
    assert (found.least, found.gap) == (3, 0)

"""Timelines: what ran when, for trace viewers."""

import json

import pytest

import edbatch as eb
from edbatch.errors import EdBatchError


@pytest.fixture
def trained(tmp_path):
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((3, 3), name="W")
    trainer = eb.Adam(model)
    with eb.options(profile=True), eb.Graph(policy="sufficient") as graph:
        total = eb.sum([eb.sum(eb.tanh(W @ eb.ones(3))) for _ in range(4)])
        total.value()
        (total * eb.scalar(2)).backward()
    trainer.update()
    graph.timeline(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    return graph, [event for event in events if event["ph"] == "X"]


def test_every_batch_is_there_within_an_execution(trained):
    graph, events = trained
    batches = [event for event in events if event["tid"] == 2]
    assert [event["name"] for event in batches] == ["matmul x 4", "tanh x 4", "sum x 4", "sum_list x 1", "multiply x 1"]
    assert [event["args"]["batch"] for event in batches] == list(range(graph.report().batches))
    assert batches[0]["args"]["type"] == "matmul(W[3,3], [3])"
    assert sum(event["args"]["operands gathered"] for event in batches) == graph.report().gathered
    assert sum(event["args"]["operands viewed"] for event in batches) == graph.report().viewed
    runs = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"] == "execution"]
    for event in batches:
        assert any(begin - 0.01 <= event["ts"] and event["ts"] + event["dur"] <= end + 0.01 for begin, end in runs)


def test_backward_batches_are_there_within_a_backward_pass(trained):
    graph, events = trained
    batches = [event for event in events if event["tid"] == 3]
    computed = [event["name"] for event in batches if event["name"].startswith("gradient")]
    named = ["multiply x 1", "sum x 4", "tanh x 4", "matmul x 4"]
    assert computed == [f"gradient of {name}" for name in named]
    report = graph.report()
    assert report.backward_batches == report.backward_bound == len(computed)
    assert {event["name"] for event in batches} - set(computed) <= {"add gradients x 1", "add gradients x 4"}
    ((begin, end),) = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"] == "backward"]
    for event in batches:
        assert begin - 0.01 <= event["ts"]
        assert event["ts"] + event["dur"] <= end + 0.01
    assert all(use.backward_seconds for name, use in report.uses.items() if not name.startswith("sum_list"))


def test_what_was_not_timed(tmp_path):
    with eb.Graph() as graph:
        eb.tanh(eb.scalar(1)).value()
    with pytest.raises(EdBatchError, match=r"timeline: record the graph under edbatch.options\(profile"):
        graph.timeline(tmp_path / "t.json")
    with eb.options(profile=True), eb.Graph() as graph:
        eb.tanh(eb.scalar(1))
    with pytest.raises(EdBatchError, match="timeline: the graph has not run"):
        graph.timeline(tmp_path / "t.json")
    assert not list(tmp_path.iterdir())

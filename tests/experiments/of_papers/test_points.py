"""A point of every experiment that is quick enough, with PyTorch and without."""

import pytest

from edbatch.experiments import torch_forms
from edbatch.experiments.experiment import Setting
from edbatch.experiments.of_papers import throughput
from edbatch.experiments.registry import experiments

OURS = {"edbatch", "edbatch replayed", "edbatch unbatched"}
POINTS = [
    ("moe", {"experts": 3, "batch": 4}, {"EdBatch over itself unbatched"}, {"PyTorch by hand over one by one"}),
    ("iep", {"batch": 2}, {"standard sort", "improved sort", "learned"}, set()),
    ("cavs-construction", {"model": "tree-fc", "size": 4}, {"loop", "vertex function", "replayed"}, set()),
    ("cavs-construction", {"model": "tree-lstm", "size": 2}, {"loop", "vertex function", "replayed"}, set()),
    ("cavs-training", {"model": "var-lstm", "hidden": 4, "batch": 2}, OURS, {"pytorch by hand"}),
    ("recursion-dynamic", {"batch": 2}, {"edbatch", "edbatch, one at a time"}, set()),
    ("recursion", {"model": "rntn", "mode": "inference", "batch": 2}, OURS, {"pytorch per sample"}),
]


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(Setting, "rounds", 1)


@pytest.mark.parametrize(("name", "point", "ours", "theirs"), POINTS)
@pytest.mark.parametrize("torch", [False, True])
def test_sides(name, point, ours, theirs, torch, monkeypatch):
    if torch and theirs:
        pytest.importorskip("torch")
    elif not torch:
        monkeypatch.setattr(torch_forms, "find_spec", lambda _: None)
    rows = experiments()[name].measure(Setting(quick=True), point)
    missing = {row["side"] for row in rows if row.get("missing") == torch_forms.MISSING}
    measured = {row["side"] for row in rows if "missing" not in row}
    assert ours <= measured
    assert theirs <= (measured if torch else missing)


@pytest.mark.parametrize("quick", [False, True])
def test_points_are_told_apart_by_what_they_are(quick):
    for one in experiments().values():
        points = one.points(Setting(quick=quick))
        assert points
        assert len({str(point) for point in points}) == len(points)


def test_rows_of_throughput_that_are_drawn():
    def row(hidden, batch, rate):
        return {"workload": "tagger", "hidden": hidden, "batch": batch, "side": "edbatch", "samples/s": rate}

    rows = [row(64, 1, 5), row(64, 8, 9), row(128, 1, 3), row(128, 8, 4)]
    assert throughput.best(rows) == [rows[1], rows[3]]
    assert throughput.best(rows[:2]) == []
    assert throughput.middle(rows) == rows[2:]
    assert throughput.middle(rows[:2]) == rows[:2]

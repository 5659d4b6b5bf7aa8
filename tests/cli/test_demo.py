"""`edbatch demo`: one table and one picture of what policies do."""

from xml.etree import ElementTree

import numpy as np
import pytest

from edbatch.base.drawing import bars as bars_of
from edbatch.cli import demo
from edbatch.models.workloads import WORKLOADS
from edbatch.policy import get_policy
from tests.pages import README

SMALL = ("--samples", 3, "--hidden", 4)


@pytest.fixture
def learned_here(monkeypatch):
    """Another process would compile, or load, everything anew."""

    class Done:
        returncode = 0

        def __init__(self, call, **_):
            demo.learn_from(call[3:])

        def poll(self):
            return self.returncode

        def kill(self):
            pass

        def communicate(self):
            return "", ""

    monkeypatch.setattr(demo.subprocess, "Popen", Done)
    return Done


def test_rows(edbatch_json, learned_here, tmp_path):
    path = tmp_path / "picture.svg"
    found = edbatch_json("demo", *SMALL, "--svg", path)
    assert (found["samples"], found["hidden"], found["svg"]) == (3, 4, str(path))
    rows = {(row["model"], row["policy"]): row for row in found["rows"]}
    policies = ["unbatched", "depth", "agenda", "critical-path", "learned"]
    assert list(rows) == [(model, policy) for model in ("trees", "tagger", "lattices") for policy in policies]
    for row in found["rows"]:
        unbatched = rows[row["model"], "unbatched"]
        assert row["bound"] == unbatched["bound"] <= row["batches"] <= unbatched["batches"]
        assert row["difference"] < 1e-6
        assert 0 < row["ms"] < 60_000
    for model in ("trees", "tagger"):
        assert rows[model, "learned"]["batches"] == rows[model, "learned"]["bound"]
    texts = [text.text for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert {"trees", "tagger", "lattices", "depth", "agenda", "critical-path", "learned"} <= set(texts)


def test_what_it_says_is_so(edbatch, learned_here, monkeypatch, tmp_path):
    """At its own sizes, as README has it: depth, agenda and the learned machines differ by 2 x in batches."""
    monkeypatch.chdir(tmp_path)
    status, out, err = edbatch("demo", "--hidden", 4)
    assert (status, err) == (0, "")
    assert (tmp_path / "edbatch-demo.svg").read_text().startswith("<svg")
    over = [line.split()[-5:] for line in out.splitlines() if "batches / bound" in line]
    trees, tagger, lattices = ([float(of) for of in line] for line in over)
    said = " ".join(README.read_text(encoding="utf-8").split())
    assert "trees {1} by depth, {2} by agenda, {4} learned; ".format(*over[0]) in said
    assert "tagger {1}, {2}, {4}; lattices {5}, {6}, {7}.".format(*over[1], *(over[2][at] for at in (1, 2, 4))) in said
    assert f"{len(WORKLOADS)} models to name" in said
    for _, depth, _, _, learned in (trees, tagger, lattices):
        assert depth > 1.8 * learned
    assert trees[2] > 1.8 * trees[4]  # agenda
    assert lattices[2] > 1.5 * lattices[4]
    assert (trees[4], tagger[4]) == (1, 1)
    assert 1 <= lattices[4] <= lattices[3]
    assert max(map(len, out.splitlines())) <= 100


def test_learning_needs_no_episode(tmp_path):
    for name, of in demo.MODELS.items():
        path = tmp_path / f"{name}.txt"
        demo.Model(of, 1, 4).record(path)
        demo.learn_from([str(path)])
        policy = get_policy(path.with_suffix(".json"))
        assert (policy.training.batches, policy.training.episodes) == (policy.training.bounds, 0)


def test_another_process_learns(tmp_path):
    path = tmp_path / "trees.txt"
    demo.Model("tree-lstm", 1, 4).record(path)
    with demo._learner({"trees": path}) as learner:
        assert learner.wait() == 0
    assert get_policy(path.with_suffix(".json")).name == "fsm-ahead"
    with demo._learner({"trees": tmp_path / "none.txt"}) as learner:
        pass  # it ends with the block, whatever it does
    assert learner.returncode is not None


def test_what_goes_wrong(fails, learned_here, monkeypatch, tmp_path):
    path = tmp_path / "picture.svg"
    assert "no folder" in fails("demo", "--svg", tmp_path / "none" / "picture.svg")
    compute = demo.Model.compute

    def wrong(self, policy):
        values, *others = compute(self, policy)
        return values + np.float32(policy.name == "agenda"), *others

    monkeypatch.setattr(demo.Model, "compute", wrong)
    assert fails("demo", *SMALL, "--svg", path) == "trees: agenda is 1.0e+00 from unbatched; this is a fault"
    assert not path.exists()
    monkeypatch.setattr(learned_here, "returncode", 1)
    monkeypatch.setattr(learned_here, "communicate", lambda self: ("", "Traceback\nMemoryError: none left\n"))
    assert fails("demo", *SMALL, "--svg", path) == "learning failed: MemoryError: none left"


def test_a_picture_of_bars():
    text = bars_of("A & B", {"x < y": {"one": [2.0, 0.5], "two": [1.0, 40.0]}}, ["a", "b"])
    root = ElementTree.fromstring(text)
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["A & B", "a", "b", "x < y", "one", "2.00", "0.50", "two", "1.00", "40"]
    bars = [one for one in root.iter("{http://www.w3.org/2000/svg}rect") if one.get("width") == "32"]
    heights = [float(bar.get("height")) for bar in bars]
    assert heights == pytest.approx([heights[3] / 20, heights[3] / 80, heights[3] / 40, heights[3]], abs=0.1)
    assert {float(bar.get("y")) + float(bar.get("height")) for bar in bars} == {float(bars[0].get("y")) + heights[0]}
    width, height = float(root.get("width")), float(root.get("height"))
    for bar in bars:
        assert 0 <= float(bar.get("x")) <= width - 32
        assert 0 <= float(bar.get("y")) <= height
